//! Rewinds, undos and redos of a story, and what the naive model says of them.

use std::collections::{BTreeMap, BTreeSet};

use retake_agent::contract::{Change, ChangeGoal, Reason, Refusal, WhileRunning};
use retake_agent::rewind_document::{Bytes, RewindDocument};
use retake_engine::id::EntryId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Entry};

use super::model::{By, Files, Kind, Node, Undone, differing, with};
use super::play::{Player, Said};
use crate::scene::rewind_goal;

/// Somewhere to go.
pub(super) struct Aim {
    id: EntryId,
    moment: usize,
    /// What is left of the conversation there.
    entries: Vec<Entry>,
    /// What is to be said again.
    draft: Option<String>,
    is_listed: bool,
}

impl Player<'_> {
    fn apply(&mut self, goal: ChangeGoal, on_conflict: OnConflict) -> Result<RewindDocument, Refusal> {
        self.scene.apply(Change { on_conflict, ..Change::new(goal) }, WhileRunning::Refuse)
    }

    /// One of the prompts that are listed, or now and then one that has left the conversation.
    pub(super) fn prompt_aim(&self, which: usize) -> Option<Aim> {
        let mut known: Vec<EntryId> = self.scene.targets().iter().map(|target| target.id).collect();
        let listed = known.len();
        let mut others: Vec<EntryId> = self.said.keys().filter(|id| !known.contains(id)).copied().collect();
        others.sort_by_key(|id| self.said[id].moment);
        known.extend(others.into_iter().take(usize::from(which.is_multiple_of(3))));
        let at = which.checked_rem(known.len())?;
        let Said { moment, text, entries } = &self.said[&known[at]];
        let (moment, entries, draft) = (*moment, entries.clone(), Some(text.clone()));
        Some(Aim { id: known[at], moment, entries, draft, is_listed: at < listed })
    }

    /// One of the other entries. What belongs to the same round goes with it.
    pub(super) fn entry_aim(&mut self, which: usize) -> Option<Aim> {
        let entries = self.entries();
        let known: Vec<usize> = (0..entries.len()).filter(|at| self.heard.contains_key(&entries[*at].id)).collect();
        let mut at = known[which.checked_rem(known.len())?];
        let (id, moment) = (entries[at].id, self.heard[&entries[at].id]);
        while entries.get(at + 1).is_some_and(|next| matches!(next.body, Body::ToolResult { .. })) {
            at += 1;
        }
        Some(Aim { id, moment, entries: entries[..=at].to_vec(), draft: None, is_listed: true })
    }

    pub(super) fn rewind(&mut self, aim: &Aim, scope: Scope, choice: OnConflict) {
        self.settle();
        let (before, entries, now) = (self.disk(), self.entries(), self.timeline.now());
        let moment = aim.moment;
        let draft = self.scene.draft();
        let (mut states, conflicts) = self.timeline.going_back(moment);
        if scope == Scope::Conversation {
            states.clear();
        }
        let stops = scope != Scope::Conversation && !conflicts.is_empty() && choice == OnConflict::Stop;
        let result = self.apply(rewind_goal(aim.id, scope), choice);
        if stops {
            self.met.add("rewind: conflict stopped");
            return self.refused(result, &before, &entries, &conflicts);
        }
        let document = result.unwrap_or_else(|refusal| panic!("refused: {refusal:#?}\nconflicts: {conflicts:?}"));
        if scope != Scope::Conversation && !conflicts.is_empty() {
            self.met.add(if choice == OnConflict::Keep {
                "rewind: conflict kept"
            } else {
                "rewind: conflict overwritten"
            });
        }
        if choice == OnConflict::Keep {
            states.retain(|path, _| !conflicts.contains(path));
        }
        let expected = with(&before, &states);
        self.files_are(&expected, &format!("{document:#?}"));
        let changed = differing(&before, &expected);
        let entries_after = self.entries();
        let kept = if scope == Scope::Code { &entries } else { &aim.entries };
        assert_eq!(
            entries_after[..kept.len().min(entries_after.len())],
            kept[..],
            "the conversation goes where it was to go"
        );
        let note = &entries_after[kept.len()..];
        assert!(note.len() <= 1 && note.iter().all(|entry| matches!(entry.body, Body::Note { .. })), "{note:#?}");
        let kept_back = choice == OnConflict::Keep && !conflicts.is_empty();
        if !(scope == Scope::Both && kept_back) {
            let is_file = |path: &&String| {
                let state = before.get(*path).or_else(|| expected.get(*path));
                state.is_some_and(|(shape, ..)| *shape != retake_testkit::naive::Shape::Directory)
            };
            self.check_note(scope, note.first(), &before, moment, changed.iter().any(|path| is_file(&path)));
        }
        let said_again = aim.draft.as_ref().filter(|_| scope != Scope::Code);
        assert_eq!(self.scene.draft(), *said_again.unwrap_or(&draft));
        self.met.add(match scope {
            Scope::Code => "rewind: code",
            Scope::Conversation => "rewind: conversation",
            Scope::Both => "rewind: both",
        });
        if !changed.is_empty() {
            self.met.add("rewind: files changed");
        }
        if !aim.is_listed {
            self.met.add("rewind: into another branch");
        }
        if changed.is_empty() && entries_after == entries {
            self.met.add("rewind: nothing to do");
        }
        if document.operation.is_some() {
            self.timeline.push(By::Retake(now), expected);
            self.made(Kind::Rewind, now, entries, entries_after);
        }
    }

    /// The model is told of files if, and only if, there is something to tell.
    fn check_note(&mut self, scope: Scope, note: Option<&Entry>, files: &Files, moment: usize, has_changed: bool) {
        let is_file = |path: &String| match (files.get(path), self.timeline.at(moment).get(path)) {
            (Some((shape, ..)), _) | (None, Some((shape, ..))) => *shape == retake_testkit::naive::Shape::File,
            (None, None) => false,
        };
        let told: Vec<String> = match note.map(|note| &note.body) {
            Some(Body::Note { about, .. }) => about.clone(),
            _ => Vec::new(),
        };
        match scope {
            Scope::Both => assert_eq!(note, None, "both halves agree, but for what is somebody else's"),
            Scope::Code => assert_eq!(note.is_some(), has_changed, "files went back: {note:#?}"),
            Scope::Conversation => {
                let differ = differing(files, self.timeline.at(moment));
                if differ.is_empty() {
                    assert_eq!(note, None, "no file differs");
                }
                for path in differ.iter().filter(|path| is_file(path)) {
                    assert!(told.contains(path), "`{path}` differs, and the model is told of {told:?}");
                }
            }
        }
        if note.is_some() {
            self.met.add("rewind: note");
        }
    }

    /// Nothing at all may have changed.
    fn refused(
        &mut self,
        result: Result<RewindDocument, Refusal>,
        before: &Files,
        entries: &[Entry],
        conflicts: &BTreeSet<String>,
    ) {
        let refusal = result.expect_err("somebody has to decide");
        assert_eq!(refusal.reason, Reason::Conflicts, "{refusal:#?}");
        let document = refusal.document.expect("a plan");
        for path in conflicts {
            let is_listed = document.conflicts.iter().any(|conflict| conflict.path == Bytes::Text(path.clone()));
            assert!(is_listed, "`{path}` is a conflict: {document:#?}");
        }
        self.files_are(before, "refused");
        assert_eq!(self.entries(), entries, "refused");
    }

    pub(super) fn files_are(&self, expected: &Files, why: &str) {
        let disk = self.disk();
        let shown = |files: &Files| -> BTreeMap<String, Option<Node>> {
            differing(&disk, expected).into_iter().map(|path| (path.clone(), files.get(&path).cloned())).collect()
        };
        assert!(disk == *expected, "files are\n{:?}\nand should be\n{:?}\n{why}", shown(&disk), shown(expected));
    }

    /// Compares what was said, but for notes of undos and redos where there may be any.
    fn said_is(&mut self, expected: &[Entry], why: &str) {
        let entries = self.entries();
        let is_note = |entry: &Entry| matches!(entry.body, Body::Note { .. });
        let notes = if self.has_notes { entries.iter().rev().take_while(|entry| is_note(entry)).count() } else { 0 };
        let more = entries.len().saturating_sub(expected.len()).min(notes);
        if more > 0 {
            self.met.add("undo: note");
        }
        assert_eq!(entries[..entries.len() - more], *expected, "{why}");
    }

    pub(super) fn undo(&mut self) {
        self.settle();
        let (before, entries, now) = (self.disk(), self.entries(), self.timeline.now());
        let result = self.apply(ChangeGoal::Undo { operation: None }, OnConflict::Stop);
        let Some(operation) = self.done.last().cloned() else {
            self.met.add("undo: nothing");
            assert_eq!(result.expect_err("there is nothing").reason, Reason::Nothing);
            return;
        };
        let expected = with(&before, &operation.before);
        let document = match result {
            Ok(document) => document,
            Err(refusal) => {
                self.met.add("undo: conflict");
                let others = self.timeline.changed(By::Outside, operation.since);
                let conflicts: BTreeSet<_> = operation.before.keys().filter(|path| others.contains(*path)).collect();
                assert!(!conflicts.is_empty(), "nobody else was at work: {refusal:#?}");
                self.refused(Err(refusal), &before, &entries, &BTreeSet::new());
                self.apply(ChangeGoal::Undo { operation: None }, OnConflict::Overwrite).expect("decided")
            }
        };
        self.files_are(&expected, &format!("{operation:#?}{document:#?}"));
        // Where the conversation had not moved, there is nothing to go back to: the model is told of the files instead.
        self.has_notes |= operation.entries_before == operation.entries_after && before != expected;
        self.said_is(&operation.entries_before, "the conversation is as before");
        self.met.add("undo");
        self.met.add(match operation.kind {
            Kind::Turn => "undo: turn",
            Kind::Rewind => "undo: rewind",
            Kind::Clear => "undo: clear",
            Kind::Summary => "undo: summary",
        });
        self.done.pop();
        let changed = differing(&before, &expected);
        let before = changed.into_iter().map(|path| (path.clone(), before.get(&path).cloned())).collect();
        self.timeline.push(By::Retake(operation.since), expected);
        assert_eq!(self.timeline.now(), now + 1);
        self.undone.push(Undone { operation, before });
    }

    pub(super) fn redo(&mut self) {
        self.settle();
        let (before, entries) = (self.disk(), self.entries());
        let result = self.apply(ChangeGoal::Redo { operation: None }, OnConflict::Stop);
        let Some(undone) = self.undone.last().cloned() else {
            self.met.add("redo: nothing");
            assert_eq!(result.expect_err("there is nothing").reason, Reason::Nothing);
            return;
        };
        let expected = with(&before, &undone.before);
        if let Err(refusal) = result {
            self.refused(Err(refusal), &before, &entries, &BTreeSet::new());
            self.apply(ChangeGoal::Redo { operation: None }, OnConflict::Overwrite).expect("decided");
        }
        self.files_are(&expected, "redone");
        self.said_is(&undone.operation.entries_after, "the conversation is as before the undo");
        self.met.add("redo");
        self.undone.pop();
        self.timeline.push(By::Retake(undone.operation.since), expected);
        self.done.push(undone.operation);
    }
}
