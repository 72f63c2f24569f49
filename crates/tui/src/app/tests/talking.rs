//! Saying things, commands, the draft, leaving.

use retake_agent::contract::{
    Action, Change, ChangeGoal, Command, DiffOf, Extent, Query, Reason, SeenHead, WhileRunning,
};
use retake_agent::rewind_document::{Bytes, ConflictFacts, File, NotRestoredFacts, RewindDocument};
use retake_engine::rewind::{Conflict, LedgerItem, Means, OnConflict};

use super::*;
use crate::app::{MainView, NextSession};

fn ask(asked: Asked, command: impl Into<Command>) -> Vec<Effect> {
    vec![Effect::Ask(asked, command.into())]
}

#[test]
fn enter_says_what_is_typed_and_empties_the_composer() {
    let mut scene = Scene::new();
    assert_eq!(scene.enters("mend it"), [Effect::Say { parts: vec![Part::text("mend it")], draft: Vec::new() }]);
    assert!(scene.app.composer.is_blank());
    assert_eq!(scene.key(KeyCode::Enter), [], "nothing is not said");
}

#[test]
fn several_lines_are_typed_with_alt_enter_and_with_a_backslash() {
    let mut scene = Scene::new();
    scene.types("one");
    scene.input(Input::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
    scene.types("two\\");
    assert_eq!(scene.key(KeyCode::Enter), []);
    assert_eq!(scene.enters("three"), [Effect::Say { parts: vec![Part::text("one\ntwo\nthree")], draft: Vec::new() }]);
}

#[test]
fn a_prompt_that_is_refused_comes_back() {
    let mut scene = Scene::new();
    scene.enters("mend it");
    let refusal = Refusal {
        reason: Reason::Failed,
        message: "the disk is full".into(),
        hint: Some("make room".into()),
        document: None,
    };
    scene.answer(Asked::Said(vec![Part::text("mend it")]), Err(refusal));
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it")]);
    assert!(scene.screen(60, 8).contains("✗ the disk is full · make room"));
}

#[test]
fn every_way_opens_the_same_picker() {
    let enter = |scene: &mut Scene, line: &str| scene.enters(line);
    let ways: [fn(&mut Scene) -> Vec<Effect>; 5] = [
        |scene| scene.control('r'),
        |scene| scene.enters(":rewind"),
        |scene| scene.enters(":rollback"),
        |scene| scene.enters("/rewind"),
        |scene| {
            assert_eq!(scene.key(KeyCode::Esc), []);
            scene.key(KeyCode::Esc)
        },
    ];
    for way in ways {
        let mut scene = Scene::new();
        scene.turn("mend it", "done");
        let effects = way(&mut scene);
        assert!(matches!(scene.app.place, MainView::Picker(_)));
        assert!(effects.iter().all(|effect| matches!(effect, Effect::Ask(Asked::Picker(_), _))), "{effects:?}");
        scene.key(KeyCode::Esc);
        assert!(matches!(scene.app.place, MainView::Talk), "Esc closes it");
    }
    let mut scene = Scene::new();
    assert!(!enter(&mut scene, "/rewind").is_empty(), "before anything was said, too");
}

#[test]
fn escape_twice_is_no_way_in_while_something_is_typed_or_long_after() {
    let mut scene = Scene::new();
    scene.types("half a prompt");
    scene.key(KeyCode::Esc);
    scene.key(KeyCode::Esc);
    assert!(matches!(scene.app.place, MainView::Talk));
    assert_eq!(scene.app.composer.parts(), [Part::text("half a prompt")]);
    let mut scene = Scene::new();
    scene.key(KeyCode::Esc);
    scene.now += 5_000;
    scene.key(KeyCode::Esc);
    assert!(matches!(scene.app.place, MainView::Talk));
}

#[test]
fn the_picker_is_refused_with_a_reason_while_a_turn_runs() {
    let mut scene = Scene::new();
    scene.state(State::Running);
    assert_eq!(scene.control('r'), []);
    assert!(matches!(scene.app.place, MainView::Talk));
    assert!(scene.screen(80, 8).contains("! A turn is running"), "{}", scene.screen(80, 8));
}

#[test]
fn escape_and_ctrl_c_stop_the_turn() {
    for stop in
        [KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)]
    {
        let mut scene = Scene::new();
        scene.state(State::Running);
        assert_eq!(scene.input(Input::Key(stop)), ask(Asked::Quietly, Action::Interrupt { turn: None }));
    }
}

