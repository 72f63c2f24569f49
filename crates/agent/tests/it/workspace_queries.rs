//! What a client can ask about the workspace around a session.

use retake_agent::contract::{
    Action, ChangeGoal, CheckpointFacts, EventKind, OperationFacts, Query, Reason, Refusal, Reply, SessionFacts,
    SessionRef, TreePrompt,
};
use retake_agent::live::LiveSession;
use retake_agent::socket::Client;
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use serde_json::json;

use crate::scene::{Scene, Wire};
use crate::socket::serve;

fn label(scene: &Scene, prompt: EntryId, label: Option<&str>) -> Result<Reply, Refusal> {
    scene.request(Action::Label { prompt, label: label.map(str::to_owned) })
}

fn tree(scene: &Scene) -> (Option<EntryId>, Vec<TreePrompt>) {
    match scene.request(Query::Tree).expect("it can be told") {
        Reply::Tree { head, prompts } => (head, prompts),
        other => panic!("no tree: {other:?}"),
    }
}

fn checkpoints(scene: &Scene) -> Vec<CheckpointFacts> {
    match scene.request(Query::Checkpoints).expect("they can be told") {
        Reply::Checkpoints { checkpoints } => checkpoints,
        other => panic!("no checkpoints: {other:?}"),
    }
}

fn sessions(scene: &Scene) -> Vec<SessionFacts> {
    match scene.request(Query::Sessions).expect("they can be told") {
        Reply::Sessions { sessions } => sessions,
        other => panic!("no sessions: {other:?}"),
    }
}

fn files(scene: &Scene, query: &str) -> Vec<String> {
    match scene.request(Query::Files { query: query.to_owned() }).expect("they can be told") {
        Reply::Files { paths } => paths,
        other => panic!("no files: {other:?}"),
    }
}

/// Says something in answer to which the model writes a file.
fn write(scene: &mut Scene, prompt: &str, path: &str, text: &str) -> EntryId {
    scene.model.calls("write_file", json!({"path": path, "content": text}));
    scene.model.says("Done.");
    scene.prompt(prompt)
}

#[test]
fn a_label_names_one_point_and_stays_until_it_is_taken_away() {
    let mut scene = Scene::new().start();
    let first = write(&mut scene, "first", "a.txt", "a\n");
    let second = write(&mut scene, "second", "b.txt", "b\n");
    label(&scene, first, Some("all good")).unwrap();
    let labels = |scene: &Scene| scene.targets().into_iter().map(|target| target.label).collect::<Vec<_>>();
    assert_eq!(labels(&scene), [None, Some("all good".to_owned())]);
    let taken = label(&scene, second, Some("all good")).unwrap_err();
    assert_eq!(taken.reason, Reason::Conflicts);
    assert!(taken.message.contains("`all good` already names checkpoint"), "{taken:?}");
    assert_eq!(label(&scene, second, Some("  ")).unwrap_err().reason, Reason::Invalid);
    assert_eq!(label(&scene, retake_agent::ids::entry(), Some("x")).unwrap_err().reason, Reason::NotFound);
    assert_eq!(labels(&scene), [None, Some("all good".to_owned())], "what was refused has changed nothing");
    label(&scene, first, None).unwrap();
    label(&scene, second, Some("all good")).unwrap();
    assert_eq!(labels(&scene), [Some("all good".to_owned()), None]);
    let labelled: Vec<_> = checkpoints(&scene).into_iter().filter_map(|point| point.label).collect();
    assert_eq!(labelled, ["all good"]);
}

#[test]
fn the_tree_has_what_was_left_behind_and_where_sessions_were_forked() {
    let mut scene = Scene::new().start();
    let first = write(&mut scene, "first", "a.txt", "a\n");
    let left = write(&mut scene, "a mistake", "b.txt", "b\n");
    let deeper = write(&mut scene, "and more of it", "c.txt", "c\n");
    scene.rewind(left, Scope::Both);
    let second = write(&mut scene, "better", "d.txt", "d\n");
    let Ok(Reply::Forked { session: fork, .. }) = scene.request(Action::Fork { entry: second }) else {
        panic!("it can be forked")
    };
    let answer = scene.view().head().unwrap();
    let Ok(Reply::Forked { session: later, .. }) = scene.request(Action::Fork { entry: answer }) else {
        panic!("it can be forked")
    };
    label(&scene, left, Some("abandoned")).unwrap();
    let (head, prompts) = tree(&scene);
    assert_eq!(head, Some(second));
    let shown: Vec<_> = prompts
        .iter()
        .map(|prompt| (prompt.id, prompt.parent, prompt.text.as_str(), prompt.number, prompt.label.as_deref()))
        .collect();
    assert_eq!(
        shown,
        [
            (first, None, "first", Some(1), None),
            (left, Some(first), "a mistake", None, Some("abandoned")),
            (deeper, Some(left), "and more of it", None, None),
            (second, Some(first), "better", Some(2), None),
        ]
    );
    assert_eq!(prompts[3].forks, [fork, later]);
    assert!(prompts[..3].iter().all(|prompt| prompt.forks.is_empty()));
    for prompt in &prompts {
        let files = prompt.files.as_ref().expect("what a turn did is known, also if it was left behind");
        assert_eq!((files.added, files.modified, files.deleted), (1, 0, 0), "{}", prompt.text);
    }
}

