//! What a client shows of a session, folded from its events.
//!
//! [`View::apply`] is the only way to change it, and the controller folds the very events that it publishes: whoever has seen them all, or
//! begins with a whole view, has the same one.

use retake_engine::id::EntryId;
use retake_engine::session::Conversation;
use retake_engine::session::entry::{Body, CallId, Entry, Part, Todo, Usage};
use serde::{Deserialize, Serialize};

use crate::contract::{Baseline, Event, EventKind, JobFacts, Question, SessionRef, SnapshotMoment, State};
use crate::limits;

/// What a client shows of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct View {
    /// The number of the last event that is in it.
    pub seq: u64,
    /// The session.
    pub session: SessionRef,
    /// The workspace's root.
    pub workspace: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// How many tokens it can be sent, if that is known.
    #[serde(default)]
    pub window: Option<u64>,
    /// How far the first look at all files has come; null when it is done.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// What is retained of the conversation.
    pub entries: Vec<Entry>,
    /// What the user is about to say.
    pub draft: Vec<Part>,
    /// What the session does.
    pub state: State,
    /// What has come of the answer that is coming.
    pub coming: Coming,
    /// Calls that run.
    pub calls: Vec<RunningCall>,
    /// What is being asked.
    pub questions: Vec<Question>,
    /// Whether the model writes a summary.
    #[serde(default)]
    pub summarising: bool,
    /// How many prompts are held.
    pub held: usize,
    /// The background jobs.
    pub jobs: Vec<JobFacts>,
}

/// What has come of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Coming {
    /// The entry that it will be, once something has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Text.
    pub text: String,
    /// What the model is thinking.
    pub thinking: String,
}

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RunningCall {
    /// The call.
    pub call: CallId,
    /// In words.
    pub title: String,
    /// The end of its output so far.
    pub output: String,
}

impl View {
    /// Takes an event in. One that is in it already changes nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        match &event.kind {
            EventKind::Appended { entry } => {
                self.coming = Coming::default();
                if let Body::ToolResult { call: ended, .. } = &entry.body {
                    self.calls.retain(|one| one.call != *ended);
                }
                self.entries.push(entry.clone());
            }
            EventKind::HeadMoved { keep, added, .. } => {
                let kept = keep
                    .map_or(0, |keep| self.entries.iter().position(|entry| entry.id == keep).map_or(0, |at| at + 1));
                self.entries.truncate(kept);
                self.entries.extend(added.iter().cloned());
                self.coming = Coming::default();
                self.calls.clear();
                self.questions.clear();
            }
            EventKind::DraftChanged { parts } => self.draft.clone_from(parts),
            EventKind::Delta { entry, text, .. } => {
                self.coming.entry = Some(*entry);
                self.coming.text.push_str(text);
            }
            EventKind::Thinking { entry, text, .. } => {
                self.coming.entry = Some(*entry);
                self.coming.thinking.push_str(text);
            }
            EventKind::CallStarted { call, title } => {
                self.calls.push(RunningCall { call: call.clone(), title: title.clone(), output: String::new() });
            }
            EventKind::CallOutput { call, text } => {
                if let Some(running) = self.calls.iter_mut().find(|one| one.call == *call) {
                    running.output.push_str(text);
                    let excess = running.output.len().saturating_sub(limits::SHOWN_OUTPUT);
                    running.output.drain(..running.output.ceil_char_boundary(excess));
                }
            }
            EventKind::PermissionAsked { question } => self.questions.push(question.clone()),
            EventKind::PermissionSettled { call, .. } => self.questions.retain(|question| question.call != *call),
            EventKind::StateChanged { state } => self.state = *state,
            EventKind::Retrying { .. } => self.coming = Coming::default(),
            EventKind::Summarising { active } => self.summarising = *active,
            EventKind::Held { count } => self.held = *count,
            EventKind::JobsChanged { jobs } => self.jobs.clone_from(jobs),
            EventKind::Baseline { baseline } => self.baseline = Some(*baseline),
            EventKind::Snapshot { moment: SnapshotMoment::Baseline, .. } => self.baseline = None,
            EventKind::ModelChanged { model, window } => {
                self.model.clone_from(model);
                self.window = *window;
            }
            EventKind::TurnEnded { .. }
            | EventKind::CallBegan { .. }
            | EventKind::Returned
            | EventKind::Snapshot { .. }
            | EventKind::Warning { .. } => {}
        }
    }

    /// The conversation.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.entries.clone())
    }

    /// The entry that the next one continues.
    pub fn head(&self) -> Option<EntryId> {
        self.entries.last().map(|entry| entry.id)
    }

    /// What all answers cost.
    pub fn usage(&self) -> Usage {
        self.conversation().usage()
    }

    /// The todo list.
    pub fn todos(&self) -> Vec<Todo> {
        self.conversation().todos().to_vec()
    }
}
