//! `retake run` and everything around it, on a scripted model over real HTTP.

mod demo;
mod fork;
mod kill;
mod live;
pub(crate) mod serve;
mod shown;
mod signals;
mod summarize;

use std::process::Command;

use retake_testkit::model::ScriptedModel;
use retake_testkit::privilege::{give_to_nobody, run_as_nobody};
use serde_json::{Value, json};

use crate::sandbox::{Run, Sandbox};

/// A sandbox with a model.
pub(crate) struct Agent {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: ScriptedModel,
}

impl Agent {
    pub(crate) fn new() -> Self {
        Self { sandbox: Sandbox::new(), model: ScriptedModel::start() }
    }

    /// `retake`, with the model set, not yet started.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.sandbox.retake_command();
        command
            .env("RETAKE_MODEL", "anthropic/scripted")
            .env("RETAKE_BASE_URL", self.model.url())
            .env("XDG_RUNTIME_DIR", self.sandbox.path("home"));
        command
    }

    #[must_use = "say what was expected"]
    pub(crate) fn retake<const N: usize>(&self, args: [&str; N]) -> Run {
        Run::of(self.command().args(args))
    }

    /// Runs a turn that must succeed; returns its last line.
    pub(crate) fn turn<const N: usize>(&self, prompt: &str, more: [&str; N]) -> Value {
        let run = Run::of(self.command().args(["run", "--json", "--allow", "all", "-p", prompt]).args(more));
        last_line(&run.succeeds().stdout)
    }

    pub(crate) fn json<const N: usize>(&self, args: [&str; N]) -> Value {
        let run = Run::of(self.command().arg("--json").args(args)).succeeds();
        serde_json::from_slice(&run.stdout).expect("it is one JSON document")
    }
}

pub(crate) fn lines(stdout: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stdout).expect("JSON is text");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is a document")).collect()
}

pub(crate) fn last_line(stdout: &[u8]) -> Value {
    let last = lines(stdout).pop().expect("there is a last line");
    assert_eq!(last["type"], "turn_ended", "{last}");
    last
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is text")
}

#[test]
fn a_turn_prints_the_models_words_and_how_to_take_it_back() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.says("I will write it.").calls("write_file", json!({"path": "b.txt", "content": "two\n"}));
    agent.model.says("Done.");
    let run = agent.retake(["run", "-p", "write b"]).succeeds();
    assert_eq!(std::str::from_utf8(&run.stdout), Ok("I will write it.\nDone.\n"));
    run.says("write b.txt").says("`retake undo`");
    assert_eq!(std::fs::read(agent.sandbox.ws("b.txt")).expect("it was written"), b"two\n");
    agent.retake(["undo"]).succeeds();
    assert!(!agent.sandbox.ws("b.txt").exists());
    agent.model.assert_exhausted();
}

#[test]
fn the_last_line_of_json_tells_how_the_turn_ended_and_its_prompt_is_a_point() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.calls("bash", json!({"command": "echo two > a.txt"}));
    agent.model.says("Changed.");
    let ended = agent.turn("change a", []);
    assert_eq!((&ended["reason"], &ended["text"]), (&json!("done"), &json!("Changed.")));
    let prompt = text(&ended["prompt"]);
    let listed = agent.json(["log", "--session", text(&ended["session"])]);
    assert_eq!(listed["prompts"][0]["id"], prompt);
    assert_eq!(listed["prompts"][0]["files"]["modified"], 1);
    let rewound = agent.json(["rewind", &prompt[..8]]);
    assert_eq!((&rewound["applied"], &rewound["conversation_moved"]), (&json!(true), &json!(true)));
    assert_eq!(std::fs::read(agent.sandbox.ws("a.txt")).expect("it is there"), b"one\n");
    let resumed = agent.json(["resume"]);
    assert_eq!(resumed["draft"][0]["text"], "change a");
    agent.json(["undo"]);
    assert_eq!(std::fs::read(agent.sandbox.ws("a.txt")).expect("it is there"), b"two\n");
    assert_eq!(agent.json(["resume"])["text"], "Changed.");
}

