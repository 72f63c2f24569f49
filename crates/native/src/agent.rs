//! The agents whose terminals Retake can work in, and the places of their configuration.
//!
//! The environment is a value ([`Places`]): this crate reads no variable and no home directory of its own process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// An agent that people run in a terminal of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// OpenCode.
    OpenCode,
    /// Qwen Code.
    Qwen,
    /// GitHub Copilot CLI.
    Copilot,
    /// Kimi Code.
    Kimi,
}

/// No agent has this name.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("no agent is called `{0}`; there are claude, codex, gemini, opencode, qwen, copilot, kimi")]
pub struct UnknownAgent(pub String);

impl Agent {
    /// All agents, in the order of listings.
    pub const ALL: [Self; 7] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode, Self::Qwen, Self::Copilot, Self::Kimi];

    /// The word for it on the command line, which is also the name of its program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Kimi => "kimi",
        }
    }

    /// The name its makers gave it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "OpenCode",
            Self::Qwen => "Qwen Code",
            Self::Copilot => "Copilot CLI",
            Self::Kimi => "Kimi Code",
        }
    }

    /// The directory of the user's configuration of this agent.
    pub fn configuration(self, places: &Places) -> PathBuf {
        match self {
            Self::Claude => places.directory("CLAUDE_CONFIG_DIR").unwrap_or_else(|| places.home.join(".claude")),
            Self::Codex => places.directory("CODEX_HOME").unwrap_or_else(|| places.home.join(".codex")),
            Self::Gemini => places.directory("GEMINI_CLI_HOME").unwrap_or_else(|| places.home.clone()).join(".gemini"),
            Self::OpenCode => {
                places.directory("XDG_CONFIG_HOME").unwrap_or_else(|| places.home.join(".config")).join("opencode")
            }
            Self::Qwen => places.directory("QWEN_HOME").unwrap_or_else(|| places.home.join(".qwen")),
            Self::Copilot => places.directory("COPILOT_HOME").unwrap_or_else(|| places.home.join(".copilot")),
            Self::Kimi => places.directory("KIMI_CODE_HOME").unwrap_or_else(|| places.home.join(".kimi-code")),
        }
    }

    /// The agent's program, if it is on the search path.
    pub fn program(self, places: &Places) -> Option<PathBuf> {
        let path = places.variables.get(OsStr::new("PATH"))?;
        std::env::split_paths(path).map(|folder| folder.join(self.name())).find(|file| is_program(file))
    }

    /// How sure it is that people use this agent here.
    pub fn presence(self, places: &Places) -> Presence {
        match self.program(places) {
            Some(program) => Presence::Program(program),
            None if self.configuration(places).is_dir() => Presence::ConfigurationOnly,
            None => Presence::Absent,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, UnknownAgent> {
        Self::ALL.into_iter().find(|agent| agent.name() == name).ok_or_else(|| UnknownAgent(name.to_owned()))
    }
}

/// Traces of an agent on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Its program is on the search path.
    Program(PathBuf),
    /// It has a configuration directory, and no program on the search path.
    ConfigurationOnly,
    /// Neither.
    Absent,
}

/// The environment that decides where agents keep their files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    home: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

/// The environment names no home directory.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`HOME` is not set to an absolute path")]
pub struct NoHome;

impl Places {
    /// Takes the environment's variables, such as those of `std::env::vars_os`.
    ///
    /// # Errors
    /// `HOME` is missing or relative.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, NoHome> {
        let variables: BTreeMap<OsString, OsString> = variables.into_iter().collect();
        let home = variables.get(OsStr::new("HOME")).map(PathBuf::from).filter(|home| home.is_absolute());
        Ok(Self { home: home.ok_or(NoHome)?, variables })
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The directory that a variable names; an empty or relative value counts as unset.
    pub fn directory(&self, variable: &str) -> Option<PathBuf> {
        self.variables.get(OsStr::new(variable)).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> Places {
        Places::new(variables.iter().map(|(name, value)| (name.into(), value.into()))).unwrap()
    }

    #[test]
    fn configuration_is_below_home_unless_a_variable_moves_it() {
        let plain = places(&[("HOME", "/h")]);
        let moved = places(&[
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/x"),
            ("GEMINI_CLI_HOME", "/g"),
            ("XDG_CONFIG_HOME", "/o"),
            ("QWEN_HOME", "/q"),
            ("COPILOT_HOME", "/p"),
            ("KIMI_CODE_HOME", "/k"),
        ]);
        let found = |places: &Places| Agent::ALL.map(|agent| agent.configuration(places).display().to_string());
        assert_eq!(
            found(&plain),
            [
                "/h/.claude",
                "/h/.codex",
                "/h/.gemini",
                "/h/.config/opencode",
                "/h/.qwen",
                "/h/.copilot",
                "/h/.kimi-code"
            ]
        );
        assert_eq!(found(&moved), ["/c", "/x", "/g/.gemini", "/o/opencode", "/q", "/p", "/k"]);
    }

    #[test]
    fn empty_and_relative_variables_count_as_unset() {
        let odd = places(&[("HOME", "/h"), ("CODEX_HOME", ""), ("QWEN_HOME", "here")]);
        assert_eq!(Agent::Codex.configuration(&odd), Path::new("/h/.codex"));
        assert_eq!(Agent::Qwen.configuration(&odd), Path::new("/h/.qwen"));
        assert_eq!(Places::new([("HOME".into(), "h".into())]), Err(NoHome));
    }

    #[test]
    fn an_agent_is_found_by_its_program_or_its_configuration() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_str().unwrap();
        let here = places(&[("HOME", path), ("PATH", path)]);
        std::fs::create_dir(scratch.path().join(".claude")).unwrap();
        std::fs::write(scratch.path().join("codex"), "").unwrap();
        std::fs::set_permissions(scratch.path().join("codex"), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(scratch.path().join("gemini"), "not a program").unwrap();
        assert_eq!(Agent::Claude.presence(&here), Presence::ConfigurationOnly);
        assert_eq!(Agent::Codex.presence(&here), Presence::Program(scratch.path().join("codex")));
        assert_eq!(Agent::Gemini.presence(&here), Presence::Absent);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for agent in Agent::ALL {
            assert_eq!(agent.to_string().parse(), Ok(agent));
        }
        assert!("Claude".parse::<Agent>().is_err());
    }
}
