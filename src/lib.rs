//! stdiowatch: lets ordinary monitoring watch MCP servers that speak over stdio.

pub mod cli;
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
