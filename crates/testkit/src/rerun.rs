//! Running one test of this binary again, in a process of its own.
//!
//! Fail points and mounts hold for a whole process, and a crash ends one: such things are done by a test that runs a test, its own or
//! another, as a child. The child is told its role by environment variables.

use std::process::Command;

/// A command that runs the test `name` (its path in the binary, without the crate) of the calling test binary, alone.
///
/// Nothing is captured by the test runner, so all that the test prints is in the output.
pub fn test(name: &str) -> Command {
    let binary = std::env::current_exe().expect("the path of the test binary");
    let mut command = Command::new(binary);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env("RUST_BACKTRACE", "0");
    command
}
