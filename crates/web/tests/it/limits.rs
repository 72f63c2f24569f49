//! R81: whoever sends too much, too slowly, or reads nothing is refused or bounded, and the session goes on.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use retake_web::Limits;
use serde_json::json;

use crate::browser::{self, Browser};
use crate::stage::{PATIENCE, Stage};
use crate::watcher::Watcher;
use retake_agent::contract::TurnEnd;

fn scene(limits: Limits) -> (Stage, Browser, String) {
    let stage = Stage::with(limits);
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    (stage, browser, session)
}

/// Whether the other side closes the connection, and what it said before.
fn until_closed(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(err) => panic!("the connection stays open: {err}"),
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_body_that_is_too_long_is_refused_whether_or_not_it_says_so() {
    let (_stage, browser, session) = scene(Limits::default());
    let path = format!("/api/sessions/{session}/commands");
    let told = browser.head("POST", &path, &[], &[("Content-Length", &(100 << 20).to_string())]);
    let answer = browser.send(told.as_bytes());
    assert_eq!(answer.error(), "413 a request has at most 32 MiB");
    let mut stream = browser.connect();
    stream.write_all(browser.head("POST", &path, &[], &[("Transfer-Encoding", "chunked")]).as_bytes()).unwrap();
    let mut chunk = format!("{:x}\r\n", 1 << 20).into_bytes();
    chunk.resize(chunk.len() + (1 << 20), b' ');
    chunk.extend_from_slice(b"\r\n");
    let sent = (0..100).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 100, "it is not read to its end");
    browser.works(&session);
    // What is long, but not too long, is taken.
    let long = "x".repeat(20 << 20);
    browser.done(&session, &json!({"type": "draft", "parts": [{"type": "text", "text": long}]}));
}

#[test]
fn what_would_take_far_more_memory_than_bytes_is_refused() {
    let (_stage, browser, session) = scene(Limits::default());
    let path = format!("/api/sessions/{session}/commands");
    let zeros = "0,".repeat(1 << 20);
    let answer = browser.post(&path, &format!(r#"{{"id":"1","command":{{"type":"ping","x":[{zeros}0]}}}}"#));
    assert_eq!(answer.error(), "413 a request has at most 100000 values");
    // Commas of a text are no values, nor does an escaped quote end it.
    let text = format!(r#""{zeros}"#);
    browser.done(&session, &json!({"type": "draft", "parts": [{"type": "text", "text": text}]}));
}

#[test]
fn a_turn_can_be_stopped_though_others_send_slowly() {
    let (stage, browser, session) = scene(Limits { bodies: 1, ..Limits::default() });
    let mut watcher = Watcher::of(&browser, &session);
    let path = format!("/api/sessions/{session}/commands");
    let _slow: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = browser.connect();
            let length = (10 << 20).to_string();
            stream.write_all(browser.head("POST", &path, &[], &[("Content-Length", &length)]).as_bytes()).unwrap();
            stream.write_all(b"{").unwrap();
            stream
        })
        .collect();
    let _gate = stage.model.says("Hello.").pauses();
    browser.say(&session, "hi");
    browser.done(&session, &json!({"type": "interrupt"}));
    assert_eq!(watcher.until_ended(), TurnEnd::Interrupted);
}

#[test]
fn huge_heads_are_refused() {
    let (_stage, browser, session) = scene(Limits::default());
    let long = "x".repeat(200_000);
    let many: Vec<(String, String)> = (0..500).map(|n| (format!("X-{n}"), "y".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for head in [
        browser.head("GET", "/api/sessions", &[], &[("X-Long", &long)]),
        browser.head("GET", "/api/sessions", &[], &many),
        browser.head("GET", &format!("/{long}"), &[], &[]),
    ] {
        let mut stream = browser.connect();
        // It may be closed before all is sent.
        stream.write_all(head.as_bytes()).ok();
        let said = until_closed(stream);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 431") || said.starts_with("HTTP/1.1 414"), "{said}");
    }
    browser.works(&session);
}

#[test]
fn whoever_sends_too_slowly_is_cut_off() {
    let time = Duration::from_millis(300);
    let (_stage, browser, session) = scene(Limits { head_time: time, body_time: time, bodies: 1, ..Limits::default() });
    let began = Instant::now();
    let silent = browser.connect();
    let mut halting = browser.connect();
    halting.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut body = browser.connect();
    let path = format!("/api/sessions/{session}/commands");
    body.write_all(browser.head("POST", &path, &[], &[("Content-Length", "100000")]).as_bytes()).unwrap();
    body.write_all(b"{\"id\":").unwrap();
    let mut idle = browser.connect();
    idle.write_all(browser.head("GET", "/api/sessions", &[], &[]).as_bytes()).unwrap();
    assert_eq!(browser::read(&mut BufReader::new(idle.try_clone().unwrap())).status, 200);
    let said = [silent, halting, idle].map(until_closed);
    assert!(said.iter().all(|said| said.is_empty() || said.starts_with("HTTP/1.1 408")), "{said:?}");
    assert_eq!(browser::read(&mut BufReader::new(body)).error(), "408 the request took too long to come");
    assert!(began.elapsed() < PATIENCE / 2);
    browser.works(&session);
}

#[test]
fn there_are_only_so_many_connections_and_the_rest_are_told_so() {
    let (_stage, browser, session) = scene(Limits { connections: 10, ..Limits::default() });
    let watcher = Watcher::of(&browser, &session);
    let path = format!("/api/sessions/{session}/events");
    let others: Vec<TcpStream> = (0..9)
        .map(|_| {
            let mut stream = browser.connect();
            stream.write_all(browser.head("GET", &path, &[], &[]).as_bytes()).unwrap();
            assert_eq!(browser::read_head(&mut BufReader::new(stream.try_clone().unwrap())).status, 200);
            stream
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    while browser.get("/api/sessions").status != 503 {
        assert!(Instant::now() < deadline, "nobody is turned away");
    }
    assert_eq!(browser.get("/api/sessions").error(), "503 too many connections are open");
    drop(others);
    while browser.get("/api/sessions").status != 200 {
        assert!(Instant::now() < deadline, "the places stay taken");
    }
    browser.works(&session);
    drop(watcher);
}

#[test]
fn strangers_who_say_nothing_lock_nobody_out() {
    let (stage, browser, session) = scene(Limits { connections: 10, head_time: PATIENCE * 2, ..Limits::default() });
    let mut watcher = Watcher::of(&browser, &session);
    let connect = || (0..10).map(|_| browser.connect()).collect::<Vec<TcpStream>>();
    let _silent = [connect(), connect()];
    for _ in 0..3 {
        let _more = connect();
        assert_eq!(browser.get("/api/sessions").status, 200);
    }
    let stranger = Browser::stranger(&stage);
    assert_eq!(stranger.get("/api/sessions").status, 401, "they are told so, and make way as well");
    // Whoever is known stays.
    stage.model.says("Hello.");
    browser.say(&session, "hi");
    assert_eq!(watcher.until_ended(), TurnEnd::Done);
}

#[test]
fn the_bound_of_open_sessions_holds_however_many_are_begun_at_once() {
    let (_stage, browser, _) = scene(Limits { sessions: 4, ..Limits::default() });
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let begun = browser.post("/api/sessions", "");
                assert!([201, 503].contains(&begun.status), "{begun:?}");
            });
        }
    });
    let listed = browser.get("/api/sessions").json();
    let live = listed["sessions"].as_array().unwrap().iter().filter(|one| one["live"] == true).count();
    assert!((1..=4).contains(&live), "{live} are open");
}

