//! Playing a story: the engine does it, the model says what should come of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use retake_engine::session::entry::{
    Block, Body, CallId, EndReason, Entry, Outcome, Part, StopReason, Todo, TodoState, Usage,
};
use retake_engine::session::{Moment, NewEntry, NewTurn};
use retake_engine::{
    Applied, Durability, MadeBy, NoProgress, OperationError, OperationId, OperationKind, Origin, RewindError, Scope,
};

use super::model::{self, Files, Model, Op, differing, head};
use super::tally::Met;
use super::{Call, Effect, End, OURS, Step, THEIRS};
use crate::compare::{MISMATCH, Verdict};
use crate::session::{Desk, Turn, operation};

/// A desk and what should be on it.
pub(super) struct Play<'a> {
    desk: Desk,
    model: Model,
    met: &'a mut Met,
    calls: u64,
    /// Whether an older operation was undone: from then on others may be in its way.
    out_of_order: bool,
}

fn check<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    Err(format!("{MISMATCH}: {what}\n  is       {found:?}\n  expected {expected:?}"))
}

impl<'a> Play<'a> {
    pub(super) fn new(met: &'a mut Met) -> Self {
        let desk = Desk::new();
        let files = Files::from([("a".to_owned(), "0".to_owned())]);
        let mut model = Model::default();
        model.files = files;
        Self { desk, model, met, calls: 0, out_of_order: false }
    }

