//! The files that make up an installation: entries merged into a file of the user's, or whole files of ours.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::agent::{Agent, Places};
use crate::config::json::Entry;
use crate::config::toml::Table;
use crate::config::{BadConfig, Insertion, json, toml};
use crate::hook::{Program, is_ours, points};

/// A file of an installation.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

/// What the file gets.
#[derive(Debug)]
pub(crate) enum Content {
    /// Entries beside those of the user, in JSON.
    Json(Vec<Entry>),
    /// Entries beside those of the user, in TOML.
    Toml(Vec<Table>),
    /// The whole file.
    Whole(String),
}

/// The line that tells readers of a file whose it is.
const ORIGIN: &str = "Made by `retake hooks install`; `retake hooks remove` deletes it.";

/// The commands that agents with custom commands get: name, description, arguments.
const COMMANDS: [(&str, &str, &str); 4] = [
    ("rewind", "Retake: list the points, or go back to one", "[POINT] [keep|overwrite|merge]"),
    ("undo", "Retake: take back the last rewind", ""),
    ("redo", "Retake: repeat the rewind that was taken back", ""),
    ("log", "Retake: list what was done in this workspace", ""),
];

/// All files of an installation for `agent`.
pub(crate) fn targets(agent: Agent, places: &Places, program: &Program) -> Vec<Target> {
    let folder = agent.configuration(places);
    let merged = |name: &str| Target { path: folder.join(name), content: Content::Json(entries(agent, program)) };
    let with_commands = |first: Target, suffix: &str, text: fn(&str, &str, &str) -> String| {
        let commands = COMMANDS.into_iter().map(|(name, about, hint)| Target {
            path: folder.join(format!("commands/retake-{name}.{suffix}")),
            content: Content::Whole(text(name, about, hint)),
        });
        std::iter::once(first).chain(commands).collect()
    };
    match agent {
        Agent::Claude => with_commands(merged("settings.json"), "md", typed),
        Agent::Gemini => with_commands(merged("settings.json"), "toml", expanded),
        Agent::Qwen => with_commands(merged("settings.json"), "md", |name, about, _| echoed(name, about, "{{args}}")),
        Agent::Codex => vec![merged("hooks.json")],
        Agent::Copilot => {
            vec![Target { path: folder.join("hooks/retake.json"), content: Content::Whole(copilot(program)) }]
        }
        Agent::Kimi => vec![Target { path: folder.join("config.toml"), content: Content::Toml(tables(program)) }],
        Agent::OpenCode => {
            let plugin = Target { path: folder.join("plugins/retake.js"), content: Content::Whole(plugin(program)) };
            with_commands(plugin, "md", |name, about, _| echoed(name, about, "$ARGUMENTS"))
        }
    }
}

impl Content {
    /// Where this goes in the user's text.
    pub(crate) fn insertions(&self, text: &str) -> Result<Vec<Insertion>, BadConfig> {
        match self {
            Self::Json(entries) => json::insertions(text, entries),
            Self::Toml(tables) => toml::insertions(text, tables),
            Self::Whole(content) => Ok(vec![Insertion { at: 0, text: content.clone() }]),
        }
    }

    /// Whether the text has exactly these entries of ours, others, or none.
    pub(crate) fn presence(&self, agent: Agent, text: &str) -> Result<Presence, BadConfig> {
        let (found, wanted): (Vec<Value>, Vec<Value>) = match self {
            Self::Json(entries) => {
                let found = json::entries(text)?.into_iter().filter(|(_, entry)| has_ours(agent, entry));
                (found.map(|entry| json!(entry)).collect(), entries.iter().map(|entry| json!(entry)).collect())
            }
            Self::Toml(tables) => {
                toml::check(text)?;
                let found = toml::entries(text)?.into_iter().filter(|(_, command)| is_ours(agent, command));
                let text = |table: &Table, key| {
                    table
                        .iter()
                        .find(|(name, _)| *name == key)
                        .and_then(|(_, value)| value.as_str())
                        .unwrap_or("")
                        .to_owned()
                };
                let wanted = tables.iter().map(|table| json!([text(table, "event"), text(table, "command")]));
                (found.map(|entry| json!(entry)).collect(), wanted.collect())
            }
            Self::Whole(content) => (vec![text.into()], vec![content.as_str().into()]),
        };
        let is_same = found.len() == wanted.len() && wanted.iter().all(|entry| found.contains(entry));
        Ok(match (is_same, found.is_empty()) {
            (true, _) => Presence::Same,
            (false, true) => Presence::Absent,
            (false, false) => Presence::Other,
        })
    }

