//! Other tools' snapshot and restore sequences beside ours: `bench/peers.sh` on trees of several sizes, as Markdown.
//!
//! Each peer runs in a process of its own with a time limit; what it had measured by then stays in its row.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::table::{Row, table, verdict};
use super::{lstat, machine, millis, number, report, tree};
use crate::shell::{self, cargo, ensure, root};

/// Keeps the settings of whoever runs a bench, and the network, out of it.
pub(super) const GIT_ENV: [(&str, &str); 4] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "file"),
];

/// Our own name among the peers.
pub(super) const OURS: &str = "retake";

/// Peers by the name that `bench/peers.sh` gives them, and as people know them.
const PEERS: [(&str, &str); 11] = [
    (OURS, "**Retake**"),
    ("opencode", "OpenCode"),
    ("zed", "Zed"),
    ("cline_sdk", "Cline SDK"),
    ("commit", "`git add -A && git commit`"),
    ("codex_ghost", "Codex ghost commits"),
    ("tallow", "tallow"),
    ("cline_legacy", "Cline before 2026-06"),
    ("amazonq", "Kiro / Amazon Q"),
    ("roo", "Roo Code"),
    ("gemini", "gemini-cli"),
];

/// What `bench peers` was asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Args {
    /// Files in each tree.
    sizes: Vec<usize>,
    peers: Vec<(&'static str, &'static str)>,
    /// Scratch folder, to be on a real disk.
    out: PathBuf,
    /// Longest time that one peer may take on one tree.
    cap: Duration,
    /// Whether the result goes into BENCHMARKS.md too.
    write: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            sizes: vec![3_000, 20_000, 75_000],
            peers: PEERS.to_vec(),
            out: root().join("target/bench"),
            cap: Duration::from_secs(1_200),
            write: false,
        }
    }
}

impl Args {
    /// Every peer on every size, written into BENCHMARKS.md.
    pub(super) fn all() -> Self {
        Self { write: true, ..Self::default() }
    }

    /// Reads the words after `bench peers`.
    pub(super) fn parse(words: &[&str]) -> Result<Self> {
        let mut args = Self::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--write" {
                args.write = true;
                continue;
            }
            let value = words.next().with_context(|| format!("`{word}` is no option, or lacks its value"))?;
            match word {
                "--sizes" => args.sizes = value.split(',').map(number).collect::<Result<_>>()?,
                "--peers" => args.peers = value.split(',').map(known_peer).collect::<Result<_>>()?,
                "--out" => args.out = std::path::absolute(value)?,
                "--cap" => args.cap = Duration::from_secs(value.parse().context("`--cap` takes seconds")?),
                _ => bail!("`{word}` is no option of `bench peers`"),
            }
        }
        Ok(args)
    }
}

fn known_peer(id: &str) -> Result<(&'static str, &'static str)> {
    let known = PEERS.map(|(id, _)| id).join(", ");
    PEERS.into_iter().find(|peer| peer.0 == id).with_context(|| format!("no peer `{id}`; there are: {known}"))
}

/// Measures all that `args` ask for, one peer after the other, and prints the tables.
pub(super) fn run(args: &Args) -> Result<()> {
    ensure("git", "git")?;
    let retake = match args.peers.iter().any(|(id, _)| *id == OURS) {
        true => Some(our_binary()?),
        false => None,
    };
    let scratch = args.out.join(format!("peers.{}", std::process::id()));
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    tree::spread(&scratch);
    let measured = measure(args, retake.as_deref(), &scratch);
    // Not before: creating files where many were just deleted is slow, see bench/peers.sh.
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    let text = measured?;
    println!("{text}");
    if args.write {
        report::write("peers", &text)?;
    }
    Ok(())
}

/// The `retake` to measure: the one that `RETAKE` names, else a release build of this repository.
fn our_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("RETAKE") {
        return fs::canonicalize(&path).with_context(|| format!("cannot find {}, named by RETAKE", path.display()));
    }
    shell::run(cargo().args(["build", "--release", "--package", "retake"]))?;
    Ok(root().join("target/release/retake"))
}

fn measure(args: &Args, retake: Option<&Path>, scratch: &Path) -> Result<String> {
    let mut text = format!("Machine: {}.\n", machine(scratch)?);
    for &files in &args.sizes {
        let base = scratch.join(format!("base.{files}"));
        tree::make(&base, files, 1)?;
        let floor = lstat::measure(&base)?;
        let mut rows = Vec::new();
        for &(id, name) in &args.peers {
            let printed = run_peer(id, &base, &scratch.join(format!("{id}.{files}")), retake, args.cap)?;
            eprintln!("{files}: {}", printed.replace('\t', "  "));
            rows.push(Row::parse(id, name, &printed));
        }
        text += &format!("\n### {files} files\n\n{}\n", table(&rows));
        if let Some(verdict) = verdict(&rows) {
            text += &format!("{verdict} ");
        }
        text += &format!("A bare two-thread `lstat` of the {} paths: {:.1} ms.\n", floor.paths, millis(floor.best));
    }
    Ok(text)
}

/// The row that `bench/peers.sh` prints for one peer; cut short if it hits the time limit.
pub(super) fn run_peer(id: &str, base: &Path, out: &Path, retake: Option<&Path>, cap: Duration) -> Result<String> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", &cap.as_secs().to_string(), "bash"]);
    command.arg(root().join("bench/peers.sh")).arg(base).arg(out).arg(id);
    command.envs(GIT_ENV).stdin(Stdio::null()).stderr(Stdio::inherit());
    if let Some(retake) = retake {
        command.env("RETAKE", retake);
    }
    let output = command.output().context("cannot start `timeout`")?;
    let mut printed = String::from_utf8_lossy(&output.stdout).trim_end().to_string();
    match output.status.code() {
        Some(0) => {}
        // The codes by which `timeout` says that time was up.
        Some(124 | 137) => printed += &format!("\ttime limit of {} s", cap.as_secs()),
        _ => printed += "\tfailed",
    }
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() -> Result<()> {
        let args = Args::parse(&["--sizes", "3000,20_000", "--peers", "zed,opencode", "--cap", "60", "--write"])?;
        assert_eq!(args.sizes, [3_000, 20_000]);
        assert_eq!(args.peers, [("zed", "Zed"), ("opencode", "OpenCode")]);
        assert_eq!((args.cap, args.write), (Duration::from_secs(60), true));
        Ok(())
    }

    #[test]
    fn an_unknown_option_or_peer_and_a_missing_value_are_refused() {
        for words in [&["--size", "3000"][..], &["--sizes"], &["--sizes", "many"], &["--peers", "cvs"]] {
            assert!(Args::parse(words).is_err(), "{words:?}");
        }
    }
}
