//! The contract with clients: commands in; answers, and events with sequence numbers, out. Everything is JSON, so that the terminal,
//! the command line, the web page and editors all speak it.
//!
//! There is one stream of events for everybody. What a client shows is [`View`], folded from it; a client that comes
//! back names the last number it has seen and gets the rest.

mod event;
mod facts;

use retake_engine::session::Target;
use retake_engine::session::entry::{CallId, EntryId, Part, Usage};
use retake_engine::{Discard, Files, OnConflict, Scope};
use serde::{Deserialize, Serialize};

use crate::diff::FileDiff;
use crate::document::{Bytes, RewindDocument};
use crate::view::View;
pub use event::{Baseline, Event, EventKind, JobFacts, Question, State};
pub use facts::{CheckpointFacts, SessionFacts, TreePrompt};

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the client; the answer and the events that come of it carry it. Two clients may choose the same: each sees its own
    /// as it sent it, and those of others with something before them.
    pub id: String,
    /// What is wanted.
    pub command: Command,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Tells everything, and from then on every event; only what comes after `from`, if that is still known.
    Attach {
        /// The last number that the client has seen.
        #[serde(default)]
        from: Option<u64>,
    },
    /// Says something. While a turn runs it is held, and said when the turn has ended.
    Prompt {
        /// In order.
        parts: Vec<Part>,
        /// What may run in its turn without anybody being asked; null for what holds in the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allow: Option<Allow>,
        /// Tools may change in its turn what no snapshot protects, also if they may not in the session.
        #[serde(default)]
        unprotected: bool,
    },
    /// Takes a prompt back that is held.
    Withdraw {
        /// The request that it came with.
        request: String,
    },
    /// Stops the turn.
    Interrupt {
        /// Only if it is the turn of this prompt; whichever runs for null.
        #[serde(default)]
        turn: Option<EntryId>,
    },
    /// Answers whether a call may run.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// Lists the prompts that one can go back to.
    Targets {
        /// Only those whose text, or a file of which, contains this.
        #[serde(default)]
        query: Option<String>,
    },
    /// Works out what a change would do.
    Plan {
        /// The change.
        change: Change,
    },
    /// Tells line by line what a change would do, or what a turn has done.
    Diff {
        /// What of.
        of: DiffOf,
    },
    /// Makes a change.
    Apply {
        /// The change.
        change: Change,
        /// Where the client saw the head: it is refused if it is somewhere else. Inside, null means that there was nothing yet.
        #[serde(default)]
        head_seen: Option<Seen>,
        /// Whether a turn that runs is stopped first.
        #[serde(default)]
        running: WhileRunning,
    },
    /// Gives the point before a prompt a label, or takes it away.
    Label {
        /// The prompt.
        prompt: EntryId,
        /// The label; null for none.
        label: Option<String>,
    },
    /// Lists all prompts that were ever said in the session, those that were left behind too.
    Tree,
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
        #[serde(default)]
        instructions: Option<String>,
    },
    /// Ends a background job.
    EndJob {
        /// The job.
        job: String,
    },
    /// Tells what the model would be sent next.
    Context,
    /// Tells that somebody is there; answered even while the session is busy.
    Ping,
    /// Ends the session's process once all is stored.
    Close,
}

impl Command {
    /// Says something, on the terms of the session.
    pub fn prompt(parts: Vec<Part>) -> Self {
        Self::Prompt { parts, allow: None, unprotected: false }
    }
}

/// A part of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Extent {
    /// Everything.
    All,
    /// From a prompt on, or what comes after any other entry.
    From {
        /// The entry.
        entry: EntryId,
    },
    /// What is before a prompt, or up to any other entry.
    UpTo {
        /// The entry.
        entry: EntryId,
    },
}

/// What a diff is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum DiffOf {
    /// What a change would do to the files as they are now.
    Change {
        /// The change.
        change: Change,
    },
    /// What changed in the turn of a prompt, whoever did it.
    Turn {
        /// The prompt.
        prompt: EntryId,
    },
}

/// What runs without anybody being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allow {
    /// Everything that no rule denies.
    All,
    /// Reading and edit tools.
    Edits,
    /// Reading.
    None,
}

/// Where a client saw the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The head; null if there was no entry.
    pub head: Option<EntryId>,
}

/// What to do if a turn is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileRunning {
    /// Refuse.
    #[default]
    Refuse,
    /// Stop it, then go on.
    Interrupt,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
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
        #[serde(default)]
        why: Option<String>,
    },
}

/// A kind of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The tool.
    pub tool: String,
    /// Only commands that begin with these words.
    #[serde(default)]
    pub prefix: Option<String>,
}

/// A change of what is retained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What is to be done.
    #[serde(flatten)]
    pub goal: ChangeGoal,
    /// Only these paths and what is below them.
    #[serde(default)]
    pub paths: Vec<Bytes>,
    /// What to do with conflicts.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// What to do with the conflicts of single paths.
    #[serde(default)]
    pub choices: Vec<(Bytes, OnConflict)>,
    /// Go ahead although another branch is checked out than then.
    #[serde(default)]
    pub across_branches: bool,
}

