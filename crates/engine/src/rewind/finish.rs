//! Finishing: the operation is recorded with the checkpoint after it, then what it displaced goes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::RewindError;
use super::apply::{Swap, tighten};
use super::displaced::{self, Captured, Displaced, Held, Patience};
use super::files::Files;
use crate::base::fault;
use crate::base::id::{CheckpointId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::git;
use crate::history::capture::{self, Failure, Scene};
use crate::history::checkpoint::{Checkpoint, NewCheckpoint, Origin, Own, Purpose, RuleChanges};
use crate::history::intent::{self, Intent, Item, Stage};
use crate::history::operation::{self, OperationKind, OperationState};
use crate::history::owner::By;
use crate::scan::stat::Facts;
use crate::session::heads::Moved;
use crate::snapshot::presence::Presence;
use crate::store::tree::{Node, same};
use crate::store::{Durability, Effort, StoreError};
use crate::workspace::{Workspace, counters};

/// What is needed to finish an operation whose files have been swapped.
pub(super) struct Finish {
    pub(super) operation: OperationId,
    pub(super) session: Option<(i64, SessionId)>,
    pub(super) kind: OperationKind,
    pub(super) what: String,
    pub(super) reverses: Option<i64>,
    pub(super) after: CheckpointId,
    pub(super) at: Timestamp,
    pub(super) state: OperationState,
    /// The point that it went to, if that is known.
    pub(super) target: Option<Checkpoint>,
    /// The states that it gave to paths.
    pub(super) put: BTreeMap<WorkspacePath, Option<Node>>,
}

/// What others did while an operation was at work.
#[derive(Debug, Default)]
pub(super) struct Meanwhile {
    /// What they saved before their path was replaced; it is in the store.
    pub(super) displaced: BTreeMap<WorkspacePath, Node>,
    /// What they changed after it was replaced, or what could not be stored and was given back to them.
    pub(super) overtaken: BTreeSet<WorkspacePath>,
    /// Files that a program still has open: what it writes from now on goes nowhere.
    pub(super) still_open: BTreeSet<WorkspacePath>,
    /// Temporary names under which something had to stay.
    pub(super) left_over: Vec<WorkspacePath>,
    /// Whether the conversation went where it was to go; `None` if there is none.
    pub(super) conversation_moved: Option<bool>,
}

impl Workspace {
    /// Records an operation whose files have been swapped, and removes what it displaced.
    pub(super) fn finish(
        &mut self,
        intent: &Intent,
        mut finish: Finish,
        facts: &BTreeMap<WorkspacePath, Captured>,
        held: &[Held],
    ) -> Result<Meanwhile, RewindError> {
        fault::place("rewind-swapped");
        let given_back = self.give_back_unstorable(&intent.items, held);
        finish.put.retain(|path, _| !given_back.contains(path));
        let (displaced, mut overtaken, conversation_moved) = self
            .making_room(None, |this, effort| this.record_after(intent, &finish, facts, held, effort))
            .map_err(|source| RewindError::NotRecorded { source: Box::new(source) })?;
        overtaken.extend(given_back);
        // What cannot be removed now is removed by the next recovery; everything else is done.
        let left_over = self.clean_up(intent, held, &displaced.seen, displaced.patience).unwrap_or_default();
        let Displaced { nodes: displaced, still_open, .. } = displaced;
        Ok(Meanwhile { displaced, overtaken, still_open, left_over, conversation_moved })
    }

    /// Gives displaced things that no store can hold back to whoever put them there. Returns their paths.
    fn give_back_unstorable(&self, items: &[Item], held: &[Held]) -> BTreeSet<WorkspacePath> {
        let files = self.files();
        let unstorable = held.iter().filter(|held| !displaced::is_storable(&files, &held.temp));
        let given_back = unstorable.filter(|held| files.give_back(&items[held.item], &held.temp).is_ok());
        given_back.map(|held| items[held.item].path.clone()).collect()
    }

    fn record_after(
        &mut self,
        intent: &Intent,
        finish: &Finish,
        facts: &BTreeMap<WorkspacePath, Captured>,
        held: &[Held],
        effort: Effort,
    ) -> Result<(Displaced, BTreeSet<WorkspacePath>, Option<bool>), Failure> {
        let mut rules = self.rules()?;
        let git = git::state(&self.env.root);
        let touched: BTreeSet<WorkspacePath> =
            intent.items.iter().flat_map(|item| [item.path.clone(), item.temp.clone()]).collect();
        // What was done can be undone even if the rules leave out what has come of it.
        let own: BTreeSet<WorkspacePath> = intent.items.iter().map(|item| item.path.clone()).collect();
        let scene = capture::scan_touched(&self.store, &mut self.scanner, &mut rules, &touched, &own, effort)?;
        let files = Files::new(self.scanner.root_fd(), &self.env.root);
        let displaced = displaced::keep(&files, &scene.sink.batch, &intent.items, held, facts)?;
        scene.check_budget()?;
        let overtaken = overtaken(&scene, &finish.put)?;
        let moved = Cell::new(None);
        let owner = operation::owner_of(&self.store, intent.operation)?;
        let by = By::operation(finish.session.map(|(seq, _)| seq), owner);
        let purpose = Purpose {
            origin: Origin::Rewound,
            session: finish.session,
            entry: None,
            note: Some(format!("{} {}", finish.kind.name(), finish.what)),
            own: Some(Own { by, put: &finish.put, displaced: &displaced.nodes, target: finish.target.as_ref() }),
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|tx, seq| {
                moved.set(move_conversation(tx, finish, &intent.items, &overtaken)?);
                // A half that was skipped is never announced as done.
                let state = if moved.get() == Some(false) { OperationState::Partial } else { finish.state };
                operation::finish(tx, finish.operation, state, Some(seq))?;
                displaced::insert(tx, intent.operation, &displaced.nodes)?;
                if finish.state == OperationState::Done {
                    mark(tx, finish.kind, finish.reverses)?;
                }
                intent::set_stage(tx, intent.operation, Stage::Done)
            },
        };
        let checkpoint = NewCheckpoint { id: finish.after, at: finish.at, label: None };
        scene.record(&git, &checkpoint, &purpose, Durability::Synced)?;
        let after = counters(&self.store);
        drop(scene);
        after.and_then(|after| self.scanner.save(after)).ok();
        Ok((displaced, overtaken, moved.get()))
    }

    /// Removes temporary files; what they hold is in the store, unless somebody has written to one since it was `seen`,
    /// and then it is put there first. The intent goes last. Returns those that had to stay, and the intent with them.
    pub(super) fn clean_up(
        &mut self,
        intent: &Intent,
        held: &[Held],
        seen: &BTreeMap<WorkspacePath, Facts>,
        mut patience: Patience,
    ) -> Result<Vec<WorkspacePath>, RewindError> {
        // Without the permission to remove something it stays, and is told.
        self.loosen(intent).ok();
        let mut left_over = Vec::new();
        for Held { item, temp } in held {
            let item = &intent.items[*item];
            let is_seen = matches!(self.files().look(temp), Ok(Some(now)) if seen.get(temp) == Some(&now.facts));
            let kept = is_seen || self.keep(intent.operation, item, temp, &mut patience)?;
            if !kept || self.files().discard(temp).is_err() {
                left_over.push(temp.clone());
            }
        }
        let tightened = tighten(&self.files(), intent, Swap::Done, &mut Vec::new());
        if left_over.is_empty() && tightened.is_ok() {
            self.store.db().transaction(Durability::Soon, |tx| intent::remove(tx, intent.operation))?;
        }
        Ok(left_over)
    }

    /// Tries again to remove what earlier operations had to leave.
    pub(super) fn clean_up_again(&mut self) -> Result<(), RewindError> {
        for intent in intent::all(&self.store)?.iter().filter(|intent| intent.stage == Stage::Done) {
            let held = displaced::possibly_held(&intent.items);
            self.clean_up(intent, &held, &BTreeMap::new(), Patience::default())?;
        }
        Ok(())
    }

    /// Makes sure that the content of a temporary file, if there is one, is in the store; `false` if it cannot be read.
    pub(super) fn keep(
        &self,
        operation: i64,
        item: &Item,
        temp: &WorkspacePath,
        patience: &mut Patience,
    ) -> Result<bool, RewindError> {
        let files = self.files();
        let batch = self.store.batch(Effort::Small)?;
        let mut displaced = Displaced { patience: *patience, ..Displaced::default() };
        let kept = displaced::keep_one(&files, &batch, item, temp, None, &mut displaced)?;
        *patience = displaced.patience;
        if !displaced.nodes.is_empty() {
            batch.commit(Durability::Synced, |tx| displaced::insert(tx, operation, &displaced.nodes))?;
        }
        Ok(kept)
    }
}

/// Takes the conversation where the operation was to take it, and tells the model which files have changed; `None` if the operation
/// has nothing to do with one.
fn move_conversation(
    tx: &rusqlite::Transaction<'_>,
    finish: &Finish,
    items: &[Item],
    overtaken: &BTreeSet<WorkspacePath>,
) -> Result<Option<bool>, StoreError> {
    let (Some((session, _)), OperationState::Done) = (finish.session, finish.state) else { return Ok(None) };
    let Some((seq, moved)) = Moved::of(tx, finish.operation)? else { return Ok(None) };
    let is_file = |node: Option<Node>| node.is_some_and(|node| node.kind != crate::store::tree::NodeKind::Directory);
    let is_news = |item: &&Item| {
        let is_ours = finish.put.contains_key(&item.path) && !overtaken.contains(&item.path);
        is_ours && (is_file(item.before) || is_file(item.after))
    };
    let files: Vec<WorkspacePath> = items.iter().filter(is_news).map(|item| item.path.clone()).collect();
    moved.carry_out(tx, session, seq, &files).map(Some)
}

/// Paths that are not, or no longer, in the state that they were given.
fn overtaken(
    scene: &Scene<'_>,
    put: &BTreeMap<WorkspacePath, Option<Node>>,
) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let evidence = scene.evidence();
    let mut overtaken = BTreeSet::new();
    for (path, put) in put {
        let now = match evidence.at(path)? {
            Presence::There(node) => Some(node),
            Presence::Absent => None,
            Presence::Unknown => continue,
        };
        if !same(now.as_ref(), put.as_ref()) {
            overtaken.insert(path.clone());
        }
    }
    Ok(overtaken)
}

/// Marks what an undo or a redo did to the operation that it is about.
pub(super) fn mark(
    tx: &rusqlite::Transaction<'_>,
    kind: OperationKind,
    reverses: Option<i64>,
) -> Result<(), StoreError> {
    let Some(reversed) = reverses else { return Ok(()) };
    operation::mark_undone(tx, reversed, true)?;
    match kind {
        // Taking back an undo brings back what it took back.
        OperationKind::Redo => operation::mark_original_redone(tx, reversed),
        _ => Ok(()),
    }
}
