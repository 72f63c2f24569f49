//! Checkpoints that the model makes for itself: it explores, then goes back to one and keeps a report.
//!
//! Everything is worked out from the log: which checkpoints are open, whether a rewind was asked for and is still to be made, and what the
//! model is told of what it leaves behind. So it is the same after a restart, a rewind of the user's or an undo.

use std::collections::BTreeSet;

use retake_engine::id::EntryId;
use retake_engine::session::entry::{
    Block, Body, CallId, Details, EndReason, Entry, Outcome, SummaryBy, Todo, TodoState,
};
use retake_engine::session::last_words;

use crate::limits;
use crate::tool::{self, EDIT_TOOLS, Output};

/// A checkpoint that the model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelCheckpoint {
    /// The result of the call that made it.
    pub(crate) entry: EntryId,
    /// What it is called.
    pub(crate) name: Option<String>,
    /// What the model was about to find out.
    pub(crate) goal: String,
}

impl ModelCheckpoint {
    fn in_words(&self) -> String {
        self.name.as_ref().map_or_else(|| "your checkpoint".to_owned(), |name| format!("your checkpoint `{name}`"))
    }
}

/// The checkpoints of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelCheckpoints {
    /// Those that can be gone back to, the innermost last.
    pub(crate) open: Vec<ModelCheckpoint>,
    /// Those that were gone back to, the newest last.
    rewound: Vec<ModelCheckpoint>,
    /// Those that the model does not see any more, because the user cleared or summarised the conversation.
    gone: Vec<ModelCheckpoint>,
}

impl ModelCheckpoints {
    /// The checkpoints of the conversation that `entries` are.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut marks = Self::default();
        for entry in entries {
            match &entry.body {
                Body::ToolResult { details: Some(Details::Checkpoint { goal, name }), .. } => {
                    marks.open.push(ModelCheckpoint { entry: entry.id, name: name.clone(), goal: goal.clone() });
                }
                Body::Summary { by: SummaryBy::Model { checkpoint, .. }, from, to, .. } => {
                    // Those that were made since are part of what was left behind.
                    let left = covered(entries, *from, *to);
                    marks.open.retain(|mark| !left.iter().any(|entry| entry.id == mark.entry));
                    marks.rewound.extend(marks.open.extract_if(.., |mark| mark.entry == *checkpoint));
                }
                Body::Summary { by: SummaryBy::User, from, to, .. } => {
                    let covered = covered(entries, *from, *to);
                    let hidden = marks.open.extract_if(.., |mark| covered.iter().any(|entry| entry.id == mark.entry));
                    marks.gone.extend(hidden);
                }
                Body::Cleared => {
                    // Their reports are gone, too.
                    marks.gone.append(&mut marks.rewound);
                    marks.gone.append(&mut marks.open);
                }
                _ => {}
            }
        }
        marks
    }

    /// The checkpoint that a rewind is about, or why there is none.
    fn find(&self, name: Option<&str>) -> Result<&ModelCheckpoint, Output> {
        let is_meant = |mark: &&ModelCheckpoint| name.is_none_or(|name| mark.name.as_deref() == Some(name));
        if let Some(mark) = self.open.iter().rev().find(is_meant) {
            return Ok(mark);
        }
        let is_named = |mark: &&ModelCheckpoint| name.is_some() && mark.name.as_deref() == name;
        let what =
            name.map_or_else(|| "No active checkpoint".to_owned(), |name| format!("No active checkpoint `{name}`"));
        let why = if let Some(mark) = self.gone.iter().rev().find(is_named) {
            format!(
                "{} no longer exists: the user has taken what was before it out of the conversation",
                mark.in_words()
            )
        } else if self.rewound.iter().rev().find(is_meant).is_some() {
            "it was gone back to already, and its report is in the conversation. Go on from the report; to explore again, make a new \
             checkpoint first"
                .to_owned()
        } else if let Some(names) = self.names() {
            format!("those that are open are {names}")
        } else if self.gone.is_empty() {
            "make one with `checkpoint` before you explore".to_owned()
        } else {
            "the user has taken what was before it out of the conversation. Make a new one if you want to explore"
                .to_owned()
        };
        Err(Output::failed(format!("{what}; nothing was changed: {why}.")))
    }

    fn names(&self) -> Option<String> {
        let names = self
            .open
            .iter()
            .map(|mark| mark.name.as_ref().map_or("one without a name".to_owned(), |name| format!("`{name}`")));
        (!self.open.is_empty()).then(|| names.collect::<Vec<_>>().join(", "))
    }

    /// The result of a call of `checkpoint`.
    pub(crate) fn checkpoint(&self, goal: &str, name: Option<&str>) -> Output {
        if let Some(name) = name.filter(|name| self.open.iter().any(|mark| mark.name.as_deref() == Some(*name))) {
            return Self::taken(name);
        }
        let details = Details::Checkpoint { goal: goal.trim().to_owned(), name: name.map(str::to_owned) };
        let text = name.map_or_else(|| "Checkpoint made.".to_owned(), |name| format!("Checkpoint `{name}` made."));
        Output { details: Some(details), ..Output::done(text) }
    }

    /// The result of a call of `checkpoint` with a name that an open one has.
    pub(crate) fn taken(name: &str) -> Output {
        Output::failed(format!("There is an open checkpoint `{name}` already; choose another name."))
    }

    /// The result of a call of `rewind`.
    pub(crate) fn rewind(&self, report: &str, name: Option<&str>, restore_files: bool) -> Output {
        let report = report.trim();
        let mark = match self.find(name) {
            Ok(mark) => mark,
            Err(output) => return output,
        };
        if report.is_empty() {
            return Output::failed("The report cannot be empty: it is all that you keep. Nothing was changed.");
        }
        if report.len() > limits::MAX_REPORT {
            let (long, most) = (report.len(), limits::MAX_REPORT);
            return Output::failed(format!(
                "The report has {long} bytes, and at most {most} are kept; nothing was changed. Shorten it."
            ));
        }
        let details =
            Details::Rewound { report: report.to_owned(), rewound: true, checkpoint: mark.entry, restore_files };
        Output { details: Some(details), ..Output::done("Rewind requested. The report is kept.") }
    }
}