impl Change {
    /// A change of everything that stops at conflicts.
    pub fn new(goal: ChangeGoal) -> Self {
        Self { goal, paths: Vec::new(), on_conflict: OnConflict::Stop, choices: Vec::new(), across_branches: false }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ChangeGoal {
    /// Go back to before a prompt, or to after any other entry.
    Rewind {
        /// The entry.
        entry: EntryId,
        /// What goes back.
        scope: Scope,
        /// Which files.
        #[serde(default)]
        files: Files,
        /// Whether what leaves the conversation is removed for good.
        #[serde(default)]
        discard: Discard,
    },
    /// Bring files back to a checkpoint.
    Checkpoint {
        /// A unique beginning of its id, or its label.
        checkpoint: String,
        /// Which files.
        #[serde(default)]
        files: Files,
    },
    /// Take back an operation.
    Undo {
        /// A unique beginning of its id; the newest of this session that is not undone for null.
        #[serde(default)]
        operation: Option<String>,
    },
    /// Repeat what was undone last.
    Redo,
}

/// What a client gets: `{"response": …}`, `{"event": …}`, `"lagged"` or `"ended"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outgoing {
    /// The answer to a request.
    Response(Box<Response>),
    /// Something happened.
    Event(Box<Event>),
    /// The client was too slow and has missed events: it has to attach again.
    Lagged,
    /// The session has ended, and this is the last word: what was not answered was not done. Without it the process has died.
    Ended,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request.
    pub id: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Ok(Reply),
    /// It was not.
    Refused(Refusal),
}

/// What a request was answered with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// It was done, and there is nothing to tell.
    Done,
    /// Everything, up to and including event number `view.seq`.
    View {
        /// Everything.
        view: Box<View>,
    },
    /// The prompt is said.
    Said {
        /// The prompt.
        prompt: EntryId,
    },
    /// The prompt is held until the turn has ended.
    Held {
        /// How many are held now.
        count: usize,
        /// The request that it came with, for [`Command::Withdraw`]; the events of its turn will carry it. Null if it had no id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
    },
    /// What one can go back to, newest first.
    Targets {
        /// The head, for [`Command::Apply`].
        head: Option<EntryId>,
        /// The prompts.
        targets: Vec<Target>,
    },
    /// What a change would do, or has done.
    Change {
        /// The plan and what became of it.
        document: Box<RewindDocument>,
    },
    /// All prompts, oldest first.
    Tree {
        /// The last prompt that is retained.
        head: Option<EntryId>,
        /// The prompts.
        prompts: Vec<TreePrompt>,
    },
    /// The checkpoints, newest first.
    Checkpoints {
        /// The checkpoints.
        checkpoints: Vec<CheckpointFacts>,
    },
    /// The conversations, newest first.
    Sessions {
        /// The conversations.
        sessions: Vec<SessionFacts>,
    },
    /// Paths of files, the best first.
    Files {
        /// The paths.
        paths: Vec<String>,
    },
    /// How large the store is.
    Store {
        /// In bytes.
        bytes: u64,
        /// What it should not exceed, in bytes.
        budget: u64,
    },
    /// Differences, by path.
    Diff {
        /// What changes in each.
        files: Vec<FileDiff>,
    },
    /// A session was forked from this one.
    Forked {
        /// The new session.
        session: String,
        /// The operation that can be undone.
        operation: String,
        /// What is about to be said in it.
        draft: Vec<Part>,
        /// Files that are not as the model last saw them, of which a note tells it.
        differing: Vec<Bytes>,
    },
    /// A summary stands for a part of the conversation from now on.
    Summarised {
        /// The summary; null if there was nothing to summarise.
        summary: Option<Box<Summarised>>,
    },
    /// What the model would be sent next.
    Context {
        /// The body of the request.
        body: String,
    },
}

/// A summary that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summarised {
    /// The entry that holds it.
    pub entry: EntryId,
    /// The operation that it is.
    pub operation: String,
    /// The first and the last entry that it stands for.
    pub range: (EntryId, EntryId),
    /// The text.
    pub text: String,
    /// What writing it cost.
    pub usage: Usage,
    /// How long the request to the model was, in bytes, and how long it would be now.
    pub bytes: (usize, usize),
}

/// Why a request was refused; nothing was changed unless `document` says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The plan, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Box<RewindDocument>>,
}

/// Why a request was refused, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A turn is running.
    Running,
    /// It was stopped.
    Interrupted,
    /// The head is somewhere else.
    StaleHead,
    /// Something has to be decided.
    Conflicts,
    /// Files have changed since the plan was made.
    StalePlan,
    /// Other tools are at work in the workspace.
    InUse,
    /// There is no such thing.
    NotFound,
    /// There is nothing to undo or redo.
    Nothing,
    /// The request makes no sense.
    Invalid,
    /// The session has ended, or is about to: another process may open it.
    Ended,
    /// It could not be done.
    Failed,
}
