//! Recovering from a crash in the middle of a rewind.
//!
//! An intent that was not armed touched nothing: what it staged is removed. An armed one is finished, if every path is as
//! it was before or as it should be afterwards; if somebody has changed one since, that is theirs and the caller decides
//! whether the rest is finished or taken back.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::displaced::{self, Patience};
use super::files::{Failed, StageError};
use super::finish::Finish;
use super::{RewindError, apply};
use crate::base::id::{CheckpointId, ObjectId, OperationId};
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::history::intent::{self, Intent, Item, Stage};
use crate::history::operation::{self, Operation, OperationState};
use crate::rewind::Rewinds;
use crate::session::Discard;
use crate::session::heads::Moved;
use crate::store::tree::{Node, NodeKind, same};
use crate::workspace::Workspace;

/// What to do if files were changed after the crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryChoice {
    /// Nothing: say so.
    #[default]
    Ask,
    /// Leave those files and finish the rest.
    Finish,
    /// Leave those files and take the rest back.
    GoBack,
}

/// What recovering came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing was interrupted.
    Nothing,
    /// The operation is done.
    Finished(Operation),
    /// The operation never happened.
    TakenBack(Operation),
}

/// Where a path stands between before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Before,
    /// On the way: what was there is set aside, and what is to come has not come.
    Between,
    After,
    /// Somebody else's.
    Other,
}

/// Stands for a thing that cannot be captured: no state that was captured equals it.
fn nothing_captured() -> Node {
    Node { kind: NodeKind::File, mode: u16::MAX, content: ObjectId::default(), size: 0 }
}

impl Workspace {
    fn recover_armed(
        &mut self,
        intent: &Intent,
        operation: Operation,
        choice: RecoveryChoice,
        after: CheckpointId,
        at: Timestamp,
    ) -> Result<Recovered, RewindError> {
        let mut standings = Vec::with_capacity(intent.items.len());
        for item in &intent.items {
            standings.push(self.standing(item).map_err(unfinished)?);
        }
        let paths = intent.items.iter().map(|item| &item.path).zip(&standings);
        let others: BTreeSet<WorkspacePath> =
            paths.filter(|(_, standing)| **standing == Standing::Other).map(|(path, _)| path.clone()).collect();
        if !others.is_empty() && choice == RecoveryChoice::Ask {
            let paths = others.into_iter().collect();
            return Err(RewindError::ChangedSinceCrash { operation: Box::new(operation), paths });
        }
        let back = choice == RecoveryChoice::GoBack;
        if back {
            for (item, standing) in intent.items.iter().zip(&mut standings) {
                // What somebody had saved before it was replaced is how it was.
                if matches!(standing, Standing::After | Standing::Between)
                    && self.put_back_saved(item).map_err(unfinished)?
                {
                    *standing = Standing::Other;
                }
            }
        }
        let todo = intent.items.iter().cloned().zip(standings);
        let todo: Vec<Item> = todo.filter_map(|(item, standing)| remaining(item, standing, choice)).collect();
        let todo = Intent { items: todo, ..intent.clone() };
        self.stage_again(&todo)?;
        let swapped = self.swap(&todo).map_err(|(failed, _)| unfinished(failed))?;
        let state = if back { OperationState::Failed } else { OperationState::Done };
        let finish = Finish {
            operation: operation.id,
            session: operation.session_seq.zip(operation.session),
            kind: operation.kind,
            what: operation.what.clone(),
            reverses: operation.reverses_seq,
            after,
            at,
            state,
            target: None,
            // What belongs to others is not ours to record, but its temporary files are ours to remove. What was taken back
            // is as it was.
            put: if back { BTreeMap::new() } else { apply::put(&intent.items, &(&others | &swapped.kept)) },
        };
        let intent = if back { &reversed(intent) } else { intent };
        self.finish(intent, finish, &BTreeMap::new(), &displaced::possibly_held(&intent.items))?;
        Ok(if back { Recovered::TakenBack(operation) } else { Recovered::Finished(operation) })
    }

