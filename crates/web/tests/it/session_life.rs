//! R80: the life of a session through HTTP.

use std::io::{BufReader, Read, Write};

use flate2::read::GzDecoder;
use retake_agent::contract::{EventKind, TurnEnd};
use serde_json::{Value, json};

use crate::browser::{Browser, read_head};
use crate::stage::Stage;
use crate::watcher::Watcher;

fn rewind(entry: &str, scope: &str) -> Value {
    json!({"type": "apply", "change": {"do": "rewind", "entry": entry, "scope": scope}})
}

fn undo() -> Value {
    json!({"type": "apply", "change": {"do": "undo"}})
}

/// Two turns, each of which writes a file; gives the prompts.
fn two_turns(stage: &Stage, browser: &Browser, session: &str, watcher: &mut Watcher) -> [String; 2] {
    [("first", "one"), ("second", "two")].map(|(text, content)| {
        stage.model.calls("write_file", json!({"path": "a.txt", "content": format!("{content}\n")}));
        stage.model.says("Done.");
        let prompt = browser.say(session, text);
        assert_eq!(watcher.until_ended(), TurnEnd::Done, "{:?}", stage.model.complaints());
        prompt
    })
}

#[test]
fn a_session_is_begun_listed_and_deleted() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let listed = browser.get("/api/sessions").json();
    assert_eq!(listed, json!({"sessions": [], "workspace": stage.root()}));
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    assert_eq!((&*watcher.view.session, watcher.view.entries.len()), (session.as_str(), 0));
    stage.model.says("Hello.");
    browser.say(&session, "hi there");
    assert_eq!(watcher.until_ended(), TurnEnd::Done);
    let listed = browser.get("/api/sessions").json();
    let one = &listed["sessions"][0];
    assert_eq!(
        (&one["session"], &one["title"], &one["prompts"], &one["live"]),
        (&json!(session), &json!("hi there"), &json!(1), &json!(true))
    );
    let deleted = browser.delete(&format!("/api/sessions/{session}"));
    assert_eq!((deleted.status, deleted.json()), (200, json!({"deleted": session})));
    assert_eq!(watcher.frame().map(|frame| frame.event), Some("ended".to_owned()), "whoever watches is told");
    assert_eq!(watcher.frame(), None);
    assert_eq!(browser.get("/api/sessions").json()["sessions"], json!([]));
    let gone = browser.get(&format!("/api/sessions/{session}/events"));
    assert_eq!(gone.error(), format!("404 there is no session `{session}`"));
}

#[test]
fn an_answer_names_the_last_event_before_it() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    let [_, second] = two_turns(&stage, &browser, &session, &mut watcher);
    let before = watcher.view.seq;
    let answer = browser.command(&session, "back", &rewind(&second, "both"));
    let seq = answer["seq"].as_u64().expect("an answer is numbered");
    let mut told = Vec::new();
    while watcher.view.seq < seq {
        let frame = watcher.frame().expect("the stream goes on");
        told.push(frame.json()["type"].as_str().unwrap().to_owned());
        watcher.take(&frame);
    }
    assert!(seq > before && told.iter().any(|kind| kind == "head_moved"), "{told:?}");
    assert!(told.iter().any(|kind| kind == "draft_changed"), "the draft is part of it: {told:?}");
    let asked = browser.command(&session, "ask", &json!({"type": "operations"}));
    assert!(asked["seq"].as_u64() >= Some(seq), "a question is numbered too: {asked}");
}

#[test]
fn sessions_are_found_by_what_was_said_in_them() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    for texts in [["about apples", "then quinces, zebra"], ["about pears", "nothing else"]] {
        let session = browser.begin();
        let mut watcher = Watcher::of(&browser, &session);
        for text in texts {
            stage.model.says("Well.");
            browser.say(&session, text);
            watcher.until_ended();
        }
    }
    let found = |query: &str| {
        let listed = browser.get(&format!("/api/sessions?search={query}")).json();
        let titles = listed["sessions"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap().to_owned());
        titles.collect::<Vec<_>>()
    };
    assert_eq!(found("Quinces"), ["about apples"]);
    assert_eq!(found("zebra%20apples"), ["about apples"]);
    assert_eq!(found("zebra+pears"), [""; 0]);
    assert_eq!(found("").len(), 2);
}

