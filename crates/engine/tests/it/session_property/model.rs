//! The naive model: every conversation is a list, every state of the files is a full copy.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use retake_engine::session::Conversation;
use retake_engine::session::entry::{Block, Body, Entry, Part};
use retake_engine::{EntryId, OperationId, OperationKind};

use super::OURS;

/// Contents by name.
pub(super) type Files = BTreeMap<String, String>;

/// An operation, with everything that it changed.
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
    pub(super) prompt: Option<Vec<Part>>,
    /// Files that changed: what they were before.
    pub(super) was: BTreeMap<String, Option<String>>,
    pub(super) undone: bool,
    pub(super) reverses: Option<usize>,
}

impl Op {
    pub(super) fn is_reversible(&self) -> bool {
        matches!(self.kind, OperationKind::Turn | OperationKind::Rewind | OperationKind::Clear | OperationKind::Summary)
    }

    fn moved(&self) -> bool {
        head(&self.before) != head(&self.after)
    }
}

/// What should be.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) entries: Vec<Entry>,
    pub(super) draft: Vec<Part>,
    pub(super) files: Files,
    pub(super) ops: Vec<Op>,
    /// Every entry that there ever was.
    pub(super) all: Vec<Entry>,
    /// The files at the last checkpoint that was taken at an entry.
    points: HashMap<EntryId, Files>,
    /// The files at a prompt.
    prompts: HashMap<EntryId, Files>,
    /// What the model had been told when a prompt was said.
    pub(super) told: HashMap<EntryId, Conversation>,
    /// The head before the turn that a prompt began.
    pub(super) begun: HashMap<EntryId, Option<EntryId>>,
    /// Notes of undos and redos.
    pub(super) undo_notes: HashSet<EntryId>,
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

pub(super) fn head(entries: &[Entry]) -> Option<EntryId> {
    entries.last().map(|entry| entry.id)
}

impl Model {
    pub(super) fn push(&mut self, entry: Entry) {
        self.all.push(entry.clone());
        self.entries.push(entry);
    }

    /// A checkpoint was taken at the head.
    pub(super) fn pair(&mut self) {
        if let Some(head) = head(&self.entries) {
            self.points.insert(head, self.files.clone());
        }
    }

    pub(super) fn pair_prompt(&mut self) {
        self.pair();
        let prompt = head(&self.entries).unwrap();
        self.prompts.insert(prompt, self.files.clone());
    }

    pub(super) fn find(&self, id: EntryId) -> &Entry {
        self.all.iter().find(|entry| entry.id == id).unwrap()
    }

    fn chain(&self, to: Option<EntryId>) -> Vec<Entry> {
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
    pub(super) fn settle(&self, id: EntryId) -> EntryId {
        let mut at = id;
        loop {
            let in_round = |entry: &&Entry| matches!(entry.body, Body::ToolResult { .. } | Body::Approved { .. });
            let next = self.all.iter().filter(|entry| entry.parent == Some(at)).find(in_round);
            match next {
                Some(next) if is_open(&self.chain(Some(at))) => at = next.id,
                _ => return at,
            }
        }
    }

    /// Files at the last checkpoint at or before an entry.
    fn point(&self, to: Option<EntryId>) -> Files {
        let chain = self.chain(to);
        chain.iter().rev().find_map(|entry| self.points.get(&entry.id)).cloned().unwrap()
    }

    /// The place that `entry` names: what is retained there, the draft, the files; `None` if it is no target.
    pub(super) fn place(&self, entry: EntryId) -> Option<(Vec<Entry>, Option<Vec<Part>>, Files)> {
        let found = self.find(entry);
        match &found.body {
            Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } => None,
            Body::Prompt { parts } => {
                Some((self.chain(self.begun[&entry]), Some(parts.clone()), self.prompts[&entry].clone()))
            }
            _ => {
                let to = Some(self.settle(entry));
                Some((self.chain(to), None, self.point(to)))
            }
        }
    }

    /// The files as they are, with those of the agent as in `then`.
    pub(super) fn with_ours(&self, then: &Files) -> Files {
        let mut files = self.files.clone();
        for name in OURS {
            match then.get(name) {
                Some(content) => files.insert(name.to_owned(), content.clone()),
                None => files.remove(name),
            };
        }
        files
    }

    /// What undoing or redoing operation `at` comes to.
    pub(super) fn reverse(&self, at: usize) -> Outcome {
        let op = &self.ops[at];
        let mut files = self.files.clone();
        for (name, content) in &op.was {
            match content {
                Some(content) => files.insert(name.clone(), content.clone()),
                None => files.remove(name),
            };
        }
        let noted = self.noted_since(head(&op.after));
        let mut draft = None;
        if noted.is_some() {
            let unedited = op.draft.as_ref().filter(|(_, after)| *after == self.draft);
            draft = unedited.map(|(before, _)| before.clone());
            // What the newest operation left there is nobody's own.
            let left = self.ops.last().and_then(|newest| newest.draft.as_ref()).map(|(_, after)| after);
            if (self.draft.is_empty() || left == Some(&self.draft)) && op.prompt.is_some() {
                draft = op.prompt.clone();
            }
        }
        match noted {
            Some(noted) if op.moved() => {
                let note: BTreeSet<String> = noted.iter().cloned().collect();
                let note = note.into_iter().collect();
                Outcome { entries: op.before.clone(), note, draft, files, noted }
            }
            _ => {
                let note = differing(&self.files, &files);
                Outcome { entries: self.entries.clone(), note, draft, files, noted: Vec::new() }
            }
        }
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

    pub(super) fn next_to_undo(&self) -> Option<usize> {
        self.ops.iter().rposition(|op| op.is_reversible() && !op.undone)
    }

    pub(super) fn next_to_redo(&self) -> Option<usize> {
        let newest = self.ops.iter().rposition(Op::is_reversible);
        let undo = self.ops.iter().rposition(|op| op.kind == OperationKind::Undo && !op.undone);
        undo.filter(|undo| newest.is_none_or(|newest| newest < *undo))
    }
}

/// Names of files that are not the same.
pub(super) fn differing(one: &Files, two: &Files) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    names.into_iter().filter(|name| one.get(*name) != two.get(*name)).cloned().collect()
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
