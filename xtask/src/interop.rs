//! Real agents behind the proxy: installed by package name into a cache folder, run on the scripted model in a network namespace that has
//! nothing but the loopback device.
//!
//! An agent that cannot be installed, or fails, fails the whole, after the others were tried.

mod agents;
mod alone;
mod install;
mod python;
mod table;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell;
use agents::{AGENTS, Agent, IN_CI};

/// Tries the agents that are named, or all, and puts what came of it into the table.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let unknown = names.iter().find(|name| !AGENTS.iter().any(|agent| agent.name == **name));
    if let Some(unknown) = unknown {
        let known: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        bail!("there is no agent `{unknown}` to try; there are {}", known.join(", "));
    }
    prepare()?;
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for agent in AGENTS.iter().filter(|agent| names.is_empty() || names.iter().any(|name| agent.name == name)) {
        match attempt(agent) {
            Ok(row) => rows.push(row),
            Err(error) => {
                println!("{}: FAILED", agent.name);
                failures.push(format!("{}: {error:#}", agent.name));
            }
        }
    }
    table::replace(&rows)?;
    if !failures.is_empty() {
        bail!("{} of {} agents failed\n\n{}", failures.len(), failures.len() + rows.len(), failures.join("\n\n"));
    }
    Ok(())
}

/// Tries the one agent that CI tries; writes nothing.
pub(crate) fn check() -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("agents are tried where there are network namespaces, on Linux");
        return Ok(());
    }
    prepare()?;
    attempt(&IN_CI).map(drop)
}

/// Installs the agent that CI tries, where it can be tried.
pub(crate) fn fetch() -> Result<()> {
    if cfg!(target_os = "linux") {
        install::install(&IN_CI).context("the agent that CI tries cannot be installed")?;
    }
    Ok(())
}

/// Builds what is run, with the features that the tests have, so that after them there is nothing to build.
fn prepare() -> Result<()> {
    alone::ensure_possible()?;
    let mut build = shell::cargo();
    build.args(["build", "--workspace", "--all-features", "--bin", "retake", "--example", "interop"]);
    shell::run(&mut build)
}

/// Installs and tries an agent; its row.
fn attempt(agent: &Agent) -> Result<Value> {
    println!("{}: installing", agent.name);
    let installed = install::install(agent).context("cannot be installed")?;
    println!("{}: trying", agent.name);
    let said = alone::try_agent(&installed).context("fails behind the proxy")?;
    let mut row: Value = serde_json::from_str(&said).with_context(|| format!("said no JSON: {said}"))?;
    row["name"] = agent.name.into();
    row["protocol"] = agent.protocol.into();
    println!("{}: ok, {} by `{}`", agent.name, row["agent"]["version"], row["strategy"].as_str().unwrap_or("?"));
    Ok(row)
}
