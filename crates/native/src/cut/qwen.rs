//! Qwen Code: a copy of the lines before the prompt, with another session id, without branches that were left.

use super::{CutError, NewFile, SessionId, Transcript, Turn, joined};
use crate::transcript::{Tree, qwen};

pub(super) fn cut(transcript: &Transcript, turn: &Turn, uuid: &str) -> Result<(SessionId, Vec<NewFile>), CutError> {
    let lines = &transcript.lines()[..turn.line];
    let tree = Tree::new(lines, &qwen::is_prompt, &|_| false);
    let kept = lines.iter().enumerate().filter(|(at, _)| tree.is_kept(*at) != Some(false));
    let copy = joined(kept.map(|(_, line)| line.with(&["sessionId"], uuid)));
    let path = transcript.path().with_file_name(format!("{uuid}.jsonl"));
    Ok((uuid.into(), vec![NewFile::create(path, copy)]))
}
