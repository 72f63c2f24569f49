//! Going back to a checkpoint inside a session: it is the session's, like everything else that is done in it.

use retake_agent::contract::{Action, Change, ChangeGoal, Command, OperationFacts, Query, Reason, Reply, WhileRunning};
use retake_agent::ids;
use retake_agent::rewind_document::RewindDocument;
use retake_engine::Durability;
use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Files, Means, OnConflict};
use retake_engine::session::entry::Body;
use serde_json::json;

use crate::scene::Scene;

/// A checkpoint that somebody made beside the session, then a turn, then the user's own changes.
fn after_a_checkpoint() -> (Scene, ChangeGoal) {
    let mut scene = Scene::new().file("u.txt", "user\n").start();
    let named = NewCheckpoint { label: Some("good".to_owned()), ..ids::checkpoint() };
    let taken = scene.workspace().checkpoints_mut().take(named, Durability::Synced, &NoProgress).unwrap();
    scene.model.calls("bash", json!({"command": "echo 1 > one.txt"}));
    scene.model.says("Done.");
    scene.prompt("write one");
    scene.write("u.txt", "changed\n");
    scene.write("mine.txt", "precious\n");
    (scene, ChangeGoal::Checkpoint { checkpoint: taken.id.to_string(), files: Some(Files::Exact) })
}

/// Goes back, and agrees that the user's own changes are replaced.
fn replace_all(scene: &mut Scene, goal: ChangeGoal) -> RewindDocument {
    let change = Change { on_yours: OnConflict::Overwrite, ..Change::new(goal) };
    scene.apply(change, WhileRunning::Refuse).unwrap()
}

fn to_undo(scene: &Scene) -> OperationFacts {
    match scene.request(Query::Operations).unwrap() {
        Reply::Operations { undo: Some(undo), .. } => *undo,
        other => panic!("nothing to undo: {other:?}"),
    }
}

const CHANGED: &str = "mine.txt: precious\none.txt: 1\nu.txt: changed\n";

#[test]
fn going_back_to_a_checkpoint_is_an_operation_of_the_session_and_is_undone_there_first() {
    let (mut scene, goal) = after_a_checkpoint();
    let planned = scene.request(Query::Plan { change: Change::new(goal.clone()) }).unwrap();
    let Reply::Change { document: plan } = planned else { panic!("no plan") };
    assert_eq!((plan.foreign, plan.files.len()), (2, 3), "two of the three paths are not the session's");
    let done = replace_all(&mut scene, goal);
    assert_eq!((done.session, done.foreign), (Some(scene.session().into()), 2));
    assert_eq!(scene.files(), "u.txt: user\n");
    let operation = done.operation.unwrap();
    assert_eq!((to_undo(&scene).operation, to_undo(&scene).kind.as_str()), (operation.clone(), "rewind"));
    // By its name, as the bar of a client does, and then once more without one.
    scene.change(ChangeGoal::Undo { operation: Some(operation.into()) }).unwrap();
    assert_eq!(scene.files(), CHANGED);
    scene.redo();
    assert_eq!(scene.files(), "u.txt: user\n");
    assert_eq!(scene.undo().files.len(), 3);
    assert_eq!(scene.files(), CHANGED);
    assert_eq!(to_undo(&scene).kind, "turn", "only then the turn");
    scene.check();
    scene.model.assert_exhausted();
}

/// The checkpoint that was taken at the prompt `text`.
fn point_of(scene: &Scene, text: &str) -> String {
    let Reply::Checkpoints { checkpoints } = scene.request(Query::Checkpoints).unwrap() else { panic!("no list") };
    let note = Some(format!("> {text}"));
    checkpoints.into_iter().find(|one| one.note == note).unwrap().checkpoint.into()
}

/// A rewind to a checkpoint, as a client asks for it that names no files.
fn to_point(checkpoint: &str) -> Change {
    serde_json::from_value(json!({"do": "checkpoint", "checkpoint": checkpoint})).unwrap()
}

fn plan_of(scene: &Scene, change: Change) -> RewindDocument {
    match scene.request(Query::Plan { change }).unwrap() {
        Reply::Change { document } => *document,
        other => panic!("no plan: {other:?}"),
    }
}

