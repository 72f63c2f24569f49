//! Where a failing test leaves what it saw.

use std::path::{Path, PathBuf};

/// The directory of the running test: the one that `cargo xtask test` names, else one below `target/failures`.
pub fn failure_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("RETAKE_FAILURE_DIR") {
        return dir.into();
    }
    let thread = std::thread::current();
    // The test runner names the thread after the test.
    let name = thread.name().unwrap_or("unnamed").replace("::", ".");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/failures").join(name)
}
