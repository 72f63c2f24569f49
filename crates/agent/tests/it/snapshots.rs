//! R6, R7: when snapshots are taken, and what happens when one cannot be.

use std::fs::OpenOptions;

use retake_agent::contract::{Baseline, EventKind, PermissionAnswer, SnapshotMoment, State};
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Outcome};
use serde_json::json;

use crate::scene::{Scene, Wire};

/// Stalls every snapshot until the result is dropped: whoever takes one waits for this lock.
fn stall(scene: &Scene) -> std::fs::File {
    // Listing waits for what the workspace thread does, the first snapshot among it.
    scene.targets();
    let lock = scene.workspace().store_dir().join("lock");
    let lock = OpenOptions::new().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    lock
}

fn snapshots(told: &[EventKind]) -> Vec<String> {
    let name = |kind: &EventKind| match kind {
        EventKind::Snapshot { moment, checkpoint, .. } if *moment != SnapshotMoment::Baseline => {
            Some(format!("{} {}", json!(moment).as_str().unwrap(), checkpoint.is_some()))
        }
        _ => None,
    };
    told.iter().filter_map(name).collect()
}

#[test]
fn the_model_is_asked_while_the_snapshot_is_taken_and_only_a_change_waits_for_it() {
    let mut scene = Scene::new().file("a.txt", "alpha\n").start();
    let stalled = stall(&scene);
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.calls("read_file", json!({"path": "a.txt"})).calls("bash", json!({"command": "echo b > b.txt"}));
    scene.model.says("Done.");
    let prompt = scene.say("look, then write");
    scene.model.wait_for_request(1);
    // The first reader's result has reached the model, and the second one has its own, while no snapshot has been taken.
    scene.model.wait_for_request(2);
    let mut results = 0;
    scene.until(|kind| {
        results +=
            usize::from(matches!(kind, EventKind::Appended { entry } if matches!(entry.body, Body::ToolResult { .. })));
        results == 2
    });
    let started = |told: &[EventKind]| {
        told.iter().any(|kind| matches!(kind, EventKind::CallStarted { title, .. } if title.starts_with("bash")))
    };
    let told = scene.told();
    assert!(!started(&told) && scene.read("b.txt").is_none(), "the command waits");
    assert_eq!(snapshots(&told), [""; 0]);
    drop(stalled);
    scene.until_ended(prompt);
    let told = scene.told();
    assert_eq!(snapshots(&told), ["prompt true", "before true", "after true", "turn true"]);
    let position = |wanted: &dyn Fn(&EventKind) -> bool| told.iter().position(wanted).unwrap();
    let before =
        position(&|kind| matches!(kind, EventKind::Snapshot { moment, .. } if *moment == SnapshotMoment::Before));
    assert!(
        before < position(&|kind| matches!(kind, EventKind::CallStarted { title, .. } if title.starts_with("bash")))
    );
    scene.rewind(prompt, Scope::Both);
    assert_eq!(scene.files(), "a.txt: alpha\n");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_turn_is_stopped_at_once_although_a_snapshot_is_stalled() {
    let mut scene = Scene::new().start();
    let stalled = stall(&scene);
    let write = |n: u32| json!({"path": format!("{n}.txt"), "content": "x\n"});
    scene.model.calls("write_file", write(1)).calls("write_file", write(2));
    let prompt = scene.say("write two");
    scene.until(|kind| matches!(kind, EventKind::Appended { entry } if matches!(entry.body, Body::Reply { .. })));
    scene.request(retake_agent::contract::Action::Interrupt { turn: None }).unwrap();
    scene.until(|kind| matches!(kind, EventKind::StateChanged { state: State::Paused }));
    drop(stalled);
    scene.until_ended(prompt);
    let outcomes: Vec<_> = scene.view().entries.iter().filter_map(outcome).collect();
    assert_eq!(outcomes, [Outcome::Interrupted, Outcome::Interrupted], "each call has one result");
    assert_eq!(scene.files(), "");
    scene.check();
    scene.rewind(prompt, Scope::Both);
    scene.model.says("Right.");
    scene.prompt("forget it");
    scene.check();
    scene.model.assert_exhausted();
}

fn outcome(entry: &retake_engine::session::entry::Entry) -> Option<Outcome> {
    match entry.body {
        Body::ToolResult { outcome, .. } => Some(outcome),
        _ => None,
    }
}

/// A workspace whose content does not fit into the store any more.
fn out_of_room(scene: Scene) -> Scene {
    let scene = scene.with_settings(|settings| settings.budget = 2 << 20).start();
    scene.targets();
    let noise: Vec<u8> = (0..400_000).flat_map(|_| retake_agent::ids::random()).collect();
    std::fs::write(scene.root().join("big.bin"), noise).unwrap();
    scene
}

#[test]
fn without_a_snapshot_and_anybody_to_ask_the_tool_fails_and_the_model_is_told_why() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = out_of_room(Scene::with(wire));
        scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
        scene.model.says("I cannot.");
        scene.prompt("write");
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains("tool: This was not run") && transcript.contains("--unprotected"), "{transcript}");
        assert_eq!(scene.read("a.txt"), None);
        assert!(snapshots(&scene.told()).contains(&"prompt false".to_owned()));
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn without_a_snapshot_the_tool_runs_if_the_user_said_so_beforehand() {
    let mut scene = out_of_room(Scene::new().unprotected());
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    scene.prompt("write");
    assert_eq!(scene.read("a.txt").as_deref(), Some("a\n"));
    assert!(
        scene.told().iter().any(|kind| matches!(kind, EventKind::Warning { text } if text.contains("not protected")))
    );
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn without_a_snapshot_the_user_is_asked() {
    let mut scene = out_of_room(Scene::new().interactive());
    for (answer, written) in [(PermissionAnswer::Deny { why: None }, false), (PermissionAnswer::Allow, true)] {
        scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
        scene.model.says("Well.");
        let prompt = scene.say("write");
        let question = scene.until_asked();
        scene.answer(&question, PermissionAnswer::Allow);
        let question = scene.until_asked();
        assert!(question.why.contains("could not be taken back") && question.rule.is_none(), "{question:?}");
        scene.until(|kind| matches!(kind, EventKind::StateChanged { state: State::Paused }));
        assert_eq!(scene.read("a.txt"), None);
        scene.check();
        scene.answer(&question, answer);
        scene.until_ended(prompt);
        assert_eq!(scene.read("a.txt").is_some(), written);
        scene.check();
    }
    scene.model.assert_exhausted();
}

#[test]
fn once_there_is_room_again_an_allowed_call_is_protected() {
    let mut scene = out_of_room(Scene::new().interactive());
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    let prompt = scene.say("write");
    let question = scene.until_asked();
    scene.answer(&question, PermissionAnswer::Allow);
    let question = scene.until_asked();
    std::fs::remove_file(scene.root().join("big.bin")).unwrap();
    scene.answer(&question, PermissionAnswer::Allow);
    scene.until_ended(prompt);
    assert_eq!(scene.files(), "a.txt: a\n");
    scene.rewind(prompt, Scope::Both);
    assert_eq!(scene.files(), "");
    scene.check();
}

/// What was told of the first snapshot: how far it had come each time, and how long it took.
fn baseline(scene: &mut Scene) -> (Vec<Baseline>, f64) {
    let mut told = Vec::from_iter(scene.view().baseline);
    let ended = scene.until(|kind| {
        if let EventKind::Baseline { baseline } = kind {
            told.push(*baseline);
        }
        matches!(kind, EventKind::Snapshot { moment, .. } if *moment == SnapshotMoment::Baseline)
    });
    assert_eq!(scene.view().baseline, None, "it is over");
    let EventKind::Snapshot { ms, .. } = ended else { unreachable!() };
    (told, ms)
}

#[test]
fn whoever_waits_for_the_first_look_at_many_files_is_told_how_far_it_has_come() {
    let scene = Scene::new();
    let (files, size) = (4_000, 2_000);
    for n in 0..files {
        scene.write(&format!("{}/{n}.txt", n % 100), &format!("{n:0>size$}"));
    }
    let stalled = {
        let lock = scene.workspace().store_dir().join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(lock).unwrap();
        lock.lock().unwrap();
        lock
    };
    let mut scene = scene.start();
    // However quick the disk is, this takes longer than anybody waits without being told.
    std::thread::sleep(std::time::Duration::from_millis(250));
    drop(stalled);
    let (told, ms) = baseline(&mut scene);
    assert!(!told.is_empty(), "nothing was told in {ms} ms");
    assert!(told.len() as f64 <= ms / 200.0, "{} times in {ms} ms", told.len());
    assert!(told.is_sorted_by_key(|baseline| (baseline.files, baseline.bytes)), "{told:?}");
    assert!(told.iter().all(|baseline| baseline.files <= files && baseline.bytes <= files * size as u64), "{told:?}");
    // What is known already is looked at in no time.
    scene.model.says("Hello.");
    scene.prompt("hello");
    scene.restart();
    let (told, ms) = baseline(&mut scene);
    assert!(told.len() as f64 <= ms / 200.0, "{} times in {ms} ms", told.len());
    scene.check();
}
