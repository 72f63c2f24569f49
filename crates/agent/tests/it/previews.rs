//! What whoever is asked about an edit is shown of it, and where it is said to have been made.

use retake_agent::contract::{EventKind, PermissionAnswer, Question};
use retake_agent::live::LiveSession;
use retake_agent::socket::Client;
use retake_engine::session::entry::{Body, Details};
use serde_json::{Value, json};

use crate::diffs::told;
use crate::scene::Scene;
use crate::socket::serve;

/// The question that a call is met with, in the words of [`told`]; it is denied.
fn asked(scene: &mut Scene, tool: &str, arguments: Value) -> String {
    scene.model.calls(tool, arguments);
    scene.model.says("Well.");
    let prompt = scene.say("do it");
    let question = scene.until_asked();
    assert_eq!(scene.view().questions, std::slice::from_ref(&question), "whoever comes later is shown the same");
    scene.answer(&question, PermissionAnswer::Deny { why: None });
    scene.until_ended(prompt);
    told(&question.diffs)
}

#[test]
fn an_edit_is_shown_before_it_is_allowed() {
    let mut scene = Scene::new().interactive().file("a.txt", "one\ntwo\nthree\ntwo\n").file("b/c.txt", "c\n").start();
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.says("Read.");
    scene.prompt("read it");
    let edit = |old: &str, new: &str, all: bool| json!({"old": old, "new": new, "replace_all": all});
    let path = |mut arguments: Value| {
        arguments["path"] = json!("a.txt");
        arguments
    };
    let cases = [
        ("write_file", json!({"path": "new/d.txt", "content": "d\n"}), "new/d.txt +d\n"),
        ("write_file", json!({"path": "a.txt", "content": "one\n"}), "a.txt -two -three -two\n"),
        ("write_file", json!({"path": "a.txt", "content": "one\ntwo\nthree\ntwo\n"}), ""),
        ("write_file", json!({"path": "a.txt", "content": "one\u{0}"}), "a.txt binary\n"),
        ("edit_file", path(edit("three", "3", false)), "a.txt -three +3\n"),
        ("edit_file", path(edit("two", "2", true)), "a.txt -two +2 -two +2\n"),
        (
            "multi_edit",
            path(json!({"edits": [edit("one", "1", false), edit("1\ntwo", "1\n2", false)]})),
            "a.txt -one -two +1 +2\n",
        ),
        ("move_file", json!({"from": "b/c.txt", "to": "e.txt"}), "b/c.txt -c\ne.txt +c\n"),
        ("delete_file", json!({"path": "b/c.txt"}), "b/c.txt -c\n"),
        ("delete_file", json!({"path": "b", "recursive": true}), "b directory\n"),
        ("bash", json!({"command": "rm -r b"}), ""),
    ];
    let before = scene.files();
    for (tool, arguments, shown) in cases {
        assert_eq!(asked(&mut scene, tool, arguments.clone()), shown, "{tool} {arguments}");
    }
    assert_eq!(scene.files(), before, "asking has changed nothing");
    scene.check();
}

#[test]
fn a_call_that_is_bound_to_fail_fails_at_once_and_nobody_is_asked() {
    let mut scene = Scene::new().interactive().file("a.txt", "one\none\n").file("b.txt", "b\n").start();
    make_pipe(&scene.root().join("pipe"));
    let edit = |path: &str, old: &str| json!({"path": path, "old": old, "new": "x"});
    for (tool, arguments, error) in [
        ("edit_file", edit("a.txt", "not there"), "was not found"),
        ("edit_file", edit("a.txt", "one"), "occurs 2 times"),
        ("edit_file", edit("missing.txt", "one"), "There is no file"),
        ("multi_edit", json!({"path": "a.txt", "edits": [edit("", "not there")]}), "was not found"),
        ("write_file", json!({"path": "pipe", "content": "x\n"}), "not a regular file"),
        ("write_file", json!({"path": "b.txt", "content": "x\n"}), "exists and you have not read it"),
    ] {
        scene.model.calls(tool, arguments.clone());
        scene.model.says("Well.");
        scene.prompt("do it");
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains(error), "{tool} {arguments}: {transcript}");
        let asked = scene.told().iter().any(|kind| matches!(kind, EventKind::PermissionAsked { .. }));
        assert!(!asked, "{tool} {arguments}");
    }
    assert_eq!((scene.read("a.txt").as_deref(), scene.read("b.txt").as_deref()), (Some("one\none\n"), Some("b\n")));
    scene.model.assert_exhausted();
    scene.check();
}

