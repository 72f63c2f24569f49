//! Kimi Code: a session's directory of its own with the log before the prompt, its state with another id, and a line in the list of sessions.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{CutError, NewFile, SessionId, Transcript, Turn, Way, joined, unknown};
use crate::transcript::Line;

const STATE: &str = "state.json";
const LIST: &str = "session_index.jsonl";

pub(super) fn cut(transcript: &Transcript, turn: &Turn, uuid: &str) -> Result<(SessionId, Vec<NewFile>), CutError> {
    let wire = transcript.path();
    let read = |path: &Path| fs::read_to_string(path).map_err(|source| CutError::Io { path: path.to_owned(), source });
    // HOME/sessions/WORKSPACE/SESSION/agents/main/wire.jsonl
    let old = wire.ancestors().nth(3).ok_or_else(|| unknown(wire, "it is not in a session's directory"))?;
    let home = old.ancestors().nth(3).ok_or_else(|| unknown(wire, "it is not in a session's directory"))?;
    let session = format!("session_{uuid}");
    let new = old.with_file_name(&session);
    let new_path = new.to_str().ok_or_else(|| unknown(&new, "the path is not UTF-8"))?;

    let state_path = old.join(STATE);
    let state = read(&state_path)?;
    let value = serde_json::from_str(&state).map_err(|err| unknown(&state_path, err.to_string()))?;
    let state = Line { text: state, value };
    if state.value["version"] != 2 || state.str("id") != Some(&transcript.session().0) {
        return Err(unknown(&state_path, "it is no state of this session in version 2"));
    }
    let cwd = state.str("cwd").ok_or_else(|| unknown(&state_path, "it names no directory"))?.to_owned();
    let text = state.with(&["id"], &session);
    let state = Line { value: state.value, text };
    let main = format!("{new_path}/agents/main");
    let state = state.with(&["agents", "main", "homedir"], &main);

    let list = home.join(LIST);
    let known = read(&list)?;
    if !known.lines().any(|line| line.contains(&format!("\"{}\"", transcript.session()))) {
        return Err(unknown(&list, "it does not list the session"));
    }
    let entry = json!({ "sessionId": session, "sessionDir": new_path, "workDir": cwd });
    let start = if known.ends_with('\n') { "" } else { "\n" };
    let lines = transcript.lines()[..turn.line].iter().map(|line| line.text.clone());
    let files = vec![
        NewFile::create(new.join("agents/main/wire.jsonl"), joined(lines)),
        NewFile::create(new.join(STATE), state),
        NewFile { path: list, content: format!("{start}{entry}\n"), way: Way::Append },
    ];
    Ok((SessionId(session), files))
}
