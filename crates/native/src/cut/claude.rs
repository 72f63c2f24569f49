//! Claude Code: a copy of the lines before the prompt, with another session id.
//!
//! A compaction that the prompt itself asked for is not before it: a copy that ends in a bare `compact_boundary` would leave the model with
//! one message. Branches that the agent's own rewind left are left out.

use super::{CutError, NewFile, SessionId, Transcript, Turn, joined, unknown};
use crate::transcript::{Line, Tree, claude};

pub(super) fn cut(transcript: &Transcript, turn: &Turn, uuid: &str) -> Result<(SessionId, Vec<NewFile>), CutError> {
    let mut end = turn.line;
    while let Some(last) = transcript.lines()[..end].iter().rposition(|line| line.str("uuid").is_some()) {
        if !claude::is_boundary(&transcript.lines()[last]) {
            break;
        }
        end = last;
    }
    let lines = &transcript.lines()[..end];
    let tree = Tree::new(lines, &claude::is_prompt, &claude::is_boundary);
    if !tree.has_leaf() {
        return Err(unknown(transcript.path(), "nothing is before the prompt"));
    }
    let is_kept = |at: usize, line: &Line| match (tree.is_kept(at), line.str("type")) {
        (Some(is_kept), _) => is_kept,
        // Prompts that waited, the cut one among them.
        (None, Some("queue-operation")) => false,
        (None, Some("last-prompt")) => {
            let of = line.str("leafUuid");
            lines.iter().enumerate().any(|(at, line)| tree.is_kept(at) == Some(true) && line.str("uuid") == of)
        }
        (None, _) => true,
    };
    let kept = lines.iter().enumerate().filter(|(at, line)| is_kept(*at, line));
    let copy = joined(kept.map(|(_, line)| line.with(&["sessionId"], uuid)));
    let path = transcript.path().with_file_name(format!("{uuid}.jsonl"));
    Ok((uuid.into(), vec![NewFile::create(path, copy)]))
}