/// Whether an entry belongs to the calls of the reply before it.
fn is_round(entry: &Entry) -> bool {
    matches!(entry.body, Body::ToolResult { .. } | Body::Approved { .. })
}

/// The entries from `from` to `to`.
fn covered(entries: &[Entry], from: EntryId, to: EntryId) -> &[Entry] {
    let position = |id| entries.iter().position(|entry| entry.id == id);
    position(from).zip(position(to)).and_then(|(from, to)| entries.get(from..=to)).unwrap_or_default()
}

/// A rewind that the model asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rewind {
    /// The call that asked for it.
    pub(crate) call: CallId,
    pub(crate) mark: ModelCheckpoint,
    report: String,
    pub(crate) restore_files: bool,
    /// The first and the last entry that are left behind.
    pub(crate) range: (EntryId, EntryId),
}

/// What became of the files when the model went back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Restored {
    /// They were to stay.
    NotAsked,
    /// These went back.
    Done(Vec<String>),
    /// They went back before the process died that was asked to do it.
    Before,
    /// Nothing went back.
    Refused(String),
}

/// Background jobs, by their commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobCommands {
    pub(crate) ended: Vec<String>,
    pub(crate) running: Vec<String>,
}

impl Rewind {
    /// The rewind that is to be made now that all calls of the last reply have their results, if one was asked for.
    pub(crate) fn pending(entries: &[Entry]) -> Option<Self> {
        let begin = entries.len() - entries.iter().rev().take_while(|entry| is_round(entry)).count();
        let round = &entries[begin..];
        let (call, details) = round.iter().find_map(|entry| match &entry.body {
            Body::ToolResult { call, details: Some(details @ Details::Rewound { .. }), .. } => Some((call, details)),
            _ => None,
        })?;
        let Details::Rewound { report, checkpoint, restore_files, .. } = details else { return None };
        let mark = ModelCheckpoints::of(&entries[..begin]).open.into_iter().find(|mark| mark.entry == *checkpoint)?;
        let made = entries.iter().position(|entry| entry.id == mark.entry)?;
        let first = made + entries[made..].iter().take_while(|entry| is_round(entry)).count();
        let range = (entries.get(first)?.id, round.last()?.id);
        Some(Self { call: call.clone(), mark, report: report.clone(), restore_files: *restore_files, range })
    }

    /// The rewind that a process which died was about to make: the turn has been ended for it since.
    pub(crate) fn left(entries: &[Entry]) -> Option<Self> {
        let is_note = |entry: &&Entry| matches!(entry.body, Body::Note { .. });
        let end = entries.len() - entries.iter().rev().take_while(is_note).count();
        let (last, rest) = entries[..end].split_last()?;
        let was_cut = matches!(last.body, Body::Ended { reason: EndReason::Interrupted });
        was_cut.then(|| Self::pending(rest)).flatten()
    }

    /// What the model is told in place of what it leaves behind.
    pub(crate) fn frame(&self, entries: &[Entry], restored: &Restored, jobs: &JobCommands) -> String {
        let left = covered(entries, self.range.0, self.range.1);
        // The results of what was called together with the rewind stay.
        let last = left.iter().rposition(|entry| matches!(entry.body, Body::Reply { .. })).unwrap_or(left.len());
        let mut lines = vec![format!(
            "You went back to {}, which you had made for this: {}. What you did since then is no longer in this conversation; this report \
             of yours stands for it:\n\n<report>\n{}\n</report>",
            self.mark.in_words(),
            self.mark.goal,
            self.report
        )];
        lines.extend(shown_to_user(left));
        lines.extend(listed(
            "Files that you read meanwhile, whose contents are no longer above",
            files_read(&left[..last]),
        ));
        lines.extend(listed("What you changed or ran meanwhile", work(left)));
        lines.extend(self.files_now(left, restored));
        lines.extend(listed("Background jobs of yours that were ended for that", jobs.ended.iter().cloned().collect()));
        lines.extend(listed("Background jobs that go on", jobs.running.iter().cloned().collect()));
        lines.extend(todo_list(entries, left));
        lines.push("The checkpoint is closed. Go on from here with what the report says.".to_owned());
        lines.join("\n\n")
    }

