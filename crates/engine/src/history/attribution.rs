//! Attribution: who changed what between a checkpoint and the one before it, when it is recorded.

use std::collections::BTreeSet;

use super::capture::{Failure, Scene, evidence, may_be_there};
use super::checkpoint::{Checkpoint, Own, Purpose, RuleChanges};
use super::owner::heartbeat::Abandoned;
use super::owner::rows::{self, Attributed};
use super::owner::{By, ChangeKind, FileTime, OpenWindow, held, hidden};
use crate::base::path::WorkspacePath;
use crate::snapshot::diff::{Change, Changed};
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::StoreError;
use crate::store::tree::{Node, same};

/// A window whose process is gone, and when its tool ended at the latest.
pub(super) type Gone = (OpenWindow, FileTime);

impl Scene<'_> {
    /// What changed since the checkpoint before and who did it, and the windows whose processes are gone.
    pub(super) fn attribute(&self, purpose: &Purpose<'_>) -> Result<(Changed, Vec<Attributed>, Vec<Gone>), Failure> {
        let (changes, previous) = self.changes()?;
        let Some(previous) = previous else { return Ok((Changed::count(&changes), Vec::new(), Vec::new())) };
        let mut windows = rows::open_windows(self.store)?;
        if !self.clock_is_ours {
            windows.iter_mut().for_each(|window| window.ended = None);
        }
        let abandoned = Abandoned::find(self.store.dir(), &mut windows);
        if changes.is_empty() && previous.aside == self.scanned.aside {
            return Ok((Changed::default(), Vec::new(), abandoned.of(windows)));
        }
        let (then, now) = (evidence(self.store, &previous)?, self.evidence());
        let mut kinds = Vec::with_capacity(changes.len());
        for change in &changes {
            kinds.push(self.kind_of(change, purpose, &then, &now)?);
        }
        let paths = self.to_hold(purpose, &previous, &windows, changes.iter().zip(&kinds))?;
        if !paths.is_empty() {
            return Err(Failure::LeftOut { paths });
        }
        let mut counted = Vec::with_capacity(changes.len());
        for (change, kind) in changes.iter().zip(&kinds) {
            let is_new = matches!(kind, ChangeKind::Captured | ChangeKind::Uncovered);
            // A rule that comes deletes nothing, and one that goes adds nothing.
            if *kind != ChangeKind::LeftOut && !(is_new && then.is_left_out(&change.path)?) {
                counted.push(change);
            }
        }
        let changed = Changed::count(counted);
        let mut attributed = Vec::with_capacity(changes.len());
        for (path, by, changed) in hidden::created(self, &previous, &windows, &abandoned, &then)? {
            let after = hidden::directory_at(&self.root, &path);
            let change = Change { path, before: None, after };
            attributed.push(Attributed { change, kind: ChangeKind::Hidden, by, changed });
        }
        for (change, kind) in changes.into_iter().zip(kinds) {
            if let Some(by) = purpose.creator(&change.path).filter(|_| change.before.is_none()) {
                attributed.push(Attributed { change, kind: ChangeKind::Changed, by, changed: None });
                continue;
            }
            let (by, changed) = abandoned.attribute(&self.root, &change.path, &windows, &then)?;
            match purpose.own.as_ref().and_then(|own| Some((own, *own.put.get(&change.path)?))) {
                Some((own, put)) => attributed.extend(own_steps(change, kind, own, put, by)),
                None => attributed.push(Attributed { change, kind, by, changed }),
            }
        }
        Ok((changed, attributed, abandoned.of(windows)))
    }

    /// Whether `change` is one at all.
    fn kind_of(
        &self,
        change: &Change,
        purpose: &Purpose<'_>,
        then: &Evidence<'_>,
        now: &Evidence<'_>,
    ) -> Result<ChangeKind, StoreError> {
        let path = &change.path;
        if change.before.is_none() && then.at(path)? == Presence::Unknown {
            let is_left = purpose.own.as_ref().is_some_and(|own| !own.put.contains_key(path)) || purpose.enters(path);
            let is_uncovered = is_left && then.is_left_out(path)?;
            return Ok(if is_uncovered { ChangeKind::Uncovered } else { ChangeKind::Captured });
        }
        if change.after.is_none() && now.at(path)? == Presence::Unknown && may_be_there(&self.root, path) {
            return Ok(if now.is_left_out(path)? { ChangeKind::LeftOut } else { ChangeKind::Uncaptured });
        }
        Ok(ChangeKind::Changed)
    }

    /// Those of `changes` that have to stay captured: an agent or a command may have changed the rule that leaves them out, or an operation
    /// has brought such a rule back.
    fn to_hold<'c>(
        &self,
        purpose: &Purpose<'_>,
        previous: &Checkpoint,
        windows: &[OpenWindow],
        changes: impl Iterator<Item = (&'c Change, &'c ChangeKind)>,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let mut paths = BTreeSet::new();
        let is_left_out = |(change, kind): &(&Change, &ChangeKind)| {
            let is_file = held::is_holdable(change.before.map(|before| before.kind));
            **kind == ChangeKind::LeftOut && is_file && !self.sought.contains(&change.path)
        };
        let mut left_out = changes.filter(is_left_out).map(|(change, _)| &change.path).peekable();
        if purpose.rule_changes == RuleChanges::Apply || left_out.peek().is_none() {
            return Ok(paths);
        }
        let at_work = windows.iter().any(OpenWindow::may_change_rules);
        let target = purpose.own.as_ref().and_then(|own| own.target);
        // A path that a rewind captured once, in order to touch it, was captured by no rule.
        let last = rows::wanted_by(self.store, previous.id)?;
        let once = target.map(|target| rows::wanted_by(self.store, target.id)).transpose()?.unwrap_or_default();
        let target = target.map(|target| evidence(self.store, target)).transpose()?;
        for path in left_out.filter(|path| !last.contains(path)) {
            let was_captured = match (&purpose.own, &target) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(_), Some(target)) => target.at(path)? != Presence::Unknown && !once.contains(path),
            };
            let is_file = self.root.join(path.to_path()).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
            if (at_work || was_captured) && is_file {
                paths.insert(path.clone());
            }
        }
        Ok(paths)
    }
}

/// The steps of a change to a path that an operation has given the state `put`: somebody may have saved it once more before
/// it was displaced, and again (as far as one can tell, `others`) afterwards.
fn own_steps(change: Change, kind: ChangeKind, own: &Own<'_>, put: Option<Node>, others: By) -> Vec<Attributed> {
    let Change { path, before, after } = change;
    let is = |a: &Option<Node>, b: &Option<Node>| same(a.as_ref(), b.as_ref());
    // What cannot be captured now cannot be told from what was put there.
    let is_unknown = matches!(kind, ChangeKind::Uncaptured | ChangeKind::LeftOut);
    let put = if is_unknown || is(&put, &after) { after } else { put };
    let found = own.displaced.get(&path).copied().or(before);
    let theirs = if is(&found, &put) { kind } else { ChangeKind::Changed };
    let states =
        [(before, found, ChangeKind::Changed, By::OUTSIDE), (found, put, kind, own.by), (put, after, theirs, others)];
    let steps = states.into_iter().filter(|(before, after, ..)| !is(before, after));
    let change = |before, after| Change { path: path.clone(), before, after };
    steps
        .map(|(before, after, kind, by)| Attributed { change: change(before, after), kind, by, changed: None })
        .collect()
}
