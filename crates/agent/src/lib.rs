//! Runs the turns of a coding agent whose history can be rewound.
//!
//! Everything that lasts is the engine's; this crate asks models, runs tools, and tells clients what happens.

pub mod mcp;
pub mod model;
pub mod permission;
pub mod tool;
