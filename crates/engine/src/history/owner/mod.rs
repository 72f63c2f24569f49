//! Ownership: who changed what.
//!
//! A tool call is bracketed by a *window*: a checkpoint is taken before it and after it, and whatever differs between two
//! checkpoints is attributed to the windows that were open in between. Paths that a tool declared are certainly its own;
//! what changed while a shell command ran is presumed to be; where windows of two sessions overlap, an undeclared path is
//! contested; without a window it came from outside. The judgement is [`attribute`], which knows no database.
//!
//! A process that is killed leaves its window open until the next checkpoint. What changed after it had died is contested too:
//! see [`heartbeat`].

pub(crate) mod heartbeat;
pub(crate) mod held;
pub(crate) mod hidden;
pub(crate) mod late_attribution;
pub(crate) mod rows;
pub(crate) mod span;
pub(crate) mod window;

use std::collections::BTreeSet;

use crate::base::id::{CheckpointId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::store::tree::Node;
use crate::workspace::Workspace;

pub use held::Coverage;
pub use late_attribution::Runs;
pub use span::{Claim, Counts, FileTime, Span, Spans};
pub use window::{Began, NewWindow, PartOf, Reach, Window, WindowId, Windows};

/// Who changed what in a workspace. From [`Workspace::changes`].
#[derive(Debug)]
pub struct Changes<'a>(pub(crate) &'a Workspace);

impl Workspace {
    /// Who changed what in it.
    pub fn changes(&self) -> Changes<'_> {
        Changes(self)
    }
}

/// How sure it is that a session made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The tool declared the path before it wrote it, or Retake wrote it itself.
    Certain,
    /// It changed while a command of that session ran.
    Presumed,
}

impl Certainty {
    /// The certainty as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Presumed => "presumed",
        }
    }
}

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody who works through Retake.
    Outside,
    /// More than one could have: sessions, or a tool that died, or that nobody told of in time, and somebody else.
    Contested,
    /// A tool of a session.
    Session {
        /// The session.
        session: SessionId,
        /// The turn, as the session calls it.
        turn: Option<String>,
        /// The tool.
        tool: String,
        /// How sure that is.
        certainty: Certainty,
    },
    /// Retake itself, in an operation.
    Retake {
        /// The operation.
        operation: OperationId,
        /// The session that it belongs to.
        session: Option<SessionId>,
    },
}

/// What happened to a path between a checkpoint and the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The path.
    pub path: WorkspacePath,
    /// Its state before; `None` if it was not there, or not captured.
    pub before: Option<Node>,
    /// Its state after; `None` if it was gone, or not captured any more.
    pub after: Option<Node>,
    /// The checkpoint that found it.
    pub checkpoint: CheckpointId,
    /// When that was taken.
    pub at: Timestamp,
    /// Who did it.
    pub owner: Owner,
}

/// Whether a difference between two checkpoints is a change at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// Something changed the path.
    Changed = 0,
    /// It may have been there before, but was not captured.
    Captured = 1,
    /// It may still be there, but is a gap now.
    Uncaptured = 2,
    /// It was created where an ignore rule hides it that is newer than the session; neither state is captured.
    Hidden = 3,
    /// A rewind took away the rule that hid it, or something below it.
    Uncovered = 4,
    /// It is still there, but an ignore rule leaves it out now.
    LeftOut = 5,
}

/// A verdict on ownership, in terms of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) verdict: Verdict,
    pub(crate) session: Option<i64>,
    pub(crate) window: Option<i64>,
    pub(crate) operation: Option<i64>,
}

/// What [`attribute`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Outside = 0,
    Certain = 1,
    Presumed = 2,
    Contested = 3,
}

impl By {
    pub(crate) const OUTSIDE: Self = Self { verdict: Verdict::Outside, session: None, window: None, operation: None };

    /// Retake's own write.
    pub(crate) fn operation(session: Option<i64>, operation: i64) -> Self {
        Self { verdict: Verdict::Certain, session, window: None, operation: Some(operation) }
    }
}

/// A window that was open between two checkpoints.
#[derive(Clone, Debug)]
pub(crate) struct OpenWindow {
    pub(crate) seq: i64,
    pub(crate) session: i64,
    pub(crate) operation: Option<i64>,
    pub(crate) reach: Reach,
    pub(crate) declared: BTreeSet<WorkspacePath>,
    /// When something in it counts, if that matters; `None` if it cannot be told.
    pub(crate) spans: Option<Vec<Span>>,
    /// When the tool ended, if it has.
    pub(crate) ended: Option<FileTime>,
}

/// Decides who changed `path` while `windows` (oldest first) were open; `changed` is when that was, if it matters and can be told.
pub(crate) fn attribute(path: &WorkspacePath, windows: &[OpenWindow], changed: Option<FileTime>) -> By {
    let claiming = |verdict| windows.iter().filter(move |window| window.claim(path, changed) == verdict);
    let certain = judge(claiming(Verdict::Certain), Verdict::Certain);
    let doubted = |by: By| claiming(Verdict::Contested).any(|window| Some(window.session) != by.session);
    let presumed = || {
        let by = judge(claiming(Verdict::Presumed), Verdict::Presumed)?;
        Some(if doubted(by) { contested() } else { by })
    };
    let doubtful = || claiming(Verdict::Contested).next().map(|_| contested());
    certain.or_else(presumed).or_else(doubtful).unwrap_or(By::OUTSIDE)
}

