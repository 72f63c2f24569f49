//! What is coming: entries of a turn that are not complete, in a file beside the session's lock.
//!
//! The log is written once, so a message is written when it is complete. What is noted here is only read by whoever opens a session whose
//! process died in the middle of a turn. A file that is from another turn, or cannot be read, says nothing; it never says anything
//! that the log says already.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::entry::{Block, Body, CallId, Entry};
use super::writer::NewEntry;
use crate::base::id::EntryId;
use crate::base::plain_file;
use crate::store::StoreError;
use crate::store::pack::replace_file;

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    /// The last prompt when it was written.
    prompt: EntryId,
    entries: Vec<Entry>,
}

/// Notes what is coming after `retained`, in place of what was noted before.
pub(super) fn note(path: &Path, retained: &[Entry], coming: &[NewEntry]) -> Result<(), StoreError> {
    let Some(prompt) = last_prompt(retained).filter(|_| !coming.is_empty()) else {
        forget(path);
        return Ok(());
    };
    let mut parent = retained.last().map(|entry| entry.id);
    let mut entries = Vec::with_capacity(coming.len());
    for NewEntry { id, at, body } in coming {
        entries.push(Entry { id: *id, parent, at: *at, body: body.clone() });
        parent = Some(*id);
    }
    let bytes = serde_json::to_vec(&Noted { prompt, entries }).expect("entries can be written");
    replace_file(path, &bytes)
}

/// What was coming after `retained` and is not written.
pub(super) fn read(path: &Path, retained: &[Entry]) -> Vec<NewEntry> {
    let noted = plain_file::read(path).ok().and_then(|bytes| serde_json::from_slice::<Noted>(&bytes).ok());
    let Some(noted) = noted.filter(|noted| last_prompt(retained) == Some(noted.prompt)) else { return Vec::new() };
    let turn = retained.iter().rev().take_while(|entry| entry.id != noted.prompt);
    let (mut ids, mut calls) = (HashSet::new(), HashSet::new());
    for entry in turn {
        ids.insert(entry.id);
        calls.extend(call(&entry.body));
    }
    let is_new = |entry: &Entry| !ids.contains(&entry.id) && call(&entry.body).is_none_or(|id| !calls.contains(id));
    let entries = noted.entries.iter().filter(|entry| is_new(entry)).cloned();
    entries.map(|Entry { id, at, body, .. }| NewEntry { id, at, body }).collect()
}

/// Nothing is coming any more.
pub(super) fn forget(path: &Path) {
    // If it stays, it is from another turn than the next.
    std::fs::remove_file(path).ok();
}

fn last_prompt(entries: &[Entry]) -> Option<EntryId> {
    entries.iter().rfind(|entry| matches!(entry.body, Body::Prompt { .. })).map(|entry| entry.id)
}

/// The tool call that an entry is about.
fn call(body: &Body) -> Option<&CallId> {
    match body {
        Body::Reply { blocks, .. } => blocks.iter().find_map(|block| match block {
            Block::Call { id, .. } => Some(id),
            Block::Text { .. } | Block::Reasoning { .. } => None,
        }),
        Body::ToolResult { call, .. } => Some(call),
        _ => None,
    }
}
