//! Runs `cargo deny check` on the dependencies: licences, bans, sources and, where GitHub is reachable, security advisories.
//!
//! Installs the pinned version of cargo-deny into `target/tools`, never into the user's cargo home. An advisory database that cannot be
//! fetched is reported and does not fail the step: the other checks need only what cargo fetches.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::shell::{cargo, read, root, run};

/// The version that is installed. Its crate pins all of its dependencies in a lock file.
const VERSION: &str = "0.20.2";

/// Checks `deny.toml` against the lock file.
pub(crate) fn check() -> Result<()> {
    let program = installed()?;
    let deny = || {
        let mut command = Command::new(&program);
        command.arg("--locked").current_dir(root());
        command
    };
    match read(deny().args(["fetch", "db"])) {
        Ok(_) => run(deny().arg("check")),
        Err(error) => {
            println!("note: security advisories are not checked, their database cannot be fetched: {error}");
            run(deny().args(["check", "licenses", "bans", "sources"]))
        }
    }
}

/// The path of cargo-deny, after installing it if this version is not there yet.
fn installed() -> Result<PathBuf> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    let is_there = read(Command::new(&program).arg("--version")).is_ok_and(|version| is_wanted(&version));
    if !is_there {
        println!("cargo-deny {VERSION} is missing: installing it into {}", tools.display());
        // Without optimisation it compiles in half a minute on two cores and still checks in a second or two.
        let mut install = cargo();
        install.args(["install", "--quiet", "--locked", "--debug", "--force", "--root"]).arg(&tools);
        run(install.arg(format!("cargo-deny@{VERSION}")).env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    }
    Ok(program)
}

/// Whether cargo-deny's `--version` prints the pinned version.
fn is_wanted(printed: &str) -> bool {
    printed.split_whitespace().nth(1) == Some(VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_cargo_deny_is_replaced() {
        assert!(is_wanted(&format!("cargo-deny {VERSION}")));
        assert!(!is_wanted(&format!("cargo-deny {VERSION}0")));
        assert!(!is_wanted(""));
    }
}
