//! R41: the local socket of a live session.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net;
use std::path::PathBuf;

use retake_agent::contract::{Action, Command, EventKind, Outgoing, Query, Reason, Reply, Request};
use retake_agent::controller::{self, Closing};
use retake_agent::live::{LiveError, LiveSession};
use retake_agent::socket::{self, Client};
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::SessionId;
use retake_engine::session::entry::Part;
use retake_testkit::privilege::{give_to_nobody, is_root, run_as_nobody};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::scene::{PATIENCE, Scene};

/// Serves a scene's session in a directory of its own.
pub fn serve(scene: &Scene) -> (PathBuf, socket::Served) {
    let directory = scene.dir.path().join("run");
    let _inside = scene.runtime();
    let served = scene.runtime().block_on(async { socket::serve(&directory, scene.handle()) }).unwrap();
    (directory, served)
}

async fn attach(client: &mut Client) -> View {
    match client.request(Query::Attach { from: None }).await.unwrap().unwrap() {
        Reply::View { view } => *view,
        other => panic!("no view: {other:?}"),
    }
}

async fn until_ended(client: &mut Client, view: &mut View) {
    loop {
        match client.next().await.unwrap() {
            Outgoing::Event(event) => {
                assert_eq!(event.seq, view.seq + 1);
                view.apply(&event);
                if matches!(event.kind, EventKind::TurnEnded { .. }) {
                    return;
                }
            }
            Outgoing::Response(_) => {}
            Outgoing::Lagged | Outgoing::Ended => panic!("it is not slow, and the session lives"),
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
        first.send(Action::prompt(vec![Part::text("write")])).await.unwrap();
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
        scene.request(Action::Draft { parts }).unwrap();
        scene.catch_up();
    }
    let lagged = scene.runtime().block_on(async {
        loop {
            match slow.next().await.unwrap() {
                Outgoing::Event(event) => view.apply(&event),
                Outgoing::Lagged => break true,
                Outgoing::Response(_) => {}
                Outgoing::Ended => panic!("the session lives"),
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
    assert!(workspace.sessions().is_live(scene.session()));
    let opened = workspace.sessions().open(scene.session(), retake_agent::ids::now(), &mut retake_agent::ids::random);
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
        let closed = client.request(Action::Close).await.unwrap();
        // Either the session still refuses, or nobody answers any more.
        if let Ok(refused) = client.request(Query::Targets { query: None }).await {
            assert_eq!(refused.unwrap_err().reason, Reason::Ended);
        }
        closed
    });
    assert_eq!(closed, Ok(Reply::Done));
    scene.join();
    scene.restart();
    scene.check();
}

fn prompt(text: &str) -> Command {
    Action::prompt(vec![Part::text(text)]).into()
}

/// The events of a client until `wanted` comes, as type and request.
async fn until(client: &mut Client, wanted: impl Fn(&EventKind) -> bool) -> Vec<(EventKind, Option<String>)> {
    let mut told = Vec::new();
    loop {
        if let Outgoing::Event(event) = client.next().await.unwrap() {
            let is_last = wanted(&event.kind);
            told.push((event.kind, event.request));
            if is_last {
                return told;
            }
        }
    }
}

#[test]
fn requests_of_two_clients_with_the_same_id_are_kept_apart() {
    let scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    let gate = scene.model.says("One.").pauses();
    scene.model.says("Two.");
    scene.runtime().block_on(async {
        let mut first = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        let mut second = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        attach(&mut first).await;
        attach(&mut second).await;
        first.request(prompt("one")).await.unwrap().unwrap();
        let held = first.request(prompt("two")).await.unwrap().unwrap();
        assert_eq!(held, Reply::Held { count: 1, request: Some("#3".to_owned()) });
        // The same number as the first one's.
        second.request(Query::Ping).await.unwrap().unwrap();
        let held = second.request(prompt("three")).await.unwrap().unwrap();
        assert_eq!(held, Reply::Held { count: 2, request: Some("#3".to_owned()) });
        second.request(Action::Withdraw { request: "#3".to_owned() }).await.unwrap().unwrap();
        gate.open();
        let is_end = |kind: &EventKind| matches!(kind, EventKind::TurnEnded { .. });
        let ends = [until(&mut first, is_end).await.pop(), until(&mut first, is_end).await.pop()];
        let requests = ends.map(|end| end.unwrap().1.unwrap());
        assert_eq!(requests, ["#2", "#3"], "each sees its own as it sent them");
        for _ in 0..2 {
            let (_, request) = until(&mut second, is_end).await.pop().unwrap();
            let request = request.unwrap();
            assert!(request != "#2" && request != "#3", "and those of others differently: {request}");
        }
    });
    assert!(scene.last_request().transcript().ends_with("user: one\nassistant: One.\nuser: two"));
    scene.model.assert_exhausted();
}

#[test]
fn commands_of_a_client_are_carried_out_in_the_order_in_which_it_sent_them() {
    let mut scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    scene.runtime().block_on(async {
        let mut client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        for n in 0..200 {
            client.send(Action::Draft { parts: vec![Part::text(n.to_string())] }).await.unwrap();
        }
        client.request(Query::Targets { query: None }).await.unwrap().unwrap();
    });
    let drafts: Vec<String> = scene
        .told()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::DraftChanged { parts } => Some(format!("{parts:?}")),
            _ => None,
        })
        .collect();
    let sent: Vec<String> = (0..200).map(|n| format!("{:?}", vec![Part::text(n.to_string())])).collect();
    assert_eq!(drafts, sent);
}

#[test]
fn what_a_client_gave_up_on_is_not_carried_out_later() {
    let mut scene = Scene::new().start();
    let directory = scene.dir.path().join("run");
    // It runs only when it is told to, like a process that is suspended.
    let suspended = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _served = suspended.block_on(async { socket::serve(&directory, scene.handle()) }).unwrap();
    let path = socket::path(&directory, scene.session());
    let draft = |text: &str| {
        format!(r#"{{"id":"1","command":{{"type":"draft","parts":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let send = |text: &str| {
        let mut stream = net::UnixStream::connect(&path).unwrap();
        writeln!(stream, "{}", draft(text)).unwrap();
        stream
    };
    drop(send("given up"));
    let silent = send("still wanted");
    silent.shutdown(std::net::Shutdown::Write).unwrap();
    suspended.block_on(async {
        let mut client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
        attach(&mut client).await;
        silent.set_nonblocking(true).unwrap();
        let mut answer = BufReader::new(UnixStream::from_std(silent).unwrap()).lines();
        assert!(answer.next_line().await.unwrap().unwrap().contains("\"ok\""));
    });
    assert_eq!(scene.draft(), "still wanted");
    let drafts = scene.told().into_iter().filter(|kind| matches!(kind, EventKind::DraftChanged { .. })).count();
    assert_eq!(drafts, 1);
}

#[test]
fn a_client_that_there_is_no_place_for_is_told() {
    let scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    scene.runtime().block_on(async {
        let mut idle = Vec::new();
        let refusal = loop {
            let mut client = Client::connect(&directory, scene.session()).await.unwrap().unwrap();
            match tokio::time::timeout(PATIENCE, client.request(Query::Ping)).await.expect("it is answered").unwrap() {
                Ok(_) => idle.push(client),
                Err(refusal) => break refusal,
            }
        };
        assert!(refusal.message.contains("clients"), "{refusal:?}");
        // One that leaves makes room.
        idle.pop();
        while !matches!(
            Client::connect(&directory, scene.session()).await.unwrap().unwrap().request(Query::Ping).await,
            Ok(Ok(_))
        ) {}
    });
}

#[test]
fn a_session_closes_only_if_nothing_goes_on_and_says_that_it_has_ended() {
    let mut scene = Scene::new().start();
    let gate = scene.model.says("One.").pauses();
    let (directory, _served) = serve(&scene);
    let first = scene.say("first");
    let handle = scene.handle();
    let mut client = scene.runtime().block_on(Client::connect(&directory, scene.session())).unwrap().unwrap();
    scene.runtime().block_on(attach(&mut client));
    assert_eq!(scene.runtime().block_on(handle.close_if_idle()), Closing::Busy);
    gate.open();
    scene.until_ended(first);
    assert_eq!(scene.runtime().block_on(handle.close_if_idle()), Closing::Closes);
    let refused = scene.runtime().block_on(handle.request(prompt("too late"))).unwrap_err();
    assert_eq!(refused.reason, Reason::Ended);
    scene.runtime().block_on(async {
        let last = loop {
            match client.next().await.unwrap() {
                Outgoing::Event(_) => {}
                other => break other,
            }
        };
        assert_eq!(last, Outgoing::Ended);
        assert!(client.next().await.is_err(), "after the last word nothing comes");
    });
    scene.join();
    assert_eq!(scene.stored().prompts().count(), 1);
}

#[test]
fn sockets_are_where_there_is_a_place_for_them_and_dead_ones_go() {
    let scene = Scene::new().start();
    let (dir, temp) = (scene.dir.path(), std::path::Path::new("/tmp"));
    let missing = dir.join("not there");
    let long = dir.join("x".repeat(100));
    std::fs::create_dir(&long).unwrap();
    assert_eq!(socket::directory(Some(dir), temp), dir.join("retake"));
    for none in [None, Some(missing.as_path()), Some(long.as_path())] {
        assert!(socket::directory(none, temp).starts_with(temp));
        assert_eq!(socket::directory(none, temp), socket::directory(None, temp));
    }
    let path = socket::path(dir, scene.session());
    drop(net::UnixListener::bind(&path).unwrap());
    assert!(scene.runtime().block_on(Client::connect(dir, scene.session())).unwrap().is_none());
    assert!(!path.exists());
}

#[test]
fn a_session_that_has_ended_accepts_no_client_before_anybody_is_told() {
    let mut scene = Scene::new().start();
    let (directory, served) = serve(&scene);
    let session = scene.session();
    let runtime = scene.runtime();
    let mut client = runtime.block_on(Client::connect(&directory, session)).unwrap().unwrap();
    runtime.block_on(attach(&mut client));
    scene.close();
    runtime.block_on(async {
        while client.next().await.unwrap() != Outgoing::Ended {}
        // A command that tries again at once would otherwise fill every place.
        assert!(Client::connect(&directory, session).await.unwrap().is_none(), "the socket is gone");
        assert!(!socket::path(&directory, session).exists());
    });
    drop(served);
}

#[test]
fn a_client_that_comes_while_the_session_closes_is_not_told_that_there_is_no_place() {
    for _ in 0..20 {
        let mut scene = Scene::new().start();
        let (directory, served) = serve(&scene);
        let (session, runtime) = (scene.session(), scene.runtime());
        let come = |directory: PathBuf| async move {
            // Until the socket is gone.
            while let Some(client) = Client::connect(&directory, session).await.unwrap() {
                match LiveSession::attach(client, session).await {
                    Ok(_) | Err(LiveError::Ended | LiveError::Died) => {}
                    Err(other) => return Err(other),
                }
            }
            Ok(())
        };
        let coming = [(); 8].map(|()| runtime.spawn(come(directory.clone())));
        scene.close();
        runtime.block_on(served.finish());
        for one in coming {
            assert_eq!(runtime.block_on(one).unwrap(), Ok(()));
        }
    }
}

/// A request can come into the channel just when the one who serves the session goes, and then nobody takes it out again.
#[test]
fn a_request_that_nobody_takes_is_answered_when_the_session_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (handle, mut inbox) = controller::channel(SessionId::new(Timestamp(0), [7; 10]));
        let (pending, attaching, closing) = (
            handle.hand_in(Request { id: "1".to_owned(), command: Action::Close.into() }).await,
            tokio::spawn({
                let handle = handle.clone();
                async move { handle.attach(None).await.map(drop) }
            }),
            tokio::spawn({
                let handle = handle.clone();
                async move { handle.close_if_idle().await }
            }),
        );
        while inbox.len() < 3 {
            tokio::task::yield_now().await;
        }
        inbox.close();
        let answered = tokio::time::timeout(PATIENCE, pending.answer()).await.expect("a request is answered");
        assert_eq!(answered.unwrap_err().reason, Reason::Ended);
        let attached = tokio::time::timeout(PATIENCE, attaching).await.expect("a client is answered").unwrap();
        assert_eq!(attached.unwrap_err().reason, Reason::Ended);
        let closed = tokio::time::timeout(PATIENCE, closing).await.expect("whoever closes is answered").unwrap();
        assert_eq!(closed, Closing::Closes);
        assert_eq!(inbox.len(), 3, "nobody has taken them");
    });
}

