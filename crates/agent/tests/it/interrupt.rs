//! R39, R62: stopping a turn.

use std::fs;
use std::time::{Duration, Instant};

use retake_agent::contract::{Action, Change, ChangeGoal, EventKind, Reason, State, TurnEnd, WhileRunning};
use retake_agent::tool::CALL_MARK;
use retake_engine::session::entry::{Body, Outcome};
use serde_json::json;

use crate::scene::{Scene, Wire};

/// Processes that a tool call of this test started: they have its mark and were told its word.
fn left_over(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let has = |wanted: &str| environment.split(|byte| *byte == 0).any(|one| one.starts_with(wanted.as_bytes()));
        if has(&format!("{CALL_MARK}=")) && has(&format!("WORD={word}")) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    found
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_command_leaves_no_process_and_keeps_its_output() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).start();
        let word = scene.session().to_string();
        let command = format!(
            "export WORD={word}; echo partial > a.txt; (sh -c 'sleep 300 & sleep 300' &); setsid sleep 300 & \
             setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' & echo so far; sleep 300"
        );
        scene.model.calls("bash", json!({"command": command}));
        let prompt = scene.say("run it");
        scene.until(|kind| matches!(kind, EventKind::CallOutput { text, .. } if text.contains("so far")));
        // A process has the word once it has become another program.
        while left_over(&word).is_empty() {
            std::thread::yield_now();
        }
        let asked = Instant::now();
        scene.request(Action::Interrupt { turn: None }).unwrap();
        scene.until(|kind| matches!(kind, EventKind::StateChanged { state: State::Paused }));
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(3), "{took:?}");
        scene.until_ended(prompt);
        assert_eq!(left_over(&word), Vec::<String>::new());
        let view = scene.view();
        let result = view.entries.iter().find_map(|entry| match &entry.body {
            Body::ToolResult { outcome, parts, .. } => Some((*outcome, format!("{parts:?}"))),
            _ => None,
        });
        let (outcome, text) = result.unwrap();
        assert!(outcome == Outcome::Interrupted && text.contains("so far"), "{outcome:?} {text}");
        scene.check();
        scene.model.says("I see.");
        scene.prompt("what came of it?");
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains("so far"), "{transcript}");
        assert_eq!(scene.read("a.txt").as_deref(), Some("partial\n"));
        scene.undo();
        scene.undo();
        assert_eq!(scene.files(), "", "what it had done until then is its own, and can be undone");
        scene.model.assert_exhausted();
    }
}

#[test]
fn an_interrupt_while_the_answer_comes_keeps_what_has_come() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).start();
        let gate = scene.model.says_slowly(["The answer is", " never heard."]);
        let first = scene.say("what is it?");
        scene.until(|kind| matches!(kind, EventKind::Delta { text, .. } if text.ends_with("is")));
        scene.interrupt(first);
        scene.model.wait_for_hang_up(1);
        gate.open();
        assert_eq!((scene.draft().as_str(), scene.state()), ("", State::Paused));
        scene.check();
        scene.model.says("As I said.");
        scene.prompt("go on");
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains("assistant: The answer is\nuser: go on"), "{transcript}");
        assert!(!transcript.contains("never heard"), "{transcript}");
        scene.restart();
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn a_turn_that_is_stopped_before_any_output_takes_itself_back() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).start();
        scene.model.says("Hello.");
        scene.prompt("hello");
        let before = scene.context();
        let gate = scene.model.says("Never heard.").pauses();
        let second = scene.say("wait, no");
        scene.model.wait_for_request(2);
        scene.interrupt(second);
        gate.open();
        let taken_back: Vec<bool> = scene.told().iter().filter_map(taken_back).collect();
        assert_eq!(taken_back, [false, true]);
        assert_eq!((scene.draft().as_str(), scene.context()), ("wait, no", before));
        assert_eq!(scene.targets().len(), 1);
        scene.check();
        scene.undo();
        assert!(scene.view().entries.is_empty(), "it is no operation: the one before it is undone");
        scene.check();
    }
}

fn taken_back(kind: &EventKind) -> Option<bool> {
    match kind {
        EventKind::TurnEnded { taken_back, .. } => Some(*taken_back),
        _ => None,
    }
}

