//! Totals over the conversation, updated entry by entry: a frame must not read the whole conversation.

use retake_agent::view::View;
use retake_engine::session::entry::{Body, Entry, Todo, Usage};

/// What is added up over the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// What all answers cost.
    pub usage: Usage,
    /// What the answers of the turn that runs cost. One is told to run before its prompt is, so the last one's end counts too.
    pub turn: Usage,
    /// Tokens that the model was sent last, and answered; `None` if that is not known now.
    pub context: Option<u64>,
    /// The todo list.
    pub todos: Vec<Todo>,
}

impl Totals {
    /// Of everything in a view.
    pub fn of(view: &View) -> Self {
        let mut facts = Self::default();
        view.entries.iter().for_each(|entry| facts.take(entry));
        facts
    }

    /// Takes one more entry in.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Prompt { .. } | Body::Ended { .. } => self.turn = Usage::default(),
            Body::Reply { usage, .. } => {
                self.usage += *usage;
                self.turn += *usage;
                let read = usage.input + usage.output;
                self.context = (read > 0).then_some(read).or(self.context);
            }
            Body::Summary { usage, .. } => {
                self.usage += *usage;
                self.context = None;
            }
            Body::Cleared => self.context = None,
            Body::ToolResult { todos: Some(todos), .. } => self.todos.clone_from(todos),
            Body::ToolResult { .. } | Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } => {}
        }
    }
}