#[test]
fn commands_ask_the_session() {
    let mut scene = Scene::new();
    let prompt = scene.turn("mend it", "done");
    let head = scene.app.view.head();
    let apply = |goal| Action::Apply {
        change: Change::new(goal),
        head_seen: Some(SeenHead { head }),
        plan_seen: None,
        running: WhileRunning::Refuse,
    };
    let undo = apply(ChangeGoal::Undo { operation: None });
    assert_eq!(scene.enters("/undo"), ask(Asked::Change { verb: "undo" }, undo));
    let nothing = Refusal { reason: Reason::Nothing, message: "nothing to undo".into(), hint: None, document: None };
    scene.answer(Asked::Change { verb: "undo" }, Err(nothing));
    assert_eq!(scene.enters("/redo"), ask(Asked::Change { verb: "redo" }, apply(ChangeGoal::Redo { operation: None })));
    assert_eq!(scene.enters("/diff"), ask(Asked::Diff, Query::Diff { of: DiffOf::Turn { prompt } }));
    let entry = head.expect("something was said");
    assert_eq!(scene.enters("/fork"), ask(Asked::Fork, Action::Fork { entry }));
    let label = Action::Label { prompt, label: Some("it works".into()) };
    assert_eq!(scene.enters("/label it works"), ask(Asked::Label("it works".into()), label));
    let compact = Action::Summarise { extent: Extent::All, instructions: Some("the API".into()) };
    assert_eq!(scene.enters("/compact the API"), ask(Asked::Summary, compact));
    let from = Action::Summarise { extent: Extent::From { entry: prompt }, instructions: None };
    assert_eq!(scene.enters("/summarize from 1"), ask(Asked::Summary, from));
    let up_to = Action::Summarise { extent: Extent::UpTo { entry: prompt }, instructions: None };
    assert_eq!(scene.enters("/summarize up to #1"), ask(Asked::Summary, up_to));
    let model = Action::Model { model: "openai/x".into() };
    assert_eq!(scene.enters("/model openai/x"), ask(Asked::Model("openai/x".into()), model));
    assert_eq!(scene.enters("/clear"), ask(Asked::Quietly, Action::Clear));
    assert_eq!(scene.enters("/sessions"), ask(Asked::Sessions, Query::Sessions));
    assert_eq!(scene.enters("/checkpoints"), ask(Asked::Checkpoints, Query::Checkpoints));
    assert_eq!(scene.enters("/new"), [Effect::Leave(NextSession::New)]);
}

#[test]
fn two_undos_at_once_are_two() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    scene.enters("/undo");
    let effects = scene.enters("/undo");
    let [Effect::Ask(_, Command::Action(Action::Apply { head_seen, .. }))] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(*head_seen, None, "what the first one moves is no reason to refuse the second");
}

#[test]
fn a_command_is_not_glued_to_what_waits_to_be_said() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    scene.tell_own(EventKind::DraftChanged { parts: vec![Part::text("mend it")] });
    scene.now += 10_000;
    let effects = scene.enters("/redo");
    assert!(matches!(effects.as_slice(), [Effect::Ask(Asked::Change { verb: "redo" }, _)]), "{effects:?}");
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it")], "it is there again");
    scene.types("/");
    scene.key(KeyCode::Backspace);
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it")]);
    scene.types(" and/or test it");
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it and/or test it")], "what is edited is edited");
}

#[test]
fn a_mistyped_command_is_not_said() {
    let mut scene = Scene::new();
    assert_eq!(scene.enters("/rewnd"), []);
    assert_eq!(scene.app.composer.parts(), [Part::text("/rewnd")], "it can be mended");
    assert!(scene.screen(60, 8).contains("no command /rewnd"));
}