#[test]
fn what_was_discarded_is_not_said_to_come_back() {
    let agent = Agent::new();
    agent.model.says("Two.");
    agent.turn("two", []);
    agent.model.says("Three.");
    let ended = agent.turn("three", ["--continue"]);
    let told = |run: Run| {
        let run = run.succeeds();
        format!("{}{}", String::from_utf8_lossy(&run.stdout), run.stderr)
    };
    let rewound = told(agent.retake(["rewind", text(&ended["prompt"]), "--discard"]));
    assert!(rewound.contains("removed for good") && !rewound.contains("`retake undo`"), "{rewound}");
    let operations = || agent.json(["ops"])["operations"].clone();
    let before = operations();
    let refused = agent.retake(["undo"]).fails(3);
    refused.says("removed for good").says("`retake undo OP`");
    assert_eq!(operations(), before, "nothing is marked undone that was not");
    let two = text(&before[2]["id"]).to_owned();
    assert!(told(agent.retake(["undo", &two])).contains("Undid turn two"));
}

#[test]
fn of_a_discarding_rewind_the_files_are_undone_and_the_rest_is_said_to_be_final() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.calls("bash", json!({"command": "echo two > a.txt"}));
    agent.model.says("Changed.");
    let ended = agent.turn("change a", []);
    agent.retake(["rewind", text(&ended["prompt"]), "--discard"]).succeeds();
    let run = agent.retake(["undo"]).succeeds();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(said.contains("1 restored") && said.contains("was removed for good"), "{said}");
    assert_eq!(agent.sandbox.read("a.txt"), "two\n");
    agent.retake(["redo"]).succeeds();
    assert_eq!(agent.sandbox.read("a.txt"), "one\n");
}

#[test]
fn prompts_have_numbers_that_commands_take() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    for (prompt, more) in [("first", &[][..]), ("second", &["--continue"]), ("third", &["--continue"])] {
        agent.model.calls("bash", json!({"command": format!("echo {prompt} > a.txt")}));
        agent.model.says("Changed.");
        let run = Run::of(agent.command().args(["run", "--allow", "all", "-p", prompt]).args(more));
        run.succeeds();
    }
    let log = agent.retake(["log"]).text();
    let rows: Vec<&str> = log.lines().collect();
    assert!(rows[0].contains("  3  ") && rows[0].contains("third") && rows[2].contains("  1  "), "{log}");
    let numbers = agent.json(["log"])["checkpoints"].clone();
    assert_eq!((&numbers[0]["prompt"]["number"], &numbers[2]["prompt"]["number"]), (&json!(3), &json!(1)), "{numbers}");
    let session = agent.json(["sessions"])["sessions"][0]["id"].as_str().expect("text").to_owned();
    let listed = agent.retake(["log", "--session", &session]).text();
    assert!(listed.lines().next().is_some_and(|row| row.contains("  3  ") && row.contains("third")), "{listed}");
    assert_eq!(agent.retake(["show", "2:a.txt"]).text(), "first\n");
    assert!(agent.retake(["diff", "2", "3", "--name-only"]).text().contains("a.txt"));
    agent.retake(["rewind", "9", "--yes"]).fails(1).says("there is no");
    agent.retake(["rewind", "3", "--yes"]).succeeds();
    assert_eq!(agent.sandbox.read("a.txt"), "second\n");
    agent.retake(["rewind", "3", "--yes"]).fails(1);
    agent.model.says("Another.");
    agent.turn("elsewhere", []);
    agent.retake(["rewind", "1", "--yes"]).fails(3).says("2 sessions have a prompt 1").says("--session");
    assert_eq!(agent.sandbox.read("a.txt"), "second\n");
    agent.retake(["label", "2", "1"]).succeeds();
    agent.retake(["rewind", "1", "--yes", "--session", &session]).fails(3).says("`1` could be");
    agent.retake(["rewind", "2", "--yes", "--session", &session]).succeeds();
    assert_eq!(agent.sandbox.read("a.txt"), "first\n");
}

