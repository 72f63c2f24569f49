//! Running an agent where there is no network but the loopback device, as somebody who is not root.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::install::Installed;
use crate::shell;

/// The user that agents run as: some refuse to be root.
const NOBODY: &str = "65534";
/// How much of a failure is shown; all of it is in a file.
const SHOWN_LINES: usize = 12;
const SHOWN_COLUMNS: usize = 300;

/// Fails, and says why, where agents cannot be kept from the network.
pub(super) fn ensure_possible() -> Result<()> {
    shell::ensure("unshare", "util-linux")?;
    shell::ensure("ip", "iproute2")?;
    shell::ensure("setpriv", "util-linux")?;
    let (flag, _) = namespace()?;
    let tried = shell::read(Command::new("unshare").args([flag, "ip", "link", "set", "lo", "up"]));
    tried.map(drop).with_context(|| {
        format!("`unshare {flag}` is refused here, and agents are only tried where no network can be reached: run this as root, or where user namespaces are allowed")
    })
}

/// How a namespace is made, and what is done first in it.
fn namespace() -> Result<(&'static str, &'static str)> {
    let as_root = "ip link set lo up && chown \"$NOBODY:$NOBODY\" \"$1\" && shift && exec setpriv --reuid=\"$NOBODY\" --regid=\"$NOBODY\" --clear-groups \"$@\"";
    let as_user = "ip link set lo up && shift && exec \"$@\"";
    let is_root = shell::read(Command::new("id").arg("-u"))? == "0";
    Ok(if is_root { ("-n", as_root) } else { ("-rn", as_user) })
}

/// Tries an agent behind the proxy; what came of it, as a line of JSON.
pub(super) fn try_agent(agent: &Installed) -> Result<String> {
    let home = PathBuf::from(shell::read(Command::new("mktemp").args(["-d", "/tmp/retake-interop-XXXXXX"]))?);
    let (flag, script) = namespace()?;
    let built = shell::root().join("target/debug");
    let mut command = Command::new("unshare");
    command.args([flag, "sh", "-c", script, "sh"]).arg(&home);
    command.arg(built.join("examples/interop")).arg(built.join("retake")).arg(&home);
    command.arg(agent.protocol.to_string()).args(&agent.command);
    let machine = std::env::var_os("PATH").unwrap_or_default();
    let path = agent.path.iter().cloned().chain(std::env::split_paths(&machine));
    command.env("PATH", std::env::join_paths(path)?).env("NOBODY", NOBODY);
    let output = command.output().context("cannot start `unshare`")?;
    if !output.status.success() {
        bail!("{}", failure(&home, &output.stderr)?);
    }
    std::fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The beginning of what a run said when it failed; the rest is kept beside what else it left.
fn failure(home: &Path, said: &[u8]) -> Result<String> {
    let path = home.join("failure");
    std::fs::write(&path, said).with_context(|| format!("cannot write {}", path.display()))?;
    let said = String::from_utf8_lossy(said);
    let cut = |line: &str| line.chars().take(SHOWN_COLUMNS).collect::<String>();
    let shown: Vec<String> = said.trim().lines().take(SHOWN_LINES).map(cut).collect();
    Ok(format!("{}\n… all of it, the wire and what the agent said are in {}", shown.join("\n"), home.display()))
}