    /// Makes sure that the new content of every item lies under its temporary name.
    fn stage_again(&self, intent: &Intent) -> Result<(), RewindError> {
        let files = self.files();
        self.loosen(intent).map_err(unfinished)?;
        let (mut missing, mut patience) = (Vec::new(), Patience::default());
        for item in &intent.items {
            let Some(node) = files.to_stage(item) else { continue };
            let there = self.state(&item.temp).map_err(unfinished)?;
            if same(there.as_ref(), Some(node)) {
                continue;
            }
            if !self.keep(intent.operation, item, &item.temp, &mut patience)? {
                return Err(unfinished(files.failed("save", &item.temp)(Errno::ACCESS)));
            }
            files.discard(&item.temp).map_err(unfinished)?;
            missing.push(item.clone());
        }
        let wrap = |err| match err {
            StageError::Content(err) => RewindError::Store(err),
            StageError::Write(failed) => unfinished(failed),
        };
        match self.write_staged(&missing, wrap)?.into_iter().next() {
            None => Ok(()),
            Some(path) => Err(RewindError::DamagedTarget { path }),
        }
    }

    fn standing(&self, item: &Item) -> Result<Standing, Failed> {
        if !self.files().can_hold(&item.temp) {
            // Somebody has taken away the directory that it is in.
            return Ok(Standing::Other);
        }
        let now = self.state(&item.path)?;
        let is = |wanted: &Option<Node>| same(now.as_ref(), wanted.as_ref());
        let is_directory = |node: &Option<Node>| node.is_some_and(|node| node.kind == NodeKind::Directory);
        Ok(if is(&item.after) {
            Standing::After
        } else if is(&item.before) {
            Standing::Before
        } else if is_directory(&now) && is_directory(&item.after) {
            // Permissions of directories come last.
            Standing::Between
        } else if is_directory(&now) && is_directory(&item.before) {
            Standing::Before
        } else if now.is_none() && (is_directory(&item.before) || self.is_set_aside(item)?) {
            Standing::Between
        } else {
            Standing::Other
        })
    }

    /// Whether what was at the path was set aside, so that nothing is there for the moment. A file that takes a file's place is
    /// exchanged with it, where the file system can do that: if nothing is there then, somebody has deleted it.
    fn is_set_aside(&self, item: &Item) -> Result<bool, Failed> {
        let for_a_directory = item.after.is_some_and(|after| after.kind == NodeKind::Directory);
        Ok(self.state(&item.aside())?.is_some() || for_a_directory && self.state(&item.temp)?.is_some())
    }

