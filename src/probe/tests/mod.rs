mod knowing;
mod properties;
mod scripted;
mod world;
