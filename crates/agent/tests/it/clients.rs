//! R41: one stream of events for all clients of a session.

use retake_agent::contract::{Action, EventKind, Reply, Request, State, TurnEnd};
use retake_agent::controller::{Attached, Beginning};
use retake_agent::view::View;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Part};
use serde_json::json;

use crate::scene::Scene;

/// What a client shows that attaches now.
fn newcomer(scene: &Scene) -> View {
    let Attached { beginning, .. } = scene.runtime().block_on(scene.handle().attach(None)).unwrap();
    let Beginning::View(view) = beginning else { panic!("a newcomer gets everything") };
    *view
}

/// What a client shows that had `view` and comes back.
fn returning(scene: &Scene, mut view: View) -> View {
    let Attached { beginning, .. } = scene.runtime().block_on(scene.handle().attach(Some(view.seq))).unwrap();
    match beginning {
        Beginning::View(view) => *view,
        Beginning::Missed(missed) => {
            missed.iter().for_each(|event| view.apply(event));
            view
        }
    }
}

/// Whoever had `view` and comes back sees what a newcomer sees. A snapshot may be told of between the two: then both look again.
fn sees_the_same(scene: &Scene, view: &View) {
    loop {
        let (back, new) = (returning(scene, view.clone()), newcomer(scene));
        if back.seq == new.seq {
            return assert_eq!(back, new);
        }
    }
}

#[test]
fn whoever_comes_back_sees_what_a_newcomer_sees_at_any_moment() {
    let mut scene = Scene::new().start();
    let mut views = vec![scene.view()];
    let gate = scene.model.says_slowly(["Slow", "ly."]);
    let first = scene.say("first");
    scene.until(|kind| matches!(kind, EventKind::Delta { text, .. } if text.ends_with('w')));
    views.push(scene.view());
    assert_eq!(newcomer(&scene).coming.text, "Slow");
    gate.open();
    scene.until_ended(first);
    views.push(scene.view());
    scene.model.calls("bash", json!({"command": "echo shown; while [ ! -e go ]; do sleep 0.02; done"}));
    scene.model.says("Done.");
    let second = scene.say("second");
    scene.until(|kind| matches!(kind, EventKind::CallOutput { .. }));
    views.push(scene.view());
    assert_eq!(newcomer(&scene).calls[0].output, "shown\n", "a newcomer sees what a command has said");
    for view in &views {
        sees_the_same(&scene, view);
    }
    scene.write("go", "");
    scene.until_ended(second);
    assert!(scene.view().calls.is_empty());
    scene.rewind(second, Scope::Conversation);
    scene.undo();
    for view in views {
        sees_the_same(&scene, &view);
    }
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn whoever_sees_a_prompt_sees_that_its_turn_runs_until_it_has_ended() {
    let mut scene = Scene::new().start();
    let mut view = scene.view();
    scene.model.calls("bash", json!({"command": "true"}));
    scene.model.says("One.");
    let first = scene.prompt("first");
    let gate = scene.model.says("Two.").pauses();
    scene.model.says("Three.");
    let second = scene.say("second");
    scene.request(Action::prompt(vec![Part::text("third")])).unwrap();
    gate.open();
    scene.until_ended(second);
    scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    let gate = scene.model.says("Four.").pauses();
    let fourth = scene.say("fourth");
    scene.request(Action::Interrupt { turn: None }).unwrap();
    gate.open();
    scene.until_ended(fourth);
    scene.rewind(first, Scope::Conversation);
    let Attached { beginning, .. } = scene.runtime().block_on(scene.handle().attach(Some(view.seq))).unwrap();
    let Beginning::Missed(all) = beginning else { panic!("all of it is kept") };
    let mut begun = 0;
    for event in all {
        view.apply(&event);
        let mut bodies = view.entries.iter().rev().map(|entry| &entry.body);
        let last = bodies.find(|body| matches!(body, Body::Prompt { .. } | Body::Ended { .. }));
        if matches!(last, Some(Body::Prompt { .. })) {
            assert_eq!(view.state, State::Running, "the turn has not ended: {event:#?}");
        }
        if let EventKind::Appended { entry } = &event.kind {
            begun += usize::from(matches!(entry.body, Body::Prompt { .. }));
        }
    }
    assert_eq!(begun, 4);
}

#[test]
fn numbers_of_an_earlier_process_are_not_mistaken_for_ours() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    scene.prompt("first");
    let old = scene.view();
    scene.restart();
    assert!(scene.view().seq > old.seq);
    sees_the_same(&scene, &old);
    let from = scene.view().seq + 1_000_000;
    let attached = scene.runtime().block_on(scene.handle().attach(Some(from))).unwrap();
    assert!(matches!(attached.beginning, Beginning::View(_)), "a number from nowhere gets everything");
    assert!(matches!(
        scene.runtime().block_on(scene.handle().attach(Some(u64::MAX))).unwrap().beginning,
        Beginning::View(_)
    ));
}

