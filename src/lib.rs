//! stdiowatch: lets ordinary monitoring watch MCP servers that speak over stdio.

//pub mod outside;
pub mod probe;
pub mod protocol;
pub mod sample;
pub mod words;
