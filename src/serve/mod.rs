//! Floor 7: the HTTP side. [`routes`] says what is answered, [`listen`] how connections are kept in
//! bounds, [`own`] what is measured of the process itself.

pub mod accept;
mod connection;
pub mod listen;
mod metrics_body;
pub mod own;
pub mod routes;
