//! SIGKILL at random moments of a turn and of a rewind: the session opens, no entry is half-written, files and conversation agree.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fs;
use std::process::Command;

use retake_testkit::model::{Answer, Received, ScriptedModel};
use retake_testkit::{Killer, cases};
use serde_json::{Value, json};

use super::{Agent, lines, text};
use crate::sandbox::Sandbox;

/// Unless the environment says otherwise.
const KILLS: u32 = 12;
const BATCH: u32 = 10;
/// Fewer come in time only if something is wrong.
const KILLS_PER_BATCH: u32 = 1;

/// A model that changes files in two ways and then stops, whatever it is asked.
fn busy_model() -> ScriptedModel {
    ScriptedModel::answering(|request: &Received| {
        let transcript = request.transcript();
        let results = transcript
            .lines()
            .rev()
            .take_while(|line| !line.starts_with("user: "))
            .filter(|line| line.starts_with("tool"))
            .count();
        match results {
            0 => Answer::default()
                .says("First the shell.")
                .calls("bash", json!({"command": "for n in 1 2 3 4 5; do echo turn > s$n.txt; done; rm -f old.txt; mv keep.txt kept.txt"})),
            1 => Answer::default().calls("write_file", json!({"path": "dir/w.txt", "content": "turn\n"})),
            _ => Answer::default().says("Done."),
        }
    })
}

fn world() -> Agent {
    let agent = Agent { sandbox: Sandbox::in_memory(), model: busy_model() };
    agent.sandbox.write("old.txt", "old\n").write("keep.txt", "keep\n").write("s1.txt", "one\n");
    agent
}

fn files(agent: &Agent) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![agent.sandbox.path("ws")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("it can be listed").map(|entry| entry.expect("it can be listed").path())
        {
            if entry.is_dir() {
                pending.push(entry);
            } else {
                found.insert(entry.display().to_string(), fs::read(&entry).expect("it can be read"));
            }
        }
    }
    found
}

/// Opens the session and checks that what is in it makes sense; returns how many prompts there are.
fn prompts(agent: &Agent) -> u64 {
    let resumed = agent.json(["resume"]);
    let entries = lines(&agent.retake(["export", "--jsonl"]).succeeds().stdout);
    let mut parent = Value::Null;
    let mut open: HashSet<String> = HashSet::new();
    for entry in &entries {
        assert_eq!(entry["parent"], parent, "{entry}");
        parent = entry["id"].clone();
        match text(&entry["type"]) {
            "reply" => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                let blocks = entry["blocks"].as_array().expect("blocks");
                open = blocks
                    .iter()
                    .filter(|block| block["type"] == "call")
                    .map(|block| text(&block["id"]).to_owned())
                    .collect();
            }
            "tool_result" => assert!(open.remove(text(&entry["call"])), "a result without a call: {entry}"),
            _ => assert!(open.is_empty(), "calls without results: {open:?}"),
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
    resumed["prompts"].as_u64().expect("a number")
}

/// How many entries are retained. Opens nothing.
fn entries(agent: &Agent) -> usize {
    lines(&agent.retake(["export", "--jsonl"]).succeeds().stdout).len()
}

#[test]
fn a_turn_that_was_killed_can_be_taken_back_and_tried_again() {
    let agent = world();
    agent.turn("to begin with", []);
    let (before, said) = (files(&agent), prompts(&agent));
    let entries_before = entries(&agent);
    let (kills, mut killed, mut batches, mut begun, mut not_begun) = (cases(KILLS), 0, 0, 0, 0);
    while killed < kills || begun == 0 {
        let so_far = format!("{killed} kills came in time, {begun} turns had begun, {not_begun} had not");
        assert!(batches < u64::from(kills / KILLS_PER_BATCH), "only {so_far}");
        batches += 1;
        let command = || -> Command {
            take_back(&agent, &before, said);
            let mut command = agent.command();
            command.args(["run", "--continue", "--allow", "all", "-p", "once more"]);
            command
        };
        killed += Killer::new(command).at_random(BATCH, batches, |run, _| {
            if run % 4 == 0 && entries(&agent) > entries_before {
                // Without looking first: undoing puts in order what it takes back.
                agent.retake(["undo"]).succeeds();
            }
            if prompts(&agent) > said {
                begun += 1
            } else {
                not_begun += 1
            }
            take_back(&agent, &before, said);
        });
    }
    take_back(&agent, &before, said);
    agent.turn("and again", ["--continue"]);
    assert_eq!(prompts(&agent), said + 1);
}

/// Takes the last turn back, if it had begun, and checks that nothing of it is left.
fn take_back(agent: &Agent, before: &BTreeMap<String, Vec<u8>>, said: u64) {
    while prompts(agent) > said {
        agent.retake(["undo"]).succeeds();
    }
    assert_eq!(&files(agent), before, "files and conversation go back together");
}

#[test]
fn a_rewind_of_both_that_was_killed_is_done_or_not_done() {
    let agent = world();
    let zero = files(&agent);
    let first = agent.turn("to begin with", []);
    let one = files(&agent);
    let prompt = text(&first["prompt"]).to_owned();
    let (kills, mut killed, mut batches, mut done, mut not_done) = (cases(KILLS), 0, 0, 0, 0);
    while killed < kills || done == 0 || not_done == 0 {
        let so_far = format!("{killed} kills came in time, {done} rewinds were done, {not_done} were not");
        assert!(batches < u64::from(kills / KILLS_PER_BATCH), "only {so_far}");
        batches += 1;
        let command = || -> Command {
            if prompts(&agent) == 0 {
                agent.retake(["undo"]).succeeds();
            }
            assert_eq!((files(&agent), prompts(&agent)), (one.clone(), 1));
            let mut command = agent.command();
            command.args(["rewind", &prompt, "--both", "--yes"]);
            command
        };
        killed += Killer::new(command).at_random(BATCH, batches, |_, _| {
            agent.retake(["recover"]).succeeds();
            let now = (files(&agent), prompts(&agent));
            if now == (zero.clone(), 0) {
                done += 1;
            } else {
                assert_eq!(now, (one.clone(), 1), "files and conversation agree");
                not_done += 1;
            }
        });
    }
}
