//! Runs the fuzz targets for a while: a part of the long test run.
//!
//! Needs a nightly compiler and cargo-fuzz, and installs neither: without them it prints a note and succeeds. The replay of the corpus, a
//! usual test, needs neither. New inputs and crashes go below `target/fuzz`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{read, root, run};

/// How long each target runs, if the arguments do not say.
const SECONDS: &str = "60";

/// Runs the targets that `args` name, or all: `[--seconds N] [TARGET…]`.
pub(crate) fn run_named(args: &[String]) -> Result<()> {
    match args {
        [flag, seconds, named @ ..] if flag == "--seconds" => fuzz(seconds, named),
        named => fuzz(SECONDS, named),
    }
}

/// Fuzzes the targets one after the other and stops at the first crash.
fn fuzz(seconds: &str, named: &[String]) -> Result<()> {
    if let Err(error) = read(nightly().args(["fuzz", "--version"])) {
        println!("note: no fuzzing, a nightly compiler or cargo-fuzz is missing: {error}");
        return Ok(());
    }
    let all = targets()?;
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        bail!("there is no fuzz target `{unknown}`; there are {}", all.join(", "));
    }
    for target in all.into_iter().filter(|target| named.is_empty() || named.contains(target)) {
        let found = root().join("target/fuzz/corpus").join(&target);
        let crashes = root().join("target/fuzz/crashes").join(&target);
        for directory in [&found, &crashes] {
            fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        }
        let mut fuzz = nightly();
        // New inputs go to the first directory.
        fuzz.args(["fuzz", "run", &target]).arg(found).arg(root().join("fuzz/corpus").join(&target));
        fuzz.args(["--", "-print_final_stats=1", &format!("-max_total_time={seconds}")]);
        run(fuzz.arg(format!("-artifact_prefix={}/", crashes.display())))?;
    }
    Ok(())
}

/// The names of all targets, in order.
fn targets() -> Result<Vec<String>> {
    let listed = read(nightly().args(["fuzz", "list"]))?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// The nightly cargo, whichever one started this program.
fn nightly() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").current_dir(root());
    // Link-time optimisation takes minutes for each target.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    // gcc 12 moves constants out of their scope and then reports zstd for reading them there.
    command.env("CFLAGS", "-fno-sanitize-address-use-after-scope");
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}
