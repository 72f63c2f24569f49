//! The conversation as it stands: the retained entries, and everything that follows from them.
//!
//! Nothing that is derived is kept: numbers of turns, usage, todo list, approvals and title are worked out from the entries each
//! time, so that after a rewind they are what they were.

use std::collections::HashSet;

use super::context::{self, Context, Shown};
use super::entry::{Block, Body, Entry, Part, Todo, Usage};
use super::range::{self, EntryRange};
use crate::base::id::EntryId;

/// Longest first line of a prompt that is shown, and stored as a title, in characters.
const MAX_FIRST_LINE: usize = 200;

/// The retained entries of a session, from the first one to the head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    entries: Vec<Entry>,
}

/// Calls that need not be asked for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The tool.
    pub tool: String,
    /// Only commands that begin with these words; all calls of the tool for `None`.
    pub prefix: Option<String>,
}

impl Conversation {
    /// Takes entries, each of which continues the one before it.
    pub fn new(entries: Vec<Entry>) -> Self {
        let mut parent = None;
        for entry in &entries {
            assert_eq!(entry.parent, parent, "entry {} continues the one before it", entry.id);
            parent = Some(entry.id);
        }
        Self { entries }
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry that the next one continues.
    pub fn head(&self) -> Option<EntryId> {
        self.entries.last().map(|entry| entry.id)
    }

    /// What the model is to be told.
    pub fn context(&self) -> Context<'_> {
        context::build(&self.entries)
    }

    /// The first and the last entry that a summary of `span` would stand for: wide enough that no call is cut off from its results and
    /// no earlier summary is cut in two. `None` if there is nothing to summarise.
    pub fn range(&self, span: EntryRange) -> Option<(EntryId, EntryId)> {
        range::range(&self.entries, span)
    }

    /// What the model does not see as it was said: it was summarised, cleared, or pruned by the model itself.
    pub fn unseen(&self) -> HashSet<EntryId> {
        let shown = self.entries.iter().zip(context::shown(&self.entries));
        shown.filter(|(_, shown)| *shown != Shown::Entry).map(|(entry, _)| entry.id).collect()
    }

    /// The prompts, oldest first.
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = (&Entry, &[Part])> {
        self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Prompt { parts } => Some((entry, parts.as_slice())),
            _ => None,
        })
    }

    /// What all answers cost.
    pub fn usage(&self) -> Usage {
        let mut total = Usage::default();
        for entry in &self.entries {
            if let Body::Reply { usage, .. } | Body::Summary { usage, .. } = &entry.body {
                total += *usage;
            }
        }
        total
    }

    /// The todo list.
    pub fn todos(&self) -> &[Todo] {
        let newest = self.entries.iter().rev().find_map(|entry| match &entry.body {
            Body::ToolResult { todos: Some(todos), .. } => Some(todos.as_slice()),
            _ => None,
        });
        newest.unwrap_or_default()
    }

    /// Calls that need not be asked for again.
    pub fn approvals(&self) -> Vec<Approval> {
        let approved = self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Approved { tool, prefix } => Some(Approval { tool: tool.clone(), prefix: prefix.clone() }),
            _ => None,
        });
        approved.collect()
    }

    /// The first line of the first prompt.
    pub fn title(&self) -> String {
        self.prompts().next().map_or_else(String::new, |(_, parts)| first_line(parts))
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        assert_eq!(entry.parent, self.head(), "an entry continues the head");
        self.entries.push(entry);
    }
}

impl Body {
    /// The first line of a prompt; nothing for anything else.
    pub(crate) fn first_line(&self) -> String {
        match self {
            Self::Prompt { parts } => first_line(parts),
            _ => String::new(),
        }
    }
}

/// The text of the last answer among `entries` that has any.
pub fn last_words(entries: &[Entry]) -> String {
    let said = entries.iter().rev().find_map(|entry| match &entry.body {
        Body::Reply { blocks, .. } => {
            let texts = blocks.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                Block::Reasoning { .. } | Block::Call { .. } => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
        }
        _ => None,
    });
    said.unwrap_or_default()
}

/// Prompts one after another, as one.
pub fn joined(prompts: impl IntoIterator<Item = Vec<Part>>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for prompt in prompts {
        let mut prompt = prompt.into_iter().peekable();
        if let (Some(Part::Text { text }), Some(Part::Text { text: next })) = (parts.last_mut(), prompt.peek()) {
            text.push_str("\n\n");
            text.push_str(next);
            prompt.next();
        }
        parts.extend(prompt);
    }
    parts
}

/// The first line that a person typed; what else the prompt begins with, if it has no text.
pub fn first_line(parts: &[Part]) -> String {
    let line = |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).map(cut);
    let typed = parts.iter().find_map(|part| match part {
        Part::Text { text } => line(text),
        _ => None,
    });
    let other = || {
        parts.iter().find_map(|part| match part {
            Part::Text { .. } => None,
            Part::Paste { text } => line(text),
            Part::File { path, .. } => Some(path.clone()),
            Part::Image { .. } => Some("[image]".to_owned()),
        })
    };
    typed.or_else(other).unwrap_or_default()
}

/// A line that is shown and stored beside the text it is of.
fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_FIRST_LINE) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
