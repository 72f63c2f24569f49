//! Conversations: an agent's turns on a real directory, and going back in them with files, without, or with nothing else.

mod back;
mod care;
#[cfg(feature = "faults")]
mod crash;
mod derived;
mod fork;
mod notes;
mod undo;
mod writing;

use std::path::Path;

use retake_engine::checkpoint::Origin;
use retake_engine::id::{EntryId, OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Applied, Files, Goal, NewRewind, RewindError, RewindRequest};
use retake_engine::session::entry::{Block, Body, CallId, EndReason, Outcome, Part, StopReason, SummaryBy, Usage};
use retake_engine::session::{Conversation, Moment, NewEntry, NewTurn, Target};
use retake_engine::session::{Discard, NewSession, Scope, SessionError, SessionKind, SessionWriter};
use retake_engine::window::{NewWindow, PartOf, Reach};
use retake_engine::{Durability, Timestamp, Workspace};

use crate::rewind::{Bench, path};
use crate::scanners::{environment, numbered};

/// A turn under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) prompt: EntryId,
    pub(crate) operation: OperationId,
}

/// Plays an agent: a workspace, one conversation in it and its writer.
pub(crate) struct Desk {
    pub(crate) bench: Bench,
    pub(crate) session: SessionId,
    writer: Option<SessionWriter>,
    calls: u32,
}

impl Desk {
    /// A conversation that has not begun, in a workspace with one file `a`.
    pub(crate) fn new() -> Self {
        Self::over(Bench::new())
    }

    /// A summary that the user wanted.
    pub(crate) fn summary(from: EntryId, to: EntryId, text: &str) -> Body {
        Body::Summary { from, to, text: text.to_owned(), by: SummaryBy::User, usage: Usage::default() }
    }

    /// In the directory `place`, which is kept.
    pub(crate) fn at(place: &Path) -> Self {
        Self::over(Bench::at(place))
    }

    fn over(mut bench: Bench) -> Self {
        bench.write("a", "0");
        bench.checkpoint();
        let session = conversation(&mut bench);
        let writer = open(&mut bench, session).unwrap();
        Self { bench, session, writer: Some(writer), calls: 0 }
    }

    pub(crate) fn writer(&mut self) -> &mut SessionWriter {
        self.writer.as_mut().unwrap()
    }

    pub(crate) fn workspace(&mut self) -> &mut Workspace {
        &mut self.bench.workspace
    }

    pub(crate) fn entry(&mut self, body: Body) -> NewEntry {
        new_entry(&mut self.bench, body)
    }

    /// Begins a turn and takes the checkpoint of its prompt.
    pub(crate) fn say(&mut self, text: &str) -> Turn {
        self.say_parts(vec![Part::text(text)])
    }

    pub(crate) fn say_parts(&mut self, parts: Vec<Part>) -> Turn {
        let turn = self.begin(parts);
        let moment = Moment { session: self.session, entry: Some(turn.prompt), origin: Origin::Prompt };
        self.point(moment);
        turn
    }

    /// Begins a turn without a checkpoint.
    pub(crate) fn begin(&mut self, parts: Vec<Part>) -> Turn {
        let prompt = self.entry(Body::Prompt { parts });
        let turn = Turn { prompt: prompt.id, operation: operation(&mut self.bench) };
        let new = NewTurn {
            operation: turn.operation,
            at: prompt.at,
            made_by: MadeBy::Client,
            entries: vec![prompt],
            draft: Vec::new(),
        };
        self.writer().begin_turn(new).unwrap();
        turn
    }

    pub(crate) fn point(&mut self, moment: Moment) {
        let new = numbered(self.bench.tick());
        self.workspace().checkpoints_mut().take_at(moment, new, Durability::Soon, &NoProgress).unwrap();
    }

    /// Appends an answer; returns its entry and its calls.
    pub(crate) fn reply(&mut self, text: &str, calls: usize) -> (EntryId, Vec<CallId>) {
        let mut blocks = vec![
            Block::Reasoning { text: "hm".to_owned(), opaque: format!("{{\"signature\": \"{text}\"}}") },
            Block::Text { text: text.to_owned() },
        ];
        let mut ids = Vec::new();
        for _ in 0..calls {
            self.calls += 1;
            ids.push(CallId(format!("call-{}", self.calls)));
            let (id, name) = (ids[ids.len() - 1].clone(), "bash".to_owned());
            blocks.push(Block::Call { id, name, arguments: "{ \"command\":1}".to_owned() });
        }
        let stop = if calls == 0 { StopReason::Done } else { StopReason::Calls };
        let usage = Usage { input: 10, output: 1, cost: Some(0.25), ..Usage::default() };
        let body = Body::Reply { blocks, model: "test/model".to_owned(), usage, stop };
        (self.append(body), ids)
    }

