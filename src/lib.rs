//! stdiowatch lets ordinary monitoring watch MCP servers that speak over stdio.
//!
//! Data goes one way:
//!
//! ```text
//! bytes, time → Machine → Observation → judge → Report → Fact → ServerState → Snapshot → { metrics, health, page, terminal }
//! ```
//!
//! The machine observes, the checks judge, the ledger remembers, the surfaces show. A room imports
//! only from the floors below its own:
//!
//! | floor | room | what is in it |
//! |---|---|---|
//! | 0 | [`words`] | names, times, excerpts, digests |
//! | 1 | [`protocol`] | bytes into JSON-RPC messages, and MCP's questions and answers |
//! | 2 | [`probe`] | one probe as a state machine; what was seen in it |
//! | 3 | [`judge`] | the checks; findings, verdict, report |
//! | 4 | [`ledger`] | what is remembered of each server; the snapshot |
//! | 5 | [`outside`] | processes and clocks |
//! | 6 | [`running`] | machine × process, the schedule, the hub |
//! | 7 | [`show`], [`serve`], [`config`] | pure views; the HTTP side; configuration files |
//! | 8 | [`cli`] | the command line |
//!
//! [`sample`] is the built-in MCP server; it shares nothing with the rest. `docs/architecture.md` has
//! the same map with its rules; `tests/house.rs` holds the source against them.

#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod judge;
pub mod ledger;
pub mod outside;
pub mod probe;
pub mod protocol;
pub mod running;
pub mod sample;
pub mod serve;
pub mod show;
pub mod words;
