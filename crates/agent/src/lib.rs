//! Runs the turns of a coding agent whose history can be rewound.
//!
//! Everything that lasts is the engine's; this crate asks models, runs tools, and tells clients what happens.

pub mod contract;
pub mod document;
mod limits;
pub mod model;
pub mod tool;
mod turn;
pub mod view;
