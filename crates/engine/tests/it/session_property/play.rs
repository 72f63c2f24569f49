//! Playing a story: the engine does it, the model says what should come of it.

use std::fs;
use std::path::{Path, PathBuf};

use retake_engine::Durability;
use retake_engine::checkpoint::Origin;
use retake_engine::id::{EntryId, OperationId};
use retake_engine::operation::{MadeBy, OperationKind};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::Plan;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Entry, Part, SummaryBy, Usage};
use retake_engine::session::{Conversation, EntryRange, Moment, NewEntry};

use super::model::{Model, Op, Session, head};
use super::tally::Met;
use super::timeline::Files;
use super::view::{self, Told};
use super::{Effect, OURS, Step, Stretch, THEIRS};
use crate::compare::{MISMATCH, Verdict};
use crate::session::{Desk, operation};

/// A desk and what should be on it.
pub(super) struct Play<'a> {
    pub(super) desk: Desk,
    pub(super) model: Model,
    pub(super) met: &'a mut Met,
    count: u64,
    /// Whether an older operation was undone: from then on others may be in its way.
    pub(super) out_of_order: bool,
    /// Whether directories come and go, so that who is in whose way depends on them too.
    pub(super) with_directories: bool,
}

pub(super) fn check<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    Err(format!("{MISMATCH}: {what}\n  is       {found:?}\n  expected {expected:?}"))
}

impl<'a> Play<'a> {
    pub(super) fn new(met: &'a mut Met, with_directories: bool) -> Self {
        let desk = Desk::new();
        if !with_directories {
            OURS.iter().for_each(|name| drop(directory(&desk.bench.root, name)));
        }
        let model = Model::new(desk.session, Files::from([("a".to_owned(), "0".to_owned())]));
        Self { desk, model, met, count: 0, out_of_order: false, with_directories }
    }

