//! The contract with clients: queries and actions in; answers, and events with sequence numbers, out. Everything is JSON, so that the terminal,
//! the command line, the web page and editors all speak it.
//!
//! There is one stream of events for everybody. What a client shows is [`View`](crate::view::View), folded from it; a client that comes
//! back names the last number it has seen and gets the rest.

mod change;
mod event;
mod facts;
mod ids;
mod reply;

use retake_engine::id::EntryId;
use retake_engine::session::entry::{CallId, Part};
use serde::{Deserialize, Deserializer, Serialize};

pub use change::{Change, ChangeGoal, DiffOf, DiffPoint, Extent, SeenHead, WhileRunning};
pub use event::{Baseline, Event, EventKind, JobFacts, Question, SnapshotMoment, State, TurnEnd};
pub use facts::{CheckpointFacts, OperationFacts, SessionFacts, TreePrompt};
pub use ids::{CheckpointRef, OperationRef, SessionRef};
pub use reply::{Outgoing, Reason, Refusal, Reply, RequestOutcome, Response, Summarised};

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Request {
    /// Chosen by the client; the answer and the events that come of it carry it. Two clients may choose the same: each sees its own
    /// as it sent it, and those of others with something before them.
    pub id: String,
    /// What is wanted.
    pub command: Command,
}

/// What a client wants: to know something, or to have something done. Both are told apart by their type, which no two share.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(untagged)]
pub enum Command {
    /// To know something.
    Query(Query),
    /// To have something done.
    Action(Action),
}

/// Asks. A query changes nothing: neither files, nor the conversation, nor what other clients see. The session answers it while a turn
/// runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Query {
    /// Tells everything, and from then on every event; only what comes after `from`, if that is still known.
    Attach {
        /// The last number that the client has seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<u64>,
    },
    /// Lists the prompts that one can go back to.
    Targets {
        /// Only those whose text, or a file of which, contains this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
    },
    /// Works out what a change would do.
    Plan {
        /// The change.
        change: Change,
    },
    /// Tells line by line what a change would do, what a turn has done, or what differs between two points.
    Diff {
        /// What of.
        of: DiffOf,
    },
    /// Lists all prompts that were ever said in the session, those that were left behind too.
    Tree,
    /// Tells what undo and redo would take back and repeat now.
    Operations,
    /// Lists the checkpoints of the workspace.
    Checkpoints,
    /// Lists the conversations of the workspace.
    Sessions,
    /// Lists files of the workspace whose path contains this, the best first.
    Files {
        /// Letters of the path, in order.
        query: String,
    },
    /// Tells how large the store is.
    Store,
    /// Tells what the model would be sent next.
    Context,
    /// Tells that somebody is there; answered even while the session is busy.
    Ping,
}

/// Does something. What comes of it is published as events to all clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Action {
    /// Says something. While a turn runs it is held, and said when the turn has ended.
    Prompt {
        /// In order.
        parts: Vec<Part>,
        /// What may run in its turn without anybody being asked; null for what holds in the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allow: Option<Allow>,
        /// Tools may change in its turn what no snapshot protects, also if they may not in the session.
        #[serde(default, skip_serializing_if = "is_default")]
        unprotected: bool,
        /// What it was made from: the draft as the client had loaded it, or what was typed before files were attached. That does not wait
        /// to be said any more then; what somebody else has typed still does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft: Option<Vec<Part>>,
        /// Whether files that its texts mention as `@path` go along.
        #[serde(default, skip_serializing_if = "is_default")]
        mentions: Mentions,
    },
    /// Takes a prompt back that is held.
    Withdraw {
        /// The request that it came with.
        request: String,
    },
    /// Stops the turn.
    Interrupt {
        /// Only if it is the turn of this prompt; whichever runs for null.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<EntryId>,
    },
    /// Answers whether a call may run.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: PermissionAnswer,
    },
    /// Makes a change.
    Apply {
        /// The change.
        change: Change,
        /// Where the client saw the head: it is refused if it is somewhere else. Inside, null means that there was nothing yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head_seen: Option<SeenHead>,
        /// The fingerprint of the plan that the user saw. The engine compares it under its lock: the change is refused if the plan is
        /// another by now. Where the plan still needed decisions, the change brings them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan_seen: Option<String>,
        /// Whether a turn that runs is stopped first.
        #[serde(default, skip_serializing_if = "is_default")]
        running: WhileRunning,
    },
    /// Gives the point before a prompt a label, or takes it away.
    Label {
        /// The prompt.
        prompt: EntryId,
        /// The label; null for none.
        label: Option<String>,
    },
    /// Asks another model from the next request on.
    Model {
        /// As `provider/name`.
        model: String,
    },
    /// Sets what the user is about to say.
    Draft {
        /// In order.
        parts: Vec<Part>,
    },
    /// Cuts what the model sees.
    Clear,
    /// Begins a new session from an entry of this one, which stays as it is.
    Fork {
        /// The entry: before it if it is a prompt, else after it.
        entry: EntryId,
    },
    /// Has the model write a summary that takes the place of a part of what it sees. Answered when that is done.
    Summarise {
        /// Which part.
        extent: Extent,
        /// What the summary is to heed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    /// Ends a background job.
    EndJob {
        /// The job.
        job: String,
    },
    /// Ends the session's process once all is stored.
    Close,
}

