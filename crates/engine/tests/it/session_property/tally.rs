//! What a run has met: a generator that no longer makes one of these is noticed.

use std::collections::BTreeMap;
use std::fmt;

use crate::cases::Tally;

/// Everything that a thousand stories have to bring up.
const ALL: &[&str] = &[
    "another session",
    "clear",
    "collect",
    "compaction: of the turn's own work",
    "compaction: of what is before the prompt",
    "compaction: with an open checkpoint",
    "delete: a fork",
    "delete: with a fork that stays",
    "delete: with an undone fork",
    "delete: with forks that stay",
    "delete: without forks",
    "discard",
    "discard: kept for a fork",
    "draft: taken back",
    "draft: the user's stays",
    "fork: after another entry",
    "fork: before a prompt",
    "fork: from what is not of the session",
    "fork: inside a compaction",
    "fork: inside a summary",
    "fork: inside what the model left behind",
    "fork: no target",
    "fork: of a branch that was left",
    "fork: of a fork",
    "fork: of what is inherited",
    "fork: with a note",
    "in conflict with others",
    "instructions",
    "model's rewind",
    "model's rewind: across a compaction",
    "model's rewind: across a summary of the user's",
    "model's rewind: across another",
    "model's rewind: made for a process that died",
    "model's rewind: to an outer checkpoint",
    "model's rewind: with calls beside it",
    "model's rewind: with notes in its range",
    "model's rewind: with prompts in its range",
    "none: nothing to redo",
    "none: nothing to undo",
    "note: retracted",
    "note: told",
    "note: told again",
    "outside edit",
    "redo: clear",
    "redo: fork",
    "redo: rewind",
    "redo: summary",
    "redo: turn",
    "reopen",
    "rewind both",
    "rewind code",
    "rewind conversation",
    "rewind: Keep",
    "rewind: Overwrite",
    "rewind: across a clear",
    "rewind: across a model's rewind",
    "rewind: across a summary",
    "rewind: into the middle of a round",
    "rewind: no target",
    "rewind: takes back what is inherited",
    "rewind: to a branch that was left",
    "rewind: to what is not of the session",
    "summary: from there on",
    "summary: of a summary",
    "summary: of everything",
    "summary: of nothing",
    "summary: up to there",
    "turn",
    "turn: died before any output",
    "turn: died in the middle",
    "undo of an older operation",
    "undo of an older operation: refused",
    "undo of an older operation: the conversation stays",
    "undo: clear",
    "undo: fork",
    "undo: fork: Forked",
    "undo: fork: WentOn",
    "undo: of what was discarded",
    "undo: without effect",
    "undo: rewind",
    "undo: summary",
    "undo: turn",
];

/// How often each was met.
#[derive(Debug, Default)]
pub(super) struct Met(BTreeMap<String, u64>);

impl Met {
    /// Counts one.
    pub(super) fn add(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }
}

impl Tally for Met {
    fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    fn missing(&self) -> Vec<&'static str> {
        ALL.iter().filter(|what| !self.0.contains_key(**what)).copied().collect()
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(f, "{count:>9}  {what}"))
    }
}
