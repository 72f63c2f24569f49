//! Gemini CLI: a copy of the whole log, with another session id and the agent's own mark for going back at its end.

use serde_json::json;

use super::{CutError, NewFile, SessionId, Transcript, Turn, joined, unknown};

/// How many characters of the id are in a file's name.
const ID_CHARS: usize = 8;

pub(super) fn cut(transcript: &Transcript, turn: &Turn, uuid: &str) -> Result<(SessionId, Vec<NewFile>), CutError> {
    let name = transcript.path().file_stem().and_then(|name| name.to_str()).unwrap_or("");
    let Some((front, _)) = name.rsplit_once('-').filter(|_| name.starts_with("session-")) else {
        return Err(unknown(transcript.path(), "a file of this name is not a session's"));
    };
    let lines = transcript.lines().iter().map(|line| {
        let key: &[&str] = if line.value.get("$set").is_some() { &["$set", "sessionId"] } else { &["sessionId"] };
        line.with(key, uuid)
    });
    let mark = json!({ "$rewindTo": turn.place.0 }).to_string();
    let path = transcript.path().with_file_name(format!("{front}-{}.jsonl", &uuid[..ID_CHARS]));
    Ok((uuid.into(), vec![NewFile::create(path, joined(lines.chain([mark])))]))
}
