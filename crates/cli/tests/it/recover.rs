//! `retake recover`: a rewind that is stopped at any step is finished or never happened, and nothing is left lying about.

use std::fs;

use retake_testkit::naive::{self, NaiveNodes};
use retake_testkit::{Ended, Killer, Lasting};

use crate::history;
use crate::sandbox::Sandbox;

/// A workspace that differs from its only checkpoint, set up anew for each run.
struct Scene {
    s: Sandbox,
    id: String,
    before: NaiveNodes,
    after: NaiveNodes,
}

impl Scene {
    fn new() -> Self {
        let s = Sandbox::in_memory();
        make_target(&s);
        let id = s.checkpoint();
        let after = history::on_disk(&s);
        make_present(&s);
        let before = history::on_disk(&s);
        crate::crash::copy(&s.path("data"), &s.path("template"));
        Self { s, id, before, after }
    }

    fn set_up(&self) {
        for dir in ["data", "ws"] {
            fs::remove_dir_all(self.s.path(dir)).expect("it is ours");
        }
        crate::crash::copy(&self.s.path("template"), &self.s.path("data"));
        fs::create_dir(self.s.path("ws")).expect("it is gone");
        make_present(&self.s);
    }

    fn rewind(&self) -> std::process::Command {
        self.set_up();
        let mut command = self.s.retake_command();
        command.args(["rewind", &self.id, "--yes"]);
        command
    }

    /// A scene in which a rewind was stopped when some but not all files were swapped.
    fn torn() -> Self {
        let scene = Self::new();
        for step in 0.. {
            let mut command = scene.rewind();
            let output =
                command.env("FAILPOINTS", format!("io={step}*off->return(crash)")).output().expect("it starts");
            assert!(!output.status.success(), "there is such a step");
            if scene.s.read("a") == "1\n" && scene.s.read("z") == "2\n" {
                return scene;
            }
        }
        unreachable!("the loop has no end of its own")
    }
}

fn make_target(s: &Sandbox) {
    s.write("a", "1\n").write("gone", "1\n").write("dir/deep/b", "1\n").write("run", "").write("z", "1\n");
}

fn make_present(s: &Sandbox) {
    for path in ["gone", "z"] {
        fs::remove_file(s.ws(path)).ok();
    }
    fs::remove_dir_all(s.ws("dir")).ok();
    s.write("a", "2\n")
        .write("new/c", "new\n")
        .write("run", "")
        .chmod("run", 0o755)
        .write("z", "2\n")
        .write("dir", "file");
}

#[track_caller]
fn assert_same(files: &NaiveNodes, wanted: &NaiveNodes, context: &str) {
    let wrong: Vec<String> = naive::diff(files, wanted).keys().map(|path| path.escape_ascii().to_string()).collect();
    assert!(wrong.is_empty(), "{context}, but these are not: {wrong:?}");
}

#[test]
fn a_rewind_survives_a_crash_at_every_step() {
    let scene = Scene::new();
    let (mut finished, mut taken_back) = (0, 0);
    let steps = Killer::new(|| scene.rewind()).crash_at_every_step(|step, ended| {
        assert!(matches!(ended, Ended::Killed(_)), "step {step}: {ended:?}");
        let s = &scene.s;
        let torn = s.everything_in_the_workspace();
        let log = s.retake(["log", "--all"]).succeeds();
        let is_pending = log.stderr.contains("`retake recover`");
        assert_eq!(s.everything_in_the_workspace(), torn, "step {step}: reading recovers nothing");
        let outcome = s.retake(["recover", "--json"]).json()["outcome"].clone();
        let files = history::on_disk(s);
        match outcome.as_str() {
            Some("nothing") => assert!(!is_pending && (files == scene.before || files == scene.after), "step {step}"),
            Some("finished") => {
                assert!(is_pending, "step {step}");
                assert_same(&files, &scene.after, &format!("step {step}: armed means after"));
                finished += 1;
            }
            Some("taken_back") => {
                assert!(is_pending, "step {step}");
                assert_same(&files, &scene.before, &format!("step {step}: not armed means before"));
                taken_back += 1;
            }
            other => panic!("step {step}: {other:?}"),
        }
        assert_eq!(s.retake(["recover"]).text(), "Nothing was interrupted\n");
        s.retake(["rewind", &scene.id, "--yes"]).succeeds();
        assert!(history::on_disk(s) == scene.after, "step {step}: it goes on");
        s.retake(["undo"]).succeeds();
        assert!(history::on_disk(s) == scene.before, "step {step}: it can be undone");
    });
    assert!(
        steps > 20 && finished > 5 && taken_back > 5,
        "{steps} steps, {finished} finished, {taken_back} taken back"
    );
}

