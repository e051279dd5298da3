//! Floor 6: what runs: one probe (machine × process), the schedule of all of them, and the hub
//! through which every change of what is known goes.

pub mod hub;