#[test]
fn files_that_a_prompt_mentions_go_along_as_in_the_terminal() {
    let stage = Stage::new();
    stage.write("notes.txt", "the secret word is quince\n");
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    stage.model.says("I see.");
    browser.say(&session, "read @notes.txt and nothing of @missing.txt");
    assert_eq!(watcher.until_ended(), TurnEnd::Done);
    assert!(stage.model.last_request().messages_text().contains("the secret word is quince"));
    assert_eq!(watcher.texts(), ["read @notes.txt and nothing of @missing.txt"], "the words stay as they were typed");
}

#[test]
fn only_what_was_seen_is_applied() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    let [_, second] = two_turns(&stage, &browser, &session, &mut watcher);
    let change = json!({"do": "rewind", "entry": second, "scope": "code"});
    let seen = browser.done(&session, &json!({"type": "plan", "change": change}))["document"]["fingerprint"].clone();
    assert!(seen.is_string());
    stage.write("a.txt", "mine\n");
    let mut apply = json!({"type": "apply", "change": change, "plan_seen": seen});
    apply["change"]["on_conflict"] = json!("overwrite");
    let refused = browser.command(&session, "stale", &apply);
    assert_eq!(refused["refused"]["reason"], "stale_plan", "{refused}");
    assert_eq!(stage.read("a.txt").as_deref(), Some("mine\n"));
}

#[test]
fn a_turn_streams_asks_and_goes_on_when_it_is_answered() {
    let stage = Stage::asking();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    stage.model.says("I will write it.").calls("bash", json!({"command": "echo hi > a.txt"}));
    stage.model.says("Done.");
    browser.say(&session, "write something");
    watcher.until(|kind| matches!(kind, EventKind::Delta { .. }));
    let question = watcher.until_asked();
    assert_eq!(question.tool, "bash");
    assert_eq!(stage.read("a.txt"), None);
    let refused = browser.command(&session, "r1", &rewind("0123456789abcdef0123", "both"));
    assert_eq!(refused["refused"]["reason"], "not_found", "a refusal is an answer like any other: {refused}");
    let other =
        browser.command(&session, "r2", &json!({"type": "answer", "call": "no-such", "answer": {"type": "allow"}}));
    assert!(other["refused"]["message"].is_string(), "{other}");
    browser.done(&session, &json!({"type": "answer", "call": question.call, "answer": {"type": "allow"}}));
    assert_eq!(watcher.until_ended(), TurnEnd::Done);
    assert_eq!(stage.read("a.txt").as_deref(), Some("hi\n"));
}

#[test]
fn a_conflict_is_told_and_decided_file_by_file() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    let [_, second] = two_turns(&stage, &browser, &session, &mut watcher);
    stage.write("a.txt", "mine\n");
    let refused = browser.command(&session, "r1", &rewind(&second, "both"));
    assert_eq!(refused["refused"]["reason"], "conflicts");
    assert_eq!(refused["refused"]["document"]["conflicts"][0]["path"], "a.txt");
    assert_eq!((stage.read("a.txt").as_deref(), watcher.texts().len()), (Some("mine\n"), 2));
    let mut chosen = rewind(&second, "both");
    chosen["change"]["choices"] = json!([["a.txt", "overwrite"]]);
    browser.done(&session, &chosen);
    assert_eq!(stage.read("a.txt").as_deref(), Some("one\n"));
    browser.done(&session, &undo());
    assert_eq!(stage.read("a.txt").as_deref(), Some("mine\n"));
}

