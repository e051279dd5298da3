mod exposition;
mod fixture;
mod health;
mod metrics;
mod page;
mod parser;
