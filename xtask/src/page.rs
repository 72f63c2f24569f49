//! The web page's own checks: that `dist` is what its sources make, its unit tests, and the real program in a real browser.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{ensure, read, root, run};

/// The oldest node that builds the page.
const OLDEST: (u32, u32) = (20, 19);
/// What is taken instead of an older one.
const NEWER: &str = "node@22";

/// Runs all of them, the last on the program and the scripted model that the tests before have built.
pub(crate) fn check() -> Result<()> {
    let (page, path) = (root().join("crates/web/page"), path()?);
    let npm = |args: &[&str]| {
        let mut command = Command::new("npm");
        command.args(args).current_dir(&page).env("PATH", &path).env("npm_config_fund", "false");
        run(&mut command)
    };
    npm(&["ci", "--no-audit"])?;
    npm(&["run", "fresh"])?;
    npm(&["test"])?;
    ensure("chromium", "chromium")?;
    npm(&["run", "test:browser"])
}

/// Where programs are looked for: a node that is new enough comes first.
fn path() -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let version = read(Command::new("node").arg("--version"))?;
    if is_new_enough(&version) {
        return Ok(path);
    }
    println!("node {version} is too old: taking `{NEWER}` from npm");
    let prefix = root().join("target/node");
    std::fs::create_dir_all(&prefix).context("cannot make a directory for node")?;
    run(Command::new("npm").arg("install").arg("--no-audit").arg("--prefix").arg(&prefix).arg(NEWER))?;
    let bin: &Path = &prefix.join("node_modules/node/bin");
    Ok(env::join_paths(std::iter::once(bin.to_owned()).chain(env::split_paths(&path)))?)
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|number| number.parse().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    found >= OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_node_is_known_as_one() {
        assert_eq!(
            ["v18.20.4", "v20.18.1", "v20.19.0", "v22.1.0", "?"].map(is_new_enough),
            [false, false, true, true, false]
        );
    }
}
