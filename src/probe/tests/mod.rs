mod properties;
mod scripted;
mod world;
