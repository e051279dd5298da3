//! What the targets run is in `tests/fuzzed`: `cargo test` runs it too, over what is kept.

#[path = "../../tests/fuzzed/mod.rs"]
pub mod fuzzed;

// Where the reader of expositions looks for it.
use stdiowatch::show;
