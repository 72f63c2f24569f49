//! The demo: the real agent over real HTTP on a built-in model, in a directory of its own.

mod guide;
pub mod live;
mod model;
pub mod scratch;
mod story;
pub mod tour;