    pub(super) fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Turn { prompt, rounds, end } => self.turn(*prompt, rounds, *end)?,
            Step::Outside(effect) => {
                self.met.add("outside edit");
                affect(&self.desk.bench.root, &THEIRS, effect);
                self.read_files();
            }
            Step::Rewind(scope, at, manner) => {
                let targets = self.desk.targets();
                if !targets.is_empty() {
                    self.rewind(*scope, targets[at % targets.len()].id, *manner)?;
                }
            }
            Step::RewindToEntry(scope, at, manner) => {
                if !self.model.log.is_empty() {
                    self.rewind(*scope, self.model.log[at % self.model.log.len()].id, *manner)?;
                }
            }
            Step::Fork(at) => self.fork(*at)?,
            Step::Switch(at) => self.switch(*at),
            Step::Delete(at) => self.delete(*at),
            Step::Collect => {
                self.met.add("collect");
                self.collect(1);
            }
            Step::Undo => self.undo()?,
            Step::UndoOf(at) => self.undo_of(*at)?,
            Step::Redo => self.redo()?,
            Step::Clear => self.clear(),
            Step::Summarise(stretch, at) => self.summarise(*stretch, *at)?,
            Step::Draft(text) => {
                let draft = if *text == 0 { Vec::new() } else { vec![Part::text(format!("draft {text}"))] };
                self.model.now.draft.clone_from(&draft);
                self.desk.writer().set_draft(draft).unwrap();
            }
            Step::Reopen => {
                self.met.add("reopen");
                self.desk.reopen();
            }
        }
        self.check_all()
    }

    pub(super) fn read_files(&mut self) {
        self.model.timeline.files = on_disk(&self.desk.bench.root);
    }

    fn check_all(&mut self) -> Verdict {
        self.desk.assert_one_truth();
        let found = self.desk.conversation();
        check("what was said", &found.entries(), &self.model.now.entries.as_slice())?;
        check("the draft", &self.desk.draft(), &self.model.now.draft)?;
        check("the files", &on_disk(&self.desk.bench.root), self.model.files())?;
        let stored = self.desk.bench.workspace.sessions().conversation(self.desk.session).unwrap();
        check("the context", &stored.context(), &found.context())?;
        self.check_session(&self.model.now)?;
        self.check_others()?;
        let answers = |entry: &&Entry| match &entry.body {
            Body::Summary { by, .. } => !matches!(by, SummaryBy::Model { .. }),
            body => matches!(body, Body::Reply { .. }),
        };
        check("usage", &found.usage().output, &(self.model.now.entries.iter().filter(answers).count() as u64))?;
        let todos = self.model.now.entries.iter().rev().find_map(|entry| match &entry.body {
            Body::ToolResult { todos, .. } => todos.clone(),
            _ => None,
        });
        check("todos", &found.todos().to_vec(), &todos.unwrap_or_default())?;
        let approved =
            self.model.now.entries.iter().filter(|entry| matches!(entry.body, Body::Approved { .. })).count();
        check("approvals", &found.approvals().len(), &approved)
    }

    /// What anybody can read of a session is what it should be.
    pub(super) fn check_session(&self, session: &Session) -> Verdict {
        let workspace = &self.desk.bench.workspace;
        let found = workspace.sessions().conversation(session.id).map_err(|err| format!("ERROR: {err:?}"))?;
        check("what was said", &found.entries(), &session.entries.as_slice())?;
        check("the draft", &workspace.sessions().draft(session.id).unwrap(), &session.draft)?;
        check_told(&found, &session.entries)?;
        let mut prompts: Vec<_> = session.entries.iter().filter(|entry| is_prompt(entry)).map(|e| e.id).collect();
        prompts.reverse();
        let targets = workspace.sessions().targets(session.id).unwrap();
        check("targets", &targets.iter().map(|target| target.id).collect(), &prompts)?;
        let outline = workspace.sessions().outline(session.id).unwrap();
        check("how many prompts", &outline.prompts, &(prompts.len() as u64))?;
        check("the last entry", &outline.last, &session.entries.last().map(|entry| entry.at))?;
        let tree = workspace.sessions().prompt_tree(session.id).unwrap().prompts;
        let mut retained: Vec<_> = tree.iter().filter_map(|said| Some((said.number?, said.id))).collect();
        retained.sort_unstable();
        prompts.reverse();
        check("the trunk of the tree", &retained, &(1..).zip(prompts).collect())?;
        let all = workspace.sessions().all_entries(session.id).unwrap();
        let said: Vec<_> = all.iter().filter(|entry| is_prompt(entry)).map(|entry| entry.id).collect();
        check("the whole tree", &tree.iter().map(|said| said.id).collect(), &said)
    }

    /// What the turns of a session did is known, and so are the files before them.
    pub(super) fn check_turns(&self, session: &Session) -> Verdict {
        for target in self.desk.bench.workspace.sessions().targets(session.id).unwrap() {
            check("targets with files", &target.has_files, &true)?;
            check("what a turn did", &target.files, &self.model.summaries[&target.id])?;
        }
        Ok(())
    }
    pub(super) fn plan_every_target(&mut self) -> Verdict {
        for target in self.desk.targets() {
            for scope in [Scope::Both, Scope::Conversation, Scope::Code] {
                let request = self.desk.goal(target.id, scope);
                let plan = self
                    .desk
                    .workspace()
                    .rewinds()
                    .plan(&request, &NoProgress)
                    .map_err(|err| format!("ERROR: {err:?}"))?;
                let place = self.model.place(target.id).unwrap();
                let expected = match scope {
                    Scope::Conversation => Vec::new(),
                    _ => self.model.timeline.since(&self.model.now, &place.then).conflicts.into_keys().collect(),
                };
                check("conflicts", &conflicts(&plan), &expected)?;
            }
        }
        Ok(())
    }

    pub(super) fn entry(&mut self, body: Body) -> NewEntry {
        let new = self.desk.entry(body);
        let parent = head(&self.model.now.entries);
        self.model.push(Entry { id: new.id, parent, at: new.at, body: new.body.clone() });
        new
    }

    pub(super) fn append(&mut self, body: Body) {
        let new = self.entry(body);
        self.desk.writer().append(vec![new], Durability::Soon).unwrap();
    }

    pub(super) fn checkpoint(&mut self, origin: Origin) {
        let moment = Moment { session: self.desk.session, entry: head(&self.model.now.entries), origin };
        self.desk.point(moment);
    }

    /// One answer and what its calls do; only the first `answered` of them come to their end.
    fn clear(&mut self) {
        self.met.add("clear");
        let before = self.model.now.entries.clone();
        let id = operation(&mut self.desk.bench);
        let cut = self.entry(Body::Cleared);
        self.desk.writer().clear(id, MadeBy::Client, cut).unwrap();
        self.checkpoint(Origin::Turn);
        self.model.pair();
        self.log(id, OperationKind::Clear, before);
    }

    /// A summary that the user wants.
    fn summarise(&mut self, stretch: Stretch, at: usize) -> Verdict {
        // Mostly a prompt, as in a list that one chooses from.
        let entries = self.model.now.entries.iter().filter(|entry| at.is_multiple_of(4) || is_prompt(entry));
        let entries: Vec<EntryId> = entries.map(|entry| entry.id).collect();
        let Some(at) = at.checked_rem(entries.len()) else { return Ok(()) };
        let id = entries[at];
        let span = match stretch {
            Stretch::All => EntryRange::All,
            Stretch::From => EntryRange::From(id),
            Stretch::UpTo => EntryRange::UpTo(id),
        };
        let Some((from, to)) = self.range(span)? else {
            self.met.add("summary: of nothing");
            return Ok(());
        };
        self.met.add(match stretch {
            Stretch::All => "summary: of everything",
            Stretch::From => "summary: from there on",
            Stretch::UpTo => "summary: up to there",
        });
        let before = self.model.now.entries.clone();
        let operation = operation(&mut self.desk.bench);
        let summary = self.summary(from, to, SummaryBy::User);
        let summary = self.entry(summary);
        self.desk.writer().summarise(operation, MadeBy::Client, "a part", summary).unwrap();
        self.checkpoint(Origin::Turn);
        self.model.pair();
        self.log(operation, OperationKind::Summary, before);
        Ok(())
    }

    /// What a summary of `span` stands for, which is what it should.
    pub(super) fn range(&mut self, span: EntryRange) -> Result<Option<(EntryId, EntryId)>, String> {
        let (found, expected) = (self.desk.conversation().range(span), view::range(&self.model.now.entries, span));
        check(&format!("the range of {span:?}"), &found, &expected)?;
        let is_summary = |entry: &Entry| matches!(entry.body, Body::Summary { .. });
        if let Some((from, to)) = found {
            let at = |id| self.model.now.entries.iter().position(|entry| entry.id == id).unwrap();
            let range = &self.model.now.entries[at(from)..=at(to)];
            if range.iter().any(is_summary) {
                self.met.add("summary: of a summary");
            }
        }
        Ok(found)
    }

    pub(super) fn summary(&mut self, from: EntryId, to: EntryId, by: SummaryBy) -> Body {
        let (text, usage) = (format!("in short {}", self.fresh()), Usage { output: 1, ..Usage::default() });
        Body::Summary { from, to, text, by, usage }
    }

    /// A number that was not used before.
    pub(super) fn fresh(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Notes an operation that was carried out.
    pub(super) fn log(&mut self, id: OperationId, kind: OperationKind, before: Vec<Entry>) -> &mut Op {
        let after = self.model.now.entries.clone();
        self.model.timeline.operation(id, None);
        let (draft, prompt, fork, reverses) = (None, None, None, None);
        let op = Op { id, kind, before, after, draft, prompt, fork, discarded: false, undone: false, reverses };
        self.model.now.ops.push(op);
        self.model.now.ops.last_mut().unwrap()
    }
}

