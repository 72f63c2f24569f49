//! The proxy around an agent that has every vice.

mod asking;
mod owning;
mod passing;
mod rewinding;
mod vices;
mod world;