fn why_untrusted<T: std::fmt::Debug>(result: std::io::Result<T>) -> String {
    let error = result.unwrap_err();
    socket::untrusted(&error).unwrap_or_else(|| panic!("{error}")).to_string()
}

#[test]
fn a_directory_that_is_not_the_users_own_is_neither_connected_to_nor_listened_in() {
    let scene = Scene::new().start();
    let place = scene.dir.path();
    let theirs = place.join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o777)).unwrap();
    give_to_nobody(&theirs);
    // Who is not root cannot give anything away, but there are directories of root's.
    let theirs = if is_root() { theirs } else { PathBuf::from("/usr") };
    std::os::unix::fs::symlink(place, place.join("link")).unwrap();
    std::fs::write(place.join("file"), "").unwrap();
    let cases =
        [(theirs, "another user"), (place.join("link"), "not a directory"), (place.join("file"), "not a directory")];
    for (directory, why) in cases {
        // A socket of the user's own in it makes no difference.
        let _listener = net::UnixListener::bind(socket::path(&directory, scene.session()));
        let connected = scene.runtime().block_on(Client::connect(&directory, scene.session()));
        let said = why_untrusted(connected);
        assert!(said.contains(why) && said.contains("nothing was sent"), "{said}");
        let served = scene.runtime().block_on(async { socket::serve(&directory, scene.handle()) });
        assert!(why_untrusted(served).contains(why));
    }
}

