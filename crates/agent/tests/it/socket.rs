//! R41: the local socket of a live session.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use retake_agent::contract::{Command, EventKind, Outgoing, Reason, Reply};
use retake_agent::socket::{self, Client};
use retake_agent::view::View;
use retake_engine::session::entry::Part;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::scene::{PATIENCE, Scene};

/// Serves a scene's session in a directory of its own.
fn serve(scene: &Scene) -> (PathBuf, socket::Served) {
    let directory = scene.dir.path().join("run");
    let _inside = scene.runtime();
    let served = scene.runtime().block_on(async { socket::serve(&directory, scene.handle()) }).unwrap();
    (directory, served)
}

async fn attach(client: &mut Client) -> View {
    match client.request(Command::Attach { from: None }).await.unwrap().unwrap() {
        Reply::View { view } => *view,
        other => panic!("no view: {other:?}"),
    }
}

async fn until_ended(client: &mut Client, view: &mut View) {
    loop {
        match client.next().await.unwrap().expect("the session lives") {
            Outgoing::Event(event) => {
                assert_eq!(event.seq, view.seq + 1);
                view.apply(&event);
                if matches!(event.kind, EventKind::TurnEnded { .. }) {
                    return;
                }
            }
            Outgoing::Response(_) => {}
            Outgoing::Lagged => panic!("it is not slow"),
        }
    }
}

#[test]
fn two_clients_see_one_stream() {
    let mut scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    let session = scene.session();
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    let (one, two) = scene.runtime().block_on(async {
        let mut first = Client::connect(&directory, session).await.unwrap().unwrap();
        let mut second = Client::connect(&directory, session).await.unwrap().unwrap();
        let (mut one, mut two) = (attach(&mut first).await, attach(&mut second).await);
        first.send(Command::prompt(vec![Part::text("write")])).await.unwrap();
        until_ended(&mut first, &mut one).await;
        until_ended(&mut second, &mut two).await;
        (one, two)
    });
    assert_eq!(one, two);
    assert_eq!(one, scene.view());
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn only_the_user_can_reach_it_and_a_dead_one_makes_way() {
    let scene = Scene::new().start();
    let directory = scene.dir.path().join("run");
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = socket::path(&directory, scene.session());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let runtime = scene.runtime();
    assert!(runtime.block_on(Client::connect(&directory, scene.session())).unwrap().is_none(), "nobody serves it");
    let (_, served) = serve(&scene);
    assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert!(runtime.block_on(Client::connect(&directory, scene.session())).unwrap().is_some());
    drop(served);
    assert!(!path.exists());
    assert!(runtime.block_on(Client::connect(&directory, scene.session())).unwrap().is_none());
}

#[test]
fn garbage_is_refused_and_the_session_lives() {
    let scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    scene.runtime().block_on(async {
        let stream = UnixStream::connect(socket::path(&directory, scene.session())).await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        for (garbage, id) in [
            (&b"hello\n"[..], ""),
            (b"\xff\xfe\n", ""),
            (b"{\"id\":\"7\",\"command\":{\"type\":\"fly\"}}\n", "7"),
            (b"[]\n", ""),
        ] {
            writer.write_all(garbage).await.unwrap();
            let line = lines.next_line().await.unwrap().expect("it answers");
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            let answer = &answer["response"];
            assert_eq!(
                (answer["id"].as_str(), answer["refused"]["reason"].as_str()),
                (Some(id), Some("invalid")),
                "{line}"
            );
        }
        writer.write_all(b"{\"id\":\"8\",\"command\":{\"type\":\"targets\"}}\n").await.unwrap();
        let line = lines.next_line().await.unwrap().expect("it answers");
        assert!(line.contains("\"ok\""), "{line}");
    });
}

#[test]
fn clients_that_go_away_leave_their_place_to_others() {
    let scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    scene.runtime().block_on(async {
        // More than there are places at a time.
        for _ in 0..100 {
            let mut client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
            tokio::time::timeout(PATIENCE, attach(&mut client)).await.expect("there is a place");
        }
    });
}

#[test]
fn a_slow_client_is_told_and_can_attach_again() {
    let mut scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    let session = scene.session();
    let mut slow = scene.runtime().block_on(Client::connect(&directory, session)).unwrap().unwrap();
    let mut view = scene.runtime().block_on(attach(&mut slow));
    // Drafts are events; each is big enough that neither the socket nor the queues hold them all.
    for n in 0..6_000 {
        let parts = vec![Part::text(format!("{n} {}", "x".repeat(2_000)))];
        scene.request(Command::Draft { parts }).unwrap();
        scene.catch_up();
    }
    let lagged = scene.runtime().block_on(async {
        loop {
            match slow.next().await.unwrap().expect("the session lives") {
                Outgoing::Event(event) => view.apply(&event),
                Outgoing::Lagged => break true,
                Outgoing::Response(_) => {}
            }
        }
    });
    assert!(lagged);
    let view = scene.runtime().block_on(attach(&mut slow));
    assert_eq!(view, scene.view());
}

#[test]
fn a_live_session_has_one_writer() {
    let scene = Scene::new().start();
    let workspace = scene.workspace();
    assert!(workspace.is_live(scene.session()));
    let opened = workspace.open_session(scene.session(), retake_agent::fresh::now(), &mut retake_agent::fresh::random);
    assert!(opened.is_err());
}

#[test]
fn closing_over_the_socket_answers_and_ends() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    scene.prompt("first");
    let (directory, _served) = serve(&scene);
    let session = scene.session();
    let closed = scene.runtime().block_on(async {
        let mut client = Client::connect(&directory, session).await.unwrap().unwrap();
        let closed = client.request(Command::Close).await.unwrap();
        // Either the session still refuses, or nobody answers any more.
        if let Ok(refused) = client.request(Command::Targets { query: None }).await {
            assert_eq!(refused.unwrap_err().reason, Reason::Failed);
        }
        closed
    });
    assert_eq!(closed, Ok(Reply::Done));
    scene.join();
    scene.restart();
    scene.check();
}
