//! The proxy around an agent that has every vice.

mod asking;
mod ending;
mod opening;
mod passing;
mod rewinding;
mod vices;
mod world;
