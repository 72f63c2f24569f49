//! A crash or an error at every write, rename, sync and transaction: what was announced stays whole, and nothing is left lying about.
//!
//! Each scene is a store and a workspace in which one command is about to run. The command is stopped at its first step, then, in the
//! same scene set up anew, at its second, and so on until it gets through.

mod care;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;

use retake_testkit::{Ended, Killer, Lasting};

use crate::history::{self, History, Missing};
use crate::sandbox::{Run, Sandbox, noise};

#[test]
fn a_first_checkpoint_survives_a_crash_at_every_step() {
    assert_survives_crashes(&first(), 12);
}

#[test]
fn a_first_checkpoint_survives_an_error_at_every_step() {
    assert_survives_errors(&first());
}

#[test]
fn a_checkpoint_of_changes_survives_a_crash_at_every_step() {
    assert_survives_crashes(&changes(), 8);
}

#[test]
fn a_checkpoint_of_changes_survives_an_error_at_every_step() {
    assert_survives_errors(&changes());
}

#[test]
fn a_checkpoint_that_has_to_make_room_survives_a_crash_at_every_step() {
    let scene = over_budget();
    assert_survives_crashes(&scene, 20);
    let stored = scene.history.assert_kept(&scene.s, scene.missing);
    assert!(!scene.history.is_all_in(&stored), "undisturbed, it makes room");
}

#[test]
fn a_checkpoint_that_has_to_make_room_survives_an_error_at_every_step() {
    assert_survives_errors(&over_budget());
}

#[test]
fn labelling_survives_a_crash_at_every_step() {
    assert_survives_crashes(&labelling(), 3);
}

#[test]
fn labelling_survives_an_error_at_every_step() {
    assert_survives_errors(&labelling());
}

/// A command about to run.
struct Scene {
    s: Sandbox,
    history: History,
    args: Vec<String>,
    missing: Missing,
}

/// Nothing is stored yet: the store is created, the database migrated, the first segment started.
fn first() -> Scene {
    let s = Sandbox::in_memory();
    some_files(&s);
    Scene::new(s, History::default(), &["checkpoint", "--json"], Missing::None)
}

/// One checkpoint is there; since then files were added, modified and deleted, a large one among them.
fn changes() -> Scene {
    let s = Sandbox::in_memory();
    some_files(&s);
    let mut history = History::default();
    history.checkpoint(&s);
    s.write("src/1", "modified").remove("src/2").write("new/deep/file", "new").chmod("src/3", 0o755);
    let mut large = noise(1, 1 << 20);
    large[500_000] ^= 1;
    s.write("large", large);
    Scene::new(s, history, &["checkpoint", "--json"], Missing::None)
}

/// The store is as good as full: older checkpoints have to go, one of which is labelled and must not.
fn over_budget() -> Scene {
    let s = Sandbox::in_memory();
    s.config("[store]\nbudget = '4200 KiB'\n");
    let mut history = History::default();
    for round in 0..3 {
        s.write("src/a", format!("round {round}")).write("large", noise(round, 1_100_000));
        let id = history.checkpoint(&s);
        if round == 0 {
            s.retake(["label", &id, "kept"]).succeeds();
        }
    }
    s.write("large", noise(9, 1_100_000));
    Scene::new(s, history, &["checkpoint", "--json"], Missing::OldestUnlabelled)
}

fn labelling() -> Scene {
    let s = Sandbox::in_memory();
    some_files(&s);
    let mut history = History::default();
    let id = history.checkpoint(&s);
    Scene::new(s, history, &["label", &id, "named", "--json"], Missing::None)
}

fn some_files(s: &Sandbox) {
    for n in 0..12 {
        s.write(format!("src/{n}"), format!("file {n}"));
    }
    s.write("large", noise(1, 1 << 20)).symlink("src/1", "link").write(".gitignore", "*.log\n").write("a.log", "noise");
    // A gap, so that what was left out is stored too.
    rustix::fs::mkfifoat(rustix::fs::CWD, s.ws("fifo"), rustix::fs::Mode::RWXU).expect("it is new");
}