#[test]
fn a_rewind_survives_an_error_at_every_step() {
    let scene = Scene::new();
    let steps = Killer::new(|| scene.rewind()).crash_at_every_step(|_, _| {});
    for (error, lasting) in [("eio", Lasting::Once), ("enospc", Lasting::Once), ("enospc", Lasting::FromThenOn)] {
        let mut refused = 0;
        Killer::new(|| scene.rewind()).fail_at_every_step(steps, error, lasting, |step, ended| {
            let Ended::Finished(output) = ended else { panic!("{error} at step {step}: {ended:?}") };
            let context = format!("{error} at step {step}: {}", String::from_utf8_lossy(&output.stderr));
            let s = &scene.s;
            if !output.status.success() {
                assert_eq!(output.status.code(), Some(1), "{context}");
                refused += 1;
            }
            // Once the disk works again nothing is half done.
            let outcome = s.retake(["recover", "--json"]).json()["outcome"].clone();
            let files = history::on_disk(s);
            let said_done = String::from_utf8_lossy(&output.stderr).contains("everything was done");
            let is_done = output.status.success() || said_done || outcome == "finished";
            assert_same(&files, if is_done { &scene.after } else { &scene.before }, &context);
            s.retake(["rewind", &scene.id, "--yes"]).succeeds();
            assert_same(&history::on_disk(s), &scene.after, &context);
        });
        assert!(refused > 0, "no {error} was noticed");
    }
}

#[test]
fn writing_commands_recover_by_themselves() {
    let exec = ["exec", "--", "true"];
    let commands: [&[&str]; 5] = [&["checkpoint"], &exec, &["redo"], &["undo"], &["label", "nosuch", "x"]];
    for args in commands {
        let scene = Scene::torn();
        let mut command = scene.s.retake_command();
        let output = command.args(args).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("Finished what was interrupted: `rewind "), "{args:?}: {said}");
        if args != ["undo"] {
            assert!(history::on_disk(&scene.s) == scene.after, "{args:?}");
        }
    }
}

#[test]
fn what_was_changed_since_the_crash_is_asked_about() {
    for (option, rest) in [("--finish", "1\n"), ("--go-back", "2\n")] {
        let scene = Scene::torn();
        let s = &scene.s;
        s.write("z", "mine\n");
        let run = s.retake(["recover"]).fails(3);
        run.says("`retake recover --finish` finishes the rest, `retake recover --go-back` takes it back\n  z\n");
        s.retake(["checkpoint"]).fails(3);
        s.retake(["rewind", &scene.id]).fails(3);
        s.retake(["recover", option]).succeeds();
        assert_eq!((s.read("z").as_str(), s.read("a").as_str()), ("mine\n", rest));
        assert_eq!(s.retake(["recover"]).text(), "Nothing was interrupted\n");
    }
    let scene = Scene::torn();
    scene.s.write("z", "mine\n");
    let mut command = scene.s.retake_command();
    command.env("TERM", "xterm").env("NO_COLOR", "1").arg("recover");
    let (seen, status) = crate::terminal::typing(command, "finish\n");
    assert!(status.success() && seen.contains("  z\n"), "{seen}");
    assert_eq!((scene.s.read("z").as_str(), scene.s.read("a").as_str()), ("mine\n", "1\n"));
}
