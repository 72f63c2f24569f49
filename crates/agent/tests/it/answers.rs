//! R60, R61: what a model can say, and what can go wrong with it.

use retake_agent::contract::{Action, EventKind, State, TurnEnd};
use retake_engine::session::Scope;
use retake_engine::session::entry::Part;
use retake_testkit::model::{Answer, Stop};
use serde_json::json;

use crate::scene::{Scene, Wire};

const BOTH: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn a_failure_before_any_output_takes_the_turn_back_and_says_what_to_do() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        scene.model.fails_with(401, r#"{"error":{"message":"bad key"}}"#);
        let prompt = scene.say("hello");
        let ended = scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
        let EventKind::TurnEnded { reason, message, prompt: of, .. } = ended else { unreachable!() };
        assert_eq!((reason, of), (TurnEnd::Failed, prompt));
        assert!(message.as_ref().is_some_and(|text| text.contains("_API_KEY")), "{message:?}");
        let view = scene.view();
        assert_eq!((scene.draft().as_str(), view.entries.len(), view.state), ("hello", 0, State::Idle));
        scene.check();
        scene.model.says("Hello.");
        scene.prompt("hello");
        scene.model.assert_exhausted();
    }
}

#[test]
fn a_busy_model_is_asked_again_with_the_same_bytes() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        scene.model.fails_with(529, "{}").header("retry-after", "0");
        scene.model.hangs_up();
        scene.model.says("Half an ans").cuts_after(3);
        scene.model.says("A whole answer.");
        scene.prompt("hello");
        let requests = scene.model.requests();
        assert_eq!(requests.len(), 4);
        assert!(requests.windows(2).all(|pair| pair[0].text == pair[1].text));
        let told = scene.told();
        let attempts = told.iter().filter_map(|kind| match kind {
            EventKind::Retrying { attempt, after_ms, .. } => Some((*attempt, *after_ms)),
            _ => None,
        });
        assert_eq!(attempts.collect::<Vec<_>>(), [(1, 0), (2, 1_000), (3, 2_000)]);
        assert!(!scene.context().contains("Half an ans"));
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn a_failure_in_the_middle_of_a_turn_keeps_what_was_done() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
        scene.model.fails_with(401, "{}");
        let prompt = scene.say("write");
        assert_eq!(scene.until_ended(prompt).0, TurnEnd::Failed);
        assert_eq!((scene.files().as_str(), scene.draft().as_str()), ("a.txt: a\n", ""));
        scene.check();
        scene.model.says("It is written.");
        scene.prompt("go on");
        assert!(scene.last_request().transcript().ends_with("user: go on"));
        scene.rewind(prompt, Scope::Both);
        assert_eq!(scene.files(), "");
        scene.model.assert_exhausted();
    }
}

#[test]
fn what_came_of_an_answer_that_failed_for_good_is_kept() {
    let mut scene = Scene::new().start();
    scene.model.says("I have begun").breaks_with("invalid_request_error", "no");
    let prompt = scene.say("hello");
    let (reason, text) = scene.until_ended(prompt);
    assert_eq!((reason, text.as_str()), (TurnEnd::Failed, "I have begun"));
    scene.check();
    scene.model.says("Go on.");
    scene.prompt("go on");
    assert!(scene.last_request().transcript().contains("assistant: I have begun\nuser: go on"));
    scene.model.assert_exhausted();
}

