//! The agent from outside, against real processes, files and HTTP.

#![allow(clippy::unwrap_used, missing_docs)]

mod model;
mod model_cancel;
mod model_errors;
mod model_network;
mod model_prefix;
mod owners;
mod scene;
mod session;
mod task;
mod world;
