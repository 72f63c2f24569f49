//! What undoing a command would do, as `exec` tells it: the plan of that undo is the only source.
//!
//! Reads only. Where the command cannot be undone by itself, inside an agent's turn say, there is no plan, and nothing is promised.

use std::collections::BTreeSet;

use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Conflict, Goal, Plan, PlannedPath, RewindRequest};
use retake_engine::snapshot::UncapturedChange;
use retake_engine::{StoreError, Workspace, WorkspacePath};

use super::{KEEPING, RanCommand, way_back};

/// What the undo of a command would do.
pub struct Undo(Plan);

/// Whether and how going back takes back what a command changed.
pub enum Back {
    /// Nothing of it.
    No,
    /// All but what cannot be saved, by these words.
    By(String),
}

impl Undo {
    /// The plan of the undo of `ran`; `None` if it cannot be undone by itself.
    pub fn plan(workspace: &Workspace, ran: &RanCommand) -> Option<Self> {
        let goal = Goal::Undo { operation: Some(ran.operation), session: None };
        workspace.rewinds().plan(&RewindRequest::new(goal), &NoProgress).ok().map(Self)
    }

    fn planned(&self, path: &WorkspacePath) -> Option<&PlannedPath> {
        self.0.paths.iter().find(|planned| planned.path == *path)
    }

    /// Whether no choice brings `path` back.
    pub fn is_stuck(&self, path: &WorkspacePath) -> bool {
        let conflict = self.planned(path).and_then(|planned| planned.conflict);
        conflict.is_some_and(|conflict| !conflict.can_overwrite())
    }

    /// Those of `hidden` that stay, each with why.
    pub fn staying<'h>(&self, hidden: &'h BTreeSet<WorkspacePath>) -> Vec<(&'h WorkspacePath, String)> {
        let not_restored = self.0.not_restored();
        let why = |path: &WorkspacePath| not_restored.iter().find(|one| one.path.starts_with(path));
        hidden.iter().filter_map(|path| Some((path, why(path)?.text.clone()))).collect()
    }
}

impl Back {
    /// What takes back the changes of `ran`, of which `restorable` are not captured as they are now.
    pub fn of(
        workspace: &Workspace,
        ran: &RanCommand,
        undo: Option<&Undo>,
        restorable: &[&UncapturedChange],
    ) -> Result<Self, StoreError> {
        let Some(undo) = undo else { return Ok(Self::By(way_back(workspace, ran, "")?)) };
        let stuck = restorable.iter().filter(|one| undo.is_stuck(&one.path)).count();
        if stuck > 0 && stuck == restorable.len() && undo.0.paths.iter().all(|path| undo.is_stuck(&path.path)) {
            return Ok(Self::No);
        }
        let option = if stuck > 0 { KEEPING } else { "" };
        let way = way_back(workspace, ran, option)?;
        let is_open = |planned: &PlannedPath| planned.conflict == Some(Conflict::UncapturedSince);
        Ok(Self::By(match stuck == 0 && undo.0.paths.iter().any(is_open) {
            true => format!("{way}, once you decide on what cannot be captured"),
            false => way,
        }))
    }
}
