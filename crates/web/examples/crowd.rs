//! Many clients on one session that streams: how far the slowest is behind, and how much memory that takes.
//!
//! `cargo run --release -p retake-web --example crowd [CLIENTS [PIECES]]`
//!
//! A scripted model streams an answer of PIECES times three events, a piece every ten milliseconds, which is faster than real ones. Each
//! client is a thread that reads server-sent events over TCP and notes when each came; how far behind a client is, is counted from the first
//! client that had the same event. One more client reads nothing at all. Clients and the model's server are part of the process, so the
//! memory is an upper bound.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, unreachable_pub, dead_code)]

#[path = "../tests/it/browser.rs"]
mod browser;
#[path = "../tests/it/stage.rs"]
mod stage;
#[path = "../tests/it/watcher.rs"]
mod watcher;

use std::collections::HashMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use browser::Browser;
use retake_testkit::model::Gate;
use stage::Stage;
use watcher::Watcher;

/// How often a piece of the answer comes.
const PACE: Duration = Duration::from_millis(10);

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let (clients, pieces) = (numbers.next().unwrap_or(100), numbers.next().unwrap_or(500));
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let gate = Gate::new();
    let mut script = stage.model.says("begin");
    for n in 0..pieces {
        script = script.waits_for(&gate).says(&format!("piece {n} of a long answer, as models give them. "));
    }
    drop(script);
    let before = memory("VmRSS");
    let ready = Barrier::new(clients + 1);
    let began = Instant::now();
    let (seen, took) = std::thread::scope(|scope| {
        let watch = || {
            let mut watcher = Watcher::of(&browser, &session);
            ready.wait();
            let mut seen = Vec::new();
            loop {
                let frame = watcher.frame().expect("the stream goes on");
                seen.push((frame.id.expect("events have numbers"), Instant::now()));
                assert_eq!(frame.event, "event", "nobody misses so much that everything is told again");
                if frame.data.contains(r#""type":"turn_ended""#) {
                    return seen;
                }
            }
        };
        let watching: Vec<_> = (0..clients).map(|_| scope.spawn(watch)).collect();
        let stalled = Watcher::of(&browser, &session);
        ready.wait();
        let began = Instant::now();
        browser.say(&session, "go");
        for _ in 0..pieces {
            std::thread::sleep(PACE);
            gate.open();
        }
        let seen: Vec<_> = watching.into_iter().map(|one| one.join().unwrap()).collect();
        drop(stalled);
        (seen, began.elapsed())
    });
    println!("{clients} clients were there after {:.0} ms", (began.elapsed() - took).as_secs_f64() * 1e3);
    println!("{} events each, within {:.2} s", seen[0].len(), took.as_secs_f64());
    let lags = lags(&seen);
    let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("behind the first: median {:.1} ms, 99 % {:.1} ms, most {:.1} ms", at(0.5), at(0.99), at(1.0));
    println!("memory: {before} MB before the clients came, {} MB at most", memory("VmHWM"));
    assert!(*lags.last().unwrap() < Duration::from_secs(1), "nobody is more than a second behind");
}

/// How long after the first client each other one had each event, in order.
fn lags(seen: &[Vec<(u64, Instant)>]) -> Vec<Duration> {
    let mut first: HashMap<u64, Instant> = HashMap::new();
    for (seq, at) in seen.iter().flatten() {
        let known = first.entry(*seq).or_insert(*at);
        *known = (*known).min(*at);
    }
    let mut lags: Vec<Duration> = seen.iter().flatten().map(|(seq, at)| *at - first[seq]).collect();
    lags.sort();
    lags
}

/// What `/proc` says of this process, in megabytes.
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() / 1_024
}