    /// Puts back what somebody had saved at a path before it was replaced; returns whether there was such a thing.
    fn put_back_saved(&self, item: &Item) -> Result<bool, Failed> {
        let files = self.files();
        for temp in [item.temp.clone(), item.aside()] {
            let held = self.state(&temp)?;
            let is = |node: &Option<Node>| same(held.as_ref(), node.as_ref());
            if held.is_some() && !is(&item.before) && !is(&item.after) {
                files.give_back(item, &temp).map_err(files.failed("put back", &item.path))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is at `path` on disk; `None` if nothing is.
    pub(super) fn state(&self, path: &WorkspacePath) -> Result<Option<Node>, Failed> {
        let files = self.files();
        let failed = |err: Errno| files.failed("read", path)(err);
        let Some(seen) = files.look(path).map_err(failed)? else { return Ok(None) };
        let (kind, mode, content, size) = match seen.facts.file_type() {
            FileType::Directory => (NodeKind::Directory, seen.facts.permissions(), ObjectId::default(), 0),
            FileType::Symlink => {
                let target = files.read_link(path).map_err(failed)?;
                (NodeKind::Symlink, 0, ObjectId::of(&target), target.len() as u64)
            }
            FileType::RegularFile => {
                let mut file = match files.open(path) {
                    Ok(file) => file,
                    // Nobody has captured what may not be read, so that it is somebody else's.
                    Err(Errno::ACCESS) => return Ok(Some(nothing_captured())),
                    Err(err) => return Err(failed(err)),
                };
                let mut hasher = blake3::Hasher::new();
                let size = std::io::copy(&mut file, &mut hasher)
                    .map_err(|err| failed(Errno::from_io_error(&err).unwrap_or(Errno::IO)))?;
                let content = ObjectId::from_bytes(*hasher.finalize().as_bytes());
                (NodeKind::File, seen.facts.permissions(), content, size)
            }
            _ => return Ok(Some(nothing_captured())),
        };
        Ok(Some(Node { kind, mode, content, size }))
    }
}

impl Rewinds<&Workspace> {
    /// The operation that was interrupted, if one was. Reads only.
    pub fn interrupted(&self) -> Result<Option<Operation>, crate::store::StoreError> {
        operation::pending(&self.0.store)
    }

    /// Paths that somebody saved while `operation` was replacing them: taking the operation back brings that back.
    pub fn displaced(&self, operation: OperationId) -> Result<Vec<WorkspacePath>, crate::store::StoreError> {
        operation::displaced(&self.0.store, operation)
    }

    /// Temporary names of operations that are done, under which something had to stay. Reads only.
    pub fn left_over(&self) -> Result<Vec<WorkspacePath>, crate::store::StoreError> {
        let intents = intent::all(&self.0.store)?.into_iter().filter(|intent| intent.stage == Stage::Done);
        let held = intents.flat_map(|intent| displaced::possibly_held(&intent.items));
        let files = self.0.files();
        Ok(held.map(|held| held.temp).filter(|temp| !matches!(files.look(temp), Ok(None))).collect())
    }
}

impl Rewinds<&mut Workspace> {
    /// Finishes or takes back an interrupted rewind. `after` becomes the checkpoint after it.
    pub fn recover(
        &mut self,
        choice: RecoveryChoice,
        after: CheckpointId,
        at: Timestamp,
    ) -> Result<Recovered, RewindError> {
        if intent::all(&self.0.store)?.is_empty() {
            return Ok(Recovered::Nothing);
        }
        // Waits for whoever is still at it; what is pending then is a dead process's.
        let _own = self.0.store.own()?;
        let Some(intent) = intent::all(&self.0.store)?.into_iter().next() else { return Ok(Recovered::Nothing) };
        let operation = operation::by_seq(&self.0.store, intent.operation)?.ok_or(RewindError::Gone)?;
        match intent.stage {
            Stage::Staging => {
                self.0.forget(&intent, operation.id)?;
                Ok(Recovered::TakenBack(operation))
            }
            Stage::Done => {
                let held = displaced::possibly_held(&intent.items);
                self.0.clean_up(&intent, &held, &BTreeMap::new(), Patience::default())?;
                let paths = self.0.rewinds().left_over()?;
                if paths.is_empty() { Ok(Recovered::Nothing) } else { Err(RewindError::LeftOver { paths }) }
            }
            Stage::Armed => {
                let moved = self.0.store.db().read(|connection| Moved::by_seq(connection, operation.seq))?;
                let discards = moved.is_some_and(|moved| moved.discard == Discard::Now);
                if discards {
                    self.0.store.db().erase_deleted()?;
                }
                let recovered = self.0.recover_armed(&intent, operation, choice, after, at);
                if discards {
                    self.0.store.db().erase();
                }
                recovered
            }
        }
    }
}

/// What takes `intent` back.
fn reversed(intent: &Intent) -> Intent {
    let back = |item: &Item| Item { before: item.after, after: item.before, ..item.clone() };
    Intent { items: intent.items.iter().map(back).collect(), ..intent.clone() }
}

/// What still has to be done to a path that stands at `standing`.
fn remaining(item: Item, standing: Standing, choice: RecoveryChoice) -> Option<Item> {
    let back = choice == RecoveryChoice::GoBack;
    let item = if back { Item { before: item.after, after: item.before, ..item } } else { item };
    match (standing, back) {
        (Standing::Other, _) => None,
        (Standing::After, false) | (Standing::Before, true) => {
            // A directory is made before it has its permissions.
            let directory = item.after.filter(|node| node.kind == NodeKind::Directory)?;
            Some(Item { before: Some(directory), ..item })
        }
        (Standing::Before, false) | (Standing::After, true) | (Standing::Between, _) => Some(item),
    }
}

/// Recovering failed; the intent stays, and it can be tried again.
fn unfinished(failed: Failed) -> RewindError {
    RewindError::Unfinished { what: failed.what, path: failed.path, source: failed.source }
}
