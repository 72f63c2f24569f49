//! Clients that come back, servers that are started again, sessions that nobody looks at.

use std::io::Write;
use std::time::{Duration, Instant};

use retake_web::Limits;
use serde_json::json;

use crate::browser::Browser;
use crate::stage::{PATIENCE, Stage};
use crate::watcher::Watcher;

fn draft(browser: &Browser, session: &str, text: &str) {
    browser.done(session, &json!({"type": "draft", "parts": [{"type": "text", "text": text}]}));
}

#[test]
fn whoever_comes_back_is_told_what_was_missed_and_nothing_twice() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    // The answer comes after the baseline, whose event would be one too many below.
    browser.done(&session, &json!({"type": "checkpoints"}));
    let mut watcher = Watcher::of(&browser, &session);
    let left = watcher.view.clone();
    for n in 0..5 {
        draft(&browser, &session, &format!("draft {n}"));
    }
    watcher.until_draft("draft 4");
    let last = watcher.view.seq;
    let mut back = Watcher::back(&browser, &session, left);
    back.until_seq(last);
    assert_eq!(back.view, watcher.view);
    let query = format!("?from={}", last - 1);
    let mut named = Watcher::open(&browser, &session, &[], &query).unwrap();
    let frame = named.frame().unwrap();
    assert_eq!((frame.event.as_str(), frame.id), ("event", Some(last)));
    for unknown in ["?from=7", "?from=x", "?from=99999999999999999"] {
        let mut newcomer = Watcher::open(&browser, &session, &[], unknown).unwrap();
        let frame = newcomer.frame().unwrap();
        assert_eq!((frame.event.as_str(), newcomer.now), ("view", last), "{unknown}");
        newcomer.take(&frame);
        newcomer.until_seq(watcher.view.seq);
        assert_eq!(newcomer.view, watcher.view, "{unknown}");
    }
}

#[test]
fn whoever_missed_too_much_is_told_everything_again() {
    let stage = Stage::with(Limits { kept_events: 3, ..Limits::default() });
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let watcher = Watcher::of(&browser, &session);
    for n in 0..5 {
        draft(&browser, &session, &format!("draft {n}"));
    }
    // The last of them may be on its way.
    let mut back = Watcher::back(&browser, &session, watcher.view.clone());
    let frame = back.frame().unwrap();
    assert_eq!(frame.event, "view");
    back.take(&frame);
    assert!(back.view.seq >= watcher.view.seq + 4, "{}", back.view.seq);
}

#[test]
fn a_server_that_is_started_again_knows_its_tabs() {
    let mut stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    stage.model.says("Hello.");
    browser.say(&session, "hi");
    watcher.until_ended();
    stage.stop();
    assert_eq!(watcher.frame(), None, "it is cut off, and not told that the session has ended");
    stage.start();
    let mut back = Watcher::back(&browser, &session, watcher.view.clone());
    let frame = back.frame().unwrap();
    assert_eq!(frame.event, "view", "numbers of another process are not known");
    back.take(&frame);
    assert_eq!(back.view.entries, watcher.view.entries);
    assert!(back.view.seq > watcher.view.seq, "and never given again");
    browser.works(&session);
    assert_eq!(Browser::stranger(&stage).get("/api/sessions").status, 401);
}

#[test]
fn a_stream_that_has_nothing_to_tell_says_that_it_is_there() {
    let stage = Stage::with(Limits { heartbeat: Duration::from_millis(20), ..Limits::default() });
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let mut watcher = Watcher::of(&browser, &session);
    watcher.until_heartbeats(2);
    draft(&browser, &session, "something");
    watcher.until_draft("something");
}

/// Waits until the session is open nowhere.
fn until_closed(browser: &Browser) {
    let deadline = Instant::now() + PATIENCE;
    while browser.get("/api/sessions").json()["sessions"][0]["live"] == true {
        assert!(Instant::now() < deadline, "it is still open");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_that_nobody_looks_at_is_closed_but_not_while_something_goes_on() {
    let stage = Stage::with(Limits { unused: Duration::from_millis(50), ..Limits::default() });
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let watcher = Watcher::of(&browser, &session);
    let gate = stage.model.says("Hello.").pauses();
    browser.say(&session, "hi");
    drop(watcher);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(browser.get("/api/sessions").json()["sessions"][0]["live"], true, "its turn goes on");
    gate.open();
    until_closed(&browser);
    let watcher = Watcher::of(&browser, &session);
    assert_eq!(watcher.texts(), ["hi"], "and it opens again");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(browser.get("/api/sessions").json()["sessions"][0]["live"], true, "somebody looks at it");
}

#[test]
fn a_session_is_opened_to_the_end_though_whoever_wanted_it_has_gone() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let deadline = Instant::now() + PATIENCE;
    let mut opened = 0;
    while opened < 8 {
        assert!(Instant::now() < deadline, "only {opened} were opened");
        let head = browser.head("POST", "/api/sessions", &[], &[("Content-Length", "0")]);
        browser.connect().write_all(head.as_bytes()).unwrap();
        // The server may have seen that the client is gone before it saw what that wanted.
        let listed = browser.get("/api/sessions").json()["sessions"].as_array().unwrap().clone();
        opened = listed.len();
        for session in &listed {
            let session = session["session"].as_str().unwrap();
            Watcher::of(&browser, session);
            draft(&browser, session, "it works");
        }
    }
}

#[test]
fn there_is_always_room_for_one_more_session_if_one_can_be_closed() {
    let stage = Stage::with(Limits { sessions: 2, ..Limits::default() });
    let browser = Browser::signed_in(&stage);
    let sessions: Vec<String> = (0..4)
        .map(|n| {
            let session = browser.begin();
            draft(&browser, &session, &format!("draft {n}"));
            session
        })
        .collect();
    let live = || {
        let listed = browser.get("/api/sessions").json();
        listed["sessions"].as_array().unwrap().iter().filter(|one| one["live"] == true).count()
    };
    assert_eq!(live(), 2);
    let _watchers = [Watcher::of(&browser, &sessions[0]), Watcher::of(&browser, &sessions[1])];
    assert_eq!(live(), 2);
    let refused = browser.post("/api/sessions", "");
    assert_eq!(refused.error(), "503 2 sessions are open here already, and something goes on in each");
}
