//! What did not go back: each path that changed since the target and is not as it was then, with why.
//!
//! Worked out from the plan and the outcome of each path, so that a plan and what came of it agree. Paths that others changed and that
//! the plan is not about are none of these.

use super::{Applied, Conflict, KeptBecause, OnConflict, PathStatus, Plan, PlannedPath};
use crate::base::path::WorkspacePath;
use crate::snapshot::uncaptured::{Difference, UncapturedChange};
use crate::store::tree::same;

/// A path that changed since the target and did not go back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRestored {
    /// The path.
    pub path: WorkspacePath,
    /// Whether it is known to have changed, and how.
    pub difference: Difference,
    /// Why it did not go back, for programs.
    pub why: &'static str,
    /// The same in words that follow the path.
    pub text: String,
}

impl NotRestored {
    fn kept(path: &WorkspacePath, why: KeptBecause) -> Self {
        let difference = match why {
            KeptBecause::IgnoredThen | KeptBecause::NotCaptured | KeptBecause::Hidden | KeptBecause::SaveLimit => {
                Difference::New
            }
            KeptBecause::HoldsOthers => Difference::Changed,
            KeptBecause::NotProven => Difference::Possible,
        };
        Self { path: path.clone(), difference, why: why.name(), text: why.describe().to_owned() }
    }

    fn conflict(path: &PlannedPath, conflict: Conflict) -> Self {
        let is_known = path.now.is_some() || path.target.is_some();
        let is_known = is_known && !matches!(conflict, Conflict::NotCaptured | Conflict::UnknownThen);
        let difference = if is_known { Difference::Changed } else { Difference::Possible };
        Self { path: path.path.clone(), difference, why: conflict.name(), text: path.why().unwrap_or_default() }
    }

    fn merged(path: &PlannedPath) -> Self {
        let text = "merged: what others changed in it stays".to_owned();
        Self { path: path.path.clone(), difference: Difference::Changed, why: "merged", text }
    }

    fn overtaken(path: &WorkspacePath) -> Self {
        let text = "was changed by somebody else meanwhile, and is as they left it".to_owned();
        Self { path: path.clone(), difference: Difference::Changed, why: "overtaken", text }
    }

    fn uncaptured(change: &UncapturedChange) -> Self {
        let UncapturedChange { path, difference, left_out, .. } = change;
        Self { path: path.clone(), difference: *difference, why: left_out.name(), text: change.describe() }
    }
}

impl Plan {
    /// What would not go back, by path: what was chosen to stay, what has to, and what no checkpoint holds.
    pub fn not_restored(&self) -> Vec<NotRestored> {
        self.not_restored_after(|_| PathStatus::Done)
    }

    fn not_restored_after(&self, status: impl Fn(&WorkspacePath) -> PathStatus) -> Vec<NotRestored> {
        let of_path = |path: &PlannedPath| match (path.conflict, path.choice, status(&path.path)) {
            (Some(conflict), OnConflict::Keep, _) => Some(NotRestored::conflict(path, conflict)),
            (None, _, PathStatus::Kept) => Some(NotRestored::kept(&path.path, KeptBecause::HoldsOthers)),
            (_, _, PathStatus::Overtaken) if !same(path.now.as_ref(), path.result().as_ref()) => {
                Some(NotRestored::overtaken(&path.path))
            }
            _ if path.is_merged() => Some(NotRestored::merged(path)),
            _ => None,
        };
        let mut all: Vec<NotRestored> = self.paths.iter().filter_map(of_path).collect();
        all.extend(self.kept.iter().map(|kept| NotRestored::kept(&kept.path, kept.why)));
        all.extend(self.uncaptured.iter().map(NotRestored::uncaptured));
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all.dedup_by(|a, b| a.path == b.path);
        all
    }
}

impl Applied {
    /// What changed since the target and did not go back, by path.
    pub fn not_restored(&self) -> Vec<NotRestored> {
        let status = |path: &WorkspacePath| {
            let found = self.statuses.binary_search_by(|(other, _)| other.cmp(path));
            found.map_or(PathStatus::Done, |at| self.statuses[at].1)
        };
        self.plan.not_restored_after(status)
    }
}
