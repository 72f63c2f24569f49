//! The web page's own checks: that `dist` is what its sources make, its unit tests, and the real program in a real browser.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{read, root, run};

/// The oldest node that builds the page.
const OLDEST: (u32, u32) = (20, 19);
/// What is taken instead of an older one.
const NEWER: &str = "node@22";

/// A page whose packages are installed.
pub(crate) struct Ready;

/// Installs what the page is built with, quietly: it is done beside other things.
pub(crate) fn prepare() -> Result<Ready> {
    read(&mut npm(&["ci", "--no-audit", "--loglevel=error"])?)?;
    Ok(Ready)
}

impl Ready {
    /// Checks that `dist` is what the sources make, and runs the unit tests.
    pub(crate) fn check(self) -> Result<()> {
        run(&mut npm(&["run", "fresh"])?)?;
        run(&mut npm(&["test"])?)
    }
}

/// Runs the browser's tests on the program and the scripted model that the Rust tests have built.
pub(crate) fn browser(args: &[&str]) -> Result<()> {
    if !root().join("crates/web/page/node_modules").is_dir() {
        prepare()?;
    }
    let mut command = npm(&["run", "test:browser"])?;
    if !args.is_empty() {
        command.arg("--").args(args);
    }
    run(&mut command)
}

/// The names of the browser tests that failed in the last run, as its runner wrote them.
pub(crate) fn failed_tests() -> Result<Vec<String>> {
    let path = root().join("target/browser-failed.json");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(vec!["(the runner itself failed)".to_owned()]) };
    serde_json::from_str(&text).with_context(|| format!("{} is not a list of names", path.display()))
}

fn npm(args: &[&str]) -> Result<Command> {
    let mut command = Command::new("npm");
    command.args(args).current_dir(root().join("crates/web/page"));
    command.env("PATH", path()?).env("npm_config_fund", "false");
    Ok(command)
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
