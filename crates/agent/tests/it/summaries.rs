//! R46, R38: summaries that the user wants and those that keep a turn from becoming too long. Asserted on what the model receives.

use retake_agent::contract::{
    Action, Change, EventKind, Extent, Reason, Refusal, Reply, State, Summarised, TurnEnd, WhileRunning,
};
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, SummaryBy};
use retake_testkit::model::{Answer, Stop, Tokens};
use serde_json::json;

use crate::scene::{Scene, Wire, rewind_goal};

const BOTH: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

/// Three turns that say `said one` and so on.
fn three_turns(scene: &mut Scene) -> [EntryId; 3] {
    ["one", "two", "three"].map(|word| {
        scene.model.calls("bash", json!({"command": format!("echo did {word}")}));
        scene.model.says(&format!("said {word}"));
        scene.prompt(&format!("prompt {word}"))
    })
}

fn summarise(scene: &Scene, extent: Extent) -> Result<Option<Summarised>, Refusal> {
    let reply = scene.request(Action::Summarise { extent, instructions: Some("mind the gap".to_owned()) })?;
    let Reply::Summarised { summary } = reply else { panic!("no summary: {reply:?}") };
    Ok(summary.map(|summary| *summary))
}

/// What the model would be told of each turn: prompt, reply and result of a call.
fn told(scene: &Scene) -> String {
    let context = scene.context();
    let count = |text: &str| context.matches(text).count();
    let turns = ["one", "two", "three"].map(|word| {
        let [prompt, said, did] =
            [format!("prompt {word}"), format!("said {word}"), format!("did {word}\\n")].map(|text| count(&text));
        format!("{word} {prompt}{said}{did}")
    });
    format!("{}, summaries {}", turns.join(", "), count("SUMMARY"))
}

#[test]
fn from_here_and_up_to_here_leave_the_rest_as_it_is() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        let [_, second, third] = three_turns(&mut scene);
        let whole = scene.context();
        scene.model.says("SUMMARY of the rest");
        let made = summarise(&scene, Extent::From { entry: second }).unwrap().expect("there is something");
        assert_eq!(told(&scene), "one 111, two 000, three 000, summaries 1");
        let asked = scene.last_request();
        assert!(
            asked.text.contains("begins with \\\"prompt two\\\"") && asked.text.contains("mind the gap"),
            "{}",
            asked.text
        );
        assert!(asked.text_without_marks().contains("said three"));
        assert_eq!((made.text.as_str(), made.bytes.0 > made.bytes.1), ("SUMMARY of the rest", true));
        scene.check();
        let summarised = scene.context();
        scene.restart();
        assert_eq!(scene.context(), summarised);
        assert_eq!(scene.targets().len(), 3, "every prompt is still a target");
        scene.undo();
        assert_eq!(scene.context(), whole);
        scene.restart();
        scene.redo();
        assert_eq!(scene.context(), summarised);
        scene.undo();
        scene.model.says("SUMMARY of the past");
        summarise(&scene, Extent::UpTo { entry: third }).unwrap().expect("there is something");
        assert_eq!(told(&scene), "one 000, two 000, three 111, summaries 1");
        assert!(!scene.last_request().text.contains("prompt three"), "what stays is not asked about");
        // Into the range: what the summary stood for is there again, but for what was gone back before.
        scene.rewind(second, Scope::Both);
        assert_eq!(told(&scene), "one 111, two 000, three 000, summaries 0");
        scene.undo();
        assert_eq!(told(&scene), "one 000, two 000, three 111, summaries 1");
        scene.model.says("Fourth.");
        scene.prompt("prompt four");
        let last = scene.last_request().messages();
        assert_eq!(last.iter().filter(|message| message.contains("SUMMARY")).count(), 1);
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn summaries_of_summaries_lose_nothing() {
    let mut scene = Scene::new().start();
    let [first, second, third] = three_turns(&mut scene);
    scene.model.says("SUMMARY A");
    summarise(&scene, Extent::From { entry: second }).unwrap().expect("there is something");
    // The middle of an earlier summary: all of that becomes part of the new one, since its text is shown only once.
    scene.model.says("SUMMARY B");
    let made = summarise(&scene, Extent::UpTo { entry: third }).unwrap().expect("there is something");
    assert_eq!(told(&scene), "one 000, two 000, three 000, summaries 1");
    assert_eq!(made.range.0, scene.stored().entries()[0].id);
    assert!(scene.context().contains("SUMMARY B"));
    assert!(scene.last_request().text.contains("SUMMARY A"), "it is made of what the model sees");
    assert_eq!(summarise(&scene, Extent::All).unwrap(), None, "there is nothing but a summary");
    assert_eq!(summarise(&scene, Extent::UpTo { entry: first }).unwrap(), None, "there is nothing before it");
    scene.undo();
    assert_eq!(told(&scene), "one 111, two 000, three 000, summaries 1");
    scene.undo();
    assert_eq!(told(&scene), "one 111, two 111, three 111, summaries 0");
    scene.redo();
    scene.redo();
    assert_eq!(told(&scene), "one 000, two 000, three 000, summaries 1");
    scene.model.assert_exhausted();
    scene.check();
}

