//! The naive model: every conversation is a list, every state of the files is a full copy, every change of a file is remembered.

use std::collections::{BTreeSet, HashMap, HashSet};

use retake_engine::id::{EntryId, OperationId, SessionId};
use retake_engine::operation::OperationKind;
use retake_engine::session::entry::{Block, Body, Entry, Part};
use retake_engine::session::{Conversation, TurnSummary};

use super::timeline::{Files, Moment, Timeline};

/// An operation, with everything that it changed but files.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) id: OperationId,
    pub(super) kind: OperationKind,
    /// What was said before and after.
    pub(super) before: Vec<Entry>,
    pub(super) after: Vec<Entry>,
    /// The draft before and after, if that changed.
    pub(super) draft: Option<(Vec<Part>, Vec<Part>)>,
    /// What began the turn.
    pub(super) prompt: Option<(EntryId, Vec<Part>)>,
    /// The session that it made, or that it took away or brought back.
    pub(super) fork: Option<SessionId>,
    pub(super) discarded: bool,
    pub(super) undone: bool,
    pub(super) reverses: Option<OperationId>,
}

impl Op {
    pub(super) fn is_reversible(&self) -> bool {
        !matches!(self.kind, OperationKind::Undo | OperationKind::Redo)
    }

    pub(super) fn moved(&self) -> bool {
        head(&self.before) != head(&self.after)
    }
}

/// What should be known of a session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) entries: Vec<Entry>,
    pub(super) draft: Vec<Part>,
    pub(super) ops: Vec<Op>,
    /// Notes of undos and redos.
    pub(super) undo_notes: HashSet<EntryId>,
    /// The sessions that it was forked from, each until when.
    pub(super) past: Vec<(SessionId, u64)>,
    /// The one of these that it is deleted with if its fork is undone, and from when on.
    pub(super) parent: Option<(SessionId, u64)>,
    /// The head that it began with.
    pub(super) began: Option<EntryId>,
    /// Whether its fork is not undone.
    pub(super) shown: bool,
}

impl Session {
    pub(super) fn new(id: SessionId) -> Self {
        Self {
            id,
            entries: Vec::new(),
            draft: Vec::new(),
            ops: Vec::new(),
            undo_notes: HashSet::new(),
            past: Vec::new(),
            parent: None,
            began: None,
            shown: true,
        }
    }

    /// Whether what `session` did at `at` is this one's past.
    pub(super) fn owns(&self, session: SessionId, at: u64) -> bool {
        session == self.id || self.past.iter().any(|(own, until)| *own == session && at <= *until)
    }

    pub(super) fn op(&self, id: OperationId) -> &Op {
        self.ops.iter().find(|op| op.id == id).unwrap()
    }

    pub(super) fn op_mut(&mut self, id: OperationId) -> &mut Op {
        self.ops.iter_mut().find(|op| op.id == id).unwrap()
    }

    pub(super) fn next_to_undo(&self) -> Option<OperationId> {
        // A fork changed nothing in the session that it was made from.
        self.ops.iter().rfind(|op| op.is_reversible() && op.fork.is_none() && !op.undone).map(|op| op.id)
    }

    pub(super) fn next_to_redo(&self) -> Option<OperationId> {
        let newest = self.ops.iter().rposition(|op| op.is_reversible() && op.fork.is_none());
        let undo = self.ops.iter().rposition(|op| op.kind == OperationKind::Undo && !op.undone);
        undo.filter(|undo| newest.is_none_or(|newest| newest < *undo)).map(|at| self.ops[at].id)
    }

    /// What is about to be said, if the newest operation left it there.
    fn left(&self) -> Option<&Vec<Part>> {
        let newest = self.ops.iter().rfind(|op| op.fork.is_none());
        newest.and_then(|newest| newest.draft.as_ref()).map(|(_, after)| after)
    }

    /// Files of the notes after `to`, if there is nothing else but notes of undos.
    fn noted_since(&self, to: Option<EntryId>) -> Option<Vec<String>> {
        let mut noted = Vec::new();
        let mut entries = self.entries.clone();
        while head(&entries) != to {
            let last = entries.pop()?;
            match last.body {
                Body::Note { about, .. } if self.undo_notes.contains(&last.id) => noted.extend(about),
                _ => return None,
            }
        }
        Some(noted)
    }
}

/// What should be.
#[derive(Debug)]
pub(super) struct Model {
    /// The session that is open, and all others in the order in which they were made.
    pub(super) now: Session,
    pub(super) others: Vec<Session>,
    pub(super) timeline: Timeline,
    /// Every entry that there ever was.
    pub(super) log: Vec<Entry>,
    /// Who said an entry, and whose it is now.
    pub(super) said_by: HashMap<EntryId, SessionId>,
    pub(super) owner: HashMap<EntryId, SessionId>,
    /// Entries that were removed.
    pub(super) gone: HashSet<EntryId>,
    /// The files at the checkpoints that were taken at an entry, and by whom, newest last.
    pub(super) points: HashMap<EntryId, Vec<(SessionId, Moment)>>,
    /// The files at a prompt.
    prompts: HashMap<EntryId, Moment>,
    /// What the model had been told when a prompt was said.
    pub(super) told: HashMap<EntryId, Conversation>,
    /// The head before the turn that a prompt began, and what that turn did to the files.
    pub(super) begun: HashMap<EntryId, Option<EntryId>>,
    pub(super) summaries: HashMap<EntryId, TurnSummary>,
}

