//! Rewinds, undos and redos of a story.

use retake_engine::session::entry::{Body, Entry, SummaryBy};
use retake_engine::{Applied, EntryId, OperationError, OperationId, OperationKind, RewindError, Scope};

use super::model::{self, Op, differing, head};
use super::play::{Play, check, is_note, is_prompt};
use crate::compare::{MISMATCH, Verdict};

impl Play<'_> {
    pub(super) fn rewind(&mut self, scope: Scope, entry: EntryId) -> Verdict {
        let applied = self.desk.rewind(entry, scope);
        let Some((entries, draft, then)) = self.model.place(entry) else {
            self.met.add("rewind: no target");
            return match applied {
                Err(RewindError::NotATarget { .. }) => Ok(()),
                other => Err(format!("{MISMATCH}: no target, and yet {other:?}")),
            };
        };
        let applied = applied.map_err(|err| format!("ERROR: {err:?}"))?;
        self.count_rewind(scope, entry, &entries);
        let files = if scope == Scope::Conversation { self.model.files.clone() } else { self.model.with_ours(&then) };
        let note = match scope {
            Scope::Both => Vec::new(),
            Scope::Code => differing(&self.model.files, &files),
            Scope::Conversation => differing(&then, &self.model.files),
        };
        let (entries, draft) = if scope == Scope::Code { (self.model.entries.clone(), None) } else { (entries, draft) };
        let outcome = model::Outcome { entries, note, draft, files, noted: Vec::new() };
        self.carried_out(&applied, OperationKind::Rewind, &outcome, scope, None)?;
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

    fn count_rewind(&mut self, scope: Scope, entry: EntryId, to: &[Entry]) {
        self.met.add(match scope {
            Scope::Both => "rewind both",
            Scope::Code => "rewind code",
            Scope::Conversation => "rewind conversation",
        });
        if !self.model.entries.iter().any(|known| known.id == entry) {
            self.met.add("rewind: to a branch that was left");
        }
        let found = self.model.find(entry);
        if !is_prompt(found) && head(to) != Some(entry) {
            self.met.add("rewind: into the middle of a round");
        }
        let leaves = self.model.entries.get(to.len()..).unwrap_or_default();
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
        let Some(at) = self.model.next_to_undo() else {
            self.met.add("none: nothing to undo");
            return match applied {
                Err(RewindError::Operation(OperationError::NothingToUndo)) => Ok(()),
                other => Err(format!("{MISMATCH}: nothing to undo, and yet {other:?}")),
            };
        };
        self.met.add(&format!("undo: {}", self.model.ops[at].kind.name()));
        self.reversed(applied, at, OperationKind::Undo)
    }

    pub(super) fn undo_of(&mut self, at: usize) -> Verdict {
        let in_force = |op: &&Op| op.is_reversible() && !op.undone;
        let ids: Vec<OperationId> = self.model.ops.iter().filter(in_force).map(|op| op.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let id = ids[at % ids.len()];
        let at = self.model.ops.iter().position(|op| op.id == id).unwrap();
        if Some(at) != self.model.next_to_undo() {
            self.out_of_order = true;
            self.met.add("undo of an older operation");
        }
        let applied = self.desk.undo_of(id);
        self.reversed(applied, at, OperationKind::Undo)
    }

    pub(super) fn redo(&mut self) -> Verdict {
        let applied = self.desk.redo();
        let Some(at) = self.model.next_to_redo() else {
            self.met.add("none: nothing to redo");
            return match applied {
                Err(RewindError::Operation(OperationError::NothingToRedo)) => Ok(()),
                other => Err(format!("{MISMATCH}: nothing to redo, and yet {other:?}")),
            };
        };
        let original = self.model.ops[at].reverses.unwrap();
        self.met.add(&format!("redo: {}", self.model.ops[original].kind.name()));
        self.reversed(applied, at, OperationKind::Redo)
    }

    fn reversed(&mut self, applied: Result<Applied, RewindError>, at: usize, kind: OperationKind) -> Verdict {
        let applied = match applied {
            Err(RewindError::Refused { .. }) if self.out_of_order => {
                self.met.add("undo of an older operation: refused");
                return Ok(());
            }
            applied => applied.map_err(|err| format!("ERROR: {err:?}"))?,
        };
        let outcome = self.model.reverse(at);
        if !outcome.noted.is_empty() {
            self.met.add("note: told again");
        }
        if self.model.ops[at].after != self.model.entries && outcome.noted.is_empty() {
            self.met.add("undo of an older operation: the conversation stays");
        }
        let had_note = |entries: &[Entry]| entries.iter().filter(|entry| is_note(entry)).count();
        if had_note(&outcome.entries) < had_note(&self.model.entries) {
            self.met.add("note: retracted");
        }
        if self.model.ops[at].draft.is_some() && outcome.draft.is_none() {
            self.met.add("draft: the user's stays");
        } else if outcome.draft.is_some() {
            self.met.add("draft: taken back");
        }
        self.carried_out(&applied, kind, &outcome, applied.plan.scope, Some(at))?;
        self.model.ops[at].undone = true;
        if kind == OperationKind::Redo {
            let original = self.model.ops[at].reverses.unwrap();
            self.model.ops[original].undone = false;
        }
        Ok(())
    }

    /// Makes the model what `outcome` says, and checks the note that the engine has written.
    fn carried_out(
        &mut self,
        applied: &Applied,
        kind: OperationKind,
        outcome: &model::Outcome,
        scope: Scope,
        reverses: Option<usize>,
    ) -> Verdict {
        let (before, files) = (self.model.entries.clone(), self.model.files.clone());
        let takes_point = applied.safety.is_some() || scope == Scope::Conversation;
        if takes_point {
            self.model.pair();
        }
        self.model.entries.clone_from(&outcome.entries);
        self.model.files.clone_from(&outcome.files);
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
                self.model.undo_notes.insert(id);
            }
        }
        if takes_point && (scope != Scope::Conversation || !outcome.note.is_empty()) {
            self.model.pair();
        }
        let draft = outcome.draft.clone().map(|draft| (std::mem::replace(&mut self.model.draft, draft.clone()), draft));
        match applied.operation {
            Some(id) => self.log(id, kind, before, &files, draft, None, reverses),
            None => check("nothing was done, so nothing changed", &files, &self.model.files)?,
        }
        Ok(())
    }
}
