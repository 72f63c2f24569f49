//! The process and its children: signals, keys in the environment, and processes that a command leaves behind.

pub mod interrupt;
pub mod leftovers;
pub mod secrets;
