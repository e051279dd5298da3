//! As much of DER as it takes to find something in a certificate.

/// The tag of what holds others in their order.
pub(super) const SEQUENCE: u8 = 0x30;

/// What the first element holds, if it has this tag.
pub(super) fn first(der: &[u8], wanted: u8) -> Option<&[u8]> {
    Elements(der).next().filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
}

/// Elements one after the other: the tag, and what it holds. Ends where something is no DER.
pub(super) struct Elements<'d>(pub(super) &'d [u8]);

impl<'d> Iterator for Elements<'d> {
    type Item = (u8, &'d [u8]);

    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let ([tag, length], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match *length {
            short @ ..=0x7f => (usize::from(short), rest),
            // Of so many bytes; four are more than any certificate has.
            long @ 0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, value))
    }
}
