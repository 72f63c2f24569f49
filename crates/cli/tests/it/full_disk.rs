//! A full disk under the store: refused with one sentence, earlier checkpoints whole and readable, and on it goes once there is room.

use std::fs;

use retake_testkit::TinyFs;
use retake_testkit::model::ScriptedModel;
use retake_testkit::tinyfs::{Ran, within_mounts};

use crate::agent::Agent;
use crate::history::{self, History, Missing};
use crate::sandbox::{Run, Sandbox, noise};

/// A sandbox whose data directory is a file system of its own, of four megabytes.
fn with_tiny_disk() -> (Sandbox, TinyFs) {
    let tiny = TinyFs::mount(4 << 20);
    let s = Sandbox::in_memory();
    std::os::unix::fs::symlink(tiny.path(), s.path("data")).expect("it is new");
    (s, tiny)
}

#[track_caller]
fn assert_says_full(run: Run) {
    let run = run.fails(1);
    run.says("is full; nothing was stored");
    run.says("hint: free some space and run the command again; all checkpoints are as they were");
}

#[test]
fn a_workspace_that_does_not_fit_the_disk_is_refused_and_earlier_checkpoints_stay() {
    if within_mounts("full_disk::a_workspace_that_does_not_fit_the_disk_is_refused_and_earlier_checkpoints_stay")
        == Ran::InChild
    {
        return;
    }
    let (s, _tiny) = with_tiny_disk();
    let mut history = History::default();
    s.write("a", "1").write("dir/b", noise(1, 10_000));
    history.checkpoint(&s);
    for n in 0..30 {
        s.write(format!("many/{n}"), noise(n, 300_000));
    }
    for _ in 0..2 {
        assert_says_full(s.retake(["checkpoint"]));
        history.assert_kept(&s, Missing::None);
        history::assert_no_temporary_files(&s);
    }
    fs::remove_dir_all(s.ws("many")).expect("it is ours");
    s.write("a", "2");
    history.checkpoint(&s);
    history.assert_kept(&s, Missing::None);
    history::assert_no_litter(&s);
}

#[test]
fn a_disk_full_to_the_last_byte_can_still_be_read_from() {
    if within_mounts("full_disk::a_disk_full_to_the_last_byte_can_still_be_read_from") == Ran::InChild {
        return;
    }
    let (s, tiny) = with_tiny_disk();
    let mut history = History::default();
    s.write("a", "1").write("dir/b", noise(1, 10_000));
    let id = history.checkpoint(&s);
    s.write("a", noise(2, 10_000));
    let ballast = tiny.fill();
    assert_says_full(s.retake(["checkpoint"]));
    assert_says_full(s.retake(["label", &id, "named"]));
    assert_eq!(s.retake(["show", &format!("{id}:a")]).text(), "1");
    assert!(s.retake(["log"]).text().starts_with(&id[..8]));
    assert_eq!(s.retake(["diff", "--name-only"]).text(), "a\n");
    s.retake(["du"]).succeeds();
    tiny.empty(&ballast);
    history.checkpoint(&s);
    history.assert_kept(&s, Missing::None);
    history::assert_no_litter(&s);
}

#[test]
fn a_first_checkpoint_on_a_full_disk_is_refused_and_works_once_there_is_room() {
    if within_mounts("full_disk::a_first_checkpoint_on_a_full_disk_is_refused_and_works_once_there_is_room")
        == Ran::InChild
    {
        return;
    }
    let (s, tiny) = with_tiny_disk();
    s.write("a", "1");
    let ballast = tiny.fill();
    assert_says_full(s.retake(["checkpoint"]));
    tiny.empty(&ballast);
    let mut history = History::default();
    history.checkpoint(&s);
    history.assert_kept(&s, Missing::None);
    history::assert_no_litter(&s);
}

#[test]
fn a_conversation_can_be_read_on_a_full_disk() {
    if within_mounts("full_disk::a_conversation_can_be_read_on_a_full_disk") == Ran::InChild {
        return;
    }
    let (sandbox, tiny) = with_tiny_disk();
    let agent = Agent { sandbox, model: ScriptedModel::start() };
    agent.model.says("Hello.");
    agent.turn("hello", []);
    let gate = agent.model.says("Later.").pauses();
    let mut killed = agent.command().args(["run", "--continue", "-p", "later"]).spawn().expect("it starts");
    gate.wait_until_reached();
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    agent.sandbox.write("a", noise(1, 10_000));
    let ballast = tiny.fill();
    let run = agent.retake(["resume"]).succeeds();
    run.says("cannot be put in order now");
    assert!(String::from_utf8_lossy(&run.stdout).contains("> later"), "what was said can be read");
    tiny.empty(&ballast);
    let run = agent.retake(["resume"]).succeeds();
    assert!(String::from_utf8_lossy(&run.stdout).contains("You were about to say: later"), "and put in order");
}
