//! What is said in the chat, for people. Pure.

use retake_agent::contract::CheckpointFacts;
use retake_agent::rewind_document::{Bytes, ConflictFacts, RewindDocument};
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::Part;
use retake_engine::session::{Target, TurnSummary};
use retake_engine::snapshot::Changed;
use serde_json::Value;

use crate::extension::answer::{LATE, Snapshot, date};
use crate::extension::backend::Fork;
use crate::wire::RpcError;

/// Lines of a list.
const MAX_LINES: usize = 50;
/// Paths that are named.
const MAX_PATHS: usize = 20;
/// Digits of an id that are shown; every command takes them.
const ID_DIGITS: usize = 8;

/// A change that a command wants.
pub(super) enum RequestedChange {
    Undo,
    Redo,
    /// Going back to a point.
    Rewind {
        point: String,
    },
}

impl RequestedChange {
    /// Names the change before it is made, by its plan.
    pub(super) fn wanted(&self, plan: &RewindDocument) -> String {
        match self {
            Self::Undo => format!("Undo {}", plan.what),
            Self::Redo => format!("Redo {}", plan.what),
            Self::Rewind { point } => format!("Rewind to {point}"),
        }
    }

    /// What the change means for files, for the first line of a question.
    pub(super) fn meaning(&self, plan: &RewindDocument) -> &'static str {
        match (self, plan.means) {
            (Self::Rewind { .. }, Some(means)) => means.describe(),
            (Self::Rewind { .. }, None) => "the conversation only",
            (Self::Undo, _) => "takes back the changes of this operation",
            (Self::Redo, _) => "makes the changes of this operation again",
        }
    }

    /// Names the change once it is made.
    pub(super) fn done(&self) -> String {
        match self {
            Self::Undo => "Undone".to_owned(),
            Self::Redo => "Redone".to_owned(),
            Self::Rewind { point } => format!("Back to {point}"),
        }
    }
}

/// An error for people.
pub(super) fn refused(error: &RpcError) -> String {
    let hint = error.data.as_ref().and_then(|data| data.get("hint")).and_then(Value::as_str);
    let hint = hint.map(|hint| format!("\n\n{hint}")).unwrap_or_default();
    format!("Not done: {}.{hint}", error.message)
}

/// The prompts that one can go back to with the command `rewind`.
pub(super) fn list(targets: &[Target], rewind: &str, snapshot_of: impl Fn(EntryId) -> Snapshot) -> String {
    if targets.is_empty() {
        return "Nothing was said yet, so there is nothing to go back to.".to_owned();
    }
    let mut text = "Prompts, the newest first:\n\n".to_owned();
    for target in targets.iter().take(MAX_LINES) {
        text.push_str(&line(target, snapshot_of(target.id)));
    }
    let more = targets.len().saturating_sub(MAX_LINES);
    if more > 0 {
        text.push_str(&format!("\n… and {more} older ones\n"));
    }
    text.push_str(&format!(
        "\n`/{rewind} N` goes back to before prompt N, with files and conversation; `/{rewind} N code` or \
         `/{rewind} N conversation` with one of them."
    ));
    text
}

fn line(target: &Target, snapshot: Snapshot) -> String {
    let TurnSummary { added, modified, deleted, ref outside, .. } = target.files;
    let changed = counts(Changed { added, modified, deleted });
    let outside: Vec<String> = outside.iter().map(|item| format!("{}: {}", item.kind, item.what)).collect();
    let outside = match outside.is_empty() {
        true => String::new(),
        false => format!("; stays outside the files: {}", outside.join(", ")),
    };
    let label = target.label.as_ref().map(|label| format!(" [{label}]")).unwrap_or_default();
    let warning = match (target.has_files, snapshot) {
        (false, _) => " (its files are not kept: conversation only)".to_owned(),
        (true, Snapshot::Late) => format!(" ({LATE})"),
        (true, Snapshot::Complete) => String::new(),
    };
    format!("- **{}.** {}{label}, {changed}{outside}{warning} `{}`\n", target.number, target.text, target.id.short())
}

fn counts(changed: Changed) -> String {
    let counts = [(changed.added, "added"), (changed.modified, "modified"), (changed.deleted, "deleted")];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if counts.is_empty() { "no files".to_owned() } else { format!("files: {}", counts.join(", ")) }
}

/// What has to be decided.
pub(super) fn conflicts(conflicts: &[ConflictFacts]) -> String {
    let lines = conflicts.iter().take(MAX_PATHS).map(|one| format!("- `{}`: {}\n", name(&one.path), one.text));
    let lines: String = lines.collect();
    format!("These files were changed by others too:\n\n{lines}{}", and_more(conflicts.len()))
}