#[test]
fn a_thousand_streams_are_bounded_and_the_session_goes_on() {
    let (stage, browser, session) = scene(Limits { connections: 2_000, streams: 300, ..Limits::default() });
    let mut first = Watcher::of(&browser, &session);
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..1_000 {
        match Watcher::open(&browser, &session, &[], "") {
            Ok(watcher) => streams.push(watcher),
            Err(status) => {
                assert_eq!(status, 503);
                refused += 1;
            }
        }
    }
    assert_eq!((streams.len(), refused), (299, 701));
    let answer = browser.get(&format!("/api/sessions/{session}/events"));
    assert_eq!(answer.error(), "503 300 streams are open already");
    stage.model.says("Hello.");
    browser.say(&session, "hi");
    assert_eq!(first.until_ended(), TurnEnd::Done);
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while Watcher::open(&browser, &session, &[], "").is_err() {
        assert!(Instant::now() < deadline, "the places stay taken");
    }
}

#[test]
fn a_reader_that_stalls_is_dropped_and_goes_on_from_where_it_was() {
    let limits = Limits { stall: Duration::from_millis(500), streams: 2, ..Limits::default() };
    let (_stage, browser, session) = scene(limits);
    let mut quick = Watcher::of(&browser, &session);
    let stalled = Watcher::of(&browser, &session);
    let left = stalled.view.clone();
    assert_eq!(Watcher::open(&browser, &session, &[], "").err(), Some(503));
    // More than what fits between the two ends of a connection.
    let long = "x".repeat(1 << 20);
    for n in 0..24 {
        let text = format!("{n}{long}");
        browser.done(&session, &json!({"type": "draft", "parts": [{"type": "text", "text": text}]}));
        quick.until_draft(&text);
    }
    // Its place is free again although it holds its end of the connection.
    let deadline = Instant::now() + PATIENCE;
    let mut back = loop {
        match Watcher::open(&browser, &session, &[("Last-Event-ID", &left.seq.to_string())], "") {
            Ok(back) => break back,
            Err(status) => assert_eq!(status, 503),
        }
        assert!(Instant::now() < deadline, "it is not dropped");
        std::thread::sleep(Duration::from_millis(20));
    };
    back.view = left;
    back.until_seq(quick.view.seq);
    quick.until_seq(back.view.seq);
    assert!(back.view == quick.view, "both show the same");
    drop(stalled);
    browser.works(&session);
}
