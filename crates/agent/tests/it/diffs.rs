//! What a client is shown of a rewind before it is made, and of a turn afterwards.

use retake_agent::contract::{Change, Command, DiffOf, Reply};
use retake_agent::diff::{FileDiff, LineKind};
use retake_agent::document::Bytes;
use retake_engine::Scope;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

fn diff(scene: &Scene, of: DiffOf) -> Vec<FileDiff> {
    match scene.request(Command::Diff { of }).expect("it can be told") {
        Reply::Diff { files } => files,
        other => panic!("no diff: {other:?}"),
    }
}

/// `path +added -removed`, with the lines that come and go.
pub fn told(files: &[FileDiff]) -> String {
    let line = |file: &FileDiff| {
        let Bytes::Text(path) = &file.path else { panic!("a name that is text") };
        let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind != LineKind::Same);
        let lines = lines.map(|line| format!(" {}{}", if line.kind == LineKind::Added { '+' } else { '-' }, line.text));
        let instead = file.instead.as_ref().map(|why| format!(" {why}")).unwrap_or_default();
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