/// The model sees what it should, and nothing twice.
fn check_told(conversation: &Conversation, entries: &[Entry]) -> Verdict {
    let context = conversation.context();
    let (heard, expected) = (view::heard(&context), view::told(entries));
    check("what the model sees", &heard, &expected)?;
    check("the system's instructions", &context.system, &view::system(entries))?;
    let is_unique = |told: &Told| matches!(told, Told::Said(_) | Told::Answer(_));
    for (at, told) in heard.iter().enumerate().filter(|(_, told)| is_unique(told)) {
        check("what is told twice", &heard[..at].iter().find(|earlier| *earlier == told), &None)?;
    }
    Ok(())
}

/// Paths of a plan that cannot simply go back.
pub(super) fn conflicts(plan: &Plan) -> Vec<String> {
    plan.conflicts().map(|path| path.path.display().to_string()).collect()
}

pub(super) fn is_prompt(entry: &Entry) -> bool {
    matches!(entry.body, Body::Prompt { .. })
}

pub(super) fn is_note(entry: &Entry) -> bool {
    matches!(entry.body, Body::Note { .. })
}

pub(super) fn affect(root: &Path, names: &[&str], effect: &Effect) {
    let place = |name: usize| directory(root, names[name]);
    match effect {
        Effect::Write(name, content) => fs::write(place(*name), content.to_string()).unwrap(),
        Effect::Delete(name) => drop(fs::remove_file(place(*name))),
        Effect::Move(from, to) => drop(fs::rename(place(*from), place(*to))),
    }
}

/// The path of a file, whose directory is there then.
fn directory(root: &Path, name: &str) -> PathBuf {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

pub(super) fn on_disk(root: &Path) -> Files {
    let read = |name: &&str| Some(((*name).to_owned(), fs::read_to_string(root.join(name)).ok()?));
    OURS.iter().chain(&THEIRS).filter_map(read).collect()
}
