//! Rules: a tool, or commands of a tool that begin with some words.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::command::parse;
use crate::tool::{EDIT_TOOLS, own_names};

/// Stands for all edit tools.
const EDITS: &str = "edits";
/// The tool that runs commands.
const COMMANDS: &str = "bash";

/// A tool, all edit tools (`edits`), all tools of an MCP server (`NAME__*`), or commands that begin with some words.
///
/// Written `TOOL` or `TOOL: WORDS`, as `bash: git status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    prefix: Option<Vec<String>>,
}

/// The text is not a rule, or not one that anything could ever fit.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum InvalidRule {
    /// It is not written like one.
    #[error(
        "`{0}` is not a rule: write a tool's name, or `bash: WORDS` with the plain words that a command begins with"
    )]
    Unreadable(String),
    /// No tool has that name.
    #[error("there is no tool for the rule `{0}`; write {tools}, `edits` for all that edit, or `SERVER__TOOL`", tools = names())]
    UnknownTool(String),
    /// Only commands begin with words.
    #[error("the rule `{0}` fits nothing: only `bash` can have words behind it")]
    NoCommands(String),
}

fn names() -> String {
    own_names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Rule {
    /// For a tool, or for its commands that begin with the words of `prefix`.
    pub fn new(tool: &str, prefix: Option<&str>) -> Result<Self, InvalidRule> {
        let text = || prefix.map_or_else(|| tool.to_owned(), |prefix| format!("{tool}: {prefix}"));
        let invalid = || InvalidRule::Unreadable(text());
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(invalid());
        }
        let prefix = match prefix.map(parse) {
            None => None,
            Some(Ok(commands)) => match <[Vec<String>; 1]>::try_from(commands) {
                Ok([words]) => Some(words),
                Err(_) => return Err(invalid()),
            },
            Some(Err(_)) => return Err(invalid()),
        };
        Ok(Self { tool: tool.to_owned(), prefix })
    }

    /// For all edit tools.
    pub fn edits() -> Self {
        Self { tool: EDITS.to_owned(), prefix: None }
    }

    pub(crate) fn for_words(tool: &str, words: Vec<String>) -> Self {
        Self { tool: tool.to_owned(), prefix: Some(words) }
    }

    /// The tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The words that commands begin with, as a text for [`Rule::new`].
    pub fn prefix_text(&self) -> Option<String> {
        self.prefix.as_ref().map(|words| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    }

    pub(crate) fn prefix(&self) -> Option<&[String]> {
        self.prefix.as_deref()
    }

    pub(crate) fn fits_tool(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => self.tool == tool || (self.tool == EDITS && EDIT_TOOLS.contains(&tool)),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix_text() {
            None => f.write_str(&self.tool),
            Some(words) => write!(f, "{}: {words}", self.tool),
        }
    }
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rule = match text.split_once(':') {
            None => Self::new(text.trim(), None)?,
            Some((tool, words)) => Self::new(tool.trim(), Some(words.trim()))?,
        };
        // Of servers it is not known beforehand which tools they have.
        let is_known = rule.tool.contains("__") || rule.tool == EDITS || own_names().any(|name| rule.fits_tool(name));
        match (is_known, &rule.prefix) {
            (false, _) => Err(InvalidRule::UnknownTool(rule.to_string())),
            (true, Some(_)) if !rule.fits_tool(COMMANDS) => Err(InvalidRule::NoCommands(rule.to_string())),
            (true, _) => Ok(rule),
        }
    }
}

/// A word as a shell would read it back.
fn quoted(word: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '+' | '@' | '%');
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
