//! Floor 7: configuration files, ours and those of MCP clients, into servers to watch.

pub mod tree;
