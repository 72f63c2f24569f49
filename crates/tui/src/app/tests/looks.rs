//! Compares the screen, at three widths, with the pictures in `snapshots`. `INSTA_UPDATE=always` draws them anew: look at the difference.

use retake_agent::contract::{JobFacts, SessionFacts};
use retake_agent::diff::{DiffLine, FileDiff, HunkLines, LineKind};
use retake_agent::rewind_document::Bytes;

use super::*;
use crate::app::{Guide, Hint, Moment};

/// Compares the screen at three widths with its pictures.
fn looks(name: &str, scene: &mut Scene, height: u16) {
    let mut pictures = insta::Settings::new();
    pictures.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"));
    pictures.set_prepend_module_to_snapshot(false);
    pictures.set_omit_expression(true);
    for width in [40, 80, 120] {
        let drawn = scene.screen(width, height);
        pictures.bind(|| insta::assert_snapshot!(format!("{name}-{width}"), drawn));
    }
}

fn edit() -> FileDiff {
    let line = |kind, text: &str| DiffLine { kind, text: text.to_owned() };
    let lines = vec![
        line(LineKind::Same, "fn next(&mut self) -> Option<Token> {"),
        line(LineKind::Removed, "    let end = self.at + self.text.len();"),
        line(
            LineKind::Added,
            "    let end = self.at + self.text.len() - 1; // the last one is the end mark, which is no token",
        ),
        line(LineKind::Same, "}"),
    ];
    let hunks = vec![HunkLines { start: (98, 98), lines }];
    FileDiff {
        path: Bytes::Text("src/parser.rs".into()),
        added: 1,
        removed: 1,
        instead: None,
        hunks,
        left_out: 0,
        about: None,
    }
}

/// A conversation with all that is usual in one.
fn conversation() -> Scene {
    let mut scene = Scene::new();
    scene.turn("Why does the last token get lost?", "The loop ends **one too early**:\n\n- `next` counts the end mark\n- the test has none\n\n```rust\nlet end = self.at;\n```");
    scene.prompt("Mend it, and run the tests.");
    let arguments = r#"{"path":"src/parser.rs","old":"let end = len;","new":"let end = len - 1;"}"#;
    let call = |id: &str, name: &str, arguments: &str| Block::Call {
        id: CallId(id.into()),
        name: name.into(),
        arguments: arguments.into(),
    };
    let blocks = vec![
        Block::Text { text: "I take the end mark out.".into() },
        call("e", "edit_file", arguments),
        call("b", "bash", r#"{"command":"cargo test"}"#),
    ];
    let (model, usage) =
        ("anthropic/opus".to_owned(), Usage { input: 24_000, output: 800, cost: Some(0.07), ..Usage::default() });
    scene.append(Body::Reply { blocks, model, usage, stop: StopReason::Calls });
    scene.append(result("e", "edit src/parser.rs", "edited", None));
    let output: String = (1..=30).map(|n| format!("test parser::case_{n} ... ok\n")).collect();
    scene.append(result("b", "bash: cargo test", &output, None));
    scene.append(result("t", "todo", "ok", Some(todos())));
    scene
}

#[test]
fn a_conversation() {
    let mut scene = conversation();
    scene.reply("All 30 tests pass.");
    scene.answer(Asked::Store, Ok(Reply::Store { bytes: 12_345_678, budget: 1 << 32 }));
    looks("conversation", &mut scene, 40);
}

#[test]
fn a_turn_that_runs() {
    let mut scene = conversation();
    scene.state(State::Running);
    scene.tell(EventKind::Delta {
        turn: Scene::id(4),
        entry: Scene::id(5),
        text: "Now I look at the *second* ".into(),
    });
    scene.tell(EventKind::Held { count: 1 });
    scene.tell(EventKind::JobsChanged {
        jobs: vec![JobFacts { job: "1".into(), command: "npm start".into(), ended: None }],
    });
    scene.now += 65_000;
    scene.input(Input::Tick);
    scene.types("one more thing");
    looks("running", &mut scene, 24);
}

#[test]
fn a_question_with_what_would_be_written() {
    let mut scene = conversation();
    scene.state(State::Running);
    let question = Question {
        call: CallId("e".into()),
        tool: "edit_file".into(),
        title: "edit src/parser.rs".into(),
        detail: None,
        diffs: vec![edit()],
        why: "it may change something".into(),
        rule: Some(Rule { tool: "edits".into(), prefix: None }),
    };
    scene.tell(EventKind::PermissionAsked { question });
    scene.state(State::Paused);
    looks("question", &mut scene, 30);
}

#[test]
fn commands_that_are_offered() {
    let mut scene = conversation();
    scene.types("/re");
    looks("commands", &mut scene, 20);
}

#[test]
fn sessions() {
    let mut scene = conversation();
    let session = |id: &str, title: &str, minutes: i64, live| SessionFacts {
        session: id.into(),
        title: title.into(),
        at: Timestamp(BEGINNING - minutes * 60_000),
        prompts: 12,
        live,
        forked_from: None,
        draft: None,
    };
    let sessions = vec![
        session("01234567-89ab", "Why does the last token get lost?", 1, true),
        session("02", "Write the documentation of the command line, with an example for each option", 95, true),
        session("03", "日本語のテスト", 60 * 24 * 3, false),
    ];
    scene.answer(Asked::Sessions, Ok(Reply::Sessions { sessions }));
    scene.key(KeyCode::Down);
    looks("sessions", &mut scene, 14);
}

#[test]
fn all_keys_and_commands() {
    let mut scene = Scene::new();
    scene.key(KeyCode::Char('?'));
    looks("help", &mut scene, 60);
}

#[test]
fn what_a_turn_changed() {
    let mut scene = conversation();
    scene.answer(Asked::Diff, Ok(Reply::Diff { files: vec![edit()], plan: None }));
    looks("diff", &mut scene, 16);
}

struct First;

impl Guide for First {
    fn hint(&mut self, _: &Moment<'_>) -> Hint {
        let (text, prompt) = ("Enter sends the prompt below.".to_owned(), Some("Please mend it.".to_owned()));
        Hint { number: 1, of: 1, text, prompt }
    }
}

#[test]
fn the_first_hint_of_a_guide() {
    let mut scene = Scene::new();
    scene.app.guide = Some(Box::new(First));
    scene.app.follow_guide();
    looks("guide", &mut scene, 10);
    scene.control('u');
    assert!(scene.app.composer.is_blank(), "a prompt that is taken away does not come back by itself");
}

#[test]
fn nothing_is_drawn_outside_however_small_the_terminal_is() {
    for (width, height) in [(1, 1), (10, 3), (12, 5), (20, 8)] {
        let mut scene = conversation();
        scene.ask("c1", npm_test());
        scene.screen(width, height);
        scene.control('r');
        scene.screen(width, height);
    }
}
