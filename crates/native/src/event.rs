//! Events: the JSON that an agent gives its hooks, as one type for all agents.
//!
//! Reading an event touches no file. An event of a kind that is not known here is [`Happening::Other`]; only what is not JSON, or has no
//! session, is an error. Prompts that no person typed are [`Happening::Nudge`].

mod tool;

use std::path::PathBuf;

use serde_json::Value;
use thiserror::Error;

use crate::agent::Agent;
use crate::command::Command;
use crate::ids::{PlaceId, PromptId, SessionId, SubagentId};
pub use tool::{Reach, Tool};

/// The most that is read of an event. Tools' results are in it.
pub const MAX_EVENT_BYTES: usize = 64 << 20;

/// One event of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The agent.
    pub agent: Agent,
    /// The agent's session.
    pub session: SessionId,
    /// The agent's working directory, which may move during a session.
    pub cwd: Option<PathBuf>,
    /// The session's transcript, where the agent says it.
    pub transcript: Option<PathBuf>,
    /// The sub-agent whose event it is, if it is not the session's own.
    pub subagent: Option<SubagentId>,
    /// The prompt whose turn it belongs to, where the agent says it.
    pub prompt: Option<PromptId>,
    /// What happened.
    pub happening: Happening,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A session began.
    SessionStarted(Start),
    /// A session ended, or the program went on to another one.
    SessionEnded {
        /// The agent's word for why.
        reason: String,
    },
    /// A person sent a prompt.
    Prompt(String),
    /// A person sent a command of Retake's.
    Command(Command),
    /// The agent sent itself a prompt: not a point.
    Nudge,
    /// A tool is about to run.
    ToolStarted(Tool),
    /// A tool ended.
    ToolEnded(Tool, Outcome),
    /// A sub-agent began.
    SubagentStarted,
    /// A sub-agent ended.
    SubagentEnded,
    /// The turn ended.
    TurnEnded {
        /// The model's last words.
        answer: Option<String>,
    },
    /// The agent took back its own conversation.
    Cut {
        /// The first message that is gone.
        before: PlaceId,
    },
    /// Another event, by its name.
    Other(String),
}

/// How a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With an empty conversation.
    New,
    /// With an earlier conversation.
    Resumed,
    /// In the place of another one, which was cleared.
    Cleared,
    /// After a compaction.
    Compacted,
    /// In a way not known here.
    Other,
}

/// How a tool ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It failed or was interrupted; it may have changed files all the same.
    Failed,
    /// It goes on in the background.
    Background,
}

/// Why an event cannot be used.
#[derive(Debug, Error)]
pub enum EventError {
    /// The input is no JSON object.
    #[error("`{event}` of {agent}: the input is no JSON object")]
    NotJson {
        /// The agent.
        agent: Agent,
        /// The event, as the hook was told.
        event: String,
    },
    /// The input names no session.
    #[error("`{event}` of {agent}: the input names no session")]
    NoSession {
        /// The agent.
        agent: Agent,
        /// The event, as the hook was told.
        event: String,
    },
}

impl Event {
    /// Reads the input of the hook that the agent called for `event`.
    ///
    /// # Errors
    /// The input is no JSON object, or names no session.
    pub fn parse(agent: Agent, event: &str, input: &[u8]) -> Result<Self, EventError> {
        let input: Value = serde_json::from_slice(input).unwrap_or(Value::Null);
        if !input.is_object() {
            return Err(EventError::NotJson { agent, event: event.to_owned() });
        }
        let text = |keys: &[&str]| keys.iter().find_map(|key| input[*key].as_str()).filter(|text| !text.is_empty());
        let Some(session) = text(&["session_id", "sessionId", "sessionID"]) else {
            return Err(EventError::NoSession { agent, event: event.to_owned() });
        };
        Ok(Self {
            agent,
            session: session.into(),
            cwd: text(&["cwd"]).map(PathBuf::from),
            transcript: text(&["transcript_path", "transcriptPath"]).map(PathBuf::from),
            subagent: text(&["agent_id", "agentId", "parentID"]).map(SubagentId::from),
            // Codex calls a prompt a turn, and OpenCode a message.
            prompt: text(&["prompt_id", "turn_id", "messageID"]).map(PromptId::from),
            happening: happening(agent, event, &input),
        })
    }
}