    /// The text without entries of ours, whoever put them where.
    pub(crate) fn without(&self, agent: Agent, text: &str) -> Result<String, BadConfig> {
        match self {
            Self::Json(_) => json::without(text, &|entry| is_ours_in_json(agent, entry)),
            Self::Toml(_) => toml::without(text, &|command| is_ours(agent, command)),
            Self::Whole(_) => Ok(String::new()),
        }
    }

    /// Whether two texts say the same apart from how they are written.
    pub(crate) fn is_same(&self, one: &str, other: &str) -> bool {
        match self {
            Self::Json(_) => json::meaning(one).is_ok_and(|one| json::meaning(other).is_ok_and(|other| one == other)),
            Self::Toml(_) => {
                toml::meaning(one).is_some_and(|one| toml::meaning(other).is_some_and(|other| one == other))
            }
            Self::Whole(_) => one == other,
        }
    }
}

/// How an installation stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    /// Entries of ours, but not those that are wanted.
    Other,
    Same,
}

fn is_ours_in_json(agent: Agent, entry: &Value) -> bool {
    entry["command"].as_str().is_some_and(|line| is_ours(agent, line))
}

/// Whether an entry, or one in its list of commands, is ours.
fn has_ours(agent: Agent, entry: &Value) -> bool {
    let in_list = entry["hooks"].as_array().into_iter().flatten().any(|entry| is_ours_in_json(agent, entry));
    in_list || is_ours_in_json(agent, entry)
}

fn entries(agent: Agent, program: &Program) -> Vec<Entry> {
    let entry = |event: &str, timeout_s: u32| {
        let mut command = json!({ "type": "command", "command": program.line(agent, event) });
        // Gemini and Qwen count in other units; their own limit of a minute is fine.
        if matches!(agent, Agent::Claude | Agent::Codex) {
            command["timeout"] = timeout_s.into();
        }
        let mut entry = Map::from_iter([("hooks".to_owned(), json!([command]))]);
        if agent == Agent::Gemini {
            entry.insert("matcher".to_owned(), "*".into());
        }
        Value::Object(entry)
    };
    points(agent).iter().map(|point| (point.event.to_owned(), entry(point.event, point.timeout_s))).collect()
}

fn tables(program: &Program) -> Vec<Table> {
    let table = |event: &str, timeout_s: u32| {
        let line = program.line(Agent::Kimi, event);
        vec![("event", event.into()), ("command", line.into()), ("timeout", i64::from(timeout_s).into())]
    };
    points(Agent::Kimi).iter().map(|point| table(point.event, point.timeout_s)).collect()
}

fn copilot(program: &Program) -> String {
    let mut hooks = Map::new();
    for point in points(Agent::Copilot) {
        let line = program.line(Agent::Copilot, point.event);
        let hook = json!({ "type": "command", "bash": line, "timeoutSec": point.timeout_s });
        hooks.insert(point.event.to_owned(), json!([hook]));
    }
    format!("{:#}\n", json!({ "version": 1, "hooks": hooks }))
}

fn plugin(program: &Program) -> String {
    let name = Value::from(program.as_str()).to_string();
    include_str!("opencode.js").replace("@ORIGIN@", ORIGIN).replace("\"@PROGRAM@\"", &name)
}

/// A command whose words reach the hook as they are typed. The model sees the text only if the hook did not answer.
fn typed(_name: &str, about: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("argument-hint: \"{hint}\"\n") };
    format!(
        "---\n# {ORIGIN}\ndescription: \"{about}\"\n{hint}---\nRetake's hooks answer this command before it gets here. They did not: \
         say so in one sentence, name `retake hooks status`, and do nothing else.\n"
    )
}

/// A command that becomes the prompt by which the hook knows it, in Markdown; `arguments` is how the agent calls what was typed behind it.
fn echoed(name: &str, about: &str, arguments: &str) -> String {
    format!("---\n# {ORIGIN}\ndescription: \"{about}\"\n---\n/retake-{name} {arguments}\n")
}

/// The same in TOML.
fn expanded(name: &str, about: &str, _hint: &str) -> String {
    format!("# {ORIGIN}\ndescription = \"{about}\"\nprompt = \"/retake-{name} {{{{args}}}}\"\n")
}
