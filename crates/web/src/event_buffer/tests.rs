//! What a client is given, whenever it comes and however slowly it reads.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use retake_agent::contract::EventKind;

use super::*;

fn events(kept_events: usize, kept_bytes: usize) -> EventBuffer {
    let view = View { seq: 100, session: "s".into(), ..View::default() };
    EventBuffer::new(view, &Limits { kept_events, kept_bytes, ..Limits::default() })
}

fn warn(events: &EventBuffer, seq: u64, text: &str) {
    let kind = EventKind::Warning { text: text.to_owned() };
    events.take(Notification::Event(Arc::new(Event { seq, request: None, kind })));
}

/// What there is, as `kind id`.
fn read(events: &EventBuffer, seen: &mut Option<u64>) -> Vec<String> {
    let mut all = String::new();
    while let Chunk::More(bytes) = events.read(seen) {
        all.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    let told = |frame: &str| {
        let lines: Vec<&str> = frame.lines().collect();
        let [event, id, data] = lines[..] else { panic!("three lines: {frame}") };
        assert!(data.starts_with("data: {"), "{data}");
        format!("{} {}", event.trim_start_matches("event: "), id.trim_start_matches("id: "))
    };
    all.split_terminator("\n\n").map(told).collect()
}

#[test]
fn a_newcomer_gets_everything_and_then_what_happens() {
    let events = events(10, 1 << 20);
    let mut seen = None;
    assert_eq!(read(&events, &mut seen), ["view 100"]);
    warn(&events, 101, "a");
    warn(&events, 102, "b");
    assert_eq!(read(&events, &mut seen), ["event 101", "event 102"]);
    assert_eq!((events.read(&mut seen), seen), (Chunk::Nothing, Some(102)));
}

#[test]
fn whoever_comes_back_gets_what_was_missed_or_everything_if_that_is_too_much() {
    let events = events(3, 1 << 20);
    (101..=105).for_each(|seq| warn(&events, seq, "a"));
    assert_eq!(read(&events, &mut Some(102)), ["event 103", "event 104", "event 105"]);
    assert_eq!(read(&events, &mut Some(105)), [""; 0]);
    for unknown in [Some(101), Some(106), Some(0), Some(u64::MAX), None] {
        assert_eq!(read(&events, &mut unknown.clone()), ["view 105"], "{unknown:?}");
    }
    events.take(Notification::Missed(Box::new(View { seq: 900, ..View::default() })));
    assert_eq!(read(&events, &mut Some(105)), ["view 900"]);
}

#[test]
fn what_is_kept_is_bounded_in_bytes_too() {
    let events = events(1_000, 10_000);
    (101..=200).for_each(|seq| warn(&events, seq, &"x".repeat(1_000)));
    let state = events.lock();
    assert!(state.kept_bytes <= 10_000 && state.kept.len() < 10, "{} bytes", state.kept_bytes);
    assert_eq!(state.kept_bytes, state.kept.iter().map(|(_, frame)| frame.len()).sum::<usize>());
    drop(state);
    warn(&events, 201, &"y".repeat(20_000));
    assert_eq!(read(&events, &mut Some(200)), ["view 201"], "one that is too long for it is in the view");
}

#[test]
fn a_whole_view_is_written_once_for_many_and_completed_by_what_came_since() {
    let events = events(10_000, 1 << 30);
    assert_eq!(read(&events, &mut None), ["view 100"]);
    (101..=100 + limits::VIEW_AGE).for_each(|seq| warn(&events, seq, "a"));
    let told = read(&events, &mut None);
    assert_eq!((told.len() as u64, told[0].as_str()), (1 + limits::VIEW_AGE, "view 100"));
    warn(&events, 101 + limits::VIEW_AGE, "a");
    assert_eq!(read(&events, &mut None), [format!("view {}", 101 + limits::VIEW_AGE)]);
}

#[test]
fn much_is_told_in_pieces() {
    let events = events(10_000, 1 << 30);
    (101..=110).for_each(|seq| warn(&events, seq, &"x".repeat(limits::BATCH / 4)));
    let mut seen = Some(100);
    let Chunk::More(first) = events.read(&mut seen) else { panic!("there is much") };
    assert!(first.len() <= limits::BATCH && seen == Some(103), "{seen:?}");
    warn(&events, 111, &"x".repeat(limits::BATCH * 2));
    assert_eq!(read(&events, &mut seen).len(), 8, "one that is longer comes alone");
}

#[test]
fn the_last_word_comes_last() {
    let events = events(10, 1 << 20);
    warn(&events, 101, "a");
    events.take(Notification::Over(LiveError::Died));
    let mut seen = Some(100);
    assert_eq!(read(&events, &mut seen), ["event 101"]);
    let Chunk::Last(word) = events.read(&mut seen) else { panic!("it is over") };
    let word = String::from_utf8(word.to_vec()).unwrap();
    assert_eq!(
        word,
        "event: ended\ndata: {\"reason\":\"died\",\"message\":\"the process that had the session open has died\"}\n\n"
    );
    assert!(events.is_over());
}
