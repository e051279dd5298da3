//! Floor 5: the operating system. Everything that launches, signals, reads `/proc` or a clock.

pub mod clock;
pub mod peers;
pub mod process;
pub mod service;
pub mod tls;
pub mod vault;
