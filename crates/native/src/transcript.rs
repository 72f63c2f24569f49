//! Transcripts: the conversation as the agent keeps it on disk. They are only read.
//!
//! Formats are private to each agent and move: a shape that is not known is refused with its line. A last line that is still being written
//! is left out. [`Transcript::turns`] is what the agent would continue from, [`Transcript::dropped`] what the agent itself has taken back.

pub(crate) mod claude;
mod copilot;
mod gemini;
mod kimi;
mod line;
pub(crate) mod qwen;
mod tree;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::agent::Agent;
use crate::ids::{PlaceId, PromptId, SessionId};
pub(crate) use line::Line;
pub(crate) use tree::Tree;

/// The most that is read of a transcript.
pub const MAX_TRANSCRIPT_BYTES: u64 = 512 << 20;

/// A prompt and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The place before which the conversation can be cut.
    pub place: PlaceId,
    /// The id that the agent told its hooks with the prompt, where it has one.
    pub prompt: Option<PromptId>,
    /// The prompt.
    pub text: String,
    /// The last text of the answer, if there is one.
    pub answer: Option<String>,
    /// The line in the transcript where the turn begins, from 0.
    pub line: usize,
}

/// The conversation of one session.
#[derive(Clone, Debug)]
pub struct Transcript {
    agent: Agent,
    path: PathBuf,
    session: SessionId,
    lines: Vec<Line>,
    turns: Vec<Turn>,
    dropped: Vec<Turn>,
}

/// Why a transcript is not used.
#[derive(Debug, Error)]
pub enum TranscriptError {
    /// The agent has no transcript that can be read here.
    #[error("the transcripts of {0} are its own business; ask the program")]
    Unsupported(Agent),
    /// The format is not one that is known.
    #[error("{path}, line {line}: {problem}; this may be a newer version of {agent}")]
    Unknown {
        /// The agent.
        agent: Agent,
        /// The transcript.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is odd about it.
        problem: String,
    },
    /// The file could not be read.
    #[error("cannot read {path}")]
    Io {
        /// The transcript.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// What a format says about a transcript.
struct Parsed {
    session: SessionId,
    turns: Vec<Turn>,
    dropped: Vec<Turn>,
}

/// A line that does not belong to the format as it is known, and why.
struct Odd {
    line: usize,
    problem: String,
}

impl Odd {
    fn new(line: usize, problem: impl Into<String>) -> Self {
        Self { line, problem: problem.into() }
    }
}

impl Transcript {
    /// Reads the transcript of one session.
    ///
    /// # Errors
    /// The file cannot be read, or has a shape that is not known.
    pub fn read(agent: Agent, path: &Path) -> Result<Self, TranscriptError> {
        let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(MAX_TRANSCRIPT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if MAX_TRANSCRIPT_BYTES < bytes.len() as u64 {
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "too large for a transcript")));
        }
        Self::parse(agent, path, &bytes)
    }

    /// Reads the content of a transcript.
    ///
    /// # Errors
    /// The content has a shape that is not known.
    pub fn parse(agent: Agent, path: &Path, content: &[u8]) -> Result<Self, TranscriptError> {
        let parse = match agent {
            Agent::Claude => claude::parse,
            Agent::Qwen => qwen::parse,
            Agent::Gemini => gemini::parse,
            Agent::Copilot => copilot::parse,
            Agent::Kimi => kimi::parse,
            Agent::Codex | Agent::OpenCode => return Err(TranscriptError::Unsupported(agent)),
        };
        let parsed = line::split(content).and_then(|lines| parse(path, &lines).map(|parsed| (lines, parsed)));
        let (lines, Parsed { session, turns, dropped }) = parsed.map_err(|Odd { line, problem }| {
            TranscriptError::Unknown { agent, path: path.to_owned(), line: line + 1, problem }
        })?;
        Ok(Self { agent, path: path.to_owned(), session, lines, turns, dropped })
    }

    /// The agent whose it is.
    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The turns that the conversation consists of.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The turns that are on disk and no longer part of the conversation: the agent's own rewind left them.
    pub fn dropped(&self) -> &[Turn] {
        &self.dropped
    }

    /// The turn that begins at a place.
    pub fn turn_at(&self, place: &PlaceId) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.place == *place)
    }

    /// The turn of a prompt that a hook was told.
    pub fn turn_of(&self, prompt: &PromptId) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.prompt.as_ref() == Some(prompt))
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }
}

/// The text of a message: a string, or the text parts of a list.
fn text_of(content: &serde_json::Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let parts = content.as_array()?;
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Makes `text` the answer of the last turn, unless it is empty.
fn answer(turns: &mut [Turn], text: Option<String>) {
    if let (Some(turn), Some(text)) = (turns.last_mut(), text.filter(|text| !text.trim().is_empty())) {
        turn.answer = Some(text);
    }
}