#[test]
fn the_checkpoint_of_a_prompt_means_the_sessions_changes_and_any_other_the_workspace() {
    let (mut scene, _) = after_a_checkpoint();
    let point = point_of(&scene, "write one");
    let plan = plan_of(&scene, to_point(&point));
    assert_eq!((plan.means, plan.files.len()), (Some(Means::Session), 1), "{plan:?}");
    assert!(plan.what.ends_with(" before \"write one\""), "{}", plan.what);
    let entire = plan_of(&scene, to_point("good"));
    assert_eq!((entire.means, entire.files.len()), (Some(Means::Workspace), 3), "{entire:?}");
    let done = scene.apply(to_point(&point), WhileRunning::Refuse).unwrap();
    assert_eq!(scene.files(), "mine.txt: precious\nu.txt: changed\n");
    assert_eq!(to_undo(&scene).operation, done.operation.unwrap());
    assert_eq!(scene.view().entries.iter().filter(|entry| matches!(entry.body, Body::Prompt { .. })).count(), 1);
    scene.undo();
    assert_eq!(scene.files(), CHANGED);
    // With files named, the checkpoint of a prompt is still a point before it.
    let exact = ChangeGoal::Checkpoint { checkpoint: point, files: Some(Files::Exact) };
    let exact = plan_of(&scene, Change::new(exact));
    assert_eq!(exact.means, Some(Means::Workspace));
    assert!(exact.what.ends_with(" before \"write one\""), "{}", exact.what);
    scene.check();
}

#[test]
fn a_point_of_another_session_is_refused_as_long_as_no_files_are_named() {
    let (scene, _) = after_a_checkpoint();
    let (model, opened, _) = scene.beside();
    model.calls("bash", json!({"command": "echo 2 > two.txt"}));
    model.says("Done.");
    scene.say_beside(&opened.handle, "write two");
    let theirs = point_of(&scene, "write two");
    for command in [
        Command::from(Query::Plan { change: to_point(&theirs) }),
        Action::Apply { change: to_point(&theirs), head_seen: None, plan_seen: None, running: WhileRunning::Refuse }
            .into(),
    ] {
        let refusal = scene.request(command).unwrap_err();
        assert_eq!(refusal.reason, Reason::Invalid);
        assert!(refusal.message.contains("a point of another session"), "{refusal:?}");
        assert!(refusal.hint.is_some_and(|hint| hint.contains(&format!("retake rewind {}", &theirs[..8]))));
    }
    assert_eq!(scene.read("two.txt").as_deref(), Some("2\n"));
    let runtime = scene.runtime();
    runtime.block_on(opened.handle.request(Action::Close)).unwrap();
    opened.served.join().unwrap();
}

#[test]
fn the_model_is_told_which_files_went_back_to_a_checkpoint() {
    let (mut scene, goal) = after_a_checkpoint();
    replace_all(&mut scene, goal);
    scene.model.says("I see.");
    scene.prompt("go on");
    let transcript = scene.last_request().transcript();
    assert!(transcript.contains("one.txt") && transcript.contains("mine.txt"), "{transcript}");
    scene.check();
}

#[test]
fn a_checkpoint_of_another_session_is_gone_back_to_in_this_one() {
    let (mut scene, _) = after_a_checkpoint();
    let (model, opened, other) = scene.beside();
    model.calls("bash", json!({"command": "echo 2 > two.txt"}));
    model.says("Done.");
    scene.say_beside(&opened.handle, "write two");
    let theirs =
        scene.workspace().checkpoints().all().unwrap().into_iter().rfind(|one| one.session == Some(other)).unwrap();
    let goal = ChangeGoal::Checkpoint { checkpoint: theirs.id.to_string(), files: Some(Files::Exact) };
    let done = replace_all(&mut scene, goal);
    assert_eq!(done.session, Some(scene.session().into()));
    assert_eq!(scene.files(), CHANGED);
    let runtime = scene.runtime();
    let undo = Change::new(ChangeGoal::Undo { operation: done.operation.map(String::from) });
    let asked = runtime.block_on(opened.handle.request(Query::Plan { change: undo })).unwrap_err();
    assert_eq!(asked.reason, Reason::NotFound, "it is not the other one's");
    scene.undo();
    assert_eq!(scene.read("two.txt").as_deref(), Some("2\n"));
    runtime.block_on(opened.handle.request(Action::Close)).unwrap();
    opened.served.join().unwrap();
}