#[test]
fn a_command_is_completed_and_run() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    scene.types("/und");
    assert!(scene.screen(60, 8).contains("› /undo"));
    let effects = scene.key(KeyCode::Enter);
    assert!(matches!(effects.as_slice(), [Effect::Ask(Asked::Change { verb: "undo" }, _)]), "{effects:?}");
}

#[test]
fn a_file_is_completed_from_what_the_session_finds() {
    let mut scene = Scene::new();
    let effects = scene.types("see @ma");
    assert_eq!(effects, ask(Asked::Files("ma".into()), Query::Files { query: "ma".into() }));
    scene.answer(Asked::Files("m".into()), Ok(Reply::Files { paths: vec!["late".into()] }));
    assert!(scene.app.completion.is_none(), "a late answer is dropped");
    scene.answer(Asked::Files("ma".into()), Ok(Reply::Files { paths: vec!["src/main.rs".into(), "Makefile".into()] }));
    scene.key(KeyCode::Down);
    assert_eq!(scene.key(KeyCode::Enter), [], "Enter takes the file and says nothing yet");
    assert_eq!(
        scene.enters("please"),
        [Effect::Say { parts: vec![Part::text("see @Makefile please")], draft: Vec::new() }]
    );
}

#[test]
fn what_did_not_go_back_is_named_and_an_undo_without_effect_is_none() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    let stays =
        serde_json::json!([{"path": "big.dat", "change": "changed", "why": "too_large", "text": "has changed"}]);
    let undone = RewindDocument {
        operation: Some("op".into()),
        not_restored: serde_json::from_value(stays).expect("it is one"),
        ..RewindDocument::taken_back("turn mend it")
    };
    scene.answer(Asked::Change { verb: "undo" }, Ok(Reply::Change { document: Box::new(undone) }));
    assert!(scene.screen(120, 8).contains("did not go back: big.dat (has changed)"));
    let nothing = RewindDocument { conversation_moved: None, ..RewindDocument::taken_back("turn mend it") };
    scene.answer(Asked::Change { verb: "undo" }, Ok(Reply::Change { document: Box::new(nothing) }));
    assert!(scene.screen(160, 8).contains("Nothing was undone of turn mend it"));
}

#[test]
fn git_that_moved_is_not_said_to_be_where_it_was() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    let item = |what: &str, remedy: Option<&str>| LedgerItem {
        kind: "git".to_owned(),
        what: what.to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let moved = item("HEAD went from a to b", Some("git reset --soft a"));
    for (ledger, said) in [
        (vec![moved], "git stays where it is now: `git reset --soft a` would move it back"),
        (vec![item("the stash has changed", None)], "git has moved and stays where it is now"),
    ] {
        let document = RewindDocument { operation: Some("op".into()), ledger, ..RewindDocument::taken_back("turn") };
        scene.answer(Asked::Change { verb: "undo" }, Ok(Reply::Change { document: Box::new(document) }));
        let screen = scene.screen(160, 8);
        assert!(screen.contains(said) && !screen.contains("is where it was"), "{screen}");
    }
}

#[test]
fn what_goes_back_into_the_composer_is_not_sent() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    scene.tell_own(EventKind::HeadMoved { operation: Some("op".into()), keep: None, added: Vec::new() });
    let effects = scene.tell_own(EventKind::DraftChanged { parts: vec![Part::text("mend it")] });
    assert_eq!(effects, []);
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it")]);
    scene.tell_own(EventKind::DraftChanged { parts: Vec::new() });
    assert!(scene.app.composer.is_blank(), "an undo takes back what was not touched");
}

#[test]
fn what_is_typed_is_kept_and_the_draft_waits() {
    let mut scene = Scene::new();
    scene.types("something else");
    scene.tell_own(EventKind::DraftChanged { parts: vec![Part::text("mend it")] });
    assert_eq!(scene.app.composer.parts(), [Part::text("something else")]);
    assert!(scene.screen(80, 8).contains("/draft loads it"));
    scene.control('c');
    scene.enters("/draft");
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it")]);
    scene.types("!");
    scene.tell_own(EventKind::DraftChanged { parts: Vec::new() });
    assert_eq!(scene.app.composer.parts(), [Part::text("mend it!")], "what was edited is the user's own");
}