/// Where something goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// What is retained, but for a note.
    pub(super) entries: Vec<Entry>,
    /// The files that a note tells of; none if there is no note.
    pub(super) note: Vec<String>,
    pub(super) draft: Option<Vec<Part>>,
    pub(super) files: Files,
    /// Files of notes that were passed over.
    pub(super) noted: Vec<String>,
}

/// A place in a conversation: what is retained there, the draft, the files.
pub(super) struct Place {
    pub(super) entries: Vec<Entry>,
    pub(super) draft: Option<Vec<Part>>,
    pub(super) then: Moment,
}

pub(super) fn head(entries: &[Entry]) -> Option<EntryId> {
    entries.last().map(|entry| entry.id)
}

impl Model {
    pub(super) fn new(session: SessionId, files: Files) -> Self {
        Self {
            now: Session::new(session),
            others: Vec::new(),
            timeline: Timeline::new(files),
            log: Vec::new(),
            said_by: HashMap::new(),
            owner: HashMap::new(),
            gone: HashSet::new(),
            points: HashMap::new(),
            prompts: HashMap::new(),
            told: HashMap::new(),
            begun: HashMap::new(),
            summaries: HashMap::new(),
        }
    }

    pub(super) fn files(&self) -> &Files {
        &self.timeline.files
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.enter(self.now.id, entry.clone());
        self.now.entries.push(entry);
    }

    /// An entry that `session` has added.
    pub(super) fn enter(&mut self, session: SessionId, entry: Entry) {
        self.said_by.insert(entry.id, session);
        self.owner.insert(entry.id, session);
        self.log.push(entry);
    }

    /// A checkpoint was taken at the head. What was said in another session has checkpoints of its own.
    pub(super) fn pair(&mut self) {
        let own = head(&self.now.entries).filter(|head| self.owner[head] == self.now.id);
        own.into_iter().for_each(|head| self.pair_with(self.now.id, head));
    }

    pub(super) fn pair_with(&mut self, session: SessionId, entry: EntryId) {
        let moment = self.timeline.moment();
        self.points.entry(entry).or_default().push((session, moment));
    }

    pub(super) fn pair_prompt(&mut self) {
        self.pair();
        let prompt = head(&self.now.entries).unwrap();
        self.prompts.insert(prompt, self.timeline.moment());
    }

    pub(super) fn find(&self, id: EntryId) -> &Entry {
        self.log.iter().find(|entry| entry.id == id).unwrap()
    }

    pub(super) fn chain(&self, to: Option<EntryId>) -> Vec<Entry> {
        let mut chain = Vec::new();
        let mut at = to;
        while let Some(id) = at {
            let entry = self.find(id);
            chain.push(entry.clone());
            at = entry.parent;
        }
        chain.reverse();
        chain
    }

    /// The end of the round that an entry is in.
    fn settle(&self, id: EntryId) -> EntryId {
        let mut at = id;
        loop {
            let in_round = |entry: &&Entry| matches!(entry.body, Body::ToolResult { .. } | Body::Approved { .. });
            let next = self.log.iter().filter(|entry| entry.parent == Some(at)).find(in_round);
            match next {
                Some(next) if is_open(&self.chain(Some(at))) => at = next.id,
                _ => return at,
            }
        }
    }

    /// Files at the last checkpoint at or before an entry: what others did at theirs after they were forked from is not this one's.
    fn point(&self, to: Option<EntryId>) -> Moment {
        let at = |entry: &Entry| {
            let points = self.points.get(&entry.id)?;
            points.iter().rfind(|(by, moment)| self.now.owns(*by, moment.at)).map(|(_, moment)| moment)
        };
        self.chain(to).iter().rev().find_map(at).cloned().unwrap()
    }

    /// Every entry that a session can reach: its own, and whatever is before these, before its head or where its operations led.
    pub(super) fn reach(&self, session: &Session) -> HashSet<EntryId> {
        let own = self.log.iter().map(|entry| entry.id).filter(|id| self.owner[id] == session.id);
        let moves = session.ops.iter().filter(|op| op.fork.is_none());
        let ends = moves.flat_map(|op| [head(&op.before), head(&op.after)]).chain([head(&session.entries)]).flatten();
        let mut reached = HashSet::new();
        for from in own.chain(ends).filter(|id| !self.gone.contains(id)) {
            let mut at = Some(from);
            while let Some(id) = at.filter(|id| reached.insert(*id)) {
                at = self.find(id).parent;
            }
        }
        reached
    }

