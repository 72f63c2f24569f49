//! Forks of a story: making them, going on in another session, deleting one, growing old.

use std::collections::HashSet;
use std::iter::successors;

use retake_engine::Timestamp;
use retake_engine::id::{EntryId, OperationId, SessionId};
use retake_engine::operation::OperationKind;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Applied, ForkUse, RewindError};
use retake_engine::session::ForkError;
use retake_engine::session::entry::{Body, Entry, SummaryBy};

use super::model::{Op, Place, Session, head};
use super::play::{Play, check, is_prompt};
use super::timeline::differing;
use crate::compare::{MISMATCH, Verdict};
use crate::session::open;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Play<'_> {
    pub(super) fn fork(&mut self, at: usize) -> Verdict {
        let prompts = self.model.now.entries.iter().filter(|entry| is_prompt(entry)).map(|entry| entry.id);
        let from: Vec<EntryId> = match at % 3 {
            0 => self.model.log.iter().map(|entry| entry.id).collect(),
            1 => self.model.now.entries.iter().map(|entry| entry.id).collect(),
            _ => prompts.collect(),
        };
        let Some(at) = (at / 3).checked_rem(from.len()) else { return Ok(()) };
        let entry = from[at];
        let forked = self.desk.fork(entry);
        if !self.model.reach(&self.model.now).contains(&entry) {
            self.met.add("fork: from what is not of the session");
            return match forked {
                Err(ForkError::UnknownEntry { .. }) => Ok(()),
                other => Err(format!("{MISMATCH}: not of this session, and yet {other:?}")),
            };
        }
        let Some(place) = self.model.place(entry) else {
            self.met.add("fork: no target");
            return match forked {
                Err(ForkError::NotATarget { .. }) => Ok(()),
                other => Err(format!("{MISMATCH}: no target, and yet {other:?}")),
            };
        };
        let forked = forked.map_err(|err| format!("ERROR: {err:?}"))?;
        self.count_fork(entry, &place);
        check("what is about to be said in the fork", &forked.draft, &place.draft.clone().unwrap_or_default())?;
        self.forked(forked.session, place)?;
        let entries = self.model.now.entries.clone();
        self.log(forked.operation, OperationKind::Fork, entries).fork = Some(forked.session);
        Ok(())
    }

    /// Adds a session that begins at `place`.
    fn forked(&mut self, id: SessionId, place: Place) -> Verdict {
        let until = self.model.timeline.tick();
        let mut session = Session::new(id);
        session.past.clone_from(&self.model.now.past);
        session.past.push((self.model.now.id, until));
        session.parent = Some((self.model.now.id, until));
        session.draft = place.draft.unwrap_or_default();
        session.entries = place.entries;
        let about = match session.entries.is_empty() {
            true => Vec::new(),
            false => differing(&place.then.files, self.model.files()),
        };
        if !about.is_empty() {
            self.met.add("fork: with a note");
            let found = self.desk.said(id).entries().last().cloned();
            let Some(note @ Entry { parent, .. }) = found else { return Err(format!("{MISMATCH}: nothing was said")) };
            check("what the note continues", &parent, &head(&session.entries))?;
            let Body::Note { about: found, .. } = &note.body else { return Err(format!("{MISMATCH}: {note:?}")) };
            check("what the note is about", found, &about)?;
            self.model.enter(id, note.clone());
            self.model.pair_with(id, note.id);
            session.entries.push(note);
        }
        session.began = head(&session.entries);
        self.model.others.push(session);
        Ok(())
    }

    fn count_fork(&mut self, entry: EntryId, place: &Place) {
        self.met.add(if place.draft.is_some() { "fork: before a prompt" } else { "fork: after another entry" });
        let entries = &self.model.now.entries;
        let position = |id: EntryId| entries.iter().position(|entry| entry.id == id);
        let Some(at) = position(entry) else {
            self.met.add("fork: of a branch that was left");
            return;
        };
        let mut met = Vec::new();
        if !self.model.now.past.is_empty() {
            met.push("fork: of a fork");
        }
        if self.model.said_by[&entry] != self.model.now.id {
            met.push("fork: of what is inherited");
        }
        for summary in entries.iter().skip(place.entries.len()) {
            let Body::Summary { from, to, by, .. } = &summary.body else { continue };
            let (Some(from), Some(to)) = (position(*from), position(*to)) else { continue };
            if (from..=to).contains(&at) {
                met.push(match by {
                    SummaryBy::User => "fork: inside a summary",
                    SummaryBy::Compaction => "fork: inside a compaction",
                    SummaryBy::Model { .. } => "fork: inside what the model left behind",
                });
            }
        }
        met.into_iter().for_each(|what| self.met.add(what));
    }

    pub(super) fn switch(&mut self, at: usize) {
        let ids: Vec<SessionId> = self.model.shown().map(|session| session.id).collect();
        let Some(at) = at.checked_rem(ids.len()) else { return };
        self.met.add("another session");
        self.go_to(ids[at]);
    }

    fn go_to(&mut self, id: SessionId) {
        drop(self.desk.move_to(id));
        let at = self.model.others.iter().position(|session| session.id == id).unwrap();
        let session = self.model.others.remove(at);
        let left = std::mem::replace(&mut self.model.now, session);
        self.model.others.push(left);
    }

    pub(super) fn delete(&mut self, at: usize) {
        let ids: Vec<SessionId> = self.model.shown().map(|session| session.id).collect();
        let Some(first) = ids.first().copied() else { return };
        let id = match at % (ids.len() + 1) {
            0 => self.model.now.id,
            at => ids[at - 1],
        };
        if id == self.model.now.id {
            self.go_to(first);
        }
        let writer = open(&mut self.desk.bench, id).unwrap();
        self.desk.workspace().sessions_mut().delete(writer).unwrap();
        self.deleted(id);
    }

    /// A session is gone; what others need of it is that of the oldest fork which needs it.
    fn deleted(&mut self, id: SessionId) {
        let is_undone = |session: &&Session| !session.shown && session.parent.is_some_and(|(parent, _)| parent == id);
        while let Some(undone) = self.model.others.iter().find(is_undone).map(|session| session.id) {
            self.met.add("delete: with an undone fork");
            self.deleted(undone);
        }
        let at = self.model.others.iter().position(|session| session.id == id).unwrap();
        let session = self.model.others.remove(at);
        if session.parent.is_some() {
            self.met.add("delete: a fork");
        }
        let all = || self.model.others.iter().chain([&self.model.now]);
        let mut heirs: Vec<(u64, SessionId)> = all()
            .filter_map(|session| Some((session.parent.filter(|(parent, _)| *parent == id)?.1, session.id)))
            .collect();
        heirs.sort();
        // What each of these needs, or what was forked from it.
        let heirs: Vec<(u64, SessionId, HashSet<EntryId>)> = heirs
            .into_iter()
            .map(|(until, heir)| {
                let parent = |id: &SessionId| all().find(|other| other.id == *id)?.parent.map(|(parent, _)| parent);
                let is_of = |other: &&Session| successors(Some(other.id), parent).any(|above| above == heir);
                (until, heir, all().filter(is_of).flat_map(|other| self.model.reach(other)).collect())
            })
            .collect();
        self.met.add(match heirs.len() {
            0 => "delete: without forks",
            1 => "delete: with a fork that stays",
            _ => "delete: with forks that stay",
        });
        let mut above = session.parent;
        for (until, heir, _) in &heirs {
            let others = self.model.others.iter_mut().chain([&mut self.model.now]);
            others.filter(|other| other.id == *heir).for_each(|other| other.parent = above);
            above = Some((*heir, *until));
        }
        let owned = self.model.log.iter().map(|entry| entry.id).filter(|entry| self.model.owner[entry] == id);
        for entry in owned.collect::<Vec<_>>() {
            match heirs.iter().find(|(_, _, needed)| needed.contains(&entry)) {
                Some((until, heir, _)) => {
                    self.model.owner.insert(entry, *heir);
                    let points = self.model.points.entry(entry).or_default();
                    points.retain(|(_, moment)| moment.at <= *until);
                }
                None => drop(self.model.gone.insert(entry)),
            }
        }
        let is_needed = |entry: &EntryId| heirs.iter().any(|(_, _, needed)| needed.contains(entry));
        let is_kept = |op: &&Op| op.prompt.as_ref().is_some_and(|(prompt, _)| is_needed(prompt));
        let forgotten: Vec<OperationId> = session.ops.iter().filter(|op| !is_kept(op)).map(|op| op.id).collect();
        self.model.timeline.forget(&forgotten);
        for other in self.model.others.iter_mut().chain([&mut self.model.now]) {
            other.ops.retain(|op| op.fork != Some(id));
        }
    }

    /// Undoes or redoes a fork.
    pub(super) fn reversed_fork(
        &mut self,
        applied: Result<Applied, RewindError>,
        op: &Op,
        session: SessionId,
        kind: OperationKind,
    ) -> Verdict {
        let others = &self.model.others;
        let fork = others.iter().find(|other| other.id == session).unwrap();
        let is_forked = others.iter().any(|other| other.shown && other.past.iter().any(|(past, _)| *past == session));
        let in_use = match (is_forked, head(&fork.entries) != fork.began) {
            (true, _) => Some(ForkUse::Forked),
            (false, true) => Some(ForkUse::WentOn),
            (false, false) => None,
        };
        if let Some(expected) = in_use.filter(|_| kind == OperationKind::Undo) {
            self.met.add(&format!("undo: fork: {expected:?}"));
            return match applied {
                Err(RewindError::ForkInUse { session: found, why }) => {
                    check("why", &(found, why), &(session, expected))
                }
                other => Err(format!("{MISMATCH}: {expected:?}, and yet {other:?}")),
            };
        }
        let applied = applied.map_err(|err| format!("ERROR: {err:?}"))?;
        let fork = self.model.others.iter_mut().find(|other| other.id == session).unwrap();
        fork.shown = kind == OperationKind::Redo;
        let entries = self.model.now.entries.clone();
        let reversal = self.log(applied.operation.unwrap(), kind, entries);
        (reversal.fork, reversal.reverses) = (Some(session), Some(op.id));
        self.reversed_is(op.id, kind);
        Ok(())
    }

    /// Every other session is as it was left, or not there at all.
    pub(super) fn check_others(&self) -> Verdict {
        let workspace = &self.desk.bench.workspace;
        let known = workspace.sessions().all().unwrap().len();
        check("how many sessions there are", &known, &(self.model.shown().count() + 1))?;
        self.check_turns(&self.model.now)?;
        for other in &self.model.others {
            if other.shown {
                self.check_session(other)
                    .and_then(|()| self.check_turns(other))
                    .map_err(|report| format!("{report}\nin session {}", other.id))?;
            } else {
                check("whether an undone fork is there", &workspace.sessions().conversation(other.id).is_ok(), &false)?;
            }
        }
        Ok(())
    }

    /// Cleans up `days` after everything happened.
    pub(super) fn collect(&mut self, days: i64) {
        let now = Timestamp(1_700_000_000_000 + days * DAY_MS);
        self.desk.workspace().maintenance_mut().gc(now, &NoProgress).unwrap();
    }

    /// When everything is older than what is kept, everything that was said is still there, and each session can be gone on with.
    pub(super) fn grow_old(&mut self) -> Verdict {
        if self.model.others.is_empty() {
            return Ok(());
        }
        self.desk.bench.checkpoint();
        self.collect(100);
        let ids: Vec<SessionId> = self.model.shown().map(|session| session.id).collect();
        self.check_session(&self.model.now)?;
        for id in ids {
            self.go_to(id);
            self.check_session(&self.model.now)?;
        }
        check("damage", &self.desk.workspace().maintenance().check().unwrap().damage.len(), &0)
    }
}
