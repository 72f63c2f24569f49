//! What a run has met: a generator that no longer makes one of these is noticed.

use std::collections::BTreeMap;
use std::fmt;

use crate::cases::Tally;

/// Everything that a thousand stories have to bring up.
const ALL: &[&str] = &[
    "action: delete",
    "action: mode",
    "action: recreate",
    "action: restore",
    "action: unchanged, with a conflict",
    "by: contested",
    "by: outside",
    "by: retake",
    "by: session, certain",
    "by: session, presumed",
    "change: captured for the first time",
    "change: created hidden",
    "change: held",
    "change: left out",
    "change: not captured any more",
    "change: uncovered",
    "choice: keep",
    "choice: merge",
    "choice: overwrite",
    "choice: stop",
    "conflict: changed by others",
    "conflict: changed later",
    "conflict: changed since",
    "conflict: contested",
    "conflict: in the way",
    "conflict: not captured",
    "conflict: uncaptured since",
    "conflict: unknown then",
    "conflict: yours",
    "goal: exact",
    "goal: redo",
    "goal: selective",
    "goal: undo",
    "goal: undo of an operation",
    "kept: hidden",
    "kept: holds others",
    "kept: not captured",
    "kept: not proven",
    "none: already undone",
    "none: not finished",
    "none: not reversible",
    "none: nothing to redo",
    "none: nothing to undo",
    "none: running",
    "outcome: applied",
    "outcome: in use",
    "outcome: nothing to do",
    "outcome: refused",
    "refused: a directory cannot give way",
    "resolved: kept",
    "resolved: merged",
    "resolved: overwritten",
    "rewind: a conflict decided by itself",
    "rewind: captured what the rules leave out",
    "rewind: saved what a tool hid",
    "rewind: only some paths",
    "rewind: plan shown first",
    "rewind: while a window is open",
    "round: back and forth",
    "round: checkpoint",
    "round: edit",
    "round: editor begins",
    "round: reopen",
    "round: shell begins",
    "round: window ends",
    "round: window lost",
    "round: windows of both overlap",
    "undone: exec",
];

/// How often each was met.
#[derive(Debug, Default)]
pub(super) struct Met(BTreeMap<&'static str, u64>);

impl Met {
    /// Counts one.
    pub(super) fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

impl Tally for Met {
    fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
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
