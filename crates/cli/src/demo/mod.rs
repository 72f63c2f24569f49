//! The demo: the real agent over real HTTP on a built-in model, in a directory of its own.

mod model;
mod scratch;
mod story;
pub mod live;
pub mod tour;
