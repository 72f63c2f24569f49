//! Commands of Retake's that people type as a prompt: `/retake-rewind 2 keep`, or `retake rewind 2` where an agent has no commands.
//!
//! Only a prompt that is nothing else is a command. `retake rewind the parser` is a prompt, and so is a command with a word too many.

use crate::agent::Agent;

/// A command of Retake's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Go back to before a point; without one, list the points.
    Rewind {
        /// The point as it was typed: a number, or another name of it.
        point: Option<String>,
        /// What to do with files that somebody else changed.
        conflicts: Option<Conflicts>,
    },
    /// Take back the last rewind.
    Undo,
    /// Repeat what was taken back.
    Redo,
    /// List what was done.
    Log,
}

/// What a rewind does with files that somebody else changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflicts {
    /// They stay.
    Keep,
    /// They go back, too.
    Overwrite,
    /// Both changes are merged.
    Merge,
}

/// The longest name of a point.
const MAX_POINT_CHARS: usize = 100;

impl Command {
    /// The command that `prompt` is, if it is one and nothing else.
    pub fn parse(agent: Agent, prompt: &str) -> Option<Self> {
        let prompt = prompt.trim();
        if prompt.contains('\n') {
            return None;
        }
        let mut words = prompt.split_whitespace();
        let (name, is_slash) = match words.next()? {
            "retake" if !has_commands(agent) => (words.next()?, false),
            word => (word.strip_prefix("/retake-").or_else(|| word.strip_prefix("/retake:"))?, true),
        };
        let words: Vec<&str> = words.collect();
        match (name, words.as_slice()) {
            ("rewind", words) => rewind(words, is_slash),
            ("undo", []) => Some(Self::Undo),
            ("redo", []) => Some(Self::Redo),
            ("log", []) => Some(Self::Log),
            _ => None,
        }
    }
}

/// Whether people type commands with a slash in this agent, so that the bare words are a prompt like any other.
pub const fn has_commands(agent: Agent) -> bool {
    match agent {
        Agent::Claude | Agent::Gemini | Agent::OpenCode | Agent::Qwen => true,
        Agent::Codex | Agent::Copilot | Agent::Kimi => false,
    }
}

fn rewind(words: &[&str], is_slash: bool) -> Option<Command> {
    let (point, conflicts) = match words {
        [] => (None, None),
        [point] => (Some(*point), None),
        [point, way] => (Some(*point), Some(conflicts(way)?)),
        _ => return None,
    };
    // `retake rewind tests` may be meant for the model; a number is not.
    let is_number = |point: &str| point.bytes().all(|byte| byte.is_ascii_digit());
    let is_point = |point: &str| point.len() <= MAX_POINT_CHARS && (is_slash || is_number(point));
    match point {
        Some(point) if !is_point(point) => None,
        point => Some(Command::Rewind { point: point.map(str::to_owned), conflicts }),
    }
}

fn conflicts(word: &str) -> Option<Conflicts> {
    match word {
        "keep" => Some(Conflicts::Keep),
        "overwrite" => Some(Conflicts::Overwrite),
        "merge" => Some(Conflicts::Merge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewind(point: Option<&str>, conflicts: Option<Conflicts>) -> Option<Command> {
        Some(Command::Rewind { point: point.map(str::to_owned), conflicts })
    }

    #[test]
    fn a_prompt_that_is_a_command_and_nothing_else_is_one() {
        let parse = |prompt| Command::parse(Agent::Claude, prompt);
        assert_eq!(parse("/retake-rewind 2 keep"), rewind(Some("2"), Some(Conflicts::Keep)));
        assert_eq!(parse(" /retake-rewind  before-tests \n"), rewind(Some("before-tests"), None));
        assert_eq!(parse("/retake-rewind"), rewind(None, None));
        assert_eq!(parse("/retake:undo"), Some(Command::Undo));
        assert_eq!(parse("/retake-redo"), Some(Command::Redo));
        assert_eq!(parse("/retake-log"), Some(Command::Log));
    }

    #[test]
    fn a_prompt_that_only_begins_like_a_command_is_a_prompt() {
        for prompt in [
            "/retake-rewind 2 keep please",
            "/retake-rewind 2 sideways",
            "/retake-undo everything",
            "/retake-rewind 2\nand then go on",
            "/retake-rewinder",
            "/retake-",
            "please /retake-undo",
            "retake rewind 2",
            "",
        ] {
            assert_eq!(Command::parse(Agent::Claude, prompt), None, "{prompt:?}");
        }
    }

    #[test]
    fn agents_without_commands_take_the_words_with_a_number() {
        let parse = |prompt| Command::parse(Agent::Codex, prompt);
        assert_eq!(parse("retake rewind 2"), rewind(Some("2"), None));
        assert_eq!(parse("retake rewind 2 merge"), rewind(Some("2"), Some(Conflicts::Merge)));
        assert_eq!(parse("retake rewind"), rewind(None, None));
        assert_eq!(parse("retake undo"), Some(Command::Undo));
        for prompt in
            ["retake rewind tests", "retake rewind the parser", "retake undo the last commit", "retake", "Retake undo"]
        {
            assert_eq!(parse(prompt), None, "{prompt:?}");
        }
    }
}
