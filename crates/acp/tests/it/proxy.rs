//! The proxy around an agent that has every vice.

mod asking;
mod cutting;
mod owning;
mod passing;
mod rewinding;
mod vices;
mod world;
