//! Rewinds, undos and redos of a story.

use retake_engine::id::{EntryId, OperationId};
use retake_engine::operation::{MadeBy, OperationError, OperationKind};
use retake_engine::rewind::{Applied, Files, Goal, OnConflict, RewindError, RewindRequest};
use retake_engine::session::entry::{Body, Entry, SummaryBy};
use retake_engine::session::{Discard, Scope};
use retake_testkit::naive::force::Hand;

use super::Manner;
use super::model::{self, Op, Place, head};
use super::play::{Play, check, conflicts, is_note, is_prompt};
use super::timeline::{self, differing};
use crate::compare::{MISMATCH, Verdict};

impl Play<'_> {
    pub(super) fn rewind(&mut self, scope: Scope, entry: EntryId, manner: Manner) -> Verdict {
        let Manner { discard, on_conflict } = manner;
        let goal = Goal::Entry { session: self.desk.session, entry, scope, files: Files::Selective, discard };
        let request = RewindRequest { made_by: MadeBy::Client, ..RewindRequest::new(goal) };
        let applied = self.desk.apply(&request);
        if !self.model.reach(&self.model.now).contains(&entry) {
            self.met.add("rewind: to what is not of the session");
            return match applied {
                Err(RewindError::UnknownEntry { .. }) => Ok(()),
                other => Err(format!("{MISMATCH}: not of this session, and yet {other:?}")),
            };
        }
        let Some(Place { entries, draft, then }) = self.model.place(entry) else {
            self.met.add("rewind: no target");
            return match applied {
                Err(RewindError::NotATarget { .. }) => Ok(()),
                other => Err(format!("{MISMATCH}: no target, and yet {other:?}")),
            };
        };
        let mut verdict = self.model.timeline.since(&self.model.now, &then);
        if scope == Scope::Conversation {
            verdict = timeline::Verdict::default();
        }
        let is_clear = verdict.conflicts.is_empty();
        let applied = match self.unless_in_conflict(applied, &verdict)? {
            Some(applied) => applied,
            None if on_conflict == OnConflict::Stop => return Ok(()),
            None => {
                self.met.add(&format!("rewind: {on_conflict:?}"));
                let request = RewindRequest { on_conflict, ..request };
                self.desk.apply(&request).map_err(|err| format!("ERROR: {err:?}"))?
            }
        };
        self.count_rewind(scope, entry, &entries);
        if verdict.inherits {
            self.met.add("rewind: takes back what is inherited");
        }
        let files = verdict.carried_out(self.model.files(), on_conflict == OnConflict::Overwrite);
        let note = match scope {
            Scope::Both if is_clear || on_conflict == OnConflict::Overwrite => Vec::new(),
            Scope::Both => verdict.conflicts.into_keys().collect(),
            Scope::Code => differing(self.model.files(), &files),
            Scope::Conversation => differing(&then.files, self.model.files()),
        };
        let (entries, draft) =
            if scope == Scope::Code { (self.model.now.entries.clone(), None) } else { (entries, draft) };
        let outcome = model::Outcome { entries, note, draft, files, noted: Vec::new() };
        let before = self.model.now.entries.clone();
        self.carried_out(&applied, OperationKind::Rewind, &outcome, scope, None)?;
        if discard == Discard::Now && scope != Scope::Code && applied.operation.is_some() {
            self.discarded(&before);
        }
        let told = self.model.told.get(&entry).filter(|_| scope != Scope::Code).cloned();
        if let Some(told) = told {
            let conversation = self.desk.conversation();
            let (now, told) = (conversation.context(), told.context());
            let count = now.messages.len() - usize::from(!outcome.note.is_empty());
            check("what the model was told then", &now.messages[..count], &told.messages[..])?;
            check("the system's instructions", &now.system, &told.system)?;
        }
        Ok(())
    }

    /// What was applied, or nothing if that is refused because of the files that it should be.
    fn unless_in_conflict(
        &mut self,
        applied: Result<Applied, RewindError>,
        verdict: &timeline::Verdict,
    ) -> Result<Option<Applied>, String> {
        let expected: Vec<String> = verdict.conflicts.keys().cloned().collect();
        if expected.is_empty() {
            return applied.map(Some).map_err(|err| format!("ERROR: {err:?}"));
        }
        self.met.add("in conflict with others");
        match applied {
            Err(RewindError::Refused { plan }) => check("conflicts", &conflicts(&plan), &expected).map(|()| None),
            other => Err(format!("{MISMATCH}: {expected:?} in conflict, and yet {other:?}")),
        }
    }

    /// What the newest operation left behind is removed.
    fn discarded(&mut self, before: &[Entry]) {
        self.met.add("discard");
        if self.model.discard(before) {
            self.met.add("discard: kept for a fork");
        }
        let op = self.model.now.ops.last_mut().unwrap();
        (op.draft, op.discarded) = (None, true);
    }

    fn count_rewind(&mut self, scope: Scope, entry: EntryId, to: &[Entry]) {
        self.met.add(match scope {
            Scope::Both => "rewind both",
            Scope::Code => "rewind code",
            Scope::Conversation => "rewind conversation",
        });
        if !self.model.now.entries.iter().any(|known| known.id == entry) {
            self.met.add("rewind: to a branch that was left");
        }
        let found = self.model.find(entry);
        if !is_prompt(found) && head(to) != Some(entry) {
            self.met.add("rewind: into the middle of a round");
        }
        let leaves = self.model.now.entries.get(to.len()..).unwrap_or_default();
        if leaves.iter().any(|entry| matches!(entry.body, Body::Summary { .. })) {
            self.met.add("rewind: across a summary");
        }
        if leaves.iter().any(|entry| matches!(entry.body, Body::Summary { by: SummaryBy::Model { .. }, .. })) {
            self.met.add("rewind: across a model's rewind");
        }
        if leaves.iter().any(|entry| entry.body == Body::Cleared) {
            self.met.add("rewind: across a clear");
        }
    }

    pub(super) fn undo(&mut self) -> Verdict {
        let applied = self.desk.undo();
        let Some(id) = self.model.now.next_to_undo() else {
            self.met.add("none: nothing to undo");
            return match applied {
                Err(RewindError::Operation(OperationError::NothingToUndo)) => Ok(()),
                other => Err(format!("{MISMATCH}: nothing to undo, and yet {other:?}")),
            };
        };
        self.reversed(applied, id, OperationKind::Undo)
    }

    pub(super) fn undo_of(&mut self, at: usize) -> Verdict {
        let in_force = |op: &&Op| op.is_reversible() && !op.undone;
        let ids: Vec<OperationId> = self.model.now.ops.iter().filter(in_force).map(|op| op.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let id = ids[at % ids.len()];
        if Some(id) != self.model.now.next_to_undo() {
            self.out_of_order = true;
            self.met.add("undo of an older operation");
        }
        let applied = self.desk.undo_of(id);
        self.reversed(applied, id, OperationKind::Undo)
    }

    pub(super) fn redo(&mut self) -> Verdict {
        let applied = self.desk.redo();
        let Some(id) = self.model.now.next_to_redo() else {
            self.met.add("none: nothing to redo");
            return match applied {
                Err(RewindError::Operation(OperationError::NothingToRedo)) => Ok(()),
                other => Err(format!("{MISMATCH}: nothing to redo, and yet {other:?}")),
            };
        };
        self.reversed(applied, id, OperationKind::Redo)
    }

    fn reversed(&mut self, applied: Result<Applied, RewindError>, id: OperationId, kind: OperationKind) -> Verdict {
        let op = self.model.now.op(id).clone();
        if let Some(session) = op.fork {
            return self.reversed_fork(applied, &op, session, kind);
        }
        if matches!(applied, Err(RewindError::Refused { .. })) && self.with_directories && self.out_of_order {
            self.met.add("undo of an older operation: refused");
            return Ok(());
        }
        let verdict = self.model.timeline.of(id);
        let outcome = self.model.reverse(&op, verdict.carried_out(self.model.files(), false));
        let had_one = op.moved() || self.model.timeline.changed_files(id);
        let is_undo = kind == OperationKind::Undo && verdict.conflicts.is_empty();
        // The model knows files; a directory alone that comes or goes is an effect too.
        let moves_a_directory =
            self.with_directories && applied.as_ref().is_ok_and(|applied| !applied.plan.paths.is_empty());
        if is_undo && had_one && self.model.is_without_effect(&outcome) && !moves_a_directory {
            return self.is_not_used_up(applied, &op);
        }
        let Some(applied) = self.unless_in_conflict(applied, &verdict)? else { return Ok(()) };
        if !outcome.noted.is_empty() {
            self.met.add("note: told again");
        }
        if op.after != self.model.now.entries && outcome.noted.is_empty() {
            self.met.add("undo of an older operation: the conversation stays");
        }
        if op.discarded {
            self.met.add("undo: of what was discarded");
        }
        let had_note = |entries: &[Entry]| entries.iter().filter(|entry| is_note(entry)).count();
        if had_note(&outcome.entries) < had_note(&self.model.now.entries) {
            self.met.add("note: retracted");
        }
        if op.draft.is_some() && outcome.draft.is_none() {
            self.met.add("draft: the user's stays");
        } else if outcome.draft.is_some() {
            self.met.add("draft: taken back");
        }
        self.carried_out(&applied, kind, &outcome, applied.plan.scope, Some(id))?;
        self.reversed_is(id, kind);
        Ok(())
    }

    /// An undo that takes nothing back is no operation, and is refused if what was said is gone.
    fn is_not_used_up(&mut self, applied: Result<Applied, RewindError>, op: &Op) -> Verdict {
        let is_final = self.model.is_final(op);
        self.met.add(if is_final { "undo: of what was discarded" } else { "undo: without effect" });
        match applied {
            Err(RewindError::Discarded { operation, .. }) if is_final && operation == op.id => Ok(()),
            Ok(applied) if !is_final && applied.operation.is_none() => Ok(()),
            other => Err(format!("{MISMATCH}: an undo without effect, and yet {other:?}")),
        }
    }

    /// An operation is reversed now, and what that one had reversed is in force again.
    pub(super) fn reversed_is(&mut self, id: OperationId, kind: OperationKind) {
        let op = self.model.now.op_mut(id);
        op.undone = true;
        let original = op.reverses.filter(|_| kind == OperationKind::Redo);
        self.model.timeline.is_undone(id);
        if let Some(original) = original {
            self.model.now.op_mut(original).undone = false;
            self.model.timeline.is_redone(original);
        }
        let original = self.model.now.op(original.unwrap_or(id)).kind.name();
        self.met.add(&format!("{}: {original}", kind.name()));
    }

    /// Makes the model what `outcome` says, and checks the note that the engine has written.
    fn carried_out(
        &mut self,
        applied: &Applied,
        kind: OperationKind,
        outcome: &model::Outcome,
        scope: Scope,
        reverses: Option<OperationId>,
    ) -> Verdict {
        let before = self.model.now.entries.clone();
        let takes_point = applied.safety.is_some() || scope == Scope::Conversation;
        if takes_point {
            self.model.pair();
        }
        self.model.now.entries.clone_from(&outcome.entries);
        match applied.operation {
            Some(id) => self.model.timeline.change(self.model.now.id, id, Hand::Retake, outcome.files.clone()),
            None => check("nothing was done, so nothing changes", &outcome.files, self.model.files())?,
        }
        if !outcome.note.is_empty() {
            self.met.add("note: told");
            let found = self.desk.conversation().entries().last().cloned();
            let Some(Entry { id, parent, at, body: Body::Note { about, text } }) = found else {
                return Err(format!("{MISMATCH}: no note of {:?}", outcome.note));
            };
            check("what the note is about", &about, &outcome.note)?;
            check("what the note continues", &parent, &head(&outcome.entries))?;
            self.model.push(Entry { id, parent, at, body: Body::Note { about, text } });
            if kind != OperationKind::Rewind {
                self.model.now.undo_notes.insert(id);
            }
        }
        if takes_point && (scope != Scope::Conversation || !outcome.note.is_empty()) {
            self.model.pair();
        }
        let now = &mut self.model.now;
        let draft = outcome.draft.clone().map(|draft| (std::mem::replace(&mut now.draft, draft.clone()), draft));
        if let Some(id) = applied.operation {
            let op = self.log(id, kind, before);
            (op.draft, op.reverses) = (draft, reverses);
            self.model.timeline.operation(id, reverses);
        }
        Ok(())
    }
}
