//! Events: what a session tells everybody.

use retake_engine::id::EntryId;
use retake_engine::session::entry::{CallId, EndReason, Entry, Part, Usage};
use serde::{Deserialize, Serialize};

use super::{CheckpointRef, OperationRef, Rule, SessionRef};
use crate::diff::FileDiff;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Event {
    /// Its number; they follow one another.
    pub seq: u64,
    /// The request that it came of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. What lasts is on disk before it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// An entry continues the conversation.
    Appended {
        /// The entry.
        entry: Entry,
    },
    /// The conversation now consists of what was there up to `keep`, and of `added`.
    HeadMoved {
        /// The operation that did it; null for a turn that came to nothing and took itself back.
        operation: Option<OperationRef>,
        /// The last entry that stays.
        keep: Option<EntryId>,
        /// What follows it.
        added: Vec<Entry>,
    },
    /// What the user is about to say.
    DraftChanged {
        /// In order.
        parts: Vec<Part>,
    },
    /// Text of the answer that is coming; superseded by the entry.
    Delta {
        /// The prompt that it answers.
        turn: EntryId,
        /// The entry that the answer will be, if it comes to its end.
        entry: EntryId,
        /// More text.
        text: String,
    },
    /// What the model is thinking; superseded by the entry.
    Thinking {
        /// The prompt that it answers.
        turn: EntryId,
        /// The entry that the answer will be, if it comes to its end.
        entry: EntryId,
        /// More text.
        text: String,
    },
    /// The model has begun to write a call.
    CallBegan {
        /// The prompt that it answers.
        turn: EntryId,
        /// The tool.
        tool: String,
    },
    /// A call runs.
    CallStarted {
        /// The call.
        call: CallId,
        /// In words.
        title: String,
    },
    /// Output of a running call.
    CallOutput {
        /// The call.
        call: CallId,
        /// More output.
        text: String,
    },
    /// Somebody has to say whether a call may run.
    PermissionAsked {
        /// The question.
        question: Question,
    },
    /// A question is settled.
    PermissionSettled {
        /// The call.
        call: CallId,
        /// Whether it may run.
        allowed: bool,
    },
    /// What the session does now.
    StateChanged {
        /// The state.
        state: State,
    },
    /// The model could not be asked and will be asked again.
    Retrying {
        /// When.
        after_ms: u64,
        /// How often it has been tried.
        attempt: u32,
        /// Why.
        message: String,
    },
    /// The model has begun to write a summary, or has ended.
    Summarising {
        /// Whether it does so now.
        active: bool,
    },
    /// How many prompts are held.
    Held {
        /// How many.
        count: usize,
    },
    /// A prompt that was held is not said after all, because the turn before it was stopped or failed: it is what the user is about to
    /// say now. It carries the prompt's request.
    Returned,
    /// A checkpoint was taken.
    Snapshot {
        /// What for.
        moment: SnapshotMoment,
        /// The checkpoint; null if it could not be taken.
        checkpoint: Option<CheckpointRef>,
        /// How long it took.
        ms: f64,
        /// Why it could not be taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// How far the first look at all files has come.
    Baseline {
        /// How far.
        baseline: Baseline,
    },
    /// Another model is asked from now on.
    ModelChanged {
        /// The model, as `provider/name`.
        model: String,
        /// How many tokens it can be sent, if that is known.
        window: Option<u64>,
    },
    /// The background jobs.
    JobsChanged {
        /// All of them.
        jobs: Vec<JobFacts>,
    },
    /// A turn is over and everything of it is stored.
    TurnEnded {
        /// The session.
        session: SessionRef,
        /// The prompt that began it.
        prompt: EntryId,
        /// Why it is over.
        reason: TurnEnd,
        /// What else there is to say about that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The model's last words.
        text: String,
        /// What its answers cost.
        usage: Usage,
        /// It came to nothing, and has left the conversation: what was said is to be said again.
        #[serde(default)]
        taken_back: bool,
        /// The operation that it is, to take back; null if it took itself back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<OperationRef>,
    },
    /// Something that people should know.
    Warning {
        /// In words.
        text: String,
    },
}

/// Why a checkpoint is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SnapshotMoment {
    /// The session begins: the first read of all files.
    Baseline,
    /// A prompt is sent.
    Prompt,
    /// A tool is about to change files.
    Before,
    /// A tool has changed files.
    After,
    /// A turn has ended.
    Turn,
}

/// Why a turn is over. The text of a failure is the event's `message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model had nothing more to do.
    Done,
    /// A user or a client stopped it, or the process ended.
    Interrupted,
    /// The model could not be asked.
    Failed,
    /// It took too many rounds.
    RoundLimit,
}

impl From<&EndReason> for TurnEnd {
    fn from(reason: &EndReason) -> Self {
        match reason {
            EndReason::Done => Self::Done,
            EndReason::Interrupted => Self::Interrupted,
            EndReason::Failed { .. } => Self::Failed,
            EndReason::RoundLimit => Self::RoundLimit,
        }
    }
}

/// What a session does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    #[default]
    Idle,
    /// The model or a tool is at work.
    Running,
    /// The user stopped it, or is asked.
    Paused,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The call in words.
    pub title: String,
    /// The whole command, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it would write, line by line, if that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// Why it is asked.
    pub why: String,
    /// What could be allowed once for all.
    pub rule: Option<Rule>,
}

/// How far the first look at all files has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Baseline {
    /// Files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A background job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct JobFacts {
    /// Its name.
    pub job: String,
    /// The command.
    pub command: String,
    /// How it ended; null while it runs.
    pub ended: Option<String>,
}
