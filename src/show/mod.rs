//! Floor 7: what is known, shown. Pure views over a [`Snapshot`](crate::ledger::Snapshot) at a
//! [`Moment`](crate::words::Moment), or over [`Report`](crate::judge::Report)s: no tokio, no clock, no file, and
//! nothing is decided here.

pub mod api;
pub mod badge;
mod diff;
pub mod difference;
mod drift;
pub mod exposition;
pub mod github;
pub mod health;
pub mod human;
pub mod junit;
pub mod metrics;
pub mod nagios;
pub mod on_demand;
pub mod page;
pub mod progress;
pub mod scrape;
mod state;
pub mod status;
mod told;
pub mod transcript;
mod unmistakable;

pub use told::counted;

#[cfg(test)]
mod tests;
