//! The demo: the real agent over real HTTP on a built-in model, in a directory of its own.

pub mod live;
mod model;
mod scratch;
mod story;
pub mod tour;
