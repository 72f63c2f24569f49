//! Many clients on one session that streams.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use retake_agent::contract::EventKind;
use retake_testkit::model::Gate;

use crate::browser::Browser;
use crate::stage::Stage;
use crate::watcher::Watcher;

const CLIENTS: usize = 100;
const PIECES: usize = 100;
/// How often one comes: three hundred events a second, more than any model gives.
const PACE: Duration = Duration::from_millis(10);

#[test]
fn a_hundred_clients_see_the_same_within_a_second() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let gate = Gate::new();
    let mut script = stage.model.says("begin");
    for n in 0..PIECES {
        script = script.waits_for(&gate).says(&format!("piece {n} of a long answer, as models give them. "));
    }
    drop(script);
    let ready = Barrier::new(CLIENTS + 1);
    let ended: Vec<(Instant, retake_agent::view::View)> = std::thread::scope(|scope| {
        let watch = || {
            let mut watcher = Watcher::of(&browser, &session);
            ready.wait();
            watcher.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
            let at = Instant::now();
            (at, watcher.view)
        };
        let watching: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(watch)).collect();
        ready.wait();
        browser.say(&session, "go");
        for _ in 0..PIECES {
            std::thread::sleep(PACE);
            gate.open();
        }
        watching.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let first = ended.iter().map(|(at, _)| *at).min().unwrap();
    let last = ended.iter().map(|(at, _)| *at).max().unwrap();
    assert!(last - first < Duration::from_secs(1), "{:?} behind", last - first);
    assert!(ended.iter().all(|(_, view)| *view == ended[0].1), "all show the same");
}
