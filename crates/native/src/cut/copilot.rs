//! GitHub Copilot CLI: a directory of its own with the events before the prompt and a changed `workspace.yaml`.
//!
//! The agent's own copies of files stay where they are: its own rewind cannot go back before the cut in the new session.

use std::fs;

use super::{CutError, NewFile, SessionId, Transcript, Turn, joined, unknown};

const WORKSPACE: &str = "workspace.yaml";

pub(super) fn cut(transcript: &Transcript, turn: &Turn, uuid: &str) -> Result<(SessionId, Vec<NewFile>), CutError> {
    let events = transcript.path();
    let old = events.parent().filter(|folder| folder.file_name().is_some_and(|name| *name == *transcript.session().0));
    let old = old.ok_or_else(|| unknown(events, "it is not in its session's directory"))?;
    let new = old.with_file_name(uuid);
    // The program's hooks were told the prompt before it became an event.
    let is_hook = |kind: Option<&str>| matches!(kind, Some("hook.start" | "hook.end" | "session.resume"));
    let before = &transcript.lines()[..turn.line];
    let end = before.iter().rposition(|line| !is_hook(line.str("type"))).map_or(0, |last| last + 1);
    let lines = before[..end].iter().map(|line| match line.str("type") {
        Some("hook.start") => line.with(&["data", "input", "sessionId"], uuid),
        _ => line.with(&["data", "sessionId"], uuid),
    });
    let workspace = old.join(WORKSPACE);
    let text = fs::read_to_string(&workspace).map_err(|source| CutError::Io { path: workspace.clone(), source })?;
    let id = format!("id: {}", transcript.session());
    if text.lines().filter(|line| *line == id).count() != 1 {
        return Err(unknown(&workspace, "it does not name its session in one line"));
    }
    let text = joined(text.lines().map(|line| if line == id { format!("id: {uuid}") } else { line.to_owned() }));
    let files =
        vec![NewFile::create(new.join(WORKSPACE), text), NewFile::create(new.join("events.jsonl"), joined(lines))];
    Ok((uuid.into(), files))
}
