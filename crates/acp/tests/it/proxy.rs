//! The proxy around an agent that has every vice.

mod asking;
mod believing;
mod cutting;
mod declaring;
mod describing;
mod ending;
mod forking;
mod greeting;
mod loading;
mod naming;
mod opening;
mod owning;
mod passing;
mod rewinding;
mod strict;
mod surviving;
mod talking;
mod tooling;
mod vices;
mod world;
