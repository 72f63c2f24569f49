//! Permissions: whether a call may run, must be asked about, or is refused. Pure.
//!
//! What only reads runs freely. For the rest there are rules, each for a tool or for commands that begin with some words, from the
//! settings and from what the user allowed in this session; where no rule fits, the mode decides. Deny wins over everything.
//!
//! A command is allowed only if all of it is understood and every simple command in it is allowed. A deny rule is looked for more
//! widely, inside what is not understood too. It is a guard against accidents, not a sandbox: a program can be run under another name.

mod command;
mod rule;

use retake_engine::session::entry::{Body, Entry};

pub use self::rule::{InvalidRule, Rule};

use self::command::{loosely, parse};
use crate::contract::Allow;
use crate::tool::{Access, EDIT_TOOLS};

/// Why most questions are put.
pub const USUAL: &str = "it may change something";

/// Characters of a command that a reason quotes.
const MAX_QUOTED: usize = 60;

/// What happens to calls for which there is no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Somebody can be asked, and is.
    #[default]
    Interactive,
    /// This runs, and somebody can be asked about the rest.
    Attended(Allowed),
    /// Nobody can be asked.
    Headless(Allowed),
}

/// `--allow`: what runs without anybody being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Everything that no rule denies or wants asked about.
    All,
    /// Reading and edit tools.
    Edits,
    /// Reading.
    None,
}

impl From<Allow> for Mode {
    fn from(allow: Allow) -> Self {
        match allow {
            Allow::All => Self::Headless(Allowed::All),
            Allow::Edits => Self::Headless(Allowed::Edits),
            Allow::None => Self::Headless(Allowed::None),
            Allow::AllElseAsk => Self::Attended(Allowed::All),
            Allow::EditsElseAsk => Self::Attended(Allowed::Edits),
        }
    }
}

/// The rules in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What happens where no rule fits.
    pub mode: Mode,
    /// Never run.
    pub deny: Vec<Rule>,
    /// Asked about even if a rule of `allow` fits.
    pub ask: Vec<Rule>,
    /// Run without asking.
    pub allow: Vec<Rule>,
    /// What the user allowed in this session.
    pub approved: Vec<Rule>,
}

impl Policy {
    /// With the approvals of these entries, and no others.
    pub fn with_approvals<'a>(self, entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let approved = entries.into_iter().filter_map(|entry| match &entry.body {
            Body::Approved { tool, prefix } => Rule::new(tool, prefix.as_deref()).ok(),
            _ => None,
        });
        Self { approved: approved.collect(), ..self }
    }
}

/// What is to be done about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Allow,
    /// Ask the user.
    Ask {
        /// Why it is asked.
        why: String,
        /// What could be allowed for the rest of the session; `None` if that can only be said of this one call.
        suggested: Option<Rule>,
    },
    /// Do not run it.
    Deny {
        /// What the model is told.
        why: String,
    },
}

/// Decides about a call. The first that applies decides: a rule that denies, what the user allowed in this session, a rule that wants to be
/// asked, a rule that allows, the mode.
pub fn decide(policy: &Policy, tool: &str, access: &Access) -> Decision {
    if let Some(rule) = policy.deny.iter().find(|rule| touches(rule, tool, access)) {
        return Decision::Deny {
            why: format!("The user's settings deny `{rule}`. Do not try to get around this; do it another way or ask."),
        };
    }
    if covers(&[&policy.approved], tool, access) {
        return Decision::Allow;
    }
    if let Some(rule) = policy.ask.iter().find(|rule| touches(rule, tool, access)) {
        return match policy.mode {
            Mode::Interactive | Mode::Attended(_) => {
                let why = format!("the settings want `{rule}` to be asked about");
                Decision::Ask { why, suggested: suggest(tool, access) }
            }
            Mode::Headless(_) => Decision::Deny {
                why: format!("The user wants to be asked about `{rule}`, and nobody can be asked in this run."),
            },
        };
    }
    if *access == Access::Reads || covers(&[&policy.approved, &policy.allow], tool, access) {
        return Decision::Allow;
    }
    by_mode(policy, tool, access)
}