fn operations(scene: &Scene) -> (Option<OperationFacts>, Option<OperationFacts>) {
    match scene.request(Query::Operations).expect("they can be told") {
        Reply::Operations { undo, redo } => (undo.map(|facts| *facts), redo.map(|facts| *facts)),
        other => panic!("no operations: {other:?}"),
    }
}

#[test]
fn what_undo_and_redo_are_about_is_told_and_can_be_named() {
    let mut scene = Scene::new().start();
    assert_eq!(operations(&scene), (None, None));
    write(&mut scene, "first", "a.txt", "a\n");
    write(&mut scene, "second", "b.txt", "b\n");
    let told = |facts: &Option<OperationFacts>| facts.as_ref().map(|facts| format!("{} {}", facts.kind, facts.what));
    let (undo, redo) = operations(&scene);
    assert_eq!((told(&undo), redo), (Some("turn second".to_owned()), None));
    let by_name = |operation: &str| ChangeGoal::Undo { operation: Some(operation.to_owned()) };
    scene.change(by_name(&undo.unwrap().operation)).unwrap();
    let (undo, redo) = operations(&scene);
    assert_eq!((told(&undo), told(&redo)), (Some("turn first".to_owned()), Some("turn second".to_owned())));
    scene.undo();
    let other = redo.unwrap().operation;
    assert_eq!(scene.change(by_name(&other)).unwrap_err().reason, Reason::Nothing, "another undo is the newest");
    assert_eq!(scene.files(), "");
    let redo = operations(&scene).1.unwrap();
    assert_eq!(told(&Some(redo.clone())), Some("turn first".to_owned()));
    scene.change(by_name(&redo.operation)).unwrap();
    scene.change(by_name(&other)).unwrap();
    assert_eq!(scene.files(), "a.txt: a\nb.txt: b\n");
    assert_eq!(scene.change(by_name(&other)).unwrap_err().reason, Reason::Nothing, "it is repeated already");
}

#[test]
fn where_a_turn_that_was_left_behind_has_ended_can_be_gone_to() {
    let mut scene = Scene::new().start();
    write(&mut scene, "first", "a.txt", "a\n");
    let left = write(&mut scene, "an attempt", "b.txt", "b\n");
    let end = scene.view().head();
    scene.rewind(left, Scope::Both);
    write(&mut scene, "another", "c.txt", "c\n");
    let (_, prompts) = tree(&scene);
    assert_eq!(prompts[1].end, end);
    scene.rewind(end.unwrap(), Scope::Both);
    assert_eq!(scene.files(), "a.txt: a\nb.txt: b\n");
    assert_eq!(scene.view().head(), end);
}

#[test]
fn checkpoints_are_those_that_somebody_may_want_to_go_back_to() {
    let mut scene = Scene::new().start();
    assert_eq!(checkpoints(&scene), [], "where a session began is no point of interest");
    let first = write(&mut scene, "make it", "a.txt", "a\n");
    scene.rewind(first, Scope::Both);
    write(&mut scene, "make it again", "a.txt", "a\n");
    let taken = scene.workspace().checkpoints_mut().take(
        retake_engine::checkpoint::NewCheckpoint {
            label: Some("by hand".to_owned()),
            ..retake_agent::ids::checkpoint()
        },
        retake_engine::Durability::Soon,
        &retake_engine::progress::NoProgress,
    );
    let shown: Vec<_> = checkpoints(&scene).into_iter().map(|point| (point.label, point.note)).collect();
    let said = |text: &str| (None, Some(format!("> {text}")));
    // What was left behind is in the tree only.
    assert_eq!(shown, [(Some("by hand".to_owned()), None), said("make it again")]);
    assert_eq!(checkpoints(&scene)[0].checkpoint, taken.unwrap().id.into());
}

#[test]
fn sessions_are_listed_with_how_far_they_came() {
    let mut scene = Scene::new().start();
    write(&mut scene, "first\nwith more below", "a.txt", "a\n");
    let second = write(&mut scene, "second", "b.txt", "b\n");
    let Ok(Reply::Forked { session: fork, .. }) = scene.request(Action::Fork { entry: second }) else {
        panic!("it can be forked")
    };
    scene.rewind(second, Scope::Conversation);
    let own = SessionRef::from(scene.session());
    let last = scene.view().entries.last().unwrap().at;
    let [newer, older] = sessions(&scene).try_into().expect("two of them");
    assert_eq!(
        older,
        SessionFacts {
            session: own.clone(),
            title: "first".to_owned(),
            at: last,
            prompts: 1,
            live: true,
            forked_from: None,
            draft: Some("second".to_owned()),
        }
    );
    assert_eq!((newer.session, newer.forked_from, newer.prompts, newer.live), (fork, Some(own), 1, false));
    assert_eq!(newer.draft.as_deref(), Some("second"));
}

