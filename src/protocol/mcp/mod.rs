//! MCP itself: what is asked, and what the answers have to hold.

mod answer;
mod ask;
mod forms;
mod items;
mod members;
mod schema;
mod shape;

pub use answer::{Discovered, Greeting, Initialized, ListPage, ServerInfo, read_discover, read_initialize, read_list};
pub use ask::{Asker, ListKind, is_ours, refusal, reply_to_ping, reply_to_roots};
pub use items::{Item, read_item, set_digest};
pub use schema::{MAX_DEPTH, ToolFlaw};
pub use shape::{Flaw, RefusedBy};

#[cfg(test)]
mod tests;
