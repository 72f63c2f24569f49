//! Who changed which paths between two points: for `diff --by`.
//!
//! Changes that no checkpoint has found yet are nobody's so far, and count as made outside.

use std::collections::{HashMap, HashSet};

use retake_engine::changes::{Owner, PathChange};
use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::SessionId;
use retake_engine::snapshot::Change;
use retake_engine::view::Beside;
use retake_engine::view::{Current, Side};
use retake_engine::{StoreError, Workspace, WorkspacePath};

/// Whose changes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Any session's.
    Agent,
    /// Nobody's who works through Retake.
    Outside,
    Session(SessionId),
}

/// Who changed what.
#[derive(Debug, Default)]
pub struct Authors {
    by_path: HashMap<WorkspacePath, Vec<Owner>>,
}

impl Authors {
    /// Between two points, in whichever order they are; up to now if there is no second one.
    pub fn between(
        workspace: &Workspace,
        from: &Checkpoint,
        to: Option<&Checkpoint>,
        current: Option<&Current>,
    ) -> Result<Self, StoreError> {
        let newest_first = workspace.checkpoints().all()?;
        let age = |wanted: &Checkpoint| newest_first.iter().position(|point| point.id == wanted.id);
        let (older, newer) = match to {
            Some(to) if age(from) < age(to) => (to, Some(from)),
            to => (from, to),
        };
        let mut authors = Self::default();
        for PathChange { path, owner, .. } in workspace.changes().between(older, newer)? {
            authors.by_path.entry(path).or_default().push(owner);
        }
        if let (Some(current), Some(newest)) = (current, newest_first.first()) {
            let changes = workspace.diff(&Side::Stored(newest.snapshot), &Side::Now(current))?;
            for Change { path, .. } in workspace.checkpoints().split_left_out(changes, &Beside::Now(current))?.0 {
                authors.by_path.entry(path).or_default().push(Owner::Outside);
            }
        }
        Ok(authors)
    }

    /// Whether `author` changed `path`, or may have.
    pub fn has(&self, author: Author, path: &WorkspacePath) -> bool {
        self.by_path.get(path).is_some_and(|owners| owners.iter().any(|owner| is_by(owner, author)))
    }

    /// Paths that `author` changed and somebody else too.
    pub fn shared(&self, author: Author) -> HashSet<&WorkspacePath> {
        let is_shared = |owners: &[Owner]| {
            let others = owners.iter().filter(|owner| **owner == Owner::Contested || !is_by(owner, author));
            owners.iter().any(|owner| is_by(owner, author)) && 0 < others.count()
        };
        self.by_path.iter().filter(|(_, owners)| is_shared(owners)).map(|(path, _)| path).collect()
    }
}

/// Whether a change is the author's. What is contested may be anybody's; a rewind is its session's, or the user's own.
fn is_by(owner: &Owner, author: Author) -> bool {
    match (owner, author) {
        (Owner::Contested, _) => true,
        (Owner::Outside, author) => author == Author::Outside,
        (Owner::Session { .. }, Author::Agent) => true,
        (Owner::Session { session, .. }, author) => author == Author::Session(*session),
        (Owner::Retake { session: Some(_), .. }, Author::Agent) => true,
        (Owner::Retake { session: Some(session), .. }, author) => author == Author::Session(*session),
        (Owner::Retake { session: None, .. }, author) => author == Author::Outside,
    }
}
