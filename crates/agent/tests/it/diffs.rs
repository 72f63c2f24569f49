//! What a client is shown of a rewind before it is made, and of a turn afterwards.

use retake_agent::contract::{Change, ChangeGoal, DiffOf, Query, Reason, Reply, WhileRunning};
use retake_agent::diff::{FileDiff, LineKind};
use retake_agent::rewind_document::Bytes;
use retake_engine::rewind::{Files, OnConflict};
use retake_engine::session::Scope;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

fn diff(scene: &Scene, of: DiffOf) -> Vec<FileDiff> {
    match scene.request(Query::Diff { of }).expect("it can be told") {
        Reply::Diff { files, .. } => files,
        other => panic!("no diff: {other:?}"),
    }
}

/// `path +added -removed`, with the lines that come and go.
pub fn told(files: &[FileDiff]) -> String {
    let line = |file: &FileDiff| {
        let Bytes::Text(path) = &file.path else { panic!("a name that is text") };
        let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind != LineKind::Same);
        let lines = lines.map(|line| format!(" {}{}", if line.kind == LineKind::Added { '+' } else { '-' }, line.text));
        let instead = file.instead.map(|why| format!(" {}", json!(why).as_str().unwrap())).unwrap_or_default();
        format!("{path}{instead}{}\n", lines.collect::<String>())
    };
    files.iter().map(line).collect()
}

#[test]
fn a_change_is_shown_line_by_line_before_it_is_made() {
    let mut scene = Scene::new().file("a.txt", "one\ntwo\nthree\n").start();
    scene
        .model
        .calls("bash", json!({"command": "sed -i s/two/TWO/ a.txt; echo new > b.txt; printf 'x\\0' > c.bin; mkdir d"}));
    scene.model.says("Done.");
    let first = scene.prompt("change it");
    scene.model.calls("bash", json!({"command": "echo four >> a.txt"}));
    scene.model.says("Done.");
    let second = scene.prompt("and more");
    scene.write("mine.txt", "mine\n");
    assert_eq!(
        told(&diff(&scene, DiffOf::Turn { prompt: first })),
        "a.txt -two +TWO\nb.txt +new\nc.bin binary\nd directory\n"
    );
    assert_eq!(told(&diff(&scene, DiffOf::Turn { prompt: second })), "a.txt +four\n");
    let change = |entry| DiffOf::Change { change: Change::new(rewind_goal(entry, Scope::Both)) };
    assert_eq!(told(&diff(&scene, change(second))), "a.txt -four\n");
    assert_eq!(
        told(&diff(&scene, change(first))),
        "a.txt -TWO +two -four\nb.txt -new\nc.bin binary\nd directory\n",
        "all that a rewind over two turns would do, and nothing of anybody else's"
    );
    scene.check();
}

/// Two turns, between which somebody else works: the points before each, and a checkpoint at the end.
fn two_turns() -> (Scene, [String; 2]) {
    let mut scene = Scene::new().file("a.txt", "one\n").file("b.txt", "b\n").start();
    scene.model.calls("bash", json!({"command": "echo two > a.txt; echo new > c.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("change it");
    scene.write("b.txt", "mine\n");
    scene.model.calls("bash", json!({"command": "echo three > a.txt; rm c.txt"}));
    scene.model.says("Done.");
    let second = scene.prompt("and more");
    (scene, [first.to_string(), second.to_string()])
}

fn between(scene: &Scene, from: Option<&str>, to: Option<&str>) -> String {
    let of = DiffOf::Between { from: from.map(str::to_owned), to: to.map(str::to_owned) };
    told(&diff(scene, of))
}

#[test]
fn any_two_points_can_be_compared_and_what_is_there_now_with_any_of_them() {
    let (scene, [first, second]) = two_turns();
    assert_eq!(between(&scene, Some(&first), Some(&second)), "a.txt -one +two\nb.txt -b +mine\nc.txt +new\n");
    assert_eq!(between(&scene, Some(&second), Some(&first)), "a.txt -two +one\nb.txt -mine +b\nc.txt -new\n");
    scene.write("d.txt", "now\n");
    assert_eq!(between(&scene, Some(&first), None), "a.txt -one +three\nb.txt -b +mine\nd.txt +now\n");
    assert_eq!(between(&scene, None, Some(&second[..8])), "a.txt -three +two\nc.txt +new\nd.txt -now\n");
    assert_eq!(between(&scene, None, None), "");
    let Reply::Checkpoints { checkpoints } = scene.request(Query::Checkpoints).unwrap() else { panic!("no list") };
    let oldest = &checkpoints.last().unwrap().checkpoint;
    assert_eq!(between(&scene, Some(oldest), Some(&second)), "a.txt -one +two\nb.txt -b +mine\nc.txt +new\n");
    let of = DiffOf::Between { from: Some("0000feed".to_owned()), to: None };
    assert_eq!(scene.request(Query::Diff { of }).unwrap_err().reason, Reason::NotFound);
}

#[test]
fn a_single_file_comes_back_from_any_point_and_nothing_else_does() {
    let (mut scene, [first, second]) = two_turns();
    let only = |goal: ChangeGoal, path: &str| Change { paths: vec![Bytes::new(path.as_bytes())], ..Change::new(goal) };
    scene.apply(only(rewind_goal(second.parse().unwrap(), Scope::Code), "c.txt"), WhileRunning::Refuse).unwrap();
    assert_eq!(scene.files(), "a.txt: three\nb.txt: mine\nc.txt: new\n");
    scene.undo();
    assert_eq!(scene.files(), "a.txt: three\nb.txt: mine\n");
    let Reply::Checkpoints { checkpoints } = scene.request(Query::Checkpoints).unwrap() else { panic!("no list") };
    let oldest = checkpoints.last().unwrap().checkpoint.clone();
    let goal = |files| ChangeGoal::Checkpoint { checkpoint: oldest.to_string(), files: Some(files) };
    scene.apply(only(goal(Files::Selective), "a.txt"), WhileRunning::Refuse).unwrap();
    assert_eq!(scene.files(), "a.txt: one\nb.txt: mine\n");
    // A selective one leaves alone what only others have changed; an exact one brings it back all the same.
    let of_rewind = |files| match rewind_goal(first.parse().unwrap(), Scope::Code) {
        ChangeGoal::Rewind { entry, scope, discard, .. } => ChangeGoal::Rewind { entry, scope, files, discard },
        other => other,
    };
    scene.apply(only(of_rewind(Files::Selective), "b.txt"), WhileRunning::Refuse).unwrap();
    assert_eq!(scene.files(), "a.txt: one\nb.txt: mine\n");
    let ways: [&dyn Fn(Files) -> ChangeGoal; 2] = [&of_rewind, &goal];
    for to_first in ways {
        let change = Change { on_yours: OnConflict::Overwrite, ..only(to_first(Files::Exact), "b.txt") };
        scene.apply(change, WhileRunning::Refuse).unwrap();
        assert_eq!(scene.files(), "a.txt: one\nb.txt: b\n");
        scene.undo();
        assert_eq!(scene.files(), "a.txt: one\nb.txt: mine\n");
    }
    scene.check();
}