#[test]
fn what_another_client_does_is_told_and_touches_nothing() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    scene.tell(EventKind::HeadMoved { operation: Some("op".into()), keep: None, added: Vec::new() });
    scene.tell(EventKind::DraftChanged { parts: vec![Part::text("mend it")] });
    assert!(scene.app.composer.is_blank());
    assert!(scene.screen(80, 8).contains("Another client went back"));
    assert!(scene.app.view.entries.is_empty());
}

#[test]
fn leaving_keeps_what_is_typed_as_the_draft() {
    let mut scene = Scene::new();
    assert_eq!(scene.control('c'), [], "the first one only says so");
    assert_eq!(scene.control('c'), [Effect::Leave(NextSession::Quit)]);
    let mut scene = Scene::new();
    scene.types("half");
    scene.state(State::Running);
    assert_eq!(
        scene.app.leave(),
        [
            Effect::Ask(Asked::Quietly, Action::Draft { parts: vec![Part::text("half")] }.into()),
            Effect::Leave(NextSession::Quit),
        ]
    );
}

#[test]
fn nothing_moves_when_nothing_happens() {
    let mut scene = Scene::new();
    assert!(!scene.app.is_moving());
    scene.state(State::Running);
    assert!(scene.app.is_moving());
    scene.state(State::Idle);
    assert!(!scene.app.is_moving());
}

#[test]
fn a_view_that_came_whole_is_the_same_as_one_from_events() {
    let mut told = Scene::new();
    told.turn("one", "two");
    told.append(result("c", "todo", "ok", Some(todos())));
    let mut whole = Scene::with(told.app.view.clone());
    assert_eq!(whole.app.facts, told.app.facts);
    assert_eq!(whole.screen(80, 20), told.screen(80, 20));
    let view = told.app.view.clone();
    let mut missed = Scene::new();
    missed.input(Input::Missed(Box::new(view)));
    assert_eq!(missed.screen(80, 20), told.screen(80, 20));
}

#[test]
fn web_tells_where_the_session_can_be_seen_in_a_browser() {
    let mut scene = Scene::new();
    assert_eq!(scene.enters("/web"), [Effect::Web]);
    let url = format!("http://127.0.0.1:7180/?token={}", "x".repeat(43));
    scene.input(Input::Web(Ok(url.clone())));
    let screen = scene.screen(80, 10);
    assert!(screen.contains("it works once:") && screen.contains(&url), "{screen}");
    scene.input(Input::Web(Err("no model is set".into())));
    assert!(scene.screen(80, 10).contains("✗ not in a browser: no model is set"));
}

#[test]
fn a_turn_whose_prompt_is_still_to_be_told_has_written_nothing() {
    let mut scene = Scene::new();
    scene.turn("first", "One.");
    scene.state(State::Running);
    assert!(scene.screen(100, 12).contains(" 0 s · Esc stops"), "{}", scene.screen(100, 12));
    scene.prompt("second");
    scene.reply("Two.");
    assert!(scene.screen(100, 12).contains(" 0 s · 400 tokens · Esc stops"), "{}", scene.screen(100, 12));
}

#[test]
fn a_notice_about_the_running_turn_goes_with_it() {
    let mut scene = Scene::new();
    scene.state(State::Running);
    scene.prompt("mend it");
    scene.control('r');
    assert!(scene.screen(80, 16).contains("A turn is running"));
    scene.reply("done");
    assert!(scene.screen(80, 16).contains("A turn is running"), "it still is");
    scene.append(Body::Ended { reason: EndReason::Done });
    scene.state(State::Idle);
    assert!(!scene.screen(80, 16).contains("A turn is running"));
    scene.state(State::Running);
    scene.control('r');
    scene.ask("c1", npm_test());
    assert!(!scene.screen(80, 16).contains("A turn is running"), "a paused turn can be rewound");
}