#[test]
fn files_are_found_by_letters_as_they_come_and_go() {
    let mut scene = Scene::new()
        .file("src/main.rs", "")
        .file("src/domain.rs", "")
        .file("main/readme.md", "")
        .file("m/a/i/n.txt", "")
        .file(".gitignore", "target\n")
        .file("target/main.o", "")
        .start();
    let found = ["src/main.rs", "src/domain.rs", "main/readme.md", "m/a/i/n.txt"];
    assert_eq!(files(&scene, "main"), found, "ignored files are not there");
    assert_eq!(files(&scene, "MAIN.r"), ["src/main.rs", "src/domain.rs"]);
    scene.model.calls("bash", json!({"command": "git init -q .; rm src/main.rs; echo > src/main_loop.rs"}));
    scene.model.says("Done.");
    scene.prompt("rename it");
    assert_eq!(files(&scene, "main"), ["src/main_loop.rs", "src/domain.rs", "main/readme.md", "m/a/i/n.txt"]);
    scene.undo();
    assert_eq!(files(&scene, "main"), found);
    assert_eq!(files(&scene, "")[..2], [".gitignore", "m/a/i/n.txt"], "the shortest first");
    assert_eq!(files(&scene, "no such file"), Vec::<String>::new());
}

#[test]
fn the_store_tells_its_size_and_what_it_may_become() {
    let scene = Scene::new().file("a.txt", "a\n").with_settings(|settings| settings.budget = 123 << 20).start();
    let Ok(Reply::Store { bytes, budget }) = scene.request(Query::Store) else { panic!("it can be told") };
    assert_eq!(budget, 123 << 20);
    assert!(0 < bytes && bytes < budget, "{bytes}");
}

#[test]
fn another_model_is_asked_from_the_next_request_on() {
    let mut scene = Scene::with(Wire::Anthropic).with_window(50_000).start();
    assert_eq!((scene.view().model.as_str(), scene.view().window), ("anthropic/scripted", Some(50_000)));
    let gate = scene.model.says("One.").pauses();
    let first = scene.say("first");
    scene.request(Action::Model { model: "openai/other".to_owned() }).unwrap();
    gate.open();
    scene.until_ended(first);
    assert_eq!(scene.last_request().model(), "scripted", "what was asked before is answered by whom it was asked");
    let changed = |kind: &EventKind| matches!(kind, EventKind::ModelChanged { .. });
    let told: Vec<EventKind> = scene.told().into_iter().filter(changed).collect();
    let wanted = EventKind::ModelChanged { model: "openai/other".to_owned(), window: Some(1_000_000) };
    assert_eq!(told, [wanted]);
    scene.model.says("Two.");
    scene.prompt("second");
    assert_eq!(scene.last_request().model(), "other");
    assert_eq!((scene.view().model.as_str(), scene.view().window), ("openai/other", Some(1_000_000)));
    scene.check();
}

#[test]
fn a_model_that_cannot_be_asked_changes_nothing() {
    let mut scene = Scene::new().start();
    let no_key = scene.request(Action::Model { model: "anthropic/elsewhere".to_owned() }).unwrap_err();
    assert_eq!((no_key.reason, no_key.hint.as_deref()), (Reason::Invalid, Some("name another")));
    assert!(no_key.message.contains("ANTHROPIC_API_KEY"), "{no_key:?}");
    let unknown = scene.request(Action::Model { model: "gpt".to_owned() }).unwrap_err();
    assert!(unknown.message.contains("`gpt` is no model"), "{unknown:?}");
    assert_eq!(scene.view().model, "anthropic/scripted");
    scene.model.says("One.");
    scene.prompt("first");
    assert_eq!(scene.last_request().model(), "scripted");
}

#[test]
fn a_client_in_another_process_is_told_the_same() {
    let mut scene = Scene::new().file("src/main.rs", "").start();
    let (directory, _served) = serve(&scene);
    write(&mut scene, "first", "a.txt", "a\n");
    let commands = [
        Query::Tree,
        Query::Checkpoints,
        Query::Sessions,
        Query::Files { query: "main".to_owned() },
        Query::Targets { query: None },
    ];
    scene.runtime().block_on(async {
        let client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        let live = LiveSession::elsewhere(client, scene.session());
        let mut asked = Vec::new();
        for command in &commands {
            asked.push(live.asker.hand_in(command.clone()).await);
        }
        for (asked, command) in asked.into_iter().zip(commands) {
            let here = scene.handle().request(command).await.unwrap();
            assert_eq!(asked.answer().await.unwrap().unwrap(), here);
        }
        live.asker.ask(Action::Model { model: "openai/other".to_owned() }).await.unwrap().unwrap();
    });
    assert_eq!(scene.view().model, "openai/other");
}
