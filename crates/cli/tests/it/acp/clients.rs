//! Clients that others wrote, from npm: the TypeScript SDK in both versions, and `acpx`.
//!
//! They are installed once, into the target directory. What cannot be installed fails the test with the reason.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use retake_testkit::acp::SDK;
use serde_json::json;

use crate::agent::Agent;

/// Newer clients want a newer Node than some systems have.
const PACKAGES: [&str; 3] = [SDK, "acpx@0.19.1", "node@22"];

/// Where the packages are.
fn installed() -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/acp-clients");
    let done = place.join("installed");
    let wanted = PACKAGES.join("\n");
    fs::create_dir_all(&place).expect("a directory below `target`");
    // Tests run in processes of their own, and the first to come here installs.
    let lock = File::create(place.join("lock")).expect("it can be written");
    lock.lock().expect("it can be locked");
    if fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return place;
    }
    fs::write(place.join("package.json"), "{}").expect("it can be written");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--silent", "--force"]).args(PACKAGES).current_dir(&place);
    let output = npm.output().unwrap_or_else(|error| panic!("npm is needed for the clients: {error}"));
    assert!(output.status.success(), "npm install: {}", String::from_utf8_lossy(&output.stderr));
    fs::write(done, wanted).expect("it can be written");
    place
}

/// Node, with the surroundings in which `retake` finds its model and its store.
fn node(agent: &Agent) -> Command {
    let retake = agent.command();
    let mut node = Command::new(installed().join("node_modules/.bin/node"));
    node.env_clear().current_dir(agent.sandbox.path("ws"));
    for (name, value) in retake.get_envs() {
        if let Some(value) = value {
            node.env(name, value);
        }
    }
    node.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    node
}

fn runs(mut command: Command) -> String {
    let output = command.output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}

fn sdk(version: u32) {
    let agent = Agent::new();
    for (name, text) in [("one", "1"), ("two", "2")] {
        agent.model.calls("write_file", json!({ "path": format!("{name}.txt"), "content": text }));
        agent.model.says("written");
    }
    agent.model.says("going on");
    let mut command = node(&agent);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/acp/sdk.mjs"))
        .arg(version.to_string())
        .arg(installed().join("node_modules/@agentclientprotocol/sdk"))
        .arg(agent.sandbox.path("ws"))
        .arg(env!("CARGO_BIN_EXE_retake"));
    assert_eq!(runs(command), "done\n");
    let sent = agent.model.last_request().text;
    assert!(sent.contains("write one") && sent.contains("go on") && !sent.contains("write two"), "{sent}");
    agent.model.assert_exhausted();
}

#[test]
fn the_typescript_sdk_drives_it_in_version_1() {
    sdk(1);
}

#[test]
fn the_typescript_sdk_drives_it_in_version_2() {
    sdk(2);
}

#[test]
fn acpx_drives_it() {
    let agent = Agent::new();
    agent.model.calls("write_file", json!({ "path": "a.txt", "content": "1" }));
    agent.model.says("written by acpx");
    let mut command = node(&agent);
    command
        .arg(installed().join("node_modules/acpx/dist/cli.js"))
        .args(["--agent", concat!(env!("CARGO_BIN_EXE_retake"), " acp"), "--approve-all", "--format", "json"])
        .arg("--cwd")
        .arg(agent.sandbox.path("ws"))
        .args(["exec", "write it"]);
    let wire = runs(command);
    assert!(wire.contains("\"stopReason\":\"end_turn\""), "{wire}");
    assert_eq!(fs::read_to_string(agent.sandbox.ws("a.txt")).expect("it was written"), "1");
    agent.model.assert_exhausted();
}
