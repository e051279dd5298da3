//! Floor 0: the words that everything else is said in. No I/O, no clock, no opinion.

mod at;
mod digest;
mod excerpt;
mod forms;
mod json_lines;
mod moment;
mod name;
mod redact;
mod similar;
mod vocabulary;

pub use at::At;
pub use digest::Digest;
pub use excerpt::{Excerpt, is_printable, printable, printable_lines};
pub use json_lines::InJson;
pub use moment::Moment;
pub use name::{NameError, ServerName};
pub use redact::Redactor;
pub use similar::similar;
