//! MCP servers, small but real.

use std::collections::BTreeMap;

use retake_agent::mcp::{ServerSettings, Servers, StartError};
use retake_agent::tool::{Access, Jobs, Output, Shell, Toolbox};
use retake_engine::session::entry::{Outcome, Part};
use serde_json::json;

use super::bench::{Bench, is_alive, until, within};

/// Answers on standard input and output, one JSON document a line.
const SERVER: &str = r#"
import json, os, subprocess, sys
def say(id, **body): print(json.dumps({"jsonrpc": "2.0", "id": id, **body}), flush=True)
open("server.id", "w").write(str(os.getpid()) + "\n")
child = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
open("child.id", "w").write(str(child.pid) + "\n")
tools = [
    {"name": "echo", "description": "Says it again.", "annotations": {"readOnlyHint": True},
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "odd.name", "inputSchema": {"type": "object"}},
]
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        say(m["id"], result={"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}},
                             "serverInfo": {"name": "t", "version": "1"}})
    elif m.get("method") == "tools/list":
        say(m["id"], result={"tools": tools})
    elif m.get("method") == "tools/call":
        name, args = m["params"]["name"], m["params"].get("arguments", {})
        if name == "echo" and args.get("text") == "many":
            say(m["id"], result={"content": [{"type": "text", "text": "x" * 300000}]})
        elif name == "echo" and args.get("text") == "bad":
            say(m["id"], error={"code": -32602, "message": "no such text"})
        elif name == "echo":
            say(m["id"], result={"content": [{"type": "text", "text": args["text"]},
                                             {"type": "image", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "mimeType": "image/png"}]})
        elif name == "hang":
            open("called", "w").write("yes\n")
        elif name == "die":
            print("I cannot go on", file=sys.stderr, flush=True)
            sys.exit(3)
        elif name == "odd.name":
            say(m["id"], result={"content": [{"type": "text", "text": "it failed"}], "isError": True})
    elif m.get("method") == "notifications/cancelled":
        open("cancelled", "w").write("yes\n")
"#;

fn python(script: &str) -> ServerSettings {
    serde_json::from_value(json!({
        "command": "python3", "args": ["-c", script], "env": { "SET": "yes" }, "start_timeout_seconds": 600,
    }))
    .unwrap()
}

async fn start(bench: &Bench, settings: &[(&str, ServerSettings)]) -> (Servers, Vec<StartError>) {
    let settings: BTreeMap<String, ServerSettings> =
        settings.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone())).collect();
    within(Servers::start(&settings, &bench.root(), &Shell::default())).await
}

async fn toolbox(bench: &Bench, settings: ServerSettings) -> Toolbox {
    let (servers, failures) = start(bench, &[("t", settings)]).await;
    assert!(failures.is_empty(), "{failures:?}");
    Toolbox::new(&bench.root(), Shell::default(), Jobs::new().0).with_servers(servers)
}

async fn call(bench: &Bench, toolbox: &Toolbox, tool: &str, arguments: serde_json::Value) -> Output {
    let prepared = toolbox.prepare(tool, &arguments.to_string()).ok().unwrap();
    within((prepared.run)(bench.surroundings().0)).await
}

fn id_in(bench: &Bench, name: &str) -> u32 {
    String::from_utf8(bench.content(name)).unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn tools_of_a_server_are_offered_and_called() {
    let bench = Bench::new();
    let toolbox = toolbox(&bench, python(SERVER)).await;
    let specs = toolbox.specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).skip(13).collect();
    assert_eq!(names, ["t__die", "t__echo", "t__hang", "t__odd_name"]);
    assert_eq!(specs[14].schema["required"], json!(["text"]));
    let output = call(&bench, &toolbox, "t__echo", json!({ "text": "hello" })).await;
    let image = Part::Image { media_type: "image/png".to_owned(), data: crate::answers::PIXEL.to_owned() };
    assert_eq!((output.outcome, output.parts), (Outcome::Done, vec![Part::text("hello"), image]));
    let output = call(&bench, &toolbox, "t__odd_name", json!({})).await;
    assert_eq!((output.outcome, output.text().as_str()), (Outcome::Failed, "it failed"));
    let output = call(&bench, &toolbox, "t__echo", json!({ "text": "bad" })).await;
    assert!(output.text().contains("refused: no such text"), "{output:?}");
    let output = call(&bench, &toolbox, "t__echo", json!({ "text": "many" })).await;
    assert!(output.text().len() < 101_000 && output.text().contains("200000 bytes left out"));
    let told = toolbox.prepare("t__echo", "[1]").err().unwrap().text();
    assert!(told.contains("JSON object with `text`"), "{told}");
    toolbox.shutdown().await;
}

