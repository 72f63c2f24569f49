//! Running other programs: where the repository is, what must be installed, what a failure says.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's top directory.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies directly below the repository's root").to_path_buf()
}

/// The cargo that started this program, to be run in the repository as it would be by hand.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What cargo told us of this package some build scripts look at: they and all that depends on them would be built again each time.
    let is_ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours)) {
        command.env_remove(name);
    }
    command
}

/// Runs `command` with the terminal as its output and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", words(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", words(command));
    }
    Ok(())
}

/// What `command` prints on its standard output, without the final newline; fails unless it succeeds.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", words(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}\n{}", words(command), output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// Sees to it that `tool` can be run, by installing `debian_package` if it is missing.
pub(crate) fn ensure(tool: &str, debian_package: &str) -> Result<()> {
    if is_on_path(tool) {
        return Ok(());
    }
    if !is_on_path("apt-get") {
        bail!("`{tool}` is missing and there is no apt-get to install it with: install `{debian_package}`");
    }
    println!("`{tool}` is missing: installing `{debian_package}`");
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends", debian_package])
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_on_path(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

fn words(command: &Command) -> String {
    let mut words = vec![Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy()));
    format!("`{}`", words.join(" "))
}