    pub(crate) fn append(&mut self, body: Body) -> EntryId {
        let entry = self.entry(body);
        let id = entry.id;
        self.writer().append(vec![entry], Durability::Soon).unwrap();
        id
    }

    pub(crate) fn result(&mut self, call: &CallId, text: &str) -> EntryId {
        self.append(result(call, text))
    }

    /// Runs `work` as a tool of `turn`: one that declares what it edits, or a shell.
    pub(crate) fn tool(&mut self, turn: Turn, declared: &[&str], work: impl FnOnce(&Path)) {
        self.run_tool(turn, if declared.is_empty() { "bash: work" } else { "edit_file" }, declared, work);
    }

    /// Runs `work` as a shell that is called `tool`.
    pub(crate) fn tool_called(&mut self, turn: Turn, tool: &str, work: impl FnOnce(&Path)) {
        self.run_tool(turn, tool, &[], work);
    }

    fn run_tool(&mut self, turn: Turn, tool: &str, declared: &[&str], work: impl FnOnce(&Path)) {
        let window = NewWindow {
            session: self.session,
            turn: Some(turn.prompt.to_string()),
            tool: tool.to_owned(),
            reach: if declared.is_empty() { Reach::Everything } else { Reach::Declared },
            declared: declared.iter().map(|text| path(text)).collect(),
            operation: PartOf::Turn(turn.operation),
        };
        let new = numbered(self.bench.tick());
        let began = self.workspace().windows().begin(window, new, &NoProgress).unwrap();
        work(&self.bench.root);
        let new = numbered(self.bench.tick());
        self.workspace().windows().end(began.window, new, Durability::Soon, &NoProgress).unwrap();
    }

    /// Ends a turn, with its checkpoint.
    pub(crate) fn end(&mut self, turn: Turn) -> EntryId {
        let end = self.entry(Body::Ended { reason: EndReason::Done });
        let id = end.id;
        self.writer().end_turn(turn.operation, end).unwrap();
        self.point(Moment { session: self.session, entry: Some(id), origin: Origin::Turn });
        id
    }

    /// A whole turn: prompt, answer with one call, `work` in a shell, result, answer.
    pub(crate) fn turn(&mut self, text: &str, work: impl FnOnce(&Path)) -> Turn {
        let turn = self.say(text);
        let (_, calls) = self.reply(&format!("on it: {text}"), 1);
        self.tool(turn, &[], work);
        self.result(&calls[0], "worked");
        self.reply(&format!("done: {text}"), 0);
        self.end(turn);
        turn
    }

    /// A whole turn that writes one file.
    pub(crate) fn writes(&mut self, text: &str, name: &str, content: &str) -> Turn {
        self.turn(text, |root| std::fs::write(root.join(name), content).unwrap())
    }

    /// Tells the model nothing of what was said, as one operation.
    pub(crate) fn clear(&mut self) -> EntryId {
        let (cut, operation) = (self.entry(Body::Cleared), operation(&mut self.bench));
        let id = cut.id;
        self.writer().clear(operation, MadeBy::Client, cut).unwrap();
        self.point(Moment { session: self.session, entry: Some(id), origin: Origin::Turn });
        id
    }

    pub(crate) fn goal(&self, entry: EntryId, scope: Scope) -> RewindRequest {
        let (files, discard) = (Files::Selective, Discard::No);
        let goal = Goal::Entry { session: self.session, entry, scope, files, discard };
        RewindRequest { made_by: MadeBy::Client, ..RewindRequest::new(goal) }
    }

    pub(crate) fn apply(&mut self, request: &RewindRequest) -> Result<Applied, RewindError> {
        let new = identities(&mut self.bench);
        let writer = self.writer.as_mut().unwrap();
        let applied = self.bench.workspace.rewinds_mut().apply_in(writer, request, None, &new, &NoProgress);
        self.assert_one_truth();
        applied
    }

    pub(crate) fn rewind(&mut self, entry: EntryId, scope: Scope) -> Result<Applied, RewindError> {
        let request = self.goal(entry, scope);
        self.apply(&request)
    }

    pub(crate) fn undo(&mut self) -> Result<Applied, RewindError> {
        self.apply(&RewindRequest {
            made_by: MadeBy::Client,
            ..RewindRequest::new(Goal::Undo { operation: None, session: Some(self.session) })
        })
    }

