//! A scrape as the body of an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};

use crate::show::scrape::Scrape;

/// A scrape that is written while it is sent, a piece at a time. What is one piece has a length;
/// more is sent in chunks, or, to an HTTP/1.0 client, until the connection is closed.
pub(super) fn body(mut scrape: Scrape) -> Body {
    let first = scrape.next().unwrap_or_default();
    if scrape.is_over() { Body::from(first) } else { Body::new(Pieces { first: Some(first), scrape }) }
}

struct Pieces {
    first: Option<String>,
    scrape: Scrape,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let pieces = self.get_mut();
        let piece = pieces.first.take().or_else(|| pieces.scrape.next());
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.scrape.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
