//! Messages while they stream: an entry is written when something else begins.
//!
//! A message that continues afterwards has further entries, its pieces, in order. In version 2 the agent may also send a message anew: if the
//! new text extends what is written, so does the piece; otherwise the piece replaces it, and both stay in the log. Unfinished text is noted
//! every second, so that a crash loses at most that much.

use std::collections::HashMap;
use std::time::Instant;

use retake_agent::ids;
use retake_agent::query::in_words;
use retake_engine::id::EntryId;
use retake_engine::session::NewEntry;
use retake_engine::session::entry::{Block, Body, Entry, Outcome, Part, StopReason};

use super::super::session_map::PieceKind;
use super::super::tool_timeline::timing;
use super::{LogWriter, Voice, call_entries};

/// A message that is coming.
#[derive(Debug)]
pub(super) struct StreamedMessage {
    /// The first entry of it, by which it is known.
    message: EntryId,
    /// The one that it becomes.
    entry: EntryId,
    how: PieceKind,
    voice: Voice,
    parts: Vec<Part>,
}

/// The entries of messages that are written: the first entry by which each is known, and all of them that still count.
pub(super) type MessagePieces = HashMap<EntryId, Vec<EntryId>>;

impl LogWriter {
    /// Somebody says more of a message; the piece of it that begins with that, if it is not the first.
    pub(in super::super) fn say(
        &mut self,
        message: EntryId,
        voice: Voice,
        parts: Vec<Part>,
    ) -> Option<(EntryId, PieceKind)> {
        let begun = self.turn_to(message, voice, PieceKind::Adds);
        let Some(coming) = &mut self.coming else { return begun };
        for part in parts {
            match (coming.parts.last_mut(), part) {
                (Some(Part::Text { text }), Part::Text { text: more }) => text.push_str(&more),
                (_, part) => coming.parts.push(part),
            }
        }
        self.heard();
        self.watch_idle();
        begun
    }

    /// What is said of a message is this, whatever was said of it before.
    pub(in super::super) fn say_whole(
        &mut self,
        message: EntryId,
        voice: Voice,
        parts: Vec<Part>,
    ) -> Option<(EntryId, PieceKind)> {
        let is_coming = self.coming.as_ref().is_some_and(|coming| coming.message == message);
        match added(&self.written(message), &parts) {
            Some(rest) if rest.is_empty() && !is_coming => None,
            Some(rest) => {
                if let Some(coming) = self.coming.as_mut().filter(|_| is_coming) {
                    coming.parts.clear();
                }
                self.say(message, voice, rest)
            }
            None => {
                if is_coming {
                    self.coming = None;
                }
                let begun = self.turn_to(message, voice, PieceKind::Replaces);
                self.say(message, voice, parts);
                begun
            }
        }
    }

    /// Makes a message the one that is coming; its piece, if that is not the first.
    fn turn_to(&mut self, message: EntryId, voice: Voice, how: PieceKind) -> Option<(EntryId, PieceKind)> {
        if self.coming.as_ref().is_some_and(|coming| coming.message == message) {
            return None;
        }
        self.flush();
        let is_further = self.pieces.contains_key(&message);
        let entry = if is_further { ids::entry() } else { message };
        self.coming = Some(StreamedMessage { message, entry, how, voice, parts: Vec::new() });
        is_further.then_some((entry, how))
    }

    /// The text of a message that is in the log.
    fn written(&self, message: EntryId) -> String {
        let pieces = self.pieces.get(&message).into_iter().flatten();
        let entry = |id: &EntryId| self.entries().iter().rev().find(|entry| entry.id == *id);
        pieces.filter_map(entry).map(text).collect()
    }

    /// Makes an entry of the message that was coming.
    pub(super) fn flush(&mut self) {
        let Some(StreamedMessage { message, entry, how, voice, mut parts }) = self.coming.take() else { return };
        if parts.is_empty() {
            return;
        }
        // It came bit by bit, and stays for as long as the session is open.
        for part in &mut parts {
            if let Part::Text { text } = part {
                text.shrink_to_fit();
            }
        }
        let pieces = self.pieces.entry(message).or_default();
        if how == PieceKind::Replaces {
            pieces.clear();
        }
        pieces.push(entry);
        let body = self.message(voice, parts);
        self.append(vec![(entry, body)]);
    }

    /// Notes what would be written if everything ended now: what was passed on is not lost with this process.
    pub(super) fn note_coming(&mut self) {
        self.is_unnoted = false;
        timing(&self.timeline).note_word();
        let coming = self.coming.iter().filter(|coming| !coming.parts.is_empty());
        let message = coming.map(|coming| (coming.entry, self.message(coming.voice, coming.parts.clone())));
        let calls = self.began.iter().filter_map(|id| Some((id, self.calls.get(id)?)));
        let calls = calls.flat_map(|(id, call)| call_entries(self, id, call, Outcome::Interrupted));
        let at = ids::now();
        let all: Vec<NewEntry> = message.chain(calls).map(|(id, body)| NewEntry { id, at, body }).collect();
        if self.turn.is_none() || all.is_empty() && self.noted.is_none() {
            return;
        }
        self.noted = Some(Instant::now());
        if let Err(error) = self.writer().note_coming(&all) {
            self.complain(&in_words(&error));
        }
    }

    fn message(&self, voice: Voice, parts: Vec<Part>) -> Body {
        let thought = |part| match said(part) {
            Block::Text { text } => Block::Reasoning { text, opaque: String::new() },
            other => other,
        };
        match voice {
            Voice::User => Body::Prompt { parts },
            Voice::Agent => self.reply(parts.into_iter().map(said).collect(), StopReason::Done),
            Voice::Thought => self.reply(parts.into_iter().map(thought).collect(), StopReason::Done),
        }
    }
}

/// What `parts` say beyond `before`, if they begin with that.
fn added(before: &str, parts: &[Part]) -> Option<Vec<Part>> {
    let (mut before, mut rest) = (before, Vec::new());
    for part in parts {
        match part {
            other if before.is_empty() => rest.push(other.clone()),
            Part::Text { text } => {
                let same = text.len().min(before.len());
                if text.get(..same)? != before.get(..same)? {
                    return None;
                }
                before = &before[same..];
                rest.extend(Some(&text[same..]).filter(|more| !more.is_empty()).map(Part::text));
            }
            _ => return None,
        }
    }
    before.is_empty().then_some(rest)
}

/// What an entry of a message says.
fn text(entry: &Entry) -> String {
    let text = |block: &Block| match block {
        Block::Text { text } | Block::Reasoning { text, .. } => text.clone(),
        Block::Call { .. } => String::new(),
    };
    match &entry.body {
        Body::Reply { blocks, .. } => blocks.iter().map(text).collect(),
        Body::Prompt { parts } => parts.iter().cloned().map(said).map(|block| text(&block)).collect(),
        _ => String::new(),
    }
}

/// What a part is in an answer.
fn said(part: Part) -> Block {
    let text = match part {
        Part::Text { text } | Part::Paste { text } => text,
        Part::File { path, text } if text.is_empty() => path,
        Part::File { text, .. } => text,
        Part::Image { media_type, .. } => format!("[{media_type}]"),
    };
    Block::Text { text }
}
