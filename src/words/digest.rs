use std::cmp::Ordering;
use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Ord for Digest {
    /// By bytes; the first eight nearly always tell.
    fn cmp(&self, other: &Digest) -> Ordering {
        let first = |digest: &Digest| digest.0.first_chunk().map_or(0, |eight| u64::from_be_bytes(*eight));
        first(self).cmp(&first(other)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Digest {
    fn partial_cmp(&self, other: &Digest) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest of several pieces, each preceded by its length, so that no two different
    /// sequences of pieces run together into the same bytes.
    pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = Sha256::new();
        for piece in pieces {
            hasher.update((piece.len() as u64).to_be_bytes());
            hasher.update(piece);
        }
        Digest(hasher.finalize().into())
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// In lower-case hexadecimal, as it is shown.
    #[must_use]
    pub fn hex(&self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        hex
    }

    /// The first 48 bits as a number: what an `f64`, and so a Prometheus sample, holds exactly.
    #[must_use]
    pub fn first_48_bits(&self) -> u64 {
        self.0[..6].iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha_256_in_lower_case_hex() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(Digest::of(b"abc").to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::of(b"abc").first_48_bits(), 0xba78_16bf_8f01);
    }

    #[test]
    fn they_are_sorted_by_their_bytes() {
        let of = |place: usize, byte: u8| {
            let mut bytes = [7; 32];
            bytes[place] = byte;
            Digest(bytes)
        };
        for place in [0, 7, 8, 31] {
            assert!(of(place, 6) < of(place, 7) && of(place, 255) > of(place, 7), "{place}");
        }
        assert!(of(0, 8) > of(1, 255));
        assert_eq!(of(8, 7).cmp(&of(31, 7)), Ordering::Equal);
    }

    #[test]
    fn pieces_do_not_run_together() {
        let digest = |pieces: &[&str]| Digest::of_pieces(pieces.iter().map(|p| p.as_bytes()));
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["abc"]), digest(&["abc", ""]));
    }
}