#[test]
fn a_command_of_exec_inside_a_command_of_the_agent_belongs_to_the_turn() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    let exec = format!("{} exec -- sh -c 'echo two > a.txt; echo new > b.txt'", env!("CARGO_BIN_EXE_retake"));
    agent.model.calls("bash", json!({"command": format!("echo c > c.txt; {exec}; echo d > d.txt")}));
    agent.model.says("Done.");
    agent.turn("nest", []);
    let operations = agent.json(["ops"]);
    assert_eq!(operations["operations"].as_array().map(Vec::len), Some(1), "{operations}");
    agent.retake(["undo"]).succeeds();
    assert_eq!(agent.sandbox.read("a.txt"), "one\n");
    assert!(["b.txt", "c.txt", "d.txt"].iter().all(|name| !agent.sandbox.ws(name).exists()));
}

#[test]
fn commands_do_not_get_what_may_have_a_key_in_it() {
    let agent = Agent::new();
    let url = agent.model.url().replace("://", "://me:URLPASSWORD@");
    agent.model.calls("bash", json!({"command": "env"}));
    agent.model.says("Seen.");
    let mut command = agent.command();
    command.env("RETAKE_BASE_URL", url).env("ANTHROPIC_API_KEY", "sk-secret");
    let run = Run::of(command.args(["run", "--json", "--allow", "all", "-p", "look"])).succeeds();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(told.contains("RETAKE_TURN=") && !told.contains("URLPASSWORD") && !told.contains("sk-secret"), "{told}");
}

#[test]
fn an_ordinary_users_command_finds_no_key_in_any_process_of_retake() {
    let agent = Agent::new();
    let s = &agent.sandbox;
    Run::of(s.command("cp").arg(env!("CARGO_BIN_EXE_retake")).arg(s.path("retake"))).succeeds();
    give_to_nobody(&s.path(""));
    // The workspace thread is a process of Retake's too, and the command's own environment is among those that are read.
    // Other programs on the machine may have keys of their own.
    let key = format!("sk-of-test-{}", std::process::id());
    let look = "cat /proc/$PPID/environ 2>&1; env | grep KEY; for e in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $e; done 2>/dev/null | \
                grep -E 'sk-of-test|RETAKE_TURN'; cat /proc/$PPID/mem 2>&1 | head -c 100";
    agent.model.calls("bash", json!({"command": look}));
    agent.model.says("Seen.");
    let mut command = s.command(s.path("retake"));
    command.env("RETAKE_MODEL", "anthropic/scripted").env("RETAKE_BASE_URL", agent.model.url());
    command.env("ANTHROPIC_API_KEY", &key).env("XDG_RUNTIME_DIR", s.path("home"));
    command.args(["run", "--json", "--allow", "all", "-p", "look"]);
    let run = Run::of(&mut run_as_nobody(command)).succeeds();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(told.contains("environ: Permission denied") && told.contains("RETAKE_TURN="), "{told}");
    assert!(!told.contains(&key) && !told.contains("API_KEY="), "{told}");
    assert_eq!(agent.model.last_request().header("x-api-key"), Some(key.as_str()), "the model is asked with it");
}

#[test]
fn a_command_of_exec_gets_the_whole_environment() {
    let s = Sandbox::new();
    let run = Run::of(s.retake_command().env("ANTHROPIC_API_KEY", "mine").args([
        "exec",
        "--",
        "printenv",
        "ANTHROPIC_API_KEY",
    ]));
    assert_eq!(run.text(), "mine\n");
}

/// Characters that a terminal obeys, and one that reverses the direction of writing.
const DECEPTIVE: &str = "a\u{9b}2J\u{202e}b\u{85}\u{7f}\u{feff}\u{e0041}";

