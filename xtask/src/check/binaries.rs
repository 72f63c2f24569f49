//! The test programs that cargo builds, and the tests in each.
//!
//! Fails with cargo's own messages if something does not compile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, read};

/// A program with tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Binary {
    /// The package and, where it has several, the target: `retake-agent/it`.
    name: String,
    program: PathBuf,
    /// Where tests run: the package's directory, as with `cargo test`.
    directory: PathBuf,
}

impl Binary {
    pub(super) fn new(name: &str, program: impl Into<PathBuf>, directory: &Path) -> Self {
        Self { name: name.to_owned(), program: program.into(), directory: directory.to_owned() }
    }
}

/// A test of a binary.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) binary: Binary,
    pub(super) name: String,
}

impl Test {
    /// The name that no test of another binary has.
    pub(super) fn full_name(&self) -> String {
        format!("{} {}", self.binary.name, self.name)
    }

    /// The command that runs this test alone.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary.program);
        command.args([&self.name, "--exact", "--nocapture"]).current_dir(&self.binary.directory);
        command
    }
}

/// Builds all test programs, and the examples and programs that tests start.
pub(super) fn build() -> Result<Vec<Binary>> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start `cargo test --no-run`")?;
    if !output.status.success() {
        bail!("`cargo test --no-run` failed: {}", output.status);
    }
    Ok(binaries(&String::from_utf8_lossy(&output.stdout)))
}

/// The test programs in cargo's messages, one JSON document a line.
fn binaries(messages: &str) -> Vec<Binary> {
    let found: BTreeSet<Binary> =
        messages.lines().filter_map(|line| binary(&serde_json::from_str::<Value>(line).ok()?)).collect();
    found.into_iter().collect()
}

fn binary(message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
    let (package, target) = (directory.file_name()?.to_str()?, message["target"]["name"].as_str()?);
    let is_unit = message["target"]["kind"][0] != "test";
    let name = if is_unit { package.to_owned() } else { format!("{package}/{target}") };
    Some(Binary::new(&name, message["executable"].as_str()?, directory))
}

/// The tests of a binary: those that run, and those that are switched off.
pub(super) fn tests(binary: &Binary) -> Result<(Vec<Test>, Vec<Test>)> {
    let list = |kind: &[&str]| -> Result<BTreeSet<String>> {
        let mut command = Command::new(&binary.program);
        command.args(["--list", "--format", "terse"]).args(kind).current_dir(&binary.directory);
        Ok(names(&read(&mut command)?).map(str::to_owned).collect())
    };
    let (all, ignored) = (list(&[])?, list(&["--ignored"])?);
    let test = |name: &String| Test { binary: binary.clone(), name: name.clone() };
    Ok((all.difference(&ignored).map(test).collect(), ignored.iter().map(test).collect()))
}

/// The names in a list such as `scan::links_are_kept: test`.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.strip_suffix(": test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"build-script-executed","package_id":"x"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/agent/Cargo.toml","target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/r/t/it-1"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/agent/Cargo.toml","target":{"kind":["lib"],"name":"retake_agent"},"profile":{"test":true},"executable":"/r/t/agent-1"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/agent/Cargo.toml","target":{"kind":["lib"],"name":"retake_agent"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"retake"},"profile":{"test":false},"executable":"/r/t/retake"}
{"reason":"build-finished","success":true}
not JSON
"#;

    #[test]
    fn only_programs_with_tests_are_found_in_cargos_messages() {
        let found = binaries(MESSAGES);
        let names: Vec<&str> = found.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["agent", "agent/it"]);
        assert_eq!(found[1].program, Path::new("/r/t/it-1"));
        assert_eq!(found[1].directory, Path::new("/r/crates/agent"));
    }

    #[test]
    fn a_list_has_tests_and_other_lines() {
        let list = "scan::links_are_kept: test\nspeed: benchmark\nmodes_are_kept: test\n\n2 tests, 1 benchmark\n";
        assert_eq!(names(list).collect::<Vec<_>>(), ["scan::links_are_kept", "modes_are_kept"]);
    }
}