#[test]
fn points_are_listed_compared_labelled_and_a_fork_goes_on_by_itself() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    let [first, second] = two_turns(&stage, &browser, &session, &mut watcher);
    browser.done(&session, &json!({"type": "label", "prompt": first, "label": "start"}));
    let targets = browser.done(&session, &json!({"type": "targets"}));
    let told: Vec<_> = targets["targets"].as_array().unwrap().iter().map(|one| (&one["id"], &one["label"])).collect();
    assert_eq!(told, [(&json!(second), &Value::Null), (&json!(first), &json!("start"))]);
    let between = |from: Value, to: Value| {
        let of = json!({"what": "between", "from": from, "to": to});
        let files = browser.done(&session, &json!({"type": "diff", "of": of}))["files"].clone();
        files
            .as_array()
            .unwrap()
            .iter()
            .map(|file| format!("{} +{} -{}", file["path"], file["added"], file["removed"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(between(json!("start"), json!(second)), ["\"a.txt\" +1 -0"]);
    assert_eq!(between(json!(second), Value::Null), ["\"a.txt\" +1 -1"]);
    // One file comes back from a point.
    let mut one = rewind(&second, "code");
    one["change"]["paths"] = json!(["a.txt"]);
    browser.done(&session, &one);
    assert_eq!(stage.read("a.txt").as_deref(), Some("one\n"));
    browser.done(&session, &undo());
    let forked = browser.done(&session, &json!({"type": "fork", "entry": second}));
    let fork = forked["session"].as_str().unwrap();
    let mut other = Watcher::of(&browser, fork);
    assert_eq!(other.texts(), ["first"]);
    stage.model.says("Elsewhere.");
    browser.say(fork, "another way");
    assert_eq!(other.until_ended(), TurnEnd::Done);
    assert_eq!(
        (other.texts(), watcher.texts()),
        (vec!["first".to_owned(), "another way".to_owned()], vec!["first".to_owned(), "second".to_owned()])
    );
    assert_eq!(browser.done(&session, &json!({"type": "tree"}))["prompts"].as_array().unwrap().len(), 2);
    let refused = browser.command(
        &session,
        "again",
        &json!({"type": "diff", "of": {"what": "between", "from": "nothing", "to": null}}),
    );
    assert_eq!(refused["refused"]["reason"], "not_found");
}

#[test]
fn the_page_is_sent_zipped_to_whoever_can_unzip() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let plain = browser.get("/");
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("Accept-Encoding")));
    let name = plain.body.split('"').find(|part| part.starts_with("/assets/") && part.ends_with(".js")).unwrap();
    let plain = browser.get(name);
    let mut reader = BufReader::new(browser.connect());
    let head = browser.head("GET", name, &[], &[("Accept-Encoding", "br, gzip, zstd")]);
    reader.get_mut().write_all(head.as_bytes()).unwrap();
    let zipped = read_head(&mut reader);
    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
    assert_eq!(zipped.header("etag"), plain.header("etag"));
    let length: u64 = zipped.header("content-length").unwrap().parse().unwrap();
    assert!(length * 2 < plain.body.len() as u64, "{length}");
    let mut unzipped = String::new();
    GzDecoder::new(reader.take(length)).read_to_string(&mut unzipped).unwrap();
    assert!(unzipped == plain.body);
    let refused = browser.ask("GET", name, &[], &[("Accept-Encoding", "gzip;q=0")]);
    assert_eq!(refused.header("content-encoding"), None);
}

#[test]
fn what_is_asked_of_a_session_that_is_being_deleted_is_done_or_not_found() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    for _ in 0..8 {
        let session = browser.begin();
        browser.done(&session, &json!({"type": "draft", "parts": [{"type": "text", "text": "half"}]}));
        let path = format!("/api/sessions/{session}/commands");
        let (asked, deleted) = std::thread::scope(|scope| {
            let ask = |n: usize| {
                browser.post(&path, &json!({"id": format!("ping-{n}"), "command": {"type": "ping"}}).to_string()).status
            };
            let asking = scope.spawn(move || (0..12).map(ask).collect::<Vec<u16>>());
            let deleting = scope.spawn(|| browser.delete(&format!("/api/sessions/{session}")).status);
            (asking.join().unwrap(), deleting.join().unwrap())
        });
        assert!([200, 409].contains(&deleted), "{deleted}");
        assert!(asked.iter().all(|status| [200, 404, 503].contains(status)), "{asked:?}");
    }
}

#[test]
fn going_back_to_a_checkpoint_is_undone_by_its_operation() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    two_turns(&stage, &browser, &session, &mut watcher);
    let listed = browser.done(&session, &json!({"type": "checkpoints"}));
    let oldest = listed["checkpoints"].as_array().unwrap().last().unwrap()["checkpoint"].clone();
    stage.write("mine.txt", "precious\n");
    let change = json!({"do": "checkpoint", "checkpoint": oldest, "files": "exact", "on_yours": "overwrite"});
    let document = browser.done(&session, &json!({"type": "apply", "change": change}))["document"].clone();
    assert_eq!((stage.read("a.txt"), stage.read("mine.txt")), (None, None));
    assert_eq!((&document["session"], &document["foreign"]), (&json!(session), &json!(1)));
    let operations = browser.done(&session, &json!({"type": "operations"}));
    assert_eq!(operations["undo"]["operation"], document["operation"]);
    let undo = json!({"do": "undo", "operation": document["operation"]});
    browser.done(&session, &json!({"type": "apply", "change": undo}));
    assert_eq!(stage.read("mine.txt").as_deref(), Some("precious\n"));
    assert_eq!(stage.read("a.txt").as_deref(), Some("two\n"));
}