#[tokio::test]
async fn only_a_trusted_server_is_believed_that_a_tool_reads() {
    let bench = Bench::new();
    for (trust, wanted) in [(false, Access::Unknown), (true, Access::Reads)] {
        let toolbox = toolbox(&bench, ServerSettings { trust, ..python(SERVER) }).await;
        assert_eq!(toolbox.prepare("t__echo", r#"{"text":"x"}"#).ok().unwrap().access, wanted);
        assert_eq!(toolbox.prepare("t__die", "").ok().unwrap().access, Access::Unknown);
        toolbox.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_a_warning_and_the_others_are_there() {
    let bench = Bench::new();
    let crashing = python("import sys; sys.stderr.write('no config\\n'); sys.exit(1)");
    // Only this one is waited for in vain: how long the others take to start is the machine's affair.
    let hanging = ServerSettings { start_timeout_seconds: 1, ..python("import time; time.sleep(1000)") };
    let missing = ServerSettings { command: "no-such-program".to_owned(), ..python("") };
    let all = [("crashes", crashing), ("good", python(SERVER)), ("hangs", hanging), ("missing", missing)];
    let (servers, failures) = start(&bench, &all).await;
    let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(told[0].contains("`crashes`") && told[0].contains("no config"), "{told:?}");
    assert!(told[1].contains("`hangs`") && told[1].contains("no answer within 1 s"), "{told:?}");
    assert!(told[2].contains("`missing` cannot be started"), "{told:?}");
    let toolbox = Toolbox::new(&bench.root(), Shell::default(), Jobs::new().0).with_servers(servers);
    assert_eq!(call(&bench, &toolbox, "good__echo", json!({ "text": "x" })).await.outcome, Outcome::Done);
    toolbox.shutdown().await;
}

#[tokio::test]
async fn the_warning_has_what_a_server_writes_while_it_dies() {
    let bench = Bench::new();
    // Its standard input ends when the conversation has been given up.
    let late = python("import os, sys; os.close(1); sys.stdin.read(); sys.stderr.write('no config\\n'); sys.exit(1)");
    let (_, failures) = start(&bench, &[("late", late)]).await;
    assert!(failures[0].to_string().contains("no config"), "{failures:?}");
}

#[tokio::test]
async fn a_server_that_dies_or_hangs_costs_the_call_alone() {
    let bench = Bench::new();
    let hasty = toolbox(&bench, ServerSettings { timeout_seconds: 1, ..python(SERVER) }).await;
    let output = call(&bench, &hasty, "t__hang", json!({})).await;
    assert!(output.text().contains("no answer within 1 s"), "{output:?}");
    hasty.shutdown().await;
    // How long it takes to die is the machine's affair.
    let toolbox = toolbox(&bench, python(SERVER)).await;
    let output = call(&bench, &toolbox, "t__die", json!({})).await;
    assert_eq!(output.outcome, Outcome::Failed);
    assert!(output.text().contains("is gone"), "{output:?}");
    let output = call(&bench, &toolbox, "t__echo", json!({ "text": "x" })).await;
    assert!(output.text().contains("is gone") && output.text().contains("I cannot go on"), "{output:?}");
    toolbox.shutdown().await;
}

#[tokio::test]
async fn an_interrupted_call_is_cancelled_at_the_server() {
    let bench = Bench::new();
    let toolbox = toolbox(&bench, python(SERVER)).await;
    let running = tokio::spawn((toolbox.prepare("t__hang", "{}").ok().unwrap().run)(bench.surroundings().0));
    until("the server is at it", || bench.root().join("called").exists()).await;
    bench.interrupt.send_replace(true);
    assert_eq!(within(running).await.unwrap().outcome, Outcome::Interrupted);
    until("the server was told", || bench.root().join("cancelled").exists()).await;
    toolbox.shutdown().await;
}

#[tokio::test]
async fn a_server_ends_with_all_it_started() {
    let bench = Bench::new();
    for end in ["shutdown", "drop"] {
        let toolbox = toolbox(&bench, python(SERVER)).await;
        let (server, child) = (id_in(&bench, "server.id"), id_in(&bench, "child.id"));
        assert!(is_alive(server) && is_alive(child));
        match end {
            "shutdown" => toolbox.shutdown().await,
            _ => drop(toolbox),
        }
        until("both are gone", || !is_alive(server) && !is_alive(child)).await;
    }
}
