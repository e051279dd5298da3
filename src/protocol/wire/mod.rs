//! From the bytes on stdout to JSON-RPC messages, and to what is wrong with them.
//!
//! The transport's rules (specification, "Transports", stdio): UTF-8, one JSON-RPC message a line,
//! `\n` ends it, and nothing else on stdout. [`Framing`] reads what breaks them as far as a message
//! can still be made out, and says what was broken, so that one probe shows everything. What it
//! says never depends on how the bytes were cut into reads.

mod framing;
mod line;
mod lines;
mod message;

pub use framing::{Framing, Sink, Tail};
pub use line::{Fault, Piece};
pub use lines::Place;
pub use message::{Id, Message, Shape};

#[cfg(test)]
mod tests;