    fn files_now(&self, left: &[Entry], restored: &Restored) -> Option<String> {
        match restored {
            Restored::NotAsked if work(left).is_empty() => None,
            Restored::NotAsked => Some("All files are as they are now: nothing of that was taken back.".to_owned()),
            Restored::Done(files) if files.is_empty() => Some("There were no files to take back.".to_owned()),
            Restored::Before => Some("What you changed was taken back to how it was at the checkpoint.".to_owned()),
            Restored::Done(files) => listed(
                "These files were taken back to how they were at the checkpoint",
                files.iter().cloned().collect(),
            ),
            Restored::Refused(why) => Some(format!("The files were NOT taken back, and are as they are now: {why}")),
        }
    }
}

/// What the model told the user in `left`, so that it does not tell it again.
fn shown_to_user(left: &[Entry]) -> Option<String> {
    let said = left.iter().map(|entry| last_words(std::slice::from_ref(entry)));
    let said: Vec<String> = said.filter(|text| !text.trim().is_empty()).collect();
    if said.is_empty() {
        return Some("Nothing of that was told to the user in words.".to_owned());
    }
    let whole = said.join("\n");
    let skipped = whole.len().saturating_sub(limits::MAX_SHOWN_AGAIN);
    let end = &whole[whole.ceil_char_boundary(skipped)..];
    let cut = if skipped > 0 { "[…] " } else { "" };
    Some(format!("The user has already been shown this, which need not be repeated:\n\n<shown>\n{cut}{end}\n</shown>"))
}

/// Calls in `left` that did what they were asked to, with their titles.
fn calls(left: &[Entry]) -> impl Iterator<Item = (&str, &str, &str)> {
    left.iter().enumerate().flat_map(move |(at, entry)| {
        let blocks = match &entry.body {
            Body::Reply { blocks, .. } => blocks.as_slice(),
            _ => &[],
        };
        blocks.iter().filter_map(move |block| {
            let Block::Call { id, name, arguments } = block else { return None };
            let title = left[at + 1..].iter().find_map(|entry| match &entry.body {
                Body::ToolResult { call, title, outcome: Outcome::Done, .. } if call == id => Some(title.as_str()),
                _ => None,
            })?;
            Some((name.as_str(), arguments.as_str(), title))
        })
    })
}

fn files_read(left: &[Entry]) -> BTreeSet<String> {
    let path = |arguments: &str| {
        let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
        arguments.get("path")?.as_str().map(str::to_owned)
    };
    calls(left).filter(|(name, ..)| *name == "read_file").filter_map(|(_, arguments, _)| path(arguments)).collect()
}

/// Calls that changed something, or could have.
fn work(left: &[Entry]) -> BTreeSet<String> {
    let reads = ["read_file", "list_dir", "glob", "grep", "todo", "job_output", tool::CHECKPOINT, tool::REWIND];
    let is_work = |name: &str| EDIT_TOOLS.contains(&name) || !reads.contains(&name);
    calls(left).filter(|(name, ..)| is_work(name)).map(|(.., title)| title.to_owned()).collect()
}

fn listed(what: &str, items: BTreeSet<String>) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let more = items.len().saturating_sub(limits::MAX_LISTED);
    let mut lines: Vec<String> = items.into_iter().take(limits::MAX_LISTED).map(|item| format!("- {item}")).collect();
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    Some(format!("{what}:\n{}", lines.join("\n")))
}

/// The todo list, if it changed in `left`: what is above shows an older one.
fn todo_list(entries: &[Entry], left: &[Entry]) -> Option<String> {
    let newest = |entries: &[Entry]| -> Option<Vec<Todo>> {
        entries.iter().rev().find_map(|entry| match &entry.body {
            Body::ToolResult { todos, .. } => todos.clone(),
            _ => None,
        })
    };
    newest(left)?;
    let item = |todo: Todo| {
        let state = match todo.state {
            TodoState::Pending => " ",
            TodoState::Active => ">",
            TodoState::Done => "x",
        };
        format!("- [{state}] {}", todo.text)
    };
    let items: Vec<String> = newest(entries)?.into_iter().map(item).collect();
    Some(if items.is_empty() {
        "The todo list is empty now.".to_owned()
    } else {
        format!("The todo list now:\n{}", items.join("\n"))
    })
}

/// What the model is reminded of when a summary hides that checkpoints are open.
pub(crate) fn reminder(entries: &[Entry]) -> Option<String> {
    let open = ModelCheckpoints::of(entries).open;
    let items = open.iter().map(|mark| {
        let name = mark.name.as_ref().map_or_else(|| "without a name".to_owned(), |name| format!("`{name}`"));
        format!("- {name}, made for this: {}", mark.goal)
    });
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("Checkpoints of yours that are open:\n{}", items.join("\n")))
}
