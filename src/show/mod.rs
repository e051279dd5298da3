//! Floor 7: what is known, shown. Pure views over a [`Snapshot`](crate::ledger::Snapshot) at a
//! [`Moment`](crate::words::Moment): no tokio, no clock, no file, and nothing is decided here.

pub mod api;
pub mod exposition;
pub mod health;
pub mod human;
pub mod metrics;
pub mod on_demand;
pub mod page;
pub mod scrape;
mod state;
pub mod transcript;
mod unmistakable;

#[cfg(test)]
mod tests;
