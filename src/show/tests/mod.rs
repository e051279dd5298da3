mod exposition;
mod fixture;
mod health;
mod metrics;
mod on_demand;
mod page;
mod parser;