    pub(crate) fn undo_of(&mut self, operation: OperationId) -> Result<Applied, RewindError> {
        self.apply(&RewindRequest {
            made_by: MadeBy::Client,
            ..RewindRequest::new(Goal::Undo { operation: Some(operation), session: None })
        })
    }

    pub(crate) fn redo(&mut self) -> Result<Applied, RewindError> {
        self.apply(&RewindRequest {
            made_by: MadeBy::Client,
            ..RewindRequest::new(Goal::Redo { session: Some(self.session) })
        })
    }

    pub(crate) fn targets(&self) -> Vec<Target> {
        self.bench.workspace.sessions().targets(self.session).unwrap()
    }

    pub(crate) fn conversation(&self) -> Conversation {
        self.writer.as_ref().unwrap().conversation().clone()
    }

    pub(crate) fn draft(&self) -> Vec<Part> {
        self.writer.as_ref().unwrap().draft().to_vec()
    }

    /// What was said by the user, in order.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.conversation().prompts().map(|(_, parts)| retake_engine::session::first_line(parts)).collect()
    }

    /// The notes in what is retained.
    pub(crate) fn notes(&self) -> Vec<Vec<String>> {
        let about = |entry: &retake_engine::session::entry::Entry| match &entry.body {
            Body::Note { about, .. } => Some(about.clone()),
            _ => None,
        };
        self.conversation().entries().iter().filter_map(about).collect()
    }

    /// As another process would find it: the writer is gone, and so is everything in memory.
    pub(crate) fn reopen(&mut self) {
        self.close();
        let root = self.bench.root.clone();
        let store = root.with_file_name("store");
        self.bench.workspace = Workspace::open(environment(&root, store)).unwrap();
        self.writer = Some(open(&mut self.bench, self.session).unwrap());
    }

    /// Lets go of the writer, as a process that dies.
    pub(crate) fn close(&mut self) {
        self.writer = None;
    }

    /// What is in memory is what is on disk.
    pub(crate) fn assert_one_truth(&self) {
        let Some(writer) = &self.writer else { return };
        assert_eq!(*writer.conversation(), self.bench.workspace.sessions().conversation(self.session).unwrap());
        assert_eq!(writer.draft(), self.bench.workspace.sessions().draft(self.session).unwrap());
        let sessions = self.bench.workspace.sessions().all().unwrap();
        let session = sessions.iter().find(|session| session.id == self.session).unwrap();
        assert_eq!(session.title, writer.conversation().title());
    }
}

/// Whether any file below `place` has `wanted` in it.
pub(crate) fn is_stored(place: &Path, wanted: &[u8]) -> bool {
    std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => is_stored(&path, wanted),
        false => std::fs::read(&path).unwrap().windows(wanted.len()).any(|found| found == wanted),
    })
}

/// Starts a conversation.
pub(crate) fn conversation(bench: &mut Bench) -> SessionId {
    let at = now(bench);
    let id = SessionId::new(at, bytes(at.0, 1));
    let new = NewSession { id, at, title: String::new(), kind: SessionKind::Conversation };
    bench.workspace.sessions_mut().create(new).unwrap();
    id
}

pub(crate) fn open(bench: &mut Bench, session: SessionId) -> Result<SessionWriter, SessionError> {
    let at = now(bench);
    let mut number = 0;
    bench.workspace.sessions().open(session, at, &mut || {
        number += 1;
        bytes(at.0, 100 + number)
    })
}

pub(crate) fn identities(bench: &mut Bench) -> NewRewind {
    let new = bench.identities();
    NewRewind { note: EntryId::new(bytes(new.at.0, 5)), at: now(bench), ..new }
}

/// The time, by the clock of the checkpoints.
fn now(bench: &mut Bench) -> Timestamp {
    numbered(bench.tick()).at
}

pub(crate) fn operation(bench: &mut Bench) -> OperationId {
    let at = now(bench);
    OperationId::new(at, bytes(at.0, 6))
}

fn new_entry(bench: &mut Bench, body: Body) -> NewEntry {
    let at = now(bench);
    NewEntry { id: EntryId::new(bytes(at.0, 7)), at, body }
}

pub(crate) fn result(call: &CallId, text: &str) -> Body {
    Body::ToolResult {
        call: call.clone(),
        title: "bash: work".to_owned(),
        outcome: Outcome::Done,
        parts: vec![Part::text(text)],
        todos: None,
        details: None,
    }
}

/// Spread out, as random bytes are, so that the beginning of an id tells it from the others.
fn bytes(seed: i64, kind: u8) -> [u8; 10] {
    let mut bytes = [kind; 10];
    bytes[..8].copy_from_slice(&seed.wrapping_mul(0x5851_F42D_4C95_7F2D).to_le_bytes());
    bytes
}
