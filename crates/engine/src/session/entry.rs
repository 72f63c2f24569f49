//! Entries: the immutable records that a conversation is made of.
//!
//! An entry is written once and never edited. What it means is told by its type, never by a text that somebody has to parse.

use serde::{Deserialize, Serialize};

use crate::base::id::EntryId;
use crate::base::settings::Timestamp;
use std::fmt;

/// One record of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Entry {
    /// Its identity.
    pub id: EntryId,
    /// The entry that it continues; `None` for the first.
    pub parent: Option<EntryId>,
    /// When it was written.
    pub at: Timestamp,
    /// What it says.
    #[serde(flatten)]
    pub body: Body,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// What the user typed; the only kind of entry that one can go back to *before*.
    Prompt {
        /// In order.
        parts: Vec<Part>,
    },
    /// One answer of the model.
    Reply {
        /// In order.
        blocks: Vec<Block>,
        /// The model that gave it, as `provider/name`.
        model: String,
        /// What it cost.
        usage: Usage,
        /// Why the model stopped.
        stop: StopReason,
    },
    /// What came of one tool call of the reply before it.
    ToolResult {
        /// The call.
        call: CallId,
        /// The call in words for people: `bash: npm install`.
        title: String,
        /// How it went.
        outcome: Outcome,
        /// What the model is told.
        parts: Vec<Part>,
        /// The todo list from here on, if the call changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        todos: Option<Vec<Todo>>,
        /// What it means for what the model sees from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Details>,
    },
    /// Told to the model by Retake, never a target: which files went back, say.
    Note {
        /// The files that it is about.
        about: Vec<String>,
        /// What the model is told.
        text: String,
    },
    /// What the model is told to begin with: by Retake, or by a file of the workspace.
    Instructions {
        /// `retake`, or the path of the file.
        source: String,
        /// The text.
        text: String,
    },
    /// Stands for a range of entries in what the model sees; the range itself stays.
    Summary {
        /// The first entry that it stands for.
        from: EntryId,
        /// The last one.
        to: EntryId,
        /// The text.
        text: String,
        /// Why it was made.
        #[serde(default)]
        by: SummaryBy,
        /// What writing it cost.
        #[serde(default)]
        usage: Usage,
    },
    /// The model sees nothing of what is before it but instructions.
    Cleared,
    /// The user allows calls of this kind from now on.
    Approved {
        /// The tool.
        tool: String,
        /// Only commands that begin with these words; all calls of the tool for `None`.
        prefix: Option<String>,
    },
    /// The end of a turn.
    Ended {
        /// Why it ended.
        reason: EndReason,
    },
}

/// What is known about the result of a call beside what the model is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(untagged)]
pub enum Details {
    /// The model goes back to a checkpoint of its own once all calls of this reply have their results.
    Rewound {
        /// What it wants to keep of what it found.
        report: String,
        /// Always `true`.
        rewound: bool,
        /// The result of the call that made the checkpoint.
        checkpoint: EntryId,
        /// Whether files go back too.
        restore_files: bool,
    },
    /// Lines of a file were replaced.
    Edited {
        /// The line, counted from 1, at which each replacement began when it was made.
        lines: Vec<u32>,
    },
    /// The model made a checkpoint that it can go back to.
    Checkpoint {
        /// What it is about to find out.
        goal: String,
        /// What the checkpoint is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

/// Why a summary was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum SummaryBy {
    /// The user wanted it.
    #[default]
    User,
    /// The conversation was about to become too long for the model.
    Compaction,
    /// The model went back to a checkpoint of its own and kept a report. The prompts and notes in the
    /// range stay, and so do the results of what it called together with the rewind.
    Model {
        /// The call that asked for it, in the last reply of the range.
        call: CallId,
        /// The result of the call that made the checkpoint.
        checkpoint: EntryId,
    },
}

/// A piece of a prompt or of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A block that was pasted.
    Paste {
        /// The text.
        text: String,
    },
    /// A file that the user referred to.
    File {
        /// Its path.
        path: String,
        /// Its content at that time.
        text: String,
    },
    /// An image.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// In base64.
        data: String,
    },
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for the user.
    Text {
        /// The text.
        text: String,
    },
    /// What the model thought.
    Reasoning {
        /// As far as it can be read.
        text: String,
        /// JSON of the provider that goes back to it exactly as it came.
        opaque: String,
    },
    /// A tool call.
    Call {
        /// Its identity, as the model gave it.
        id: CallId,
        /// The tool.
        name: String,
        /// JSON, exactly as the model wrote it.
        arguments: String,
    },
}

/// The identity of a tool call, as the model gave it. Unique within its reply only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ToolOutcome"))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was asked to.
    Done,
    /// It could not; the result says why.
    Failed,
    /// The user, or the policy, did not allow it.
    Denied,
    /// The turn was interrupted before it ended.
    Interrupted,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said all.
    Done,
    /// It called tools.
    Calls,
    /// Its answer became too long.
    Length,
    /// It refused to answer.
    Refused,
    /// The user stopped it; what had come until then is kept.
    Interrupted,
}

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum EndReason {
    /// The model had said all.
    Done,
    /// The user stopped it, or the process ended.
    Interrupted,
    /// The model could not be asked.
    Failed {
        /// Why, and what to do.
        message: String,
    },
    /// It took too many rounds.
    RoundLimit,
}

/// An item of the todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Todo {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub state: TodoState,
}

/// How far an item of the todo list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    Pending,
    /// Under way.
    Active,
    /// Done.
    Done,
}

/// What answers of a model cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens of the input that came from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Tokens of the input that were put into a cache.
    #[serde(default)]
    pub cache_write: u64,
    /// US dollars, if the provider or the settings tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost = match (self.cost, other.cost) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0.0) + two.unwrap_or(0.0)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_twenty_digits_of_either_case() {
        let id = EntryId::new([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x90, 0xaf]);
        for text in ["0123456789abcdef90af", "0123456789ABCDEF90AF"] {
            assert_eq!(text.parse::<EntryId>().expect("it is an id"), id);
        }
        // The characters beside the digits, too few, too many, and more bytes than characters.
        for end in ["/", ":", "@", "G", "`", "g", "", "00", "\u{e9}"] {
            assert!(format!("0123456789abcdef90a{end}").parse::<EntryId>().is_err(), "{end}");
        }
    }
}