/// What was done, what the user has to know of it, and `back`: how that is reversed.
pub(super) fn done(document: &RewindDocument, what: &str, is_cut: bool, warnings: &[String], back: &str) -> String {
    let means = document.means.map(|means| format!(": {}", means.describe())).unwrap_or_default();
    let mut text = format!("{what}{means}.\n");
    let changed: Vec<_> = document.files.iter().filter(|file| file.action.is_some()).collect();
    let line = |action: &str, path: &Bytes, status: &str| format!("- {action} `{}`: {status}\n", name(path));
    let lines = changed.iter().take(MAX_PATHS);
    let lines: String =
        lines.map(|file| line(file.action.as_deref().unwrap_or_default(), &file.path, &file.status)).collect();
    match (lines.is_empty(), document.scope) {
        (true, Some(Scope::Conversation)) => {}
        (true, _) => text.push_str("\nNo file had to be changed.\n"),
        (false, _) => text.push_str(&format!("\n{lines}{}", and_more(changed.len()))),
    }
    let left_before = document.conversation.as_ref().map(|planned| planned.left_before.as_slice()).unwrap_or_default();
    for prompt in left_before.iter().take(MAX_PATHS) {
        text.push_str(&format!(
            "- files went back too of a prompt that left the conversation earlier: {}\n",
            prompt.text
        ));
    }
    text.push_str(&and_more(left_before.len()));
    for one in document.not_restored.iter().take(MAX_PATHS) {
        text.push_str(&line("did not go back:", &one.path, &one.text));
    }
    text.push_str(&and_more(document.not_restored.len()));
    for path in document.already.iter().take(MAX_PATHS) {
        text.push_str(&line(
            "as before already:",
            path,
            "its change may come back, out of git's stash or another branch",
        ));
    }
    text.push_str(&and_more(document.already.len()));
    for gap in document.gaps.gaps.iter().take(MAX_PATHS) {
        text.push_str(&line("not captured:", &gap.path, &gap.text));
    }
    text.push_str(&and_more(usize::try_from(document.gaps.gaps_total).unwrap_or(usize::MAX)));
    for item in document.ledger.iter().take(MAX_PATHS) {
        let remedy = item.remedy.as_ref().map(|remedy| format!(" (`{remedy}` would)")).unwrap_or_default();
        text.push_str(&format!("- cannot be undone: {}{remedy}\n", item.what));
    }
    text.push_str(&and_more(document.ledger.len()));
    if let Some(draft) = document.conversation.as_ref().and_then(|planned| planned.draft.as_ref()).filter(|_| is_cut) {
        let said: Vec<&str> = draft.iter().filter_map(words).collect();
        if !said.is_empty() {
            text.push_str(&format!("\nYou had said:\n\n> {}\n", said.join("\n").replace('\n', "\n> ")));
        }
    }
    warnings.iter().for_each(|warning| text.push_str(&format!("\nNote: {warning}.\n")));
    if is_cut {
        text.push_str(
            "\nThe conversation is another one now; what this window shows of the rest is no longer part of it.\n",
        );
    }
    if document.operation.is_some() {
        text.push_str(&format!("\n{back}"));
    }
    text
}

fn and_more(count: usize) -> String {
    match count.saturating_sub(MAX_PATHS) {
        0 => String::new(),
        more => format!("- … and {more} more\n"),
    }
}

/// The checkpoints of a workspace.
pub(super) fn checkpoints(checkpoints: &[CheckpointFacts]) -> String {
    if checkpoints.is_empty() {
        return "There are no checkpoints yet.".to_owned();
    }
    let line = |point: &CheckpointFacts| {
        let name = point.label.as_ref().or(point.note.as_ref()).map(|name| format!(" {name}")).unwrap_or_default();
        // A prompt's has the numbers that it has in the list of prompts.
        let changed = match point.turn {
            Some(turn) => counts(turn),
            None => format!("{} since the one before", counts(point.changed)),
        };
        format!("- `{}` {}{name}, {changed}\n", short(&point.checkpoint), date(point.at))
    };
    let lines: String = checkpoints.iter().take(MAX_LINES).map(line).collect();
    format!(
        "Checkpoints of the workspace, the newest first:\n\n{lines}\n`retake rewind ID` on the command line brings files back to one."
    )
}

/// A session was forked.
pub(super) fn forked(fork: &Fork) -> String {
    let name = &fork.name;
    let command = fork.command.as_ref().map(|command| format!(", or with `{command}`")).unwrap_or_default();
    format!("Forked: the new session is `{name}`. Open it from the list of sessions{command}; this one stays as it is.")
}

/// A point has a name, or has none any more.
pub(super) fn labelled(target: &Target, label: Option<&str>) -> String {
    let point = format!("The point before prompt {}, \"{}\",", target.number, target.text);
    match label {
        Some(label) => {
            format!("{point} is called \"{label}\" now, and is kept. `retake rewind \"{label}\"` goes back to it, too.")
        }
        None => format!("{point} has no label any more."),
    }
}

/// A summary was made.
pub(super) fn summarised(summary: &str, undo: &str) -> String {
    format!("The model sees this summary from now on; `/{undo}` takes that back.\n\n{summary}")
}

/// The beginning of an id, as people see and type it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..ID_DIGITS).unwrap_or(id)
}

fn name(path: &Bytes) -> String {
    match path {
        Bytes::Text(text) => text.clone(),
        Bytes::Base64 { bytes } => format!("base64:{bytes}"),
    }
}

fn words(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } | Part::Paste { text } => Some(text),
        Part::File { .. } | Part::Image { .. } => None,
    }
}
