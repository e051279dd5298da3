//! Floor 1: the bytes and the words of MCP over stdio. Knows no process and no time.

mod era;
pub mod json;
pub mod mcp;
pub mod wire;

pub use era::{Era, LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS};
