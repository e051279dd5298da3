//! Floor 7: the HTTP side. [`routes`] says what is answered, [`listen`] how connections are kept in
//! bounds, [`own`] what is measured of the process itself, [`actions`] whether anything may be done,
//! [`access`] who may ask.

pub mod accept;
pub mod access;
pub mod actions;
mod badges;
mod connection;
mod events;
pub mod listen;
mod metrics_body;
mod on_demand;
pub mod own;
mod pages;
mod passwords;
pub mod routes;
mod turns;
