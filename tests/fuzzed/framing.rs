//! The line reader: what it says does not depend on how the bytes were cut into reads, and is bounded.

use stdiowatch::protocol::wire::{Framing, Piece, Place};

/// The first byte is how long a line may be, the second one how long a read is; the rest is stdout.
pub fn run(data: &[u8]) {
    let [limit, read, stdout @ ..] = data else { return };
    let limit = 1 + usize::from(*limit) * 8;
    let whole = told(limit, [stdout].into_iter());
    assert_eq!(whole, told(limit, stdout.chunks(1 + usize::from(*read))));
    let lines = stdout.split(|byte| *byte == b'\n').count();
    for (place, _) in &whole {
        assert!(place.line >= 1 && place.line <= lines as u64 && place.offset <= stdout.len() as u64, "{place:?}");
    }
}

/// Everything that is told of stdout, in words.
fn told<'b>(limit: usize, reads: impl Iterator<Item = &'b [u8]>) -> Vec<(Place, String)> {
    let mut framing = Framing::new(limit);
    let mut told = Vec::new();
    let mut sink = |place: Place, piece: Piece<'_>| {
        let words = match piece {
            Piece::Fault(fault, bytes) => format!("{fault:?} {bytes:?}"),
            Piece::Message(message, bytes) => format!("{message:?} {bytes:?}"),
            Piece::Batch(messages, bytes) => format!("{messages:?} {bytes:?}"),
        };
        told.push((place, words));
    };
    for bytes in reads {
        framing.feed(bytes, &mut sink);
    }
    let tail = framing.tail().map(|tail| (tail.place, format!("{tail:?}")));
    framing.finish(&mut sink);
    told.extend(tail);
    told
}
