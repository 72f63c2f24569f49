//! Chores of the repository: the checks CI runs, the tidy rules, the benches.
//!
//! Run as `cargo xtask COMMAND`. Nothing here is part of Retake itself.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool whose whole output is for a terminal"
)]

mod bench;
mod check;
mod deny;
mod fuzz;
mod interop;
mod page;
mod shell;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test              everything CI runs: fmt, clippy, tests, one real agent behind the proxy, the page, docs,
                    dependencies, tidy
                    [--long]        with many more cases in property tests, and with the fuzzers; for a nightly run
                    [--repeat N]    N times, then a table of the runs
                    [--load]        with every core kept busy
                    [FILTER…]       only the tests, Rust or browser, that have one of these in their name
  deny              licences, bans, sources and security advisories of the dependencies
  fuzz [TARGET…]    these fuzz targets, or all; needs a nightly compiler and cargo-fuzz
                    [--seconds N]   each for N seconds instead of 60; comes first
  tidy              the repository's own rules: module docs, file length, rules and their tests
  interop [AGENT…]  real agents behind the proxy, without a network; rewrites their rows of docs/interop.{jsonl,md}
  interop --ci      the one that CI tries, as it does
  bench             all benches below; rewrites the measured parts of BENCHMARKS.md
  bench peers       snapshot and restore sequences of other tools beside ours
                    [--sizes 3000,20000,75000] [--peers LIST] [--out DIR] [--cap SECONDS] [--write]
  bench engine      in-process benches of retake-engine [--write]
  bench proxy       what `retake acp -- AGENT` costs beside the agent's own pipe; needs a release build [--write]
  bench lstat DIR   a bare two-thread lstat of every path below DIR
  bench tree OUT FILES [SEED]   a work tree like a source repository's";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("error: {err:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        bail!("no command given\n\n{USAGE}");
    };
    match (command.as_str(), rest) {
        ("test", rest) => check::test(&check::Options::parse(rest).map_err(|error| anyhow!("{error}\n\n{USAGE}"))?),
        ("tidy", []) => tidy::run(),
        ("deny", []) => deny::check(),
        ("fuzz", rest) => fuzz::run_named(rest),
        ("bench", rest) => bench::run(rest),
        ("interop", [flag]) if flag == "--ci" => interop::check(),
        ("interop", rest) => interop::run(rest),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        ("tidy" | "deny", _) => bail!("`{command}` takes no arguments\n\n{USAGE}"),
        _ => bail!("unknown command `{command}`\n\n{USAGE}"),
    }
}