#[test]
fn calls_that_make_no_sense_are_told_to_the_model() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).file("a.txt", "alpha\n").start();
        scene
            .model
            .calls("fly", json!({}))
            .calls("read_file", json!({"path": 7}))
            .calls_with_text("bash", "{\"command\": ")
            .calls("read_file", json!({"path": "a.txt"}));
        scene.model.says("I see.");
        scene.prompt("try");
        let transcript = scene.last_request().transcript();
        let results: Vec<_> = transcript.split("\ntool: ").skip(1).collect();
        assert_eq!(results.len(), 4, "{transcript}");
        assert!(results[0].contains("There is no tool `fly`"), "{transcript}");
        assert!(results[1].contains("path") && results[2].contains("JSON"), "{transcript}");
        assert!(results[3].contains("alpha"), "{transcript}");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn parallel_calls_are_answered_in_their_order_and_changes_are_made_in_it() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        scene
            .model
            .calls("bash", json!({"command": "sleep 0.2; echo 1 >> log.txt; echo one"}))
            .calls("bash", json!({"command": "echo 2 >> log.txt; echo two"}))
            .calls("list_dir", json!({}))
            .calls("bash", json!({"command": "echo 3 >> log.txt; echo three"}));
        scene.model.says("Done.");
        let prompt = scene.prompt("count");
        assert_eq!(scene.files(), "log.txt: 1\n2\n3\n");
        let transcript = scene.last_request().transcript();
        let results: Vec<_> = transcript.split("\ntool: ").skip(1).collect();
        assert!(
            results[0].contains("one") && results[1].contains("two") && results[3].contains("three"),
            "{transcript}"
        );
        scene.rewind(prompt, Scope::Both);
        assert_eq!(scene.files(), "");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn images_reach_the_model_in_prompts_and_results_and_come_back_as_the_draft() {
    use base64::Engine as _;
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        let pixel = base64::engine::general_purpose::STANDARD.decode(PIXEL).unwrap();
        std::fs::write(scene.root().join("pixel.png"), pixel).unwrap();
        scene.model.calls("read_file", json!({"path": "pixel.png"}));
        scene.model.says("A pixel.");
        let image = Part::Image { media_type: "image/png".to_owned(), data: PIXEL.to_owned() };
        let parts = vec![Part::text("what is this?"), image, Part::Paste { text: "pasted".to_owned() }];
        let reply = scene.request(Action::prompt(parts.clone())).unwrap();
        let retake_agent::contract::Reply::Said { prompt } = reply else { panic!("{reply:?}") };
        scene.until_ended(prompt);
        assert_eq!(scene.model.requests()[0].text.matches(PIXEL).count(), 1);
        assert_eq!(scene.last_request().text.matches(PIXEL).count(), 2);
        assert_eq!(scene.targets()[0].text, "what is this?");
        scene.rewind(prompt, Scope::Both);
        assert_eq!(scene.view().draft, parts);
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn a_turn_that_never_ends_is_ended() {
    let mut scene = Scene::new();
    scene.model = retake_testkit::ScriptedModel::answering(|_| Answer::default().calls("todo", json!({"items": []})));
    let mut scene = scene.start();
    let prompt = scene.say("for ever");
    let (reason, _) = scene.until_ended(prompt);
    assert_eq!(reason, TurnEnd::RoundLimit);
    scene.check();
}

#[test]
fn nothing_but_turns_asks_the_model() {
    let mut scene = Scene::new().start();
    scene.model.says("Hello.");
    let first = scene.prompt("a title\nand more");
    scene.targets();
    scene.rewind(first, Scope::Both);
    scene.undo();
    scene.restart();
    scene.context();
    assert_eq!(scene.model.requests().len(), 1);
    let sessions = scene.workspace().sessions().all().unwrap();
    assert_eq!(sessions[0].title, "a title");
}

#[test]
fn an_answer_that_is_not_whole_is_said_to_be_so() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        let mut warned = |stop: Option<Stop>, text: &str| {
            let answer = scene.model.says(text);
            drop(match stop {
                Some(stop) => answer.stops(stop),
                None => answer,
            });
            let before = scene.told().len();
            scene.prompt("go on");
            let told = scene.told().split_off(before);
            let warnings = told.into_iter().filter_map(|kind| match kind {
                EventKind::Warning { text } => Some(text),
                _ => None,
            });
            warnings.collect::<Vec<_>>().join("|")
        };
        assert_eq!(warned(None, "All."), "");
        assert!(warned(Some(Stop::Length), "Hal").contains("was cut"));
        assert!(warned(Some(Stop::Refusal), "I").contains("refused"));
        assert!(warned(None, " ").contains("was empty"));
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_for_long_ends_the_turn() {
    let mut scene = Scene::new().start();
    scene.model.fails_with(429, "{}").header("retry-after", "3600");
    let prompt = scene.say("hello");
    let ended = scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    let EventKind::TurnEnded { reason, message, prompt: of, .. } = ended else { unreachable!() };
    assert_eq!((reason, of), (TurnEnd::Failed, prompt));
    assert!(message.as_ref().is_some_and(|text| text.contains("in 60 min")), "{message:?}");
    assert_eq!(scene.draft(), "hello");
}
