//! R41: a client that asks several things at a time, of a session in this process and of one in another.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;

use retake_agent::contract::{Action, EventKind, Query, Reason, Reply};
use retake_agent::live::{Listener, LiveError, LiveSession, Notification};
use retake_agent::socket::{self, Client};
use retake_agent::view::View;
use retake_engine::session::entry::Part;

use crate::scene::{PATIENCE, Scene};
use crate::socket::serve;

/// Shows what is told until something wanted comes; gives the request that it came of.
async fn until(told: &mut Listener, view: &mut View, wanted: impl Fn(&EventKind) -> bool) -> Option<String> {
    loop {
        match tokio::time::timeout(PATIENCE, told.next()).await.expect("it comes") {
            Notification::Event(event) => {
                assert_eq!(event.seq, view.seq + 1, "nothing is missed");
                view.apply(&event);
                if wanted(&event.kind) {
                    return event.request.clone();
                }
            }
            other => panic!("the session lives, and this is quick: {other:?}"),
        }
    }
}

fn draft(n: usize) -> Vec<Part> {
    vec![Part::text(n.to_string())]
}

/// Hands in many drafts, then a prompt while a turn runs, and hears of each what came of it.
async fn ask_much(scene: &Scene, view: Box<View>, live: LiveSession) -> View {
    let (LiveSession { asker, mut told }, mut view) = (live, *view);
    let mut asked = Vec::new();
    for n in 0..50 {
        asked.push(asker.clone().hand_in(Action::Draft { parts: draft(n) }).await);
    }
    for (n, one) in asked.iter().enumerate() {
        let of = until(&mut told, &mut view, |kind| matches!(kind, EventKind::DraftChanged { .. })).await;
        assert_eq!((of, &view.draft), (Some(one.id.clone()), &draft(n)), "in the order in which they were handed in");
    }
    // The answers can be had in any order, also after what came of them.
    while let Some(one) = asked.pop() {
        assert_eq!(one.answer().await.unwrap().unwrap(), Reply::Done);
    }
    let gate = scene.model.says("One.").pauses();
    let first = asker.hand_in(Action::prompt(vec![Part::text("first")])).await;
    let second = asker.hand_in(Action::prompt(vec![Part::text("second")])).await;
    assert!(matches!(asker.ask(Query::Targets { query: None }).await, Ok(Ok(Reply::Targets { .. }))));
    let (own, held) = ((first.id.clone(), second.id.clone()), second.answer().await.unwrap().unwrap());
    assert_eq!(held, Reply::Held { count: 1, request: Some(own.1.clone()) });
    scene.model.says("Two.");
    gate.open();
    let ended = |kind: &EventKind| matches!(kind, EventKind::TurnEnded { .. });
    assert_eq!(until(&mut told, &mut view, ended).await, Some(own.0));
    assert_eq!(until(&mut told, &mut view, ended).await, Some(own.1));
    view
}

#[test]
fn whoever_asks_several_things_at_a_time_knows_what_came_of_each() {
    let mut scene = Scene::new().start();
    let shown = scene.runtime().block_on(async {
        let (view, live) = LiveSession::here(scene.handle()).await.unwrap();
        ask_much(&scene, view, live).await
    });
    assert_eq!(shown, scene.view());
    scene.check();
}

#[test]
fn so_does_a_client_in_another_process() {
    let mut scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    let shown = scene.runtime().block_on(async {
        let client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        let (view, live) = LiveSession::attach(client, scene.session()).await.unwrap();
        assert!(live.asker.is_elsewhere());
        ask_much(&scene, view, live).await
    });
    assert_eq!(shown, scene.view());
    scene.check();
}

#[test]
fn requests_of_two_clients_are_not_taken_for_one_another() {
    let scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    scene.runtime().block_on(async {
        let (_, here) = LiveSession::here(scene.handle()).await.unwrap();
        let client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        let (view, mut there) = LiveSession::attach(client, scene.session()).await.unwrap();
        let mut view = *view;
        let theirs = here.asker.hand_in(Action::Draft { parts: draft(1) }).await;
        let ours = there.asker.hand_in(Action::Draft { parts: draft(2) }).await;
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let is_draft = |kind: &EventKind| matches!(kind, EventKind::DraftChanged { .. });
            let of = until(&mut there.told, &mut view, is_draft).await.unwrap();
            seen.push((view.draft.clone(), of == ours.id, of == theirs.id));
        }
        seen.sort_by_key(|(_, is_ours, _)| *is_ours);
        assert_eq!(seen, [(draft(1), false, true), (draft(2), true, false)]);
    });
}

#[test]
fn a_session_that_ends_says_so_and_refuses_what_it_did_not_get_to() {
    let mut scene = Scene::new().start();
    let (directory, served) = serve(&scene);
    let (session, runtime) = (scene.session(), scene.runtime());
    let (_, mut here) = runtime.block_on(LiveSession::here(scene.handle())).unwrap();
    let (_, mut there) = runtime.block_on(async {
        let client = Client::connect(&directory, session).await.unwrap().unwrap();
        LiveSession::attach(client, session).await.unwrap()
    });
    scene.close();
    runtime.block_on(served.finish());
    for LiveSession { asker, told } in [&mut here, &mut there] {
        runtime.block_on(async {
            let over = loop {
                match tokio::time::timeout(PATIENCE, told.next()).await.expect("it ends") {
                    Notification::Over(error) => break error,
                    Notification::Event(_) => {}
                    Notification::Missed(_) => panic!("nothing was missed"),
                }
            };
            assert_eq!(over, LiveError::Ended);
            let refused = asker.ask(Action::Clear).await.unwrap().unwrap_err();
            assert_eq!(refused.reason, Reason::Ended);
        });
    }
}

#[test]
fn a_process_that_dies_is_told_apart_from_one_that_ends() {
    let scene = Scene::new();
    let directory = scene.dir.path().to_owned();
    let session = retake_agent::ids::session();
    let listener = UnixListener::bind(socket::path(&directory, session)).unwrap();
    let (asked, over, again) = scene.runtime().block_on(async {
        let client = Client::connect(&directory, session).await.unwrap().unwrap();
        let mut live = LiveSession::elsewhere(client, session);
        let asked = live.asker.hand_in(Action::Clear).await;
        // What has reached it may have been done.
        let mut request = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut request).unwrap();
        (asked.answer().await, live.told.next().await, live.told.next().await)
    });
    assert_eq!(asked.unwrap_err(), LiveError::Died);
    assert!(matches!((over, again), (Notification::Over(LiveError::Died), Notification::Over(LiveError::Died))));
}