#[test]
fn cancelling_or_failing_leaves_nothing() {
    let mut scene = Scene::new().start();
    let [first, ..] = three_turns(&mut scene);
    let (whole, entries) = (scene.context(), scene.stored());
    let gate = scene.model.says("SUMMARY").pauses();
    let (handle, runtime) = (scene.handle(), scene.runtime());
    let asked = runtime
        .spawn(async move { handle.request(Action::Summarise { extent: Extent::All, instructions: None }).await });
    gate.wait_until_reached();
    scene.until(|kind| matches!(kind, EventKind::Summarising { active: true }));
    assert_eq!((scene.view().summarising, scene.state()), (true, State::Running));
    let refused = scene.apply(Change::new(rewind_goal(first, Scope::Both)), WhileRunning::Refuse).unwrap_err();
    assert_eq!(refused.reason, Reason::Running);
    scene.request(Action::Interrupt { turn: None }).unwrap();
    let refused = runtime.block_on(asked).unwrap().unwrap_err();
    assert_eq!(refused.reason, Reason::Interrupted);
    gate.open();
    assert_eq!((scene.context(), scene.stored()), (whole.clone(), entries.clone()));
    assert!(!scene.view().summarising);
    assert_ne!(scene.state(), State::Running);
    scene.model.fails_with(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#);
    let refused = summarise(&scene, Extent::All).unwrap_err();
    assert!(refused.message.contains("nothing was changed"), "{refused:?}");
    for _ in 0..2 {
        scene.model.says("I will look first.").calls("bash", json!({"command": "rm -rf ."}));
    }
    let refused = summarise(&scene, Extent::All).unwrap_err();
    assert!(refused.message.contains("called tools"), "calls are not run, and it was asked twice: {refused:?}");
    for _ in 0..2 {
        scene.model.says("Half a summ").stops(Stop::Length);
    }
    let refused = summarise(&scene, Extent::All).unwrap_err();
    assert!(refused.message.contains("did not come to an end"), "{refused:?}");
    let unknown = summarise(&scene, Extent::From { entry: EntryId::new([9; 10]) }).unwrap_err();
    assert_eq!(unknown.reason, Reason::NotFound);
    assert_eq!((scene.context(), scene.stored()), (whole, entries));
    scene.check();
}

#[test]
fn a_summary_that_nobody_waits_for_any_more_is_not_made() {
    let mut scene = Scene::new().start();
    three_turns(&mut scene);
    let (whole, entries) = (scene.context(), scene.stored());
    let gate = scene.model.says("SUMMARY").pauses();
    let (handle, runtime) = (scene.handle(), scene.runtime());
    let asked = runtime
        .spawn(async move { handle.request(Action::Summarise { extent: Extent::All, instructions: None }).await });
    gate.wait_until_reached();
    asked.abort();
    assert!(runtime.block_on(asked).is_err());
    gate.open();
    scene.until(|kind| matches!(kind, EventKind::Summarising { active: false }));
    assert_eq!((scene.context(), scene.stored()), (whole, entries));
    scene.check();
}

#[test]
fn a_prompt_that_comes_meanwhile_is_said_afterwards_and_a_rewind_may_interrupt() {
    let mut scene = Scene::new().start();
    let [first, second, _] = three_turns(&mut scene);
    let gate = scene.model.says("SUMMARY").pauses();
    let (handle, runtime) = (scene.handle(), scene.runtime());
    let asked = runtime.spawn(async move {
        handle.request(Action::Summarise { extent: Extent::UpTo { entry: second }, instructions: None }).await
    });
    gate.wait_until_reached();
    let held = scene.request(Action::prompt(vec![retake_engine::session::entry::Part::text("prompt four")])).unwrap();
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
    scene.model.says("said four");
    gate.open();
    runtime.block_on(asked).unwrap().unwrap();
    scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    let last = scene.last_request();
    assert!(last.text.contains("SUMMARY") && last.text.contains("prompt four") && !last.text.contains("said one"));
    let gate = scene.model.says("SUMMARY 2").pauses();
    let handle = scene.handle();
    let asked = runtime
        .spawn(async move { handle.request(Action::Summarise { extent: Extent::All, instructions: None }).await });
    gate.wait_until_reached();
    scene.apply(Change::new(rewind_goal(first, Scope::Both)), WhileRunning::Interrupt).unwrap();
    assert_eq!(runtime.block_on(asked).unwrap().unwrap_err().reason, Reason::Interrupted);
    gate.open();
    assert_eq!(told(&scene), "one 000, two 000, three 000, summaries 0");
    scene.check();
}

fn costs(input: u64) -> Tokens {
    Tokens { input, output: 10, ..Tokens::default() }
}

#[test]
fn a_turn_near_the_limit_summarises_by_itself_and_goes_on() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).with_window(10_000).start();
        let [_, second, _] = three_turns(&mut scene);
        scene.model.says("said four").costs(costs(9_000));
        scene.prompt("prompt four");
        scene.model.says("SUMMARY of the past");
        scene.model.calls("bash", json!({"command": "echo did five"})).costs(costs(1_000));
        scene.model.says("said five");
        let fifth = scene.prompt("prompt five");
        let requests = scene.model.requests();
        let after = &requests[requests.len() - 2];
        assert!(after.text.contains("SUMMARY of the past") && after.text.contains("prompt five"), "{}", after.text);
        assert!(!after.text.contains("said four"));
        assert!(scene.told().iter().any(|kind| matches!(kind, EventKind::Summarising { active: true })));
        let by = scene.stored().entries().iter().find_map(|entry| match &entry.body {
            Body::Summary { by, .. } => Some(by.clone()),
            _ => None,
        });
        assert_eq!(by, Some(SummaryBy::Compaction));
        scene.check();
        let context = scene.context();
        scene.restart();
        assert_eq!(scene.context(), context);
        // Before it, everything is as it was; and so is the other way.
        scene.rewind(second, Scope::Both);
        assert_eq!(told(&scene), "one 111, two 000, three 000, summaries 0");
        scene.undo();
        assert_eq!(scene.context(), context);
        scene.rewind(fifth, Scope::Conversation);
        assert_eq!(told(&scene), "one 111, two 111, three 111, summaries 0", "it belongs to the turn");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn one_long_turn_summarises_its_own_work_and_keeps_the_prompt() {
    let mut scene = Scene::new().with_window(10_000).start();
    scene.model.calls("bash", json!({"command": "echo ALPHA; seq 1000"})).costs(costs(2_000));
    scene.model.calls("bash", json!({"command": "echo BETA"})).costs(costs(9_500));
    scene.model.says("SUMMARY of my work");
    scene.model.says("Done.").costs(costs(500));
    scene.prompt("the one request");
    let last = scene.last_request();
    assert_eq!(last.text.matches("the one request").count(), 1);
    assert!(last.text.contains("SUMMARY of my work") && !last.text.contains("ALPHA") && !last.text.contains("BETA"));
    let asked = &scene.model.requests()[2];
    assert!(asked.text.contains("after the user's last message"), "{}", asked.text);
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_server_that_says_too_long_is_believed() {
    const TOO_LONG: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    let mut scene = Scene::new().start();
    three_turns(&mut scene);
    scene.model.fails_with(400, TOO_LONG);
    // The summary of the whole is too long too; with long results cut it is not.
    scene.model.fails_with(400, TOO_LONG);
    scene.model.says("SUMMARY");
    scene.model.says("said four");
    scene.prompt("prompt four");
    assert!(scene.last_request().text.contains("SUMMARY") && !scene.last_request().text.contains("said one"));
    // Nothing is left to make shorter: the turn fails with what to do, and can be tried again.
    let mut short = Scene::new().start();
    short.model.fails_with(400, TOO_LONG);
    let prompt = short.say("far too long");
    assert_eq!(short.until_ended(prompt).0, TurnEnd::Failed);
    assert_eq!(short.draft(), "far too long");
    scene.check();
    short.check();
}

#[test]
fn interrupting_a_summary_within_a_turn_ends_the_turn_and_leaves_nothing_of_it() {
    let mut scene = Scene::new().with_window(10_000).start();
    three_turns(&mut scene);
    scene.model.says("said four").costs(costs(9_000));
    scene.prompt("prompt four");
    let whole = scene.context();
    let gate = scene.model.says("SUMMARY").pauses();
    let prompt = scene.say("prompt five");
    gate.wait_until_reached();
    scene.interrupt(prompt);
    gate.open();
    assert_eq!(scene.context(), whole);
    assert_eq!(scene.draft(), "prompt five");
    assert!(!scene.view().summarising);
    scene.check();
}

#[test]
fn a_models_checkpoint_can_be_gone_back_to_across_a_summary() {
    let mut scene = Scene::new().exploring().with_window(10_000).start();
    scene.model.calls("checkpoint", json!({"goal": "look deep", "name": "deep"}));
    scene.model.calls("bash", json!({"command": "echo ALPHA"})).costs(costs(9_500));
    scene.model.says("SUMMARY of my work");
    scene.model.calls("bash", json!({"command": "printf %s-%s BE TA"})).costs(costs(900));
    scene.model.calls("rewind", json!({"report": "It is deep."})).costs(costs(1_000));
    scene.model.says("Done.");
    scene.prompt("look");
    let requests = scene.model.requests();
    assert!(requests[3].text.contains("Checkpoints of yours that are open") && requests[3].text.contains("look deep"));
    let (before, last) = (requests[3].messages(), requests[5].messages());
    assert_eq!(last[..before.len()], before, "a summary that was made since holds, byte for byte");
    assert_eq!(last.len(), before.len() + 1);
    assert!(!requests[5].text.contains("BE-TA"), "what came after it has left");
    scene.check();
    let context = scene.context();
    scene.restart();
    assert_eq!(scene.context(), context);
    // A summary of everything by the user comes last and stands for all of it.
    scene.model.answers(Answer::default().says("SUMMARY of all"));
    summarise(&scene, Extent::All).unwrap().expect("there is something");
    assert!(!scene.context().contains("It is deep."));
    scene.undo();
    assert_eq!(scene.context(), context);
    scene.check();
}