#[test]
fn an_undo_that_stops_a_turn_before_any_output_undoes_nothing_else() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Hello.");
    scene.prompt("hello");
    let before = scene.context();
    let gate = scene.model.says("Never heard.").pauses();
    scene.say("wait, no");
    scene.model.wait_for_request(3);
    scene.request(Action::prompt(vec![retake_engine::session::entry::Part::text("and then")])).unwrap();
    let undo = Change::new(ChangeGoal::Undo { operation: None });
    let document = scene.apply(undo, WhileRunning::Interrupt).unwrap();
    gate.open();
    assert!(document.applied && document.operation.is_none() && document.files.is_empty(), "{document:?}");
    assert_eq!(document.what, "turn wait, no");
    assert_eq!((scene.files().as_str(), scene.context()), ("a.txt: a\n", before));
    assert_eq!((scene.draft().as_str(), scene.state()), ("wait, no\n\nand then", State::Idle));
    scene.check();
    scene.undo();
    assert_eq!(scene.files(), "", "the next one undoes the turn before it");
    scene.check();
}

#[test]
fn a_thought_is_no_output() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).start();
        let gate = retake_testkit::model::Gate::new();
        scene.model.thinks("Hm, hm.").waits_for(&gate).says("Never heard.");
        let prompt = scene.say("think");
        scene.until(|kind| matches!(kind, EventKind::Thinking { .. }));
        scene.interrupt(prompt);
        assert_eq!((scene.draft().as_str(), scene.view().entries.len()), ("think", 0));
        scene.check();
        scene.model.says("Fine.");
        scene.prompt("again");
        scene.model.assert_exhausted();
    }
}

#[test]
fn an_interrupt_while_a_question_is_open_answers_it_and_all_calls_have_results() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).interactive().file("a.txt", "a\n").start();
        scene
            .model
            .calls("write_file", json!({"path": "b.txt", "content": "b\n"}))
            .calls("read_file", json!({"path": "a.txt"}));
        let prompt = scene.say("write and read");
        scene.until_asked();
        scene.until(|kind| matches!(kind, EventKind::StateChanged { state: State::Paused }));
        scene.interrupt(prompt);
        assert!(scene.view().questions.is_empty());
        scene.check();
        scene.model.says("Stopped.");
        scene.prompt("why?");
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains("tool: The user stopped this before it began."), "{transcript}");
        assert_eq!(scene.files(), "a.txt: a\n");
        scene.model.assert_exhausted();
    }
}

#[test]
fn an_interrupt_when_nothing_runs_does_nothing() {
    let mut scene = Scene::new().start();
    scene.model.says("Hello.");
    scene.prompt("hello");
    let before = scene.view().entries;
    scene.request(Action::Interrupt { turn: None }).unwrap();
    assert_eq!((scene.view().entries, scene.state()), (before, State::Idle));
    scene.check();
}

#[test]
fn an_interrupt_during_the_pause_before_another_try_ends_the_turn() {
    let mut scene = Scene::new().start();
    scene.model.fails_with(529, "{}").header("retry-after", "20");
    let prompt = scene.say("hello");
    scene.until(|kind| matches!(kind, EventKind::Retrying { .. }));
    scene.interrupt(prompt);
    assert_eq!(scene.draft(), "hello");
    assert_eq!(scene.model.requests().len(), 1);
    scene.check();
}

#[test]
fn an_interrupt_that_names_a_turn_stops_no_other() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    let gate = scene.model.says("Two.").pauses();
    let second = scene.say("second");
    let refused = scene.request(Action::Interrupt { turn: Some(first) }).unwrap_err();
    assert_eq!(refused.reason, Reason::NotFound);
    gate.open();
    assert_eq!(scene.until_ended(second).0, TurnEnd::Done);
    let gate = scene.model.says("Three.").pauses();
    let third = scene.say("third");
    scene.request(Action::Interrupt { turn: Some(third) }).unwrap();
    assert_eq!(scene.until_ended(third).0, TurnEnd::Interrupted);
    gate.open();
    scene.check();
}