    pub(super) fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Turn { prompt, rounds, end } => self.turn(*prompt, rounds, *end)?,
            Step::Outside(effect) => {
                self.met.add("outside edit");
                affect(&self.desk.bench.root, &THEIRS, effect);
                self.read_files();
            }
            Step::Rewind(scope, at) => {
                let targets = self.desk.targets();
                if !targets.is_empty() {
                    self.rewind(*scope, targets[at % targets.len()].id)?;
                }
            }
            Step::RewindToEntry(scope, at) => {
                if !self.model.all.is_empty() {
                    self.rewind(*scope, self.model.all[at % self.model.all.len()].id)?;
                }
            }
            Step::Undo => self.undo()?,
            Step::UndoOf(at) => self.undo_of(*at)?,
            Step::Redo => self.redo()?,
            Step::Clear => self.clear(),
            Step::Summarise(from, to) => self.summarise(*from, *to),
            Step::Draft(text) => {
                let draft = if *text == 0 { Vec::new() } else { vec![Part::text(format!("draft {text}"))] };
                self.model.draft.clone_from(&draft);
                self.desk.writer().set_draft(draft).unwrap();
            }
            Step::Reopen => {
                self.met.add("reopen");
                self.desk.reopen();
            }
        }
        self.check_all()
    }

    fn read_files(&mut self) {
        self.model.files = on_disk(&self.desk.bench.root);
    }

    fn check_all(&mut self) -> Verdict {
        self.desk.assert_one_truth();
        let found = self.desk.conversation();
        check("what was said", &found.entries(), &self.model.entries.as_slice())?;
        check("the draft", &self.desk.draft(), &self.model.draft)?;
        check("the files", &on_disk(&self.desk.bench.root), &self.model.files)?;
        let stored = self.desk.bench.workspace.conversation(self.desk.session).unwrap();
        check("the context", &stored.context(), &found.context())?;
        let replies = self.model.entries.iter().filter(|entry| matches!(entry.body, Body::Reply { .. })).count();
        check("usage", &found.usage().output, &(replies as u64))?;
        let todos = self.model.entries.iter().rev().find_map(|entry| match &entry.body {
            Body::ToolResult { todos, .. } => todos.clone(),
            _ => None,
        });
        check("todos", &found.todos().to_vec(), &todos.unwrap_or_default())?;
        let approved = self.model.entries.iter().filter(|entry| matches!(entry.body, Body::Approved { .. })).count();
        check("approvals", &found.approvals().len(), &approved)?;
        let mut prompts: Vec<_> = self.model.entries.iter().filter(|entry| is_prompt(entry)).map(|e| e.id).collect();
        prompts.reverse();
        let targets = self.desk.targets();
        check("targets", &targets.iter().map(|target| target.id).collect(), &prompts)?;
        check("targets with files", &targets.iter().all(|target| target.has_files), &true)
    }

    pub(super) fn plan_every_target(&mut self) -> Verdict {
        for target in self.desk.targets() {
            for scope in [Scope::Both, Scope::Conversation, Scope::Code] {
                let request = self.desk.goal(target.id, scope);
                let plan =
                    self.desk.workspace().plan(&request, &NoProgress).map_err(|err| format!("ERROR: {err:?}"))?;
                check("no conflict", &plan.conflicts().count(), &0)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, body: Body) -> NewEntry {
        let new = self.desk.entry(body);
        let parent = head(&self.model.entries);
        self.model.push(Entry { id: new.id, parent, at: new.at, body: new.body.clone() });
        new
    }

    fn append(&mut self, body: Body) {
        let new = self.entry(body);
        self.desk.writer().append(vec![new], Durability::Soon).unwrap();
    }

    fn turn(&mut self, prompt: u8, rounds: &[Vec<Call>], end: End) -> Verdict {
        let before = self.model.entries.clone();
        let (draft, files) = (self.model.draft.clone(), self.model.files.clone());
        let parts = vec![Part::text(format!("prompt {prompt}\nmore")), Part::Paste { text: "pasted".to_owned() }];
        let told = self.desk.conversation();
        let new = self.entry(Body::Prompt { parts: parts.clone() });
        let turn = Turn { prompt: new.id, operation: operation(&mut self.desk.bench) };
        self.model.told.insert(turn.prompt, told);
        let new = NewTurn { operation: turn.operation, at: new.at, made_by: MadeBy::Client, entries: vec![new] };
        self.desk.writer().begin_turn(new).unwrap();
        self.model.draft.clear();
        self.checkpoint(Origin::Prompt);
        self.model.pair_prompt();
        for (number, calls) in rounds.iter().enumerate() {
            let dies = end == End::Dies && number + 1 == rounds.len();
            self.round(turn, calls, if dies { calls.len() / 2 } else { calls.len() });
        }
        match end {
            End::Done => self.end(turn),
            End::Dies if rounds.is_empty() => {
                self.met.add("turn: died before any output");
                self.desk.reopen();
                (self.model.entries, self.model.draft) = (before, parts);
                return Ok(());
            }
            End::Dies => self.die(rounds.last().map_or(0, |calls| calls.len() - calls.len() / 2))?,
        }
        self.met.add("turn");
        self.log(turn.operation, OperationKind::Turn, before, &files, Some((draft, Vec::new())), Some(parts), None);
        Ok(())
    }

    fn checkpoint(&mut self, origin: Origin) {
        let moment = Moment { session: self.desk.session, entry: head(&self.model.entries), origin };
        self.desk.point(moment);
    }

    /// One answer and what its calls do; only the first `answered` of them come to their end.
    fn round(&mut self, turn: Turn, calls: &[Call], answered: usize) {
        let ids: Vec<CallId> = calls.iter().map(|_| self.call_id()).collect();
        let mut blocks = vec![Block::Text { text: "well".to_owned() }];
        blocks.extend(ids.iter().map(|id| Block::Call {
            id: id.clone(),
            name: "tool".to_owned(),
            arguments: "{}".to_owned(),
        }));
        let usage = Usage { output: 1, ..Usage::default() };
        self.append(Body::Reply { blocks, model: "test/model".to_owned(), usage, stop: StopReason::Calls });
        for (number, (call, id)) in calls.iter().zip(ids).enumerate() {
            let mut todos = None;
            match call {
                Call::Edit(name, content) => {
                    let effect = Effect::Write(*name, *content);
                    // A tool declares the directories that it has to make, too.
                    let parent =
                        Path::new(OURS[*name]).parent().and_then(Path::to_str).filter(|parent| !parent.is_empty());
                    let declared: Vec<&str> = parent.into_iter().chain([OURS[*name]]).collect();
                    self.desk.tool(turn, &declared, |root| affect(root, &OURS, &effect));
                }
                Call::Shell(effects) => {
                    self.desk.tool(turn, &[], |root| effects.iter().for_each(|effect| affect(root, &OURS, effect)));
                }
                Call::Todo(number) => {
                    todos = Some(vec![Todo { text: number.to_string(), state: TodoState::Pending }]);
                }
                Call::Approved => self.append(Body::Approved { tool: "tool".to_owned(), prefix: None }),
            }
            if matches!(call, Call::Edit(..) | Call::Shell(_)) {
                self.read_files();
                self.model.pair();
            }
            if number < answered {
                let parts = vec![Part::text("result")];
                let (title, outcome) = ("tool".to_owned(), Outcome::Done);
                self.append(Body::ToolResult { call: id, title, outcome, parts, todos, details: None });
            }
        }
    }

    fn call_id(&mut self) -> CallId {
        self.calls += 1;
        CallId(format!("call-{}", self.calls))
    }

    fn end(&mut self, turn: Turn) {
        let end = self.entry(Body::Ended { reason: EndReason::Done });
        self.desk.writer().end_turn(turn.operation, end).unwrap();
        self.checkpoint(Origin::Turn);
        self.model.pair();
    }

    /// The process dies with `open` calls unanswered, and the next one puts that in order.
    fn die(&mut self, open: usize) -> Verdict {
        self.met.add("turn: died in the middle");
        self.desk.reopen();
        let found = self.desk.conversation();
        let added = found.entries().get(self.model.entries.len()..).unwrap_or_default();
        let is_result = |entry: &&Entry| matches!(entry.body, Body::ToolResult { outcome: Outcome::Interrupted, .. });
        check("results that were added", &added.iter().filter(is_result).count(), &open)?;
        let ended = added.last().map(|entry| entry.body.clone());
        check("the end", &ended, &Some(Body::Ended { reason: EndReason::Interrupted }))?;
        added.iter().for_each(|entry| self.model.push(entry.clone()));
        Ok(())
    }

    fn clear(&mut self) {
        self.met.add("clear");
        let (before, files) = (self.model.entries.clone(), self.model.files.clone());
        let id = operation(&mut self.desk.bench);
        let cut = self.entry(Body::Cleared);
        self.desk.writer().clear(id, MadeBy::Client, cut).unwrap();
        self.checkpoint(Origin::Turn);
        self.model.pair();
        self.log(id, OperationKind::Clear, before, &files, None, None, None);
    }

    /// A summary of whole turns.
    fn summarise(&mut self, from: usize, to: usize) {
        let bounds = |wanted: &dyn Fn(&Entry) -> bool| -> Vec<_> {
            self.model.entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.id).collect()
        };
        let (starts, ends) = (bounds(&is_prompt), bounds(&|entry| matches!(entry.body, Body::Ended { .. })));
        if starts.is_empty() || ends.is_empty() {
            return;
        }
        self.met.add("summary");
        let (from, to) = (starts[from % starts.len()], ends[to % ends.len()]);
        self.append(Desk::summary(from, to, "in short"));
    }

    #[expect(clippy::too_many_arguments, reason = "what an operation is made of")]
    fn log(
        &mut self,
        id: OperationId,
        kind: OperationKind,
        before: Vec<Entry>,
        files: &Files,
        draft: Option<(Vec<Part>, Vec<Part>)>,
        prompt: Option<Vec<Part>>,
        reverses: Option<usize>,
    ) {
        let changed = differing(files, &self.model.files);
        let was: BTreeMap<_, _> = changed.into_iter().map(|name| (name.clone(), files.get(&name).cloned())).collect();
        let after = self.model.entries.clone();
        self.model.ops.push(Op { id, kind, before, after, draft, prompt, was, undone: false, reverses });
    }

    fn rewind(&mut self, scope: Scope, entry: retake_engine::EntryId) -> Verdict {
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

    fn count_rewind(&mut self, scope: Scope, entry: retake_engine::EntryId, to: &[Entry]) {
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
        if leaves.iter().any(|entry| entry.body == Body::Cleared) {
            self.met.add("rewind: across a clear");
        }
    }

    fn undo(&mut self) -> Verdict {
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

    fn undo_of(&mut self, at: usize) -> Verdict {
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

    fn redo(&mut self) -> Verdict {
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

fn is_prompt(entry: &Entry) -> bool {
    matches!(entry.body, Body::Prompt { .. })
}

fn is_note(entry: &Entry) -> bool {
    matches!(entry.body, Body::Note { .. })
}

fn affect(root: &Path, names: &[&str], effect: &Effect) {
    let place = |name: usize| {
        let path = root.join(names[name]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    match effect {
        Effect::Write(name, content) => fs::write(place(*name), content.to_string()).unwrap(),
        Effect::Delete(name) => drop(fs::remove_file(place(*name))),
        Effect::Move(from, to) => drop(fs::rename(place(*from), place(*to))),
    }
}

fn on_disk(root: &Path) -> Files {
    let read = |name: &&str| Some(((*name).to_owned(), fs::read_to_string(root.join(name)).ok()?));
    OURS.iter().chain(&THEIRS).filter_map(read).collect()
}