#[test]
fn nothing_that_a_terminal_obeys_is_printed_and_json_means_the_same() {
    let agent = Agent::new();
    agent.model.says(DECEPTIVE);
    agent.turn(DECEPTIVE, []);
    for args in [["context"].as_slice(), &["export", "--jsonl"], &["log", "--json"], &["resume", "--json"], &["log"]] {
        let run = Run::of(agent.command().args(args)).succeeds();
        let told = String::from_utf8(run.stdout).expect("it is text") + &run.stderr;
        let deceptive: Vec<char> = told.chars().filter(|c| DECEPTIVE.contains(*c) && *c > '~').collect();
        assert!(deceptive.is_empty(), "{args:?}: {told:?}");
        assert!(told.contains("u202e") || told.contains("u{202e}"), "{args:?}: {told:?}");
    }
    let context: Value = serde_json::from_str(&agent.retake(["context"]).text()).expect("it is JSON");
    assert!(context.to_string().contains(DECEPTIVE), "nothing is lost");
    let lines = agent.retake(["export", "--jsonl"]).text();
    assert!(
        lines.lines().any(|line| serde_json::from_str::<Value>(line).expect("JSON").to_string().contains(DECEPTIVE))
    );
    for args in [["show", DECEPTIVE].as_slice(), &[DECEPTIVE], &["rewind", DECEPTIVE, "--json"], &[DECEPTIVE, "--json"]]
    {
        let run = Run::of(agent.command().args(args));
        let told = String::from_utf8_lossy(&run.stdout).into_owned() + &run.stderr;
        assert_ne!(run.code(), Some(0));
        assert!(!told.contains(|c| DECEPTIVE.contains(c) && c > '~') && told.contains("202e"), "{args:?}: {told:?}");
    }
}

#[test]
fn what_context_prints_is_what_the_model_is_sent_next() {
    let agent = Agent::new();
    agent.model.says("Hello.");
    agent.turn("hello", []);
    let context = agent.retake(["context"]).text();
    agent.model.says("Again.");
    agent.turn("again", ["--continue"]);
    let sent = agent.model.last_request();
    let messages = |body: &Value| body["messages"].as_array().expect("messages").clone();
    let context: Value = serde_json::from_str(&context).expect("it is JSON");
    let (told, next) = (messages(&context), messages(sent.body()));
    assert_eq!(told.len() + 1, next.len());
    assert_eq!((&context["tools"], &context["system"]), (&sent.body()["tools"], &sent.body()["system"]));
}

#[test]
fn without_a_model_it_says_how_to_set_one() {
    let agent = Agent::new();
    let run = Run::of(agent.sandbox.retake_command().args(["run", "-p", "hi"])).fails(2);
    run.says("ANTHROPIC_API_KEY").says("--base-url");
    Run::of(agent.sandbox.retake_command().args(["run", "-p", "hi", "--model", "anthropic/x"]))
        .fails(1)
        .says("export ANTHROPIC_API_KEY");
    Run::of(agent.sandbox.retake_command().args(["run", "-p", "hi", "--model", "claude"])).fails(2).says("openai/NAME");
}

#[test]
fn a_model_that_cannot_be_reached_leaves_nothing_said() {
    let agent = Agent::new();
    let url = ScriptedModel::refusing_url();
    let run = Run::of(agent.command().env("RETAKE_BASE_URL", &url).args(["run", "-p", "hi"])).fails(1);
    run.says("cannot").says("start the local server");
    assert_eq!(agent.json(["resume"])["draft"][0]["text"], "hi");
}

#[test]
fn a_conversation_can_be_exported_and_deleted() {
    let agent = Agent::new();
    agent.model.says("Hello.");
    let ended = agent.turn("hello", []);
    let session = text(&ended["session"]);
    let exported = lines(&agent.retake(["export", "--jsonl"]).succeeds().stdout);
    let types: Vec<&str> = exported.iter().map(|entry| text(&entry["type"])).collect();
    assert_eq!(types, ["instructions", "prompt", "reply", "ended"]);
    agent.retake(["sessions", "rm", session]).fails(3).says("--yes");
    assert_eq!(agent.json(["sessions"])["sessions"][0]["title"], "hello");
    agent.retake(["sessions", "rm", session, "--yes"]).succeeds();
    assert_eq!(agent.json(["sessions"])["sessions"], json!([]));
}

#[test]
fn what_is_not_allowed_is_told_to_the_model_and_to_the_user() {
    let agent = Agent::new();
    agent.model.calls("bash", json!({"command": "touch x"}));
    agent.model.says("I may not.");
    agent.retake(["run", "-p", "touch x"]).succeeds().says("not allowed: bash: touch x");
    assert!(agent.model.last_request().transcript().contains("--allow edits"));
    assert!(!agent.sandbox.ws("x").exists());
}

