//! A scrape as the body of an answer.

use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};

use crate::show::scrape::Scrape;

/// How many pieces are made before others have their turn: a millisecond's worth, packed.
const AT_ONCE: u32 = 4;

/// A scrape that is written, and packed if `gzip` says so, while it is sent, a piece at a time. What is
/// one piece has a length; more is sent in chunks, or, to an HTTP/1.0 client, until the connection is
/// closed.
pub(super) fn body(mut scrape: Scrape, gzip: bool) -> Body {
    let mut packer = if gzip { Packer::gzip() } else { Packer::None };
    let first = packer.pack(scrape.next().unwrap_or_default());
    if scrape.is_over() {
        return Body::from([first, packer.end()].concat());
    }
    Body::new(Pieces { first: Some(first), scrape, packer: Some(packer), unrested: 0 })
}

/// What becomes of a piece.
enum Packer {
    None,
    /// At the quickest level: it takes off nine tenths, and the best one hardly more.
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Packer {
    fn gzip() -> Packer {
        Packer::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    /// A piece to send, which may be empty: some of it may come with a later one.
    fn pack(&mut self, piece: String) -> Vec<u8> {
        match self {
            Packer::None => piece.into_bytes(),
            Packer::Gzip(encoder) => {
                // A vector takes everything.
                let _ = encoder.write_all(piece.as_bytes());
                std::mem::take(encoder.get_mut())
            }
        }
    }

    /// What is left at the end.
    fn end(self) -> Vec<u8> {
        match self {
            Packer::None => Vec::new(),
            Packer::Gzip(encoder) => encoder.finish().unwrap_or_default(),
        }
    }
}

struct Pieces {
    first: Option<Vec<u8>>,
    scrape: Scrape,
    /// Taken when there is nothing more to pack.
    packer: Option<Packer>,
    /// Pieces since others had their turn: thousands of servers take a tenth of a second.
    unrested: u32,
}

impl Pieces {
    /// The next piece, which may be empty.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        match self.scrape.next() {
            Some(piece) => self.packer.as_mut().map(|packer| packer.pack(piece)),
            None => self.packer.take().map(Packer::end),
        }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let pieces = self.get_mut();
        while pieces.unrested < AT_ONCE {
            pieces.unrested += 1;
            match pieces.next() {
                None => return Poll::Ready(None),
                Some(piece) if !piece.is_empty() => return Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                Some(_) => {}
            }
        }
        pieces.unrested = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.packer.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
