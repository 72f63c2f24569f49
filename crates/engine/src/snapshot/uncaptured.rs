//! What changed beside two snapshots: paths that neither can bring back, because their content was not captured.
//!
//! Compares asides, and asks the snapshots only about names that differ. Claims a change only where the size, the type or the
//! permissions differ, or where a path came or went; another time alone means that the path may have changed. Of ignored paths nothing
//! is known but whether they are there.

use std::collections::BTreeSet;

use super::presence::{Evidence, Presence};
use crate::base::path::{WorkspacePath, join};
use crate::store::StoreError;
use crate::store::tree::{AsideEntry, GapKind, Looks, Node, Reasons};

/// A change of a path whose content one of two checkpoints does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncapturedChange {
    /// The path.
    pub path: WorkspacePath,
    /// How it differs.
    pub difference: Difference,
    /// Why it was not captured.
    pub left_out: LeftOut,
    /// Whether it was captured before: how it was then can be brought back.
    pub was_captured: bool,
}

/// How a path differs between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Difference {
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
    /// It is another one.
    Changed,
    /// It may be another one.
    Possible,
}

impl Difference {
    /// The difference as a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::Possible => "possible",
        }
    }

    /// The difference in words that follow a path.
    pub fn describe(self) -> &'static str {
        match self {
            Self::New => "is new",
            Self::Gone => "is gone",
            Self::Changed => "has changed",
            Self::Possible => "may have changed",
        }
    }
}

/// Why a path's content was not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// It was a gap.
    Gap(GapKind),
    /// A rule ignored it.
    Ignored,
}

impl LeftOut {
    /// The reason as a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap(kind) => kind.name(),
            Self::Ignored => "ignored",
        }
    }

    /// The reason in words.
    fn describe(self) -> &'static str {
        match self {
            Self::Gap(kind) => kind.describe(),
            Self::Ignored => "it was ignored: not captured",
        }
    }
}

impl UncapturedChange {
    /// The change in words that follow the path.
    pub fn describe(&self) -> String {
        format!("{}; {}", self.difference.describe(), self.left_out.describe())
    }
}

/// What changed from `then` to `now` without being captured, by path.
pub(crate) fn changes(then: &Evidence<'_>, now: &Evidence<'_>) -> Result<Vec<UncapturedChange>, StoreError> {
    let mut found = Vec::new();
    let mut queue = vec![(Vec::new(), then.aside(), now.aside())];
    while let Some((directory, before, after)) = queue.pop() {
        // Equal asides tell of the same names, and that they looked the same.
        if before == after {
            continue;
        }
        let (before, after) = (then.lines(before)?, now.lines(after)?);
        let names: BTreeSet<&[u8]> = before.iter().chain(after.iter()).map(|line| line.name.as_slice()).collect();
        for name in names {
            let line = |lines: &[AsideEntry]| lines.iter().find(|line| line.name == name).cloned();
            let (before, after) = (line(&before), line(&after));
            let child = |line: &Option<AsideEntry>| line.as_ref().and_then(|line| line.child);
            let path = join(&directory, name);
            let parsed = WorkspacePath::parse(&path).expect("asides hold plain names only");
            if let Some((difference, left_out)) = compare(&parsed, before.as_ref(), after.as_ref(), then, now)? {
                let was_captured = matches!(then.at(&parsed)?, Presence::There(_));
                found.push(UncapturedChange { path: parsed, difference, left_out, was_captured });
            }
            queue.push((path, child(&before), child(&after)));
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// How `path` differs, if it is known to or may.
fn compare(
    path: &WorkspacePath,
    before: Option<&AsideEntry>,
    after: Option<&AsideEntry>,
    then: &Evidence<'_>,
    now: &Evidence<'_>,
) -> Result<Option<(Difference, LeftOut)>, StoreError> {
    let gap = |line: Option<&AsideEntry>| line.and_then(|line| line.reasons.gaps().find(|kind| kind.is_uncaptured()));
    let looks = |line: Option<&AsideEntry>| line.and_then(|line| line.looks);
    let is_ignored = |line: Option<&AsideEntry>| line.is_some_and(|line| line.reasons.0 & Reasons::IGNORED != 0);
    Ok(match (gap(before), gap(after)) {
        (Some(was), Some(is)) => {
            let is_same = was == is && looks(before) == looks(after);
            let difference = between(looks(before), looks(after)).filter(|_| !is_same);
            difference.map(|difference| (difference, LeftOut::Gap(is)))
        }
        (Some(was), None) => {
            let difference = match now.at(path)? {
                Presence::Absent => Some(Difference::Gone),
                // It is in the workspace, and that is all that is known of it.
                Presence::There(_) if was == GapKind::Purged => None,
                Presence::There(node) => Some(since_gap(looks(before), &node)),
                // A rule leaves it out now, so that nothing tells what has become of it.
                Presence::Unknown => Some(Difference::Possible),
            };
            difference.map(|difference| (difference, LeftOut::Gap(was)))
        }
        (None, Some(is)) => {
            let difference = match then.at(path)? {
                Presence::Absent => Some(Difference::New),
                Presence::There(_) => Some(Difference::Changed),
                Presence::Unknown => None,
            };
            difference.map(|difference| (difference, LeftOut::Gap(is)))
        }
        (None, None) if is_ignored(before) && !is_ignored(after) && now.at(path)? == Presence::Absent => {
            Some((Difference::Gone, LeftOut::Ignored))
        }
        (None, None) => None,
    })
}

/// How two gaps differ; `None` if they look the same.
fn between(before: Option<Looks>, after: Option<Looks>) -> Option<Difference> {
    match (before, after) {
        (Some(before), Some(after)) if before == after => None,
        (Some(before), Some(after)) if (before.mode, before.size) != (after.mode, after.size) => {
            Some(Difference::Changed)
        }
        _ => Some(Difference::Possible),
    }
}

/// How a path that is captured now differs from the gap that it was.
fn since_gap(before: Option<Looks>, now: &Node) -> Difference {
    match before {
        Some(before) if before.size != now.size => Difference::Changed,
        _ => Difference::Possible,
    }
}
