//! Tests of the crate by its public face. The fixtures were written by the agents whose version is in their names, on a scripted model.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod cuts;
mod events;
mod setup;
mod transcripts;

use std::path::{Path, PathBuf};

/// A fixture's path.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A fixture's text.
fn read_fixture(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}
