//! `retake`: the command line over the engine.
//!
//! This crate parses arguments, finds the workspace, calls the engine and talks to the user; whatever changes or reads a store is the
//! engine's. Data goes to stdout and talk to stderr, both only through [`output::ui::Ui`]; errors are drawn, and exit codes chosen, only in
//! [`failure`].

#![expect(unreachable_pub, reason = "a program exports nothing; `pub` marks what a module offers to the others")]

mod agent;
mod args;
mod commands;
mod demo;
mod failure;
mod output;
mod process;
#[cfg(test)]
mod reference;
mod rewind;
mod workspace;

use std::process::ExitCode;

use args::Cli;
use output::ui::Ui;

fn main() -> ExitCode {
    #[cfg(feature = "faults")]
    let _faults = fail::FailScenario::setup();

    let cli = match Cli::from_command_line() {
        Ok(cli) => cli,
        Err(answer) => return failure::usage(&answer),
    };
    if !cli.hands_on_environment() {
        process::secrets::hide();
    }
    let mut ui = Ui::new(&cli.global);
    let done = commands::run(&mut ui, &cli).and_then(|code| Ok(ui.finish().map(|()| code)?));
    match done {
        Ok(code) => code,
        Err(error) => failure::report(&mut ui, &error),
    }
}
