//! The crate by hand: `cargo run -p retake-native --example native -- COMMAND …`, against the agents of the environment's `HOME`.
//!
//! `install|remove|status AGENT RECEIPTS`, `event AGENT EVENT` (from standard input), `turns AGENT FILE`, `cut AGENT FILE TURN UUID`.

#![allow(clippy::print_stdout, reason = "it shows what it found")]

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use retake_native::{Agent, Cut, Event, Places, Program, Setup, Transcript};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [command, agent, rest @ ..] = words.as_slice() else { bail!("name a command and an agent") };
    let agent: Agent = agent.parse()?;
    match (*command, rest) {
        ("install" | "remove" | "status", [receipts]) => setup(command, agent, Path::new(receipts)),
        ("event", [event]) => {
            let mut input = Vec::new();
            std::io::stdin().read_to_end(&mut input)?;
            println!("{:#?}", Event::parse(agent, event, &input)?);
            Ok(())
        }
        ("turns", [file]) => {
            let transcript = Transcript::read(agent, Path::new(file))?;
            println!("{:#?}\ndropped: {:#?}", transcript.turns(), transcript.dropped());
            Ok(())
        }
        ("cut", [file, turn, uuid]) => {
            let transcript = Transcript::read(agent, Path::new(file))?;
            let turn = transcript.turns().get(turn.parse::<usize>()?).context("there is no such turn")?;
            let cut = Cut::new(&transcript, &turn.place, uuid)?;
            cut.write()?;
            println!("{}", cut.command());
            Ok(())
        }
        _ => bail!("no such command, or the wrong number of words after it"),
    }
}

fn setup(command: &str, agent: Agent, receipts: &Path) -> Result<()> {
    let places = Places::new(std::env::vars_os())?;
    let setup = Setup { agent, places: &places, program: &Program::default(), receipts };
    if command == "status" {
        println!("{:?}, {:?}", setup.status()?, agent.presence(&places));
        return Ok(());
    }
    let plan = if command == "install" { setup.install()? } else { setup.remove()? };
    print!("{}", plan.diff());
    Ok(plan.apply()?)
}