fn contested() -> By {
    By { verdict: Verdict::Contested, ..By::OUTSIDE }
}

/// The newest of `windows` if all are of one session.
fn judge<'a>(windows: impl Iterator<Item = &'a OpenWindow>, verdict: Verdict) -> Option<By> {
    let windows: Vec<_> = windows.collect();
    let newest = windows.last()?;
    if windows.iter().any(|window| window.session != newest.session) {
        return Some(contested());
    }
    Some(By { verdict, session: Some(newest.session), window: Some(newest.seq), operation: newest.operation })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text.as_bytes()).expect("plain")
    }

    fn window(seq: i64, session: i64, reach: Reach, declared: &[&str]) -> OpenWindow {
        let declared = declared.iter().map(|text| path(text)).collect();
        OpenWindow { seq, session, operation: None, reach, declared, spans: Some(Vec::new()), ended: None }
    }

    #[test]
    fn declared_is_certain_shell_is_presumed_two_sessions_contest() {
        let edit = window(1, 1, Reach::Declared, &["a"]);
        let shell = window(2, 1, Reach::Everything, &[]);
        let other = window(3, 2, Reach::Everything, &[]);
        let verdict = |name: &str, windows: &[OpenWindow]| {
            let by = attribute(&path(name), windows, None);
            (by.verdict, by.window)
        };
        assert_eq!(verdict("a", &[]), (Verdict::Outside, None));
        assert_eq!(verdict("a", std::slice::from_ref(&edit)), (Verdict::Certain, Some(1)));
        assert_eq!(verdict("b", std::slice::from_ref(&edit)), (Verdict::Outside, None));
        assert_eq!(verdict("b", &[edit.clone(), shell.clone()]), (Verdict::Presumed, Some(2)));
        assert_eq!(verdict("b", &[shell.clone(), other.clone()]), (Verdict::Contested, None));
        assert_eq!(verdict("a", &[edit, shell, other]), (Verdict::Certain, Some(1)), "declared is never contested");
        let both = [window(1, 1, Reach::Declared, &["a"]), window(2, 2, Reach::Declared, &["a"])];
        assert_eq!(verdict("a", &both), (Verdict::Contested, None), "unless both declared it");
    }

    #[test]
    fn a_change_after_the_tool_ended_is_contested() {
        let mut shell = window(1, 1, Reach::Everything, &["a"]);
        shell.ended = Some(FileTime(20));
        let verdict = |windows: &[OpenWindow], name, changed: Option<i64>| {
            attribute(&path(name), windows, changed.map(FileTime)).verdict
        };
        let alone = [shell.clone()];
        assert_eq!(verdict(&alone, "b", Some(20)), Verdict::Presumed, "the tool may have done it at its end");
        assert_eq!(verdict(&alone, "b", Some(21)), Verdict::Contested);
        assert_eq!(verdict(&alone, "a", Some(21)), Verdict::Contested, "declared or not");
        assert_eq!(verdict(&alone, "b", None), Verdict::Presumed, "it cannot be told when");
        let mut edit = window(2, 2, Reach::Declared, &["a"]);
        edit.ended = Some(FileTime(20));
        assert_eq!(verdict(&[edit], "b", Some(21)), Verdict::Outside, "it never was its own");
        let job = window(3, 1, Reach::Everything, &[]);
        assert_eq!(verdict(&[shell, job], "b", Some(21)), Verdict::Presumed, "another tool of the session is at work");
    }

    #[test]
    fn of_a_window_with_spans_only_what_changed_in_them_counts() {
        let span = |since, until, declared, others| Span {
            since: FileTime(since),
            until: Some(until).filter(|until| *until > 0).map(FileTime),
            paths: BTreeSet::from([path("a")]),
            declared,
            others,
            counts: Counts::Always,
        };
        let mut agent = window(1, 1, Reach::Spans, &[]);
        let verdict = |window: &OpenWindow, name: &str, changed: Option<i64>| {
            attribute(&path(name), std::slice::from_ref(window), changed.map(FileTime)).verdict
        };
        assert_eq!(verdict(&agent, "a", Some(15)), Verdict::Outside, "nothing was at work");
        agent.spans = Some(vec![
            span(5, 10, Claim::Doubtful, Claim::No),
            span(10, 20, Claim::Yes, Claim::Yes),
            span(30, 0, Claim::Yes, Claim::Doubtful),
        ]);
        let found = |name| [4, 7, 10, 20, 25, 35].map(|changed| verdict(&agent, name, Some(changed)));
        use Verdict::{Certain, Contested, Outside, Presumed};
        assert_eq!(found("a"), [Outside, Contested, Certain, Certain, Outside, Certain]);
        assert_eq!(found("b"), [Outside, Outside, Presumed, Presumed, Outside, Contested]);
        assert_eq!(verdict(&agent, "b", None), Contested, "it cannot be told when");
        agent.spans = None;
        assert_eq!(verdict(&agent, "b", Some(15)), Contested, "it cannot be told which");
        let by_both = |session| {
            let shell = window(2, session, Reach::Everything, &[]);
            attribute(&path("b"), &[agent.clone(), shell], Some(FileTime(15))).verdict
        };
        assert_eq!(by_both(1), Presumed, "both are the session's");
        assert_eq!(by_both(2), Contested, "it may be the other session's");
    }
}