impl Query {
    /// The types of all queries.
    const TYPES: [&str; 12] = [
        "attach",
        "targets",
        "plan",
        "diff",
        "tree",
        "operations",
        "checkpoints",
        "sessions",
        "files",
        "store",
        "context",
        "ping",
    ];
}

impl Action {
    /// Sends a prompt, on the terms of the session.
    pub fn prompt(parts: Vec<Part>) -> Self {
        Self::Prompt { parts, allow: None, unprotected: false, draft: None, mentions: Mentions::Leave }
    }
}

impl From<Query> for Command {
    fn from(query: Query) -> Self {
        Self::Query(query)
    }
}

impl From<Action> for Command {
    fn from(action: Action) -> Self {
        Self::Action(action)
    }
}

impl PartialEq<Query> for Command {
    fn eq(&self, other: &Query) -> bool {
        matches!(self, Self::Query(query) if query == other)
    }
}

impl PartialEq<Action> for Command {
    fn eq(&self, other: &Action) -> bool {
        matches!(self, Self::Action(action) if action == other)
    }
}

impl<'de> Deserialize<'de> for Command {
    // By its type and not by trial: a command that lacks a field is refused with the name of the field.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let command = serde_json::Value::deserialize(deserializer)?;
        let is_query = command["type"].as_str().is_some_and(|kind| Query::TYPES.contains(&kind));
        let command = match is_query {
            true => Query::deserialize(command).map(Self::Query),
            false => Action::deserialize(command).map(Self::Action),
        };
        command.map_err(serde::de::Error::custom)
    }
}

/// Whether files that a prompt mentions go along with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Mentions {
    /// They do not: the client has attached what it wants to.
    #[default]
    Leave,
    /// The session reads and attaches them. The prompt without them is the draft that it was made from, unless `draft` names another.
    Attach,
}

/// Whether a field has the value that leaving it out means.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What runs without anybody being asked. The rest is refused where it does not say that it is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Allow {
    /// Everything that no rule denies.
    All,
    /// Reading and edit tools.
    Edits,
    /// Reading.
    None,
    /// Everything that no rule denies; what a rule wants to be asked about is.
    AllElseAsk,
    /// Reading and edit tools; the rest is asked about.
    EditsElseAsk,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// This one.
    Allow,
    /// This one, and all of this kind from now on, in this session.
    AllowAlways {
        /// The kind.
        rule: Rule,
    },
    /// No.
    Deny {
        /// What the model is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// A kind of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Rule {
    /// The tool.
    pub tool: String,
    /// Only commands that begin with these words.
    #[serde(default)]
    pub prefix: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Command, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn each_type_is_a_query_or_an_action() {
        for kind in Query::TYPES {
            let unknown = |error: &str| error.contains("unknown variant");
            let json = serde_json::json!({ "type": kind });
            assert!(!Query::deserialize(&json).is_err_and(|error| unknown(&error.to_string())), "{kind}");
            assert!(Action::deserialize(&json).is_err_and(|error| unknown(&error.to_string())), "{kind}");
        }
        assert_eq!(parsed(r#"{"type":"tree"}"#), Ok(Command::Query(Query::Tree)));
        assert_eq!(parsed(r#"{"type":"clear"}"#), Ok(Command::Action(Action::Clear)));
    }

    #[test]
    fn a_refused_command_names_what_is_wrong_with_it() {
        assert_eq!(parsed(r#"{"type":"plan"}"#), Err("missing field `change`".to_owned()));
        assert_eq!(parsed(r#"{"type":"withdraw"}"#), Err("missing field `request`".to_owned()));
        assert!(parsed(r#"{"type":"dance"}"#).is_err_and(|error| error.starts_with("unknown variant `dance`")));
    }
}
