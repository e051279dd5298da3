//! The built-in sample MCP server: one sound server, and many that are sound but for one fault.
//!
//! `stdiowatch sample-server KIND` serves one [`Kind`] on stdin and stdout, for tests and for
//! `serve --demo`. It is synchronous and shares no code with the prober, so that neither can hide
//! a mistake of the other.
//!
//! A kind is data: `kind` names the kinds, `behaviour` says how each deviates from the sound one,
//! `server` answers one message without any I/O, and `stdio` is the only loop.

mod behaviour;
mod era;
mod kind;
mod prompts;
mod resources;
mod rpc;
mod server;
mod stdio;
mod tools;

#[cfg(test)]
mod tests;

pub use kind::{Kind, UnknownKind};
pub use stdio::run;
