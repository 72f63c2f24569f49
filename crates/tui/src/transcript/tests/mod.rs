//! Conversations as they are drawn.

mod build;
mod cells;
mod cost;
mod scroll;
