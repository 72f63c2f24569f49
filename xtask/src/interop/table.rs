//! The results that are committed: `docs/interop.jsonl`, a row per agent as the run told it, and `docs/interop.md`, the same for people.
//!
//! Both are written by the run and by nobody else. A run of some agents replaces their rows and leaves the others.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::agents::AGENTS;
use crate::shell;

const HEAD: &str = "\
# Real agents behind the proxy

Written by `cargo xtask interop`, which installs each agent from its package and runs it behind `retake acp --`, in a network namespace with \
nothing but the loopback device, on a scripted model. The same rows as data: [interop.jsonl](interop.jsonl).

Turns 1 and 2 each write a file by a tool and others by the shell. Then both halves are rewound to before prompt 2, and prompt 3 is sent. \
Retake and the agent are started anew, the session is loaded, and prompt 4 is sent. Three times undo takes back turn 4, turn 3 and the \
rewind, and prompt 5 is sent.
";

fn path(name: &str) -> PathBuf {
    shell::root().join("docs").join(name)
}

/// Puts new rows into both documents.
pub(super) fn replace(new: &[Value]) -> Result<()> {
    let data = path("interop.jsonl");
    let old = fs::read_to_string(&data).with_context(|| format!("cannot read {}", data.display()))?;
    let old: Vec<Value> = old.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let rows = merged(&old, new);
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(&data, lines).with_context(|| format!("cannot write {}", data.display()))?;
    let page = path("interop.md");
    fs::write(&page, rendered(&rows)?).with_context(|| format!("cannot write {}", page.display()))
}

/// One row per agent that there is, the newest, in the order of the agents.
fn merged(old: &[Value], new: &[Value]) -> Vec<Value> {
    let row = |name: &str| new.iter().chain(old).find(|row| row["name"] == name);
    AGENTS.iter().filter_map(|agent| row(agent.name)).cloned().collect()
}

fn rendered(rows: &[Value]) -> Result<String> {
    let mut page = String::from(HEAD);
    writeln!(
        page,
        "\n| agent | version | protocol | wire format | tools called | strategy | strategy of undo | requests |"
    )?;
    writeln!(page, "|---|---|---|---|---|---|---|---|")?;
    for row in rows {
        let cells = [&row["agent"]["version"], &row["protocol"], &row["wire"]].map(words);
        let ways = [&row["strategy"], &row["undo_strategy"]].map(|way| format!("`{}`", words(way)));
        let tools = list(&row["tools"]).map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ");
        let (name, requests) = (words(&row["name"]), &row["requests"]);
        writeln!(page, "| {name} | {} | {tools} | {} | {requests} |", cells.join(" | "), ways.join(" | "))?;
    }
    writeln!(page, "\n## What the model was sent\n")?;
    writeln!(page, "The first request of the turn: who says what of which turn. What is not there was not sent.\n")?;
    writeln!(page, "| agent | when | messages |\n|---|---|---|")?;
    for row in rows {
        for received in row["received"].as_array().into_iter().flatten() {
            let told = list(&received["first"]).collect::<Vec<_>>().join("<br>");
            writeln!(page, "| {} | {} | {told} |", words(&row["name"]), words(&received["when"]))?;
        }
    }
    writeln!(page, "\n## What was asserted\n")?;
    add_shared(&mut page, rows, "asserted")?;
    writeln!(page, "\n## What had to be asked\n")?;
    writeln!(
        page,
        "An agent that is slow to announce a tool leaves it open whose a file is. A person is asked then; here the answer was that it is the agent's. Which files these are differs from run to run.\n"
    )?;
    add_shared(&mut page, rows, "contested")?;
    writeln!(page, "\n## What the server remarked\n")?;
    writeln!(
        page,
        "The scripted server checks requests by what Retake's own have to be. Agents may do what only their servers take.\n"
    )?;
    add_shared(&mut page, rows, "remarks")?;
    Ok(page)
}

/// Lists what rows have under a key, each once; with the agents' names where it is not all of them.
fn add_shared(page: &mut String, rows: &[Value], key: &str) -> Result<()> {
    let mut all: Vec<String> = Vec::new();
    for sentence in rows.iter().flat_map(|row| list(&row[key])) {
        if !all.contains(&sentence) {
            all.push(sentence);
        }
    }
    for sentence in all {
        let has_it = |row: &&Value| list(&row[key]).any(|one| one == sentence);
        let names: Vec<String> = rows.iter().filter(has_it).map(|row| words(&row["name"])).collect();
        match names.len() == rows.len() {
            true => writeln!(page, "- {sentence}")?,
            false => writeln!(page, "- {} only: {sentence}", names.join(", "))?,
        }
    }
    Ok(())
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn list(value: &Value) -> impl Iterator<Item = String> + '_ {
    value.as_array().into_iter().flatten().map(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(name: &str, version: &str) -> Value {
        json!({
            "name": name, "agent": {"version": version}, "protocol": 1, "wire": "responses", "tools": ["write", "bash"],
            "strategy": "transcript", "undo_strategy": "kept_session", "requests": 9,
            "received": [{"when": "after the rewind", "first": ["user: prompt 1", "user: prompt 3"]}],
            "asserted": ["it holds"], "remarks": [],
        })
    }

    #[test]
    fn a_run_of_some_replaces_their_rows_and_leaves_the_others() {
        let old = [row("claude", "1"), row("gone", "1"), row("opencode", "1")];
        let rows = merged(&old, &[row("claude", "2"), row("codex", "2")]);
        let versions: Vec<_> = rows.iter().map(|row| (words(&row["name"]), words(&row["agent"]["version"]))).collect();
        let wanted = [("opencode", "1"), ("claude", "2"), ("codex", "2")];
        assert_eq!(versions, wanted.map(|(name, version)| (name.to_owned(), version.to_owned())));
    }

    #[test]
    fn the_page_shows_versions_strategies_requests_and_claims() {
        let mut codex = row("codex", "2.6.0");
        codex["remarks"] = json!(["no"]);
        let page = rendered(&[row("claude", "0.1"), codex]).expect("a page");
        for line in [
            "| codex | 2.6.0 | 1 | responses | `write`, `bash` | `transcript` | `kept_session` | 9 |",
            "| codex | after the rewind | user: prompt 1<br>user: prompt 3 |",
            "- it holds",
            "- codex only: no",
        ] {
            assert!(page.lines().any(|it| it == line), "`{line}` is not in\n{page}");
        }
    }
}
