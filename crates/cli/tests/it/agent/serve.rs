//! `retake serve`: the page's server as a user starts, stops and kills it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Agent;

/// A server, and a browser that is signed in.
pub(crate) struct Served {
    child: Child,
    pub(crate) browser: Browser,
    started: Value,
}

impl Served {
    fn start<const N: usize>(agent: &Agent, args: [&str; N]) -> Self {
        Self::start_with(agent.command(), args)
    }

    /// With this `retake`.
    pub(crate) fn start_with<const N: usize>(mut command: Command, args: [&str; N]) -> Self {
        let mut child = command.args(["serve", "--json"]).args(args).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output is ours");
        BufReader::new(out).read_line(&mut line).expect("it says where it is");
        let started: Value = serde_json::from_str(&line).unwrap_or_else(|err| panic!("{err}: {line}"));
        let browser = Browser::sign_in(started["url"].as_str().expect("an address"));
        Self { child, browser, started }
    }

    fn port(&self) -> String {
        self.started["port"].to_string()
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        self.child.wait().expect("it ends").code()
    }
}

/// A server must not outlive its test: it would keep what it inherited, a lock of the test run included.
impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// As much of a browser as is needed here.
pub(crate) struct Browser {
    host: String,
    cookie: String,
}

impl Browser {
    /// Follows an address that was printed.
    pub(crate) fn sign_in(url: &str) -> Self {
        let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        let mut browser = Self { host: host.to_owned(), cookie: String::new() };
        let (head, _) = browser.send("GET", &format!("/{path}"), "");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("it lets us in");
        browser.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        browser
    }

    fn send(&self, method: &str, path: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        let (host, cookie, length) = (&self.host, &self.cookie, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nX-Retake: 1\r\nCookie: {cookie}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (head, body) = self.send("GET", path, "");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        serde_json::from_str(&body).expect("a document")
    }

    pub(crate) fn command(&self, session: &str, command: &Value) -> Value {
        let body = json!({"id": "some-request", "command": command}).to_string();
        let (head, body) = self.send("POST", &format!("/api/sessions/{session}/commands"), &body);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        serde_json::from_str(&body).expect("a document")
    }
}

#[test]
fn a_session_of_the_command_line_goes_on_in_the_browser_and_after_the_server_was_killed() {
    let agent = Agent::new();
    agent.model.says("Hello.");
    let session = agent.turn("hi", [])["session"].as_str().expect("an id").to_owned();
    let served = Served::start(&agent, ["--port", "0"]);
    assert!(served.started["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")));
    let listed = served.browser.get("/api/sessions");
    assert_eq!((&listed["sessions"][0]["title"], &listed["sessions"][0]["live"]), (&json!("hi"), &json!(false)));
    let context = served.browser.command(&session, &json!({"type": "context"}));
    assert!(context["ok"]["body"].as_str().is_some_and(|body| body.contains("Hello.")));
    // The command line goes to the process that has it open now.
    agent.model.says("Again.");
    agent.turn("and again", ["--session", &session]);
    assert_eq!(served.browser.get("/api/sessions")["sessions"][0]["prompts"], 2);
    let (port, cookie) = (served.port(), served.browser.cookie.clone());
    assert_eq!(served.end(Signal::KILL), None);
    let again = Served::start(&agent, ["--port", &port]);
    let tab = Browser { host: again.browser.host.clone(), cookie };
    let targets = tab.command(&session, &json!({"type": "targets"}));
    assert_eq!(targets["ok"]["targets"].as_array().map(Vec::len), Some(2), "{targets}");
    assert_eq!(again.end(Signal::TERM), Some(0));
    assert_eq!(agent.json(["sessions"])["sessions"][0]["live"], false);
}

#[test]
fn a_port_that_is_taken_is_said_and_the_usual_one_makes_way() {
    let agent = Agent::new();
    let served = Served::start(&agent, []);
    agent.retake(["serve", "--port", &served.port()]).fails(1).says("cannot listen on").says("`--port 0`");
    let second = Served::start(&agent, []);
    assert_ne!(second.port(), served.port());
    assert_eq!((served.end(Signal::INT), second.end(Signal::HUP)), (Some(0), Some(0)));
}

#[test]
fn a_second_server_of_the_same_directory_says_where_the_first_is() {
    let agent = Agent::new();
    let served = Served::start(&agent, []);
    let mut command = agent.command();
    command.args(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("its output is ours")).read_line(&mut line).expect("an address");
    drop(Browser::sign_in(line.trim()));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut said = String::new();
    child.stderr.take().expect("its words are ours").read_to_string(&mut said).expect("it says something");
    child.wait().expect("it ends");
    assert!(said.contains(&format!("shows this directory already, at http://127.0.0.1:{}", served.port())), "{said}");
    assert_eq!(served.end(Signal::INT), Some(0));
}

#[test]
fn without_a_model_it_says_how_to_set_one() {
    let agent = Agent::new();
    let mut command = agent.command();
    let run = crate::sandbox::Run::of(
        command.env("RETAKE_MODEL", "").env("RETAKE_BASE_URL", "http://127.0.0.1:1").arg("serve"),
    );
    run.fails(2).says("no model is set");
}

#[test]
fn whoever_serves_other_machines_is_warned() {
    let agent = Agent::new();
    let mut command = agent.command();
    command.args(["serve", "--port", "0", "--host", "0.0.0.0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("its output is ours")).read_line(&mut line).expect("an address");
    drop(Browser::sign_in(line.trim()));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut said = String::new();
    child.stderr.take().expect("its words are ours").read_to_string(&mut said).expect("it says something");
    child.wait().expect("it ends");
    assert!(said.contains("WARNING: this server can be reached from other machines"), "{said}");
    assert!(said.contains("commands as you"), "{said}");
    assert!(said.contains("from another machine: the same with"), "{said}");
}