#[test]
fn a_write_of_a_file_that_the_same_answer_reads_is_asked_about_once_it_is_read() {
    let mut scene = Scene::new().interactive().file("a.txt", "one\n").start();
    let answer = scene.model.calls("read_file", json!({"path": "a.txt"}));
    answer.calls("write_file", json!({"path": "a.txt", "content": "two\n"}));
    scene.model.says("Done.");
    let prompt = scene.say("do it");
    let question = scene.until_asked();
    assert_eq!(told(&question.diffs), "a.txt -one +two\n");
    scene.answer(&question, PermissionAnswer::Allow);
    scene.until_ended(prompt);
    assert_eq!(scene.files(), "a.txt: two\n");
    scene.check();
}

#[test]
fn a_question_is_withdrawn_when_an_earlier_call_dooms_its_own() {
    let edit = |old: &str, new: &str| json!({"path": "a.txt", "old": old, "new": new});
    for (answer, wanted) in
        [(PermissionAnswer::Allow, "a.txt: three\n"), (PermissionAnswer::Deny { why: None }, "a.txt: one\n")]
    {
        let is_allowed = answer == PermissionAnswer::Allow;
        let mut scene = Scene::new().interactive().file("a.txt", "one\n").start();
        scene.model.calls("edit_file", edit("one", "two")).calls("edit_file", edit("two", "three"));
        scene.model.says("Done.");
        let prompt = scene.say("do it");
        let (first, second) = (scene.until_asked(), scene.until_asked());
        scene.answer(&first, answer);
        if is_allowed {
            scene.answer(&second, PermissionAnswer::Allow);
        }
        scene.until_ended(prompt);
        assert_eq!(scene.files(), wanted);
        assert!(is_allowed || scene.last_request().transcript().contains("was not found"));
        scene.check();
    }
}

#[test]
fn what_cannot_be_shown_is_asked_about_all_the_same() {
    let mut scene = Scene::new().interactive().start();
    std::os::unix::fs::symlink("nowhere", scene.root().join("link")).unwrap();
    assert_eq!(
        asked(&mut scene, "delete_file", json!({"path": "link"})),
        "link -nowhere\n",
        "a link, not what it leads to"
    );
    make_pipe(&scene.root().join("pipe"));
    assert_eq!(asked(&mut scene, "delete_file", json!({"path": "pipe"})), "");
    scene.write("large.txt", &"line\n".repeat(1 << 20));
    let edit = json!({"path": "large.txt", "old": "line", "new": "x", "replace_all": true});
    assert_eq!(asked(&mut scene, "edit_file", edit), "large.txt too_large\n");
    assert_eq!(asked(&mut scene, "delete_file", json!({"path": "large.txt"})), "large.txt too_large\n");
}

/// Something that a reader would wait at for ever.
fn make_pipe(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("`mkfifo` runs");
    assert!(made.success());
}

#[test]
fn a_client_in_another_process_is_shown_it_too() {
    let mut scene = Scene::new().interactive().file("a.txt", "one\n").start();
    let (directory, _served) = serve(&scene);
    scene.model.calls("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}));
    let prompt = scene.say("do it");
    let question = scene.until_asked();
    let there: Vec<Question> = scene.runtime().block_on(async {
        let client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        LiveSession::attach(client, scene.session()).await.unwrap().0.questions
    });
    assert_eq!((told(&there[0].diffs).as_str(), there), ("a.txt -one +two\n", vec![question.clone()]));
    scene.model.says("Done.");
    scene.answer(&question, PermissionAnswer::Allow);
    scene.until_ended(prompt);
    assert_eq!(scene.files(), "a.txt: two\n");
}

#[test]
fn where_an_edit_was_made_is_kept_with_its_result_and_not_told_to_the_model() {
    let mut scene = Scene::new().file("a.txt", "one\ntwo\nthree\n").start();
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.calls("edit_file", json!({"path": "a.txt", "old": "three", "new": "3"}));
    let edits = json!([{"old": "3", "new": "iii\niv"}, {"old": "iv", "new": "4"}, {"old": "one", "new": "1"}]);
    scene.model.calls("multi_edit", json!({"path": "a.txt", "edits": edits}));
    scene.model.calls("write_file", json!({"path": "a.txt", "content": "all new\n"}));
    scene.model.calls("edit_file", json!({"path": "a.txt", "old": "not there", "new": "x"}));
    scene.model.says("Done.");
    scene.prompt("edit");
    let lines = |scene: &Scene| -> Vec<Option<Vec<u32>>> {
        let results = scene.stored().entries().to_vec().into_iter().filter_map(|entry| match entry.body {
            Body::ToolResult { details, .. } => Some(details),
            _ => None,
        });
        let lines = |details| match details {
            Some(Details::Edited { lines }) => Some(lines),
            _ => None,
        };
        results.map(lines).collect()
    };
    let wanted = [None, Some(vec![3]), Some(vec![3, 4, 1]), Some(vec![1]), None];
    assert_eq!(lines(&scene), wanted);
    assert!(!scene.context().contains("\"lines\""), "it is for people");
    scene.restart();
    assert_eq!(lines(&scene), wanted);
    scene.check();
}