#[test]
fn the_history_goes_on_past_a_prompt_that_begins_with_a_slash() {
    let mut scene = Scene::new();
    for line in ["first", "/usr is full", "/help", "last"] {
        scene.enters(line);
        scene.key(KeyCode::Esc);
    }
    let mut recalled = Vec::new();
    for _ in 0..4 {
        scene.key(KeyCode::Up);
        recalled.extend(scene.app.composer.parts().iter().map(crate::text::in_words));
    }
    assert_eq!(recalled, ["last", "/help", "/usr is full", "first"]);
    scene.key(KeyCode::Down);
    scene.key(KeyCode::Down);
    assert_eq!(scene.app.composer.parts(), [Part::text("/help")]);
    scene.key(KeyCode::Backspace);
    assert!(scene.screen(80, 20).contains("/help"), "once it is edited, commands are offered again");
}

/// A plan with a conflict that each of `choices` can decide.
fn conflicting(choices: &[OnConflict]) -> RewindDocument {
    let conflict = ConflictFacts {
        path: Bytes::Text("a.txt".into()),
        why: Conflict::Yours,
        text: "changed by you".into(),
        choices: choices.to_vec(),
        choice: OnConflict::Stop,
    };
    RewindDocument { conflicts: vec![conflict], ..RewindDocument::taken_back("15f0a9b2 before \"go\"") }
}

#[test]
fn only_choices_that_can_work_are_offered_and_taken() {
    for (choices, words) in [
        (&[OnConflict::Keep, OnConflict::Overwrite][..], "k keeps it, o overwrites it"),
        (&[OnConflict::Keep, OnConflict::Overwrite, OnConflict::Merge], "k keeps it, o overwrites it, m merges it"),
    ] {
        let mut scene = Scene::new();
        let change = Change::new(ChangeGoal::Checkpoint { checkpoint: "start".into(), files: None });
        let plan = Some(Box::new(conflicting(choices)));
        scene.answer(Asked::Preview(change), Ok(Reply::Diff { files: Vec::new(), plan }));
        let screen = scene.screen(100, 12);
        assert!(screen.contains(&format!("{words}, Esc leaves")), "{screen}");
        assert!(screen.contains("! a.txt  changed by you"), "{screen}");
        assert_eq!(scene.key(KeyCode::Enter), []);
        assert!(scene.screen(100, 12).contains(&format!("Nothing was changed yet: {words}")));
        let merged = scene.key(KeyCode::Char('m'));
        assert_eq!(merged.is_empty(), !choices.contains(&OnConflict::Merge), "{merged:?}");
    }
}

#[test]
fn an_undo_that_needs_a_decision_names_only_choices_that_can_work() {
    let mut scene = Scene::new();
    scene.turn("mend it", "done");
    scene.enters("/undo");
    let document = Some(Box::new(conflicting(&[OnConflict::Keep, OnConflict::Overwrite])));
    let refusal = Refusal { reason: Reason::Conflicts, message: "1 conflict".into(), hint: None, document };
    scene.answer(Asked::Change { verb: "undo" }, Err(refusal));
    let screen = scene.screen(100, 12);
    assert!(screen.contains("/undo keep leaves it as it is, /undo overwrite replaces it"), "{screen}");
    assert!(!screen.contains("/undo merge"), "{screen}");
}

#[test]
fn the_meaning_of_a_point_is_in_sight_however_long_its_prompt_is() {
    let mut scene = Scene::new();
    let change = Change::new(ChangeGoal::Checkpoint { checkpoint: "start".into(), files: None });
    let what = format!("15f0a9b2 before \"{}\"", "many words ".repeat(15));
    let plan = RewindDocument { means: Some(Means::Session), what, ..conflicting(&[OnConflict::Keep]) };
    scene.answer(Asked::Preview(change), Ok(Reply::Diff { files: Vec::new(), plan: Some(Box::new(plan)) }));
    let screen = scene.screen(60, 14).replace('\n', " ");
    assert!(screen.contains("this session's changes"), "{screen}");
}

/// A path that changed since and does not go back.
fn staying(path: &str) -> NotRestoredFacts {
    let (change, why) = ("changed".to_owned(), "too_large".to_owned());
    NotRestoredFacts { path: Bytes::Text(path.to_owned()), change, why, text: "too large".to_owned() }
}

