mod knowing;
mod properties;
mod scripted;
pub(crate) mod world;