#[test]
fn events_carry_the_request_that_they_came_of() {
    let mut scene = Scene::new().start();
    let send = |scene: &Scene, id: &str, command| {
        scene.runtime().block_on(scene.handle().send(Request { id: id.to_owned(), command })).unwrap()
    };
    let prompt = |text: &str| Action::prompt(vec![Part::text(text)]);
    let gate = scene.model.says("One.").pauses();
    scene.model.says("Two.");
    let Reply::Said { prompt: first } = send(&scene, "p1", prompt("first").into()) else { panic!("not said") };
    send(&scene, "p2", prompt("second").into());
    gate.open();
    scene.until_ended(first);
    let second = scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    assert!(matches!(second, EventKind::TurnEnded { .. }));
    let attached = scene.runtime().block_on(scene.handle().attach(Some(scene.view().seq - 1))).unwrap();
    let Beginning::Missed(missed) = attached.beginning else { panic!("it is still known") };
    assert_eq!(missed[0].request.as_deref(), Some("p2"), "{missed:?}");
    let requests = scene.requests_of(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    assert_eq!(requests, [Some("p1".to_owned()), Some("p2".to_owned())]);
    let requests =
        scene.requests_of(|kind| matches!(kind, EventKind::Delta { text, .. } if text.contains("Two") || text == "T"));
    assert!(requests.iter().all(|request| request.as_deref() == Some("p2")));
    let change = retake_agent::contract::Change::new(crate::scene::rewind_goal(first, Scope::Both));
    send(
        &scene,
        "r1",
        Action::Apply {
            change,
            head_seen: None,
            plan_seen: None,
            running: retake_agent::contract::WhileRunning::Refuse,
        }
        .into(),
    );
    let requests = scene.requests_of(|kind| matches!(kind, EventKind::HeadMoved { .. }));
    assert_eq!(requests, [Some("r1".to_owned())]);
    scene.check();
}

#[test]
fn a_turn_that_goes_well_only_ever_appends() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "true"}));
    scene.model.says("Done.");
    scene.prompt("hello");
    assert!(!scene.told().iter().any(|kind| matches!(kind, EventKind::HeadMoved { .. })));
    scene.check();
}

#[test]
fn closing_in_the_middle_of_a_turn_tells_how_it_ended() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo on; sleep 300"}));
    let prompt = scene.say("sleep");
    scene.until(|kind| matches!(kind, EventKind::CallOutput { .. }));
    let mut events = scene.runtime().block_on(scene.handle().attach(None)).unwrap().events;
    scene.restart();
    let mut ended = false;
    while let Ok(event) = events.try_recv() {
        ended |= matches!(&event.kind, EventKind::TurnEnded { reason, prompt: of, .. } if *reason == TurnEnd::Interrupted && *of == prompt);
    }
    assert!(ended);
    scene.check();
    scene.model.says("Slept.");
    scene.prompt("and?");
    scene.model.assert_exhausted();
}

#[test]
fn a_session_in_which_nothing_was_said_leaves_no_trace() {
    let mut scene = Scene::new().start();
    let session = scene.session();
    scene.close();
    assert!(scene.workspace().sessions().all().unwrap().iter().all(|one| one.id != session));
}

#[test]
fn a_session_that_nobody_can_reach_any_more_ends_and_stores_its_turn() {
    let scene = Scene::new();
    let (model, other, session) = scene.beside();
    let gate = model.says_slowly(["Half", " an answer."]);
    let mut events = scene.runtime().block_on(other.handle.attach(None)).unwrap().events;
    scene.runtime().block_on(other.handle.request(Action::prompt(vec![Part::text("hello")]))).unwrap();
    scene.runtime().block_on(async {
        while !matches!(&events.recv().await.unwrap().kind, EventKind::Delta { text, .. } if text.ends_with('f')) {}
    });
    let retake_agent::controller::Opened { handle, served } = other;
    drop(handle);
    served.join().unwrap();
    gate.open();
    let stored = scene.workspace().sessions().conversation(session).unwrap();
    assert!(format!("{stored:?}").contains("Half"));
}