fn happening(agent: Agent, event: &str, input: &Value) -> Happening {
    match event {
        "SessionStart" | "sessionStart" | "session.created" => Happening::SessionStarted(start(input)),
        "SessionEnd" | "sessionEnd" | "session.deleted" => {
            Happening::SessionEnded { reason: input["reason"].as_str().unwrap_or("").to_owned() }
        }
        "UserPromptSubmit" | "userPromptSubmitted" | "BeforeAgent" | "chat.message" => prompt(agent, &input["prompt"]),
        "PreToolUse" | "preToolUse" | "BeforeTool" | "tool.execute.before" => {
            Happening::ToolStarted(Tool::parse(input))
        }
        "PostToolUse" | "postToolUse" | "AfterTool" | "tool.execute.after" => {
            Happening::ToolEnded(Tool::parse(input), outcome(input))
        }
        "PostToolUseFailure" => Happening::ToolEnded(Tool::parse(input), Outcome::Failed),
        "SubagentStart" => Happening::SubagentStarted,
        "SubagentStop" => Happening::SubagentEnded,
        "Stop" | "agentStop" | "AfterAgent" | "session.idle" => {
            let answer = ["last_assistant_message", "prompt_response"].iter().find_map(|key| input[*key].as_str());
            Happening::TurnEnded { answer: answer.map(str::to_owned) }
        }
        "session.updated" => match input["revert"]["messageID"].as_str() {
            Some(message) => Happening::Cut { before: message.into() },
            None => Happening::Other(event.to_owned()),
        },
        _ => Happening::Other(event.to_owned()),
    }
}

fn start(input: &Value) -> Start {
    match input["source"].as_str() {
        None | Some("startup" | "new") => Start::New,
        Some("resume") => Start::Resumed,
        Some("clear") => Start::Cleared,
        Some("compact") => Start::Compacted,
        Some(_) => Start::Other,
    }
}

fn prompt(agent: Agent, prompt: &Value) -> Happening {
    let text = match prompt {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            // A picture without a word is a prompt, too.
            if texts.is_empty() && !parts.is_empty() {
                return Happening::Prompt(String::new());
            }
            texts.join("\n")
        }
        _ => String::new(),
    };
    if is_nudge(&text) {
        return Happening::Nudge;
    }
    match Command::parse(agent, &text) {
        Some(command) => Happening::Command(command),
        None => Happening::Prompt(text),
    }
}

/// Whether a text in the place of a prompt comes from the agent itself: nothing, a notification, or one reminder and nothing else.
pub(crate) fn is_nudge(text: &str) -> bool {
    let text = text.trim();
    let is_one = |tag: &str| {
        let inside = text.strip_prefix(&format!("<{tag}>")).and_then(|rest| rest.strip_suffix(&format!("</{tag}>")));
        inside.is_some_and(|inside| !inside.contains(&format!("</{tag}>")))
    };
    text.is_empty() || text.starts_with("<task-notification>") || is_one("system-reminder") || is_one("system_reminder")
}

fn outcome(input: &Value) -> Outcome {
    let response = &input["tool_response"];
    if response["backgroundTaskId"].is_string() {
        return Outcome::Background;
    }
    let has_failed = input["toolResult"]["resultType"].as_str().is_some_and(|result| result != "success")
        || response["error"].as_object().is_some_and(|error| !error.is_empty())
        || response["interrupted"] == true;
    if has_failed { Outcome::Failed } else { Outcome::Done }
}

#[cfg(test)]
mod tests;