/// Listens as another user, and tells how many bytes came from whoever connected.
fn listen_and_count(path: &std::path::Path) {
    let listener = net::UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "listening").unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut listener.accept().unwrap().0, &mut bytes).unwrap();
    writeln!(out, "came: {} bytes", bytes.len()).unwrap();
}

#[test]
fn nothing_is_sent_to_a_process_of_another_user() {
    if let Some(path) = std::env::var_os("LISTEN_AT") {
        return listen_and_count(std::path::Path::new(&path));
    }
    if !is_root() {
        // Nobody else can start a process of another user.
        return;
    }
    let scene = Scene::new().start();
    let (place, directory) = (scene.dir.path(), scene.dir.path().join("run"));
    std::fs::create_dir(&directory).unwrap();
    for path in [place, &directory] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let program = place.join("test");
    assert!(
        std::process::Command::new("cp")
            .arg(std::env::current_exe().unwrap())
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let mut command = std::process::Command::new(program);
    command.args(["--exact", "socket::nothing_is_sent_to_a_process_of_another_user", "--nocapture"]);
    command.env("LISTEN_AT", socket::path(&directory, scene.session())).stdout(std::process::Stdio::piped());
    let mut child = run_as_nobody(command).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.by_ref().any(|line| line.unwrap().contains("listening")));
    let said = why_untrusted(scene.runtime().block_on(Client::connect(&directory, scene.session())));
    assert!(said.contains("a process of another user answers there"), "{said}");
    assert!(lines.any(|line| line.unwrap().contains("came: 0 bytes")));
    child.wait().unwrap();
}

#[test]
fn a_client_of_another_user_is_not_served() {
    if let Some(path) = std::env::var_os("CONNECT_TO") {
        let mut stream = net::UnixStream::connect(path).unwrap();
        stream.write_all(b"{\"id\":\"1\",\"type\":\"ping\"}\n").ok();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).ok();
        let mut out = std::io::stdout();
        return writeln!(out, "answer: {answer:?}").unwrap();
    }
    if !is_root() {
        return;
    }
    let scene = Scene::new().start();
    let (directory, _served) = serve(&scene);
    // As if somebody had opened all doors since.
    for path in [scene.dir.path(), &directory, &socket::path(&directory, scene.session())] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let program = scene.dir.path().join("test");
    assert!(
        std::process::Command::new("cp")
            .arg(std::env::current_exe().unwrap())
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let mut command = std::process::Command::new(program);
    command.args(["--exact", "socket::a_client_of_another_user_is_not_served", "--nocapture"]);
    let output = run_as_nobody(command).env("CONNECT_TO", socket::path(&directory, scene.session())).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("answer: \"\""), "{told}");
}
