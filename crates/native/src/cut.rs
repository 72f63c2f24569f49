//! Cuts: a copy of a conversation up to a prompt, as a new session of the agent. The original is never opened for writing.
//!
//! [`Cut::new`] works out the files and writes nothing. [`Cut::write`] creates them and refuses to replace any. The agent goes on in the
//! new session with [`Cut::command`]; a cut before the first prompt needs no file, because a fresh session is the same.
//!
//! Codex and OpenCode keep their sessions in databases and fork them by their own servers, so there is no cut of theirs here.

mod claude;
mod copilot;
mod gemini;
mod kimi;
mod qwen;

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::agent::Agent;
use crate::ids::{PlaceId, SessionId};
use crate::transcript::{Transcript, Turn};

/// The longest prompt that is put into a composer by the command line.
const MAX_PREFILL_BYTES: usize = 32 << 10;

/// A conversation up to a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The agent.
    pub agent: Agent,
    /// The new session; `None` if nothing is left, so that a fresh session takes its place.
    pub session: Option<SessionId>,
    /// The text of the prompt that the cut is before.
    pub prompt: String,
    /// The files of the new session.
    pub files: Vec<NewFile>,
}

/// A file of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Where it will be.
    pub path: PathBuf,
    /// What will be in it.
    pub content: String,
    /// Whether it is a file of its own, or one of the agent's lists that gets a line more.
    pub way: Way,
}

/// How a file of a new session is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is created, and must not exist.
    Create,
    /// The content is added to its end in one write.
    Append,
}

/// Why there is no cut. Nothing was written.
#[derive(Debug, Error)]
pub enum CutError {
    /// The place is not, or no longer, in the conversation.
    #[error("{0} is not in the conversation")]
    NoSuchPlace(PlaceId),
    /// The session's files are not as they are known.
    #[error("{path}: {problem}")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What is odd about it.
        problem: String,
    },
    /// The id cannot be one of a session.
    #[error("`{0}` is not a UUID in lower case")]
    BadId(String),
    /// A file could not be read or written.
    #[error("cannot make the session's copy at {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(pub Vec<String>);

impl Cut {
    /// Works out the conversation before the turn at `place`, as session `uuid`.
    ///
    /// # Errors
    /// The place is not in the conversation, or the session's files have a shape that is not known.
    pub fn new(transcript: &Transcript, place: &PlaceId, uuid: &str) -> Result<Self, CutError> {
        if !is_uuid(uuid) {
            return Err(CutError::BadId(uuid.to_owned()));
        }
        let turn = transcript.turn_at(place).ok_or_else(|| CutError::NoSuchPlace(place.clone()))?;
        let agent = transcript.agent();
        let prompt = turn.text.clone();
        if transcript.turns().first() == Some(turn) {
            return Ok(Self { agent, session: None, prompt, files: Vec::new() });
        }
        let (session, files) = match agent {
            Agent::Claude => claude::cut(transcript, turn, uuid)?,
            Agent::Qwen => qwen::cut(transcript, turn, uuid)?,
            Agent::Gemini => gemini::cut(transcript, turn, uuid)?,
            Agent::Copilot => copilot::cut(transcript, turn, uuid)?,
            Agent::Kimi => kimi::cut(transcript, turn, uuid)?,
            Agent::Codex | Agent::OpenCode => unreachable!("there is no transcript of {agent}"),
        };
        Ok(Self { agent, session: Some(session), prompt, files })
    }

    /// Creates the new session's files.
    ///
    /// # Errors
    /// A file exists or cannot be written. Files that were created before are removed again.
    pub fn write(&self) -> Result<(), CutError> {
        for (index, file) in self.files.iter().enumerate() {
            if let Err(source) = file.write() {
                for made in self.files[..index].iter().filter(|file| file.way == Way::Create) {
                    // It is our own copy; if it stays, it is a session more in the agent's list.
                    fs::remove_file(&made.path).unwrap_or_default();
                }
                return Err(CutError::Io { path: file.path.clone(), source });
            }
        }
        Ok(())
    }

    /// The command line that goes on, with the prompt in the composer where the agent can do that.
    pub fn command(&self) -> CommandLine {
        let mut words = vec![self.agent.name().to_owned()];
        match (&self.session, self.agent) {
            (None, _) => {}
            (Some(session), Agent::Kimi) => words.extend(["-r".to_owned(), session.0.clone()]),
            (Some(session), Agent::Copilot) => words.push(format!("--resume={session}")),
            (Some(session), _) => words.extend(["--resume".to_owned(), session.0.clone()]),
        }
        let is_short = !self.prompt.is_empty() && self.prompt.len() <= MAX_PREFILL_BYTES;
        // An argument cannot hold a zero byte, and a command in the composer would be run by the first Enter.
        if self.agent == Agent::Claude && is_short && !self.prompt.contains('\0') {
            words.extend(["--prefill".to_owned(), self.prompt.clone()]);
        }
        CommandLine(words)
    }
}

impl NewFile {
    fn create(path: PathBuf, content: String) -> Self {
        Self { path, content, way: Way::Create }
    }

    fn write(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        match self.way {
            Way::Create => options.write(true).create_new(true).mode(0o600),
            Way::Append => options.append(true),
        };
        let mut file = options.open(&self.path)?;
        file.write_all(self.content.as_bytes())?;
        file.sync_all()
    }
}

impl fmt::Display for CommandLine {
    /// As it would be typed in a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            if 0 < index {
                f.write_str(" ")?;
            }
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+@=:,".contains(c);
            if !word.is_empty() && word.chars().all(is_plain) {
                f.write_str(word)?;
            } else {
                write!(f, "'{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

fn is_uuid(id: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match byte {
            b'-' => dashes.contains(&at),
            b'0'..=b'9' | b'a'..=b'f' => !dashes.contains(&at),
            _ => false,
        })
}

fn unknown(path: &Path, problem: impl Into<String>) -> CutError {
    CutError::Unknown { path: path.to_owned(), problem: problem.into() }
}

/// The lines of a copy as a file.
fn joined(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_typed() {
        let cut = |agent, session: Option<&str>, prompt: &str| Cut {
            agent,
            session: session.map(SessionId::from),
            prompt: prompt.to_owned(),
            files: Vec::new(),
        };
        let typed = |agent| cut(agent, Some("abc"), "it's").command().to_string();
        assert_eq!(typed(Agent::Claude), r"claude --resume abc --prefill 'it'\''s'");
        assert_eq!(typed(Agent::Copilot), "copilot --resume=abc");
        assert_eq!(typed(Agent::Kimi), "kimi -r abc");
        assert_eq!(typed(Agent::Gemini), "gemini --resume abc");
        assert_eq!(cut(Agent::Qwen, None, "x").command().to_string(), "qwen");
        assert_eq!(cut(Agent::Claude, None, "").command().to_string(), "claude");
        assert_eq!(cut(Agent::Claude, None, &"x".repeat(1 << 20)).command().to_string(), "claude");
    }

    #[test]
    fn only_ids_that_are_plain_become_file_names() {
        assert!(is_uuid("2d42f3f2-240e-4d1e-9c13-cf4b74a0d369"));
        for id in [
            "",
            "../../../../../../../../../../../../etc",
            "2D42f3f2-240e-4d1e-9c13-cf4b74a0d369",
            "2d42f3f2-240e-4d1e-9c13-cf4b74a0d36é",
        ] {
            assert!(!is_uuid(id), "{id}");
        }
    }
}
