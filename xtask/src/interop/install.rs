//! Installing agents below `target/interop`, one folder each, from their packages. Nothing is put anywhere else on the machine.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::agents::{Agent, Package};
use super::python;
use crate::shell;

/// The oldest Node that all agents run on.
const OLDEST_NODE: u32 = 22;

/// An agent that can be started.
#[derive(Debug)]
pub(super) struct Installed {
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
    /// The version of the protocol that it is spoken to in.
    pub(super) protocol: u8,
    /// Folders of programs that it needs, which come before those of the machine.
    pub(super) path: Vec<PathBuf>,
}

/// Where everything is that is installed.
pub(super) fn cache() -> PathBuf {
    shell::root().join("target/interop")
}

/// Installs an agent, or brings it up to date.
pub(super) fn install(agent: &Agent) -> Result<Installed> {
    let folder = cache().join(agent.folder());
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let (program, arguments) = agent.command.split_first().expect("an agent has a command");
    let (bin, path) = match agent.package {
        Package::Npm(package, version) => npm(&folder, package, version, agent.beside)?,
        Package::PyPi(package) => (pypi(&folder, package, program)?, Vec::new()),
    };
    let mut command = vec![bin.join(program).into_os_string()];
    command.extend(arguments.iter().map(OsString::from));
    Ok(Installed { command, protocol: agent.protocol, path })
}

/// Installs a package of npm's; its folder of programs, and what has to be found by them.
fn npm(folder: &Path, package: &str, version: Option<&str>, beside: &[&str]) -> Result<(PathBuf, Vec<PathBuf>)> {
    let modules = folder.join("node_modules");
    let bin = modules.join(".bin");
    // Newer agents want a newer Node than a machine may have, and the package `node` gets one by a script, which npm may be told not to run.
    let node = format!("node-linux-{}", if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" });
    let path = vec![modules.join(&node).join("bin"), bin.clone()];
    let is_there = version.is_some() && version.map(str::to_owned) == installed_version(&modules.join(package));
    if !is_there {
        let package = format!("{package}@{}", version.unwrap_or("latest"));
        let node = format!("{node}@{OLDEST_NODE}");
        let mut npm = Command::new("npm");
        // By force, because npm looks at the Node that runs it and not at the one that comes along.
        npm.args(["install", "--force", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
        shell::run(npm.args([package, node]).args(beside))?;
    }
    Ok((bin, path))
}

/// The version of a package that is installed, if one is.
fn installed_version(package: &Path) -> Option<String> {
    let text = fs::read_to_string(package.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}

/// Installs a package of PyPI's; the folder of a program that starts `program` of it.
fn pypi(folder: &Path, package: &str, program: &str) -> Result<PathBuf> {
    let python = python::find(&cache().join("python"))?;
    let site = folder.join("site");
    let mut pip = python.pip();
    pip.args(["install", "--quiet", "--upgrade", "--root-user-action=ignore", "--target"]).arg(&site).arg(package);
    shell::run(&mut pip)?;
    // What pip makes names an interpreter that may not start by itself.
    let bin = folder.join("bin");
    let (interpreter, script) = (python.interpreter.display(), site.join("bin").join(program));
    let text =
        format!("#!/bin/sh\nPYTHONPATH='{}' exec '{interpreter}' '{}' \"$@\"\n", site.display(), script.display());
    write_program(&bin.join(program), &text)?;
    Ok(bin)
}

/// Writes a script that can be run.
pub(super) fn write_program(path: &Path, text: &str) -> Result<()> {
    let write = || {
        fs::create_dir_all(path.parent().expect("a program is in a folder"))?;
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