fn assert_survives_crashes(scene: &Scene, at_least: u64) {
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|step, ended| scene.assert_survived(step, ended));
    assert!(steps >= at_least, "only {steps} steps: is one missing a fail point?");
}

fn assert_survives_errors(scene: &Scene) {
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|_, _| {});
    // A bad spot on the disk goes away or stays; a full disk stays full.
    for (error, lasting) in [("eio", Lasting::Once), ("eio", Lasting::FromThenOn), ("enospc", Lasting::FromThenOn)] {
        let mut refused = 0;
        Killer::new(|| scene.set_up()).fail_at_every_step(steps, error, lasting, |step, ended| {
            let Ended::Finished(output) = ended else { panic!("{error} at step {step}: {ended:?}") };
            refused += u32::from(!output.status.success());
            scene.assert_survived(step, ended);
        });
        assert!(refused > 0, "no {error} was noticed");
    }
}

impl Scene {
    fn new(s: Sandbox, history: History, args: &[&str], missing: Missing) -> Self {
        if s.path("data").exists() {
            copy(&s.path("data"), &s.path("template"));
        }
        Self { s, history, args: args.iter().map(|&arg| arg.to_owned()).collect(), missing }
    }

    /// Puts the store back as it was and returns the command.
    fn set_up(&self) -> Command {
        if self.s.path("data").exists() {
            fs::remove_dir_all(self.s.path("data")).expect("it is ours");
        }
        if self.s.path("template").exists() {
            copy(&self.s.path("template"), &self.s.path("data"));
        }
        let mut command = self.s.retake_command();
        command.args(&self.args);
        command
    }

    fn assert_survived(&self, step: u64, ended: &Ended) {
        let run = Run::from_output(ended.output().clone());
        let context = format!("step {step}: {run:?}");
        let before = self.s.everything_in_the_workspace();
        let mut history = self.history.clone();
        let announced = run.announced();
        if let (Some(id), true) = (&announced, self.args[0] == "checkpoint") {
            history.remember(&self.s, id);
        }
        let stored = history.assert_kept(&self.s, self.missing);
        for unannounced in stored.iter().filter(|id| !history.has(id)) {
            history::assert_holds(&self.s, unannounced, &history::on_disk(&self.s));
        }
        self.assert_told_the_truth(&run, announced.is_some(), &stored, &context);
        assert_eq!(self.s.everything_in_the_workspace(), before, "{context}");

        // The plain program takes over: it lists what is there and goes on.
        let listed = self.s.retake(["log", "--json"]).json();
        assert_eq!(listed["checkpoints"].as_array().map(Vec::len), Some(stored.len()), "{context}");
        self.s.write("after", "the next checkpoint");
        history.checkpoint(&self.s);
        history.assert_kept(&self.s, self.missing);
        history::assert_no_litter(&self.s);
        self.s.remove("after");
    }

    /// A command that failed says one sentence and has not done what it was asked to; one that succeeded has.
    fn assert_told_the_truth(&self, run: &Run, announced: bool, stored: &[String], context: &str) {
        let Some(code) = run.code() else { return };
        history::assert_no_temporary_files(&self.s);
        assert_eq!(announced, code == 0, "{context}");
        if code != 0 {
            assert_eq!(code, 1, "{context}");
            assert!(run.stderr.starts_with("error: ") && run.stderr.contains("\nhint: "), "{context}");
            let made = stored.iter().find(|id| !self.history.has(id));
            let said = |id: &String| run.stderr.contains(&format!("checkpoint {} was made", &id[..8]));
            assert!(made.is_none_or(said), "it failed and made a checkpoint: {context}");
            assert_eq!(run.stderr.contains("were removed"), !self.history.is_all_in(stored), "{context}");
        }
        if self.args[0] == "label" {
            let label = self.s.retake(["log", "--json"]).json()["checkpoints"][0]["label"].clone();
            assert_eq!(label == "named", code == 0, "{context}");
        }
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::DirBuilder::new().mode(0o700).create(to).expect("it is new");
    for entry in fs::read_dir(from).expect("it can be listed") {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("it can be listed");
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).expect("it can be copied");
        }
    }
}
