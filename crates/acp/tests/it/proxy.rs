//! The proxy around an agent that has every vice.

mod asking;
mod cutting;
mod ending;
mod opening;
mod owning;
mod passing;
mod rewinding;
mod vices;
mod world;