    /// The place that `entry` names; `None` if it is no target.
    pub(super) fn place(&self, entry: EntryId) -> Option<Place> {
        let found = self.find(entry);
        match &found.body {
            Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } => None,
            Body::Prompt { parts } => Some(Place {
                entries: self.chain(self.begun[&entry]),
                draft: Some(parts.clone()),
                then: self.prompts[&entry].clone(),
            }),
            _ => {
                let to = Some(self.settle(entry));
                Some(Place { entries: self.chain(to), draft: None, then: self.point(to) })
            }
        }
    }

    /// Whether `outcome` changes neither files nor conversation.
    pub(super) fn is_without_effect(&self, outcome: &Outcome) -> bool {
        outcome.files == *self.files() && head(&outcome.entries) == head(&self.now.entries) && outcome.draft.is_none()
    }

    /// Whether what `op` took out of the conversation, or put there, is gone for good.
    pub(super) fn is_final(&self, op: &Op) -> bool {
        let is_gone = |entries: &[Entry]| head(entries).is_some_and(|head| self.gone.contains(&head));
        op.moved() && (op.discarded || is_gone(&op.before) || is_gone(&op.after))
    }

    /// What undoing or redoing an operation comes to, if its files become `files`.
    pub(super) fn reverse(&self, op: &Op, files: Files) -> Outcome {
        let is_gone = |entries: &[Entry]| head(entries).is_some_and(|head| self.gone.contains(&head));
        let noted = match op.discarded || is_gone(&op.before) || is_gone(&op.after) {
            true => None,
            false => self.now.noted_since(head(&op.after)),
        };
        let mut draft = None;
        if noted.is_some() {
            let unedited = op.draft.as_ref().filter(|(_, after)| *after == self.now.draft);
            draft = unedited.map(|(before, _)| before.clone());
            // What the newest operation left there is nobody's own.
            let is_free = self.now.draft.is_empty() || self.now.left() == Some(&self.now.draft);
            if let Some((_, parts)) = op.prompt.as_ref().filter(|_| is_free) {
                draft = Some(parts.clone());
            }
        }
        match noted {
            Some(noted) if op.moved() => {
                let note: BTreeSet<String> = noted.iter().cloned().collect();
                let note = note.into_iter().collect();
                Outcome { entries: op.before.clone(), note, draft, files, noted }
            }
            _ => {
                let note = super::timeline::differing(self.files(), &files);
                Outcome { entries: self.now.entries.clone(), note, draft, files, noted: Vec::new() }
            }
        }
    }

    /// Sessions that are there, but for the open one.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Session> {
        self.others.iter().filter(|session| session.shown)
    }

    /// Removes what leaves the open session on the way from `from` to where it is, and all that continues it, but for what others
    /// need. Returns whether anything is kept for them.
    pub(super) fn discard(&mut self, from: &[Entry]) -> bool {
        let kept: HashSet<EntryId> = self.now.entries.iter().map(|entry| entry.id).collect();
        let Some(first) = from.iter().map(|entry| entry.id).find(|id| !kept.contains(id)) else { return false };
        let needed: HashSet<EntryId> = self.others.iter().flat_map(|other| self.reach(other)).collect();
        let continues = |entry: &&Entry| self.chain(Some(entry.id)).iter().any(|before| before.id == first);
        let own = |entry: &&Entry| self.owner[&entry.id] == self.now.id && !self.gone.contains(&entry.id);
        let branch: Vec<EntryId> = self.log.iter().filter(own).filter(continues).map(|entry| entry.id).collect();
        let (stay, leave): (Vec<EntryId>, Vec<EntryId>) = branch.into_iter().partition(|id| needed.contains(id));
        self.gone.extend(&leave);
        for op in &mut self.now.ops {
            let prompt = op.prompt.as_ref().map(|(prompt, _)| *prompt);
            let ends = [head(&op.before), head(&op.after), prompt];
            if ends.into_iter().flatten().any(|end| leave.contains(&end)) {
                op.draft = None;
            }
        }
        !stay.is_empty()
    }
}

/// Whether the last answer still waits for results.
fn is_open(chain: &[Entry]) -> bool {
    let results = chain.iter().rev().take_while(|entry| !matches!(entry.body, Body::Reply { .. }));
    let results = results.filter(|entry| matches!(entry.body, Body::ToolResult { .. })).count();
    let reply = chain.iter().rev().find_map(|entry| match &entry.body {
        Body::Reply { blocks, .. } => Some(blocks),
        Body::Prompt { .. } => Some(const { &Vec::new() }),
        _ => None,
    });
    let calls = reply.map_or(0, |blocks| blocks.iter().filter(|block| matches!(block, Block::Call { .. })).count());
    results < calls
}