#[test]
fn the_plan_for_a_checkpoint_names_the_paths_that_stay() {
    let mut scene = Scene::new();
    let change = Change::new(ChangeGoal::Checkpoint { checkpoint: "start".into(), files: None });
    let not_restored = ["big.dat", "ff"].map(staying).to_vec();
    let means = Some(Means::Workspace);
    let plan = RewindDocument { means, not_restored, ..RewindDocument::taken_back("15f0a9b2 \"start\"") };
    scene.answer(Asked::Preview(change), Ok(Reply::Diff { files: Vec::new(), plan: Some(Box::new(plan)) }));
    let screen = scene.screen(80, 14);
    for text in
        ["\"start\": the whole workspace", "No captured file has to change", "big.dat  too large", "ff  too large"]
    {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    assert_eq!(scene.key(KeyCode::Enter), [], "there is nothing to apply");
}

#[test]
fn a_path_that_stays_can_be_read_however_many_there_are() {
    let mut scene = Scene::new();
    let not_restored: Vec<NotRestoredFacts> = (0..30).map(|number| staying(&format!("big{number}.dat"))).collect();
    let change = Change::new(ChangeGoal::Checkpoint { checkpoint: "start".into(), files: None });
    let plan = RewindDocument { not_restored, ..RewindDocument::taken_back("15f0a9b2 \"start\"") };
    let before = Reply::Diff { files: Vec::new(), plan: Some(Box::new(plan.clone())) };
    scene.answer(Asked::Preview(change), Ok(before));
    assert!(!scene.screen(80, 24).contains("big29.dat"));
    scene.key(KeyCode::End);
    assert!(scene.screen(80, 24).contains("big29.dat"), "before the rewind");
    scene.key(KeyCode::Esc);
    let after = Reply::Change { document: Box::new(plan) };
    scene.answer(Asked::Change { verb: "rewind" }, Ok(after));
    let screen = scene.screen(80, 24);
    assert!(screen.contains("These 30 paths changed since and did not go back"), "{screen}");
    scene.key(KeyCode::End);
    assert!(scene.screen(80, 24).contains("big29.dat"), "after the rewind");
}

#[test]
fn a_rewind_of_files_says_nothing_of_the_draft_of_an_earlier_rewind() {
    for typed in ["", "my own text"] {
        let mut scene = Scene::new();
        scene.tell(EventKind::DraftChanged { parts: vec![Part::text("said before")] });
        scene.types(typed);
        let document = RewindDocument { conversation_moved: None, ..RewindDocument::taken_back("15f0a9b2 \"start\"") };
        scene.answer(Asked::Change { verb: "rewind" }, Ok(Reply::Change { document: Box::new(document) }));
        let screen = scene.screen(100, 12);
        assert!(screen.contains("Went back to") && !screen.contains("/draft"), "{typed}: {screen}");
    }
}

#[test]
fn an_undo_under_a_running_turn_names_the_key_that_stops_it() {
    let mut scene = Scene::new();
    scene.state(State::Running);
    let hint = Some("stop it first".to_owned());
    let message = "nothing was changed: a turn is running".to_owned();
    let refusal = Refusal { reason: Reason::Running, message, hint, document: None };
    scene.answer(Asked::Change { verb: "undo" }, Err(refusal));
    assert!(scene.screen(80, 12).contains("a turn is running · Esc stops it"));
}

#[test]
fn directories_are_not_counted_as_files() {
    let mut scene = Scene::new();
    let file = |path: &str, directory| File {
        path: Bytes::Text(path.to_owned()),
        action: Some("delete".to_owned()),
        status: "done".to_owned(),
        certainty: None,
        yours: false,
        directory,
    };
    let files = vec![file("src", true), file("src/a", false), file("src/b", false)];
    let document = RewindDocument { files, ..RewindDocument::taken_back("turn tidy up") };
    scene.answer(Asked::Change { verb: "undo" }, Ok(Reply::Change { document: Box::new(document) }));
    assert!(scene.screen(100, 12).contains("2 files and 1 directory went back"));
}
