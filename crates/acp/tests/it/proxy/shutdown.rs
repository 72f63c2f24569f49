//! How it ends: whatever the editor, the agent and their pipes do, and without leaving anything running.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use retake_acp::proxy::ProxyEnd;
use serde_json::json;

use super::world::{Client, World};

fn hasty(habits: &str) -> World {
    let mut world = World::new(habits);
    world.patience.stop = Duration::from_millis(300);
    world.patience.leave = world.patience.stop;
    world
}

/// An agent that is a script, run in the project.
fn script(world: &World, script: &str) -> Client {
    let script = format!("cd '{}'; {script}", world.project().display());
    world.start_with(["sh", "-c"].into_iter().map(OsString::from).chain([script.into()]).collect())
}

/// More than any pipe takes.
async fn flood(client: &mut Client) {
    for _ in 0..2_000 {
        client.notify("_x", json!({ "x": "y".repeat(1_000) })).await;
    }
}

/// Waits for the end of a process that was killed: until it gets to a core, it is still there.
async fn until_gone(process: &str) {
    let began = Instant::now();
    while is_running(process) {
        assert!(began.elapsed() < Duration::from_secs(60), "process {process} was not killed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // One that nobody has asked after yet is no process any more.
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_although_the_agent_does_not_read() {
    let world = hasty("");
    let mut client = script(&world, "exec sleep 600");
    flood(&mut client).await;
    assert_eq!(client.hang_up().await, ProxyEnd::ByClient);
    let mut client = script(&world, "exec sleep 600");
    flood(&mut client).await;
    assert_eq!(client.stop().await, ProxyEnd::ByClient);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_although_the_client_does_not_read() {
    for by_signal in [false, true] {
        let world = hasty("");
        let mut client = world.client().await;
        let session = client.new_session().await;
        let text = json!([{ "type": "text", "text": "write begun.txt x\nflood 20000" }]);
        client.send("session/prompt", json!({ "sessionId": session, "prompt": text })).await;
        world.wait_for_file("project/begun.txt", "").await;
        let ended = if by_signal { client.stop().await } else { client.hang_up().await };
        assert_eq!(ended, ProxyEnd::ByClient);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_dies_is_noticed_although_its_pipe_stays_open() {
    let world = hasty("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let text = json!([{ "type": "text", "text": "orphan" }]);
    let error = client.ask("session/prompt", json!({ "sessionId": session, "prompt": text })).await;
    assert_eq!(error.expect_err("it is gone")["data"]["reason"], "agent_exited");
    assert_eq!(client.end().await, ProxyEnd::ByAgent(Some(7)));
    let orphan = std::fs::read_to_string(world.path("inner").join("orphan")).expect("it was started");
    until_gone(&orphan).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_listen_any_more_is_noticed() {
    let world = hasty("");
    let mut client = script(&world, "exec 0<&-; echo x > deaf; exec sleep 600");
    world.wait_for_file("project/deaf", "").await;
    let error = client.ask("initialize", json!({ "protocolVersion": 1 })).await.expect_err("nobody hears it");
    assert_eq!(error["data"]["reason"], "agent_exited");
    assert_eq!(client.end().await, ProxyEnd::ByAgent(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_started_goes_with_it() {
    let world = hasty("");
    let client = script(&world, "sleep 600 & echo $! > started; wait");
    let started = world.wait_for_file("project/started", "").await;
    assert!(is_running(&started));
    client.hang_up().await;
    until_gone(&started).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_ends_its_turn_with_an_error() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let text = json!([{ "type": "text", "text": format!("huge {}", 65 << 20) }]);
    let error = client.ask("session/prompt", json!({ "sessionId": session, "prompt": text })).await;
    assert_eq!(error.expect_err("it cannot be passed on")["data"]["reason"], "too_long");
    let point = client.points(&session).await[0]["messageId"].clone();
    let wish = json!({ "sessionId": session, "beforeMessageId": point, "interrupt": false });
    client.ask("_session/rewind", wish).await.expect("no turn runs");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_stopped_does_not_keep_it_for_long_and_nothing_is_lost() {
    let world = World::new("");
    for in_a_turn in [false, true] {
        let mut client = world.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "say one").await;
        let stop = "say two\nshell echo $PPID > agent; kill -STOP $PPID";
        match in_a_turn {
            true => {
                let text = json!([{ "type": "text", "text": stop }]);
                client.send("session/prompt", json!({ "sessionId": session, "prompt": text })).await;
                client.wait(|message| message["params"]["update"]["content"]["text"] == "two").await;
            }
            false => drop(client.prompt(&session, "shell echo $PPID > agent").await),
        }
        let agent = world.wait_for_file("project/agent", "").await;
        if !in_a_turn {
            kill(&agent, "STOP");
        }
        let began = Instant::now();
        assert_eq!(client.hang_up().await, ProxyEnd::ByClient);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(8), "editors do not wait for so long: {took:?}");
        until_gone(&agent).await;
        std::fs::remove_file(world.project().join("agent")).expect("it was there");
        // The log is complete, and nobody holds it.
        let mut client = world.client().await;
        client.load(&session).await.expect("it is loaded");
        let said: Vec<String> = client.said().into_iter().map(|(_, _, text)| text).collect();
        assert!(
            said.iter().any(|text| text == "one") && (!in_a_turn || said.iter().any(|text| text == "two")),
            "{said:?}"
        );
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_has_something_to_save_can() {
    let world = World::new("");
    for script in [
        "cat > /dev/null; sleep 0.5; echo x > saved",
        "trap 'sleep 0.2; echo x > saved; exit' TERM; echo x > up; while :; do sleep 0.1; done",
    ] {
        let client = self::script(&world, script);
        if script.starts_with("trap") {
            world.wait_for_file("project/up", "").await;
        }
        client.hang_up().await;
        world.wait_for_file("project/saved", "").await;
        std::fs::remove_file(world.project().join("saved")).expect("it was there");
    }
}

fn kill(process: &str, signal: &str) {
    let killed = std::process::Command::new("kill").args(["-s", signal, process]).status();
    assert!(killed.expect("it runs").success());
}