#[test]
fn a_branch_that_was_left_behind_is_shown_as_one() {
    let agent = Agent::new();
    agent.model.says("One.");
    let first = agent.turn("first", []);
    agent.model.says("Two.");
    let second = agent.turn("second", ["--continue"]);
    agent.retake(["rewind", &text(&second["prompt"])[..8], "--conversation"]).succeeds();
    agent.model.says("Three.");
    agent.turn("third", ["--continue"]);
    let session = text(&first["session"]);
    let listed = |more: &str| {
        let run = Run::of(agent.command().args(["log", "--session", session, more])).text();
        let texts = run.lines().map(|line| line.split_whitespace().last().expect("words").to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(listed("--no-pager"), ["third", "first"]);
    assert_eq!(listed("--all"), ["third", "behind", "first"]);
    let graph = agent.retake(["log", "--graph"]).text();
    let marks: Vec<&str> = graph.lines().map(|line| &line[..3]).collect();
    assert_eq!(marks, ["*  ", "| o", "*  "], "{graph}");
}

#[test]
fn a_rewind_names_the_prompts_left_before_whose_files_go_back() {
    let agent = Agent::new();
    let script = |name: &str| {
        agent.model.calls("bash", json!({"command": format!("echo 1 > {name}")}));
        agent.model.says("Done.");
    };
    let id = |ended: Value| text(&ended["prompt"])[..8].to_owned();
    script("a");
    let first = id(agent.turn("write a", []));
    script("b");
    let second = id(agent.turn("write b", ["--continue"]));
    agent.retake(["rewind", &second, "--conversation"]).succeeds();
    script("c");
    agent.turn("write c", ["--continue"]);
    let heading = "Files of these prompts, which left the conversation earlier, go back too:\n";
    let listed = format!("{heading}  {second}  write b\n");
    for scope in ["--both", "--code"] {
        let plan = agent.retake(["rewind", &first, scope, "--dry-run"]).text();
        assert!(plan.contains(&listed), "{scope}: {plan}");
    }
    let plan = agent.retake(["rewind", &first, "--conversation", "--dry-run"]).text();
    assert!(!plan.contains(heading), "{plan}");
    let document = agent.json(["rewind", &first]);
    assert_eq!(document["conversation"]["left_before"][0]["text"], "write b", "{document}");
    assert!(!agent.sandbox.ws("b").exists());
}

#[test]
fn a_log_without_retained_prompts_names_the_way_to_those_that_were_left_behind() {
    let agent = Agent::new();
    agent.retake(["log"]).succeeds().says("No checkpoints here yet");
    agent.model.says("One.");
    let first = agent.turn("first", []);
    agent.retake(["rewind", &text(&first["prompt"])[..8]]).succeeds();
    let session = text(&first["session"]);
    for args in [vec!["log"], vec!["log", "--session", session]] {
        let run = Run::of(agent.command().args(args)).succeeds();
        assert!(run.stdout.is_empty());
        run.says("to list. `--all` lists also those that rewinds left behind");
    }
    assert!(agent.retake(["log", "--all"]).text().contains("> first"));
    assert!(agent.retake(["log", "--session", session, "--all"]).text().contains("first"));
}

#[test]
fn prompts_are_found_by_their_words_and_by_the_files_they_changed() {
    let agent = Agent::new();
    agent.model.calls("write_file", json!({"path": "src/Widget.rs", "content": "x\n"}));
    agent.model.says("Written.");
    let first = agent.turn("make a thing", []);
    agent.model.says("Hello.");
    agent.turn("Greet me", ["--continue"]);
    let session = text(&first["session"]);
    let found = |query: &str| {
        let listed = agent.json(["log", "--session", session, "--search", query]);
        let prompts = listed["prompts"].as_array().expect("a list").clone();
        prompts.iter().map(|prompt| text(&prompt["text"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("widget"), ["make a thing"]);
    assert_eq!(found("greet"), ["Greet me"]);
    assert_eq!(found("nothing of the kind"), Vec::<String>::new());
    let log = agent.retake(["log"]).text();
    assert!(log.contains("> make a thing"), "{log}");
}
