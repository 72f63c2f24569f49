//! The terminal client in a real terminal, on a scripted model over real HTTP: what is typed, what is shown, what is on disk, and what the
//! model was sent.

mod attach;
mod care;
mod commands;
mod complete;
mod conflict;
mod demo;
mod interrupt;
mod odd;
mod permission;
mod rewind;
mod screen;
mod talk;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use retake_testkit::Terminal;
use retake_testkit::model::ScriptedModel;
use retake_testkit::tmux::PATIENCE;
use serde_json::Value;

use crate::agent::Agent;
use crate::sandbox::Sandbox;

/// Room for everything.
const LARGE: (u16, u16) = (100, 30);
/// As narrow as it gets.
const NARROW: (u16, u16) = (40, 24);
/// What the status says when nothing runs.
const READY: &str = "● ready";

/// A workspace with a model, and terminals on it.
struct Scene {
    agent: Agent,
}

impl Scene {
    fn new() -> Self {
        Self { agent: Agent { sandbox: Sandbox::in_memory(), model: ScriptedModel::start() } }
    }

    fn model(&self) -> &ScriptedModel {
        &self.agent.model
    }

    fn write(&self, path: &str, content: &str) -> &Self {
        self.agent.sandbox.write(path, content);
        self
    }

    #[track_caller]
    fn read(&self, path: &str) -> String {
        self.agent.sandbox.read(path)
    }

    fn exists(&self, path: &str) -> bool {
        self.agent.sandbox.ws(path).exists()
    }

    /// Waits until a file is there, with something in it.
    #[track_caller]
    fn wait_for_file(&self, path: &str) {
        let path = self.agent.sandbox.ws(path);
        wait_until(&format!("{} is there", path.display()), || fs::metadata(&path).is_ok_and(|facts| facts.len() > 0));
    }

    /// Waits until the newest session's turn has ended, whatever its terminal shows.
    #[track_caller]
    fn wait_until_idle(&self) {
        wait_until("the turn has ended", || !self.json(["resume", "--status"])["ended"].is_null());
    }

    /// `retake` for a terminal, not yet started.
    fn command<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = self.agent.command();
        command.env("TERM", "tmux-256color").env("LANG", "C.UTF-8").env("SHELL", "/bin/sh").args(args);
        command
    }

    /// A terminal in which a new session is open.
    #[track_caller]
    fn open(&self) -> Terminal {
        self.open_in(LARGE)
    }

    #[track_caller]
    fn open_in(&self, size: (u16, u16)) -> Terminal {
        ready(&self.command([]), size)
    }

    /// A terminal with some command of `retake`.
    #[track_caller]
    fn run<const N: usize>(&self, args: [&str; N]) -> Terminal {
        Terminal::start(&self.command(args), LARGE)
    }

    /// What a command prints as JSON, run beside whatever is open.
    #[track_caller]
    fn json<const N: usize>(&self, args: [&str; N]) -> Value {
        self.agent.json(args)
    }

    /// The operations of the workspace by kind, newest first.
    #[track_caller]
    fn operations(&self) -> Vec<String> {
        let listed = self.json(["ops"]);
        let operations = listed["operations"].as_array().expect("a list");
        operations.iter().map(|operation| operation["kind"].as_str().expect("a kind is text").to_owned()).collect()
    }

    /// How many requests the model got.
    fn requests(&self) -> usize {
        self.model().requests().len()
    }
}

/// A terminal in which a session is open that does nothing.
#[track_caller]
fn ready(command: &Command, size: (u16, u16)) -> Terminal {
    let terminal = Terminal::start(command, size);
    terminal.wait_for(READY);
    terminal
}

/// Waits until a process is gone.
#[track_caller]
fn assert_gone(process: &str) {
    wait_until(&format!("process {process} is gone"), || !Path::new("/proc").join(process).exists());
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not so in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What it takes to read a question; the client ignores answers that come sooner than anybody could.
const READING: std::time::Duration = std::time::Duration::from_millis(350);

/// What a user does in one go.
trait User {
    /// Says something.
    fn say(&self, text: &str) -> &Self;

    /// Waits until something is asked, and reads it: a key that comes at once answers nothing.
    fn is_asked(&self, text: &str) -> &Self;

    /// Says something, and waits until the turn has ended with `answer` on the screen.
    fn ask(&self, text: &str, answer: &str) -> &Self;

    /// Asserts that the screen, on which only changes are ever drawn, is what it is when it is drawn anew.
    fn is_drawn_right(&self) -> &Self;
}

impl User for Terminal {
    #[track_caller]
    fn say(&self, text: &str) -> &Self {
        self.type_text(text).key("Enter")
    }

    #[track_caller]
    fn is_asked(&self, text: &str) -> &Self {
        self.wait_for(text);
        std::thread::sleep(READING);
        self
    }

    #[track_caller]
    fn ask(&self, text: &str, answer: &str) -> &Self {
        self.say(text).wait_for(answer).wait_for(READY)
    }

    #[track_caller]
    fn is_drawn_right(&self) -> &Self {
        // The status may learn of the store's size at any time.
        let above_status = |screen: &str| screen.trim_end().rsplit_once('\n').map(|(above, _)| above.to_owned());
        let before = above_status(&self.screen());
        self.record().key("C-l");
        wait_until("the screen is cleared", || String::from_utf8_lossy(&self.raw_output()).contains("\u{1b}[2J"));
        self.wait_until(&format!("it is what it was: {before:#?}"), |screen| above_status(screen) == before)
    }
}