/// Decides where no rule fits.
fn by_mode(policy: &Policy, tool: &str, access: &Access) -> Decision {
    match policy.mode {
        Mode::Attended(Allowed::All) | Mode::Headless(Allowed::All) => Decision::Allow,
        Mode::Attended(Allowed::Edits) | Mode::Headless(Allowed::Edits) if EDIT_TOOLS.contains(&tool) => {
            Decision::Allow
        }
        Mode::Interactive | Mode::Attended(_) => {
            let why = not_applied(policy, tool, access).unwrap_or_else(|| USUAL.to_owned());
            Decision::Ask { why, suggested: suggest(tool, access) }
        }
        Mode::Headless(Allowed::Edits) => Decision::Deny {
            why: format!(
                "`{tool}` is not allowed in this run: it was started with `--allow edits`, so reading and the edit tools ({}) may be used, \
                 shell commands and other tools may not. {}",
                EDIT_TOOLS.join(", "),
                commands_allowed(policy, tool, access)
            ),
        },
        Mode::Headless(Allowed::None) => Decision::Deny {
            why: format!(
                "`{tool}` is not allowed: the user chose that only tools that read may be used (`--allow none`, or \"Read only\" in an editor). {}",
                commands_allowed(policy, tool, access)
            ),
        },
    }
}

/// What the rules allow although the mode does not, for the model.
fn commands_allowed(policy: &Policy, tool: &str, access: &Access) -> String {
    let rules: Vec<String> = policy.allow.iter().chain(&policy.approved).map(|rule| format!("`{rule}`")).collect();
    let besides = match rules.is_empty() {
        true => return "Say what you would have done.".to_owned(),
        false => format!("The settings allow {} besides.", rules.join(", ")),
    };
    match not_applied(policy, tool, access) {
        Some(why) => format!("{besides} Here {why}."),
        None => besides,
    }
}

/// Why a rule that allows a command of this line does not allow the line; `None` if no rule is about it.
fn not_applied(policy: &Policy, tool: &str, access: &Access) -> Option<String> {
    let Access::Runs { command } = access else { return None };
    let rules = policy.allow.iter().chain(&policy.approved).filter(|rule| rule.fits_tool(tool));
    let rules: Vec<(&Rule, &[String])> = rules.filter_map(|rule| Some((rule, rule.prefix()?))).collect();
    let rule_for = |words: &Vec<String>| rules.iter().find(|(_, prefix)| words.starts_with(prefix));
    match parse(command) {
        Ok(commands) => {
            let (rule, _) = commands.iter().find_map(rule_for)?;
            let other = commands.iter().find(|words| rule_for(words).is_none())?;
            Some(format!("`{rule}` allows a part of the line only: no rule allows `{}`", in_words(other)))
        }
        Err(unclear) => {
            let found = loosely(command);
            let (rule, _) = found.iter().find_map(rule_for)?;
            Some(format!("the rule `{rule}` is not applied: {unclear}"))
        }
    }
}

/// A command's words on one line, as far as there is room.
fn in_words(words: &[String]) -> String {
    let text = words.join(" ").replace('\n', " ");
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Whether a rule is about any part of a call; what is not understood is looked into too.
fn touches(rule: &Rule, tool: &str, access: &Access) -> bool {
    match access {
        Access::Runs { command } if rule.fits_tool(tool) => rule.prefix().is_none_or(|prefix| {
            let understood =
                parse(command).is_ok_and(|commands| commands.iter().any(|words| words.starts_with(prefix)));
            understood || loosely(command).iter().any(|words| words.starts_with(prefix))
        }),
        Access::Reads | Access::Writes { .. } | Access::Unknown => rule.prefix().is_none() && rule.fits_tool(tool),
        Access::Runs { .. } => false,
    }
}

/// Whether rules are about all of a call.
fn covers(rules: &[&[Rule]], tool: &str, access: &Access) -> bool {
    let rules = || rules.iter().copied().flatten().filter(|rule| rule.fits_tool(tool));
    if rules().any(|rule| rule.prefix().is_none()) {
        return true;
    }
    let Access::Runs { command } = access else { return false };
    let Ok(commands) = parse(command) else { return false };
    let begins = |words: &Vec<String>| rules().filter_map(Rule::prefix).any(|prefix| words.starts_with(prefix));
    commands.iter().all(begins)
}

/// The rule that would allow this call and others like it.
fn suggest(tool: &str, access: &Access) -> Option<Rule> {
    match access {
        Access::Writes { .. } => Some(Rule::edits()),
        Access::Reads | Access::Unknown => Rule::new(tool, None).ok(),
        Access::Runs { command } => match parse(command) {
            Ok(commands) => match commands.as_slice() {
                [words] => Some(Rule::for_words(tool, command::usual_prefix(words).to_vec())),
                _ => None,
            },
            Err(_) => None,
        },
    }
}

#[cfg(test)]
mod tests;
