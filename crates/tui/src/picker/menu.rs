//! The menu: what can be done with the chosen prompt, with what it would do in numbers, or why it cannot be done.
//!
//! The numbers are those of the plan. Nothing is done here.

use retake_agent::contract::State;
use retake_agent::rewind_document::RewindDocument;
use retake_engine::id::EntryId;

use super::preview::Preview;
use super::rows::PromptRow;
use super::text_lines::{Paths, clean};
use retake_agent::escape::count;

/// A thing that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Files and what was said go back.
    Both,
    /// What was said goes back.
    Conversation,
    /// Files go back.
    Code,
    /// A new session begins here.
    Fork,
    /// A summary takes the place of what follows.
    SummariseFrom,
    /// A summary takes the place of what comes before.
    SummariseUpTo,
    /// Nothing.
    Cancel,
}

impl Item {
    /// All, in the order of their digits.
    pub const ALL: [Self; 7] = [
        Self::Both,
        Self::Conversation,
        Self::Code,
        Self::Fork,
        Self::SummariseFrom,
        Self::SummariseUpTo,
        Self::Cancel,
    ];

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Both => "Code and conversation",
            Self::Conversation => "Conversation only",
            Self::Code => "Code only",
            Self::Fork => "Fork from here",
            Self::SummariseFrom => "Summarise from here",
            Self::SummariseUpTo => "Summarise up to here",
            Self::Cancel => "Cancel",
        }
    }
}

/// The open menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// The prompt that it is about.
    pub entry: EntryId,
    /// The chosen item.
    pub chosen: Item,
}

impl Menu {
    /// Moves, and stops at the ends.
    pub fn step(&mut self, by: isize) {
        let at = Item::ALL.iter().position(|item| *item == self.chosen).unwrap_or(0);
        self.chosen = Item::ALL[at.saturating_add_signed(by).min(Item::ALL.len() - 1)];
    }
}

/// Whether something can be done: with what comes of it, or why not.
pub type Offer = Result<String, String>;

/// What an offer depends on.
#[derive(Clone, Copy, Debug)]
pub struct MenuFacts<'a> {
    /// The chosen row.
    pub row: &'a PromptRow,
    /// How many prompts are retained.
    pub retained: usize,
    /// What the session does.
    pub state: State,
    /// The plan.
    pub preview: &'a Preview,
}

impl MenuFacts<'_> {
    /// What `item` would do.
    pub fn offer(&self, item: Item) -> Offer {
        match item {
            Item::Both => self.files().map(|files| format!("{files}, {}", self.prompts(self.room()))),
            Item::Conversation => {
                self.is_idle().map(|()| format!("{}; files and side effects stay", self.prompts(MenuSpace::Little)))
            }
            Item::Code => {
                let files = self.files()?;
                match self.preview.plan().is_some_and(|plan| changes(plan).is_empty()) {
                    true => Err("nothing to do, the files are there already".to_owned()),
                    false => Ok(format!("{files}; the conversation stays")),
                }
            }
            Item::Fork => Ok("a new session from here; this one stays as it is".to_owned()),
            Item::SummariseFrom => {
                let later = self.retained.saturating_sub(self.number()?);
                Ok(match later {
                    0 => "this prompt becomes a summary".to_owned(),
                    later => format!("this prompt and {} become one summary", count(later, "later one", "later ones")),
                })
            }
            Item::SummariseUpTo => match self.number()? {
                0 | 1 => Err("nothing was said before it".to_owned()),
                2 => Ok("the prompt before it becomes a summary".to_owned()),
                number => Ok(format!("the {} prompts before it become one summary", number - 1)),
            },
            Item::Cancel => Ok("nothing changes".to_owned()),
        }
    }

    fn is_idle(&self) -> Result<(), String> {
        match self.state {
            State::Running => Err(RUNNING.to_owned()),
            State::Idle | State::Paused => Ok(()),
        }
    }

    /// What becomes of the files.
    fn files(&self) -> Offer {
        self.is_idle()?;
        if let Some(limit) = self.row.limit() {
            return Err(limit.to_owned());
        }
        let Some(shown) = self.preview.fresh() else { return Err(WAITING.to_owned()) };
        let plan = shown.plan.as_ref().map_err(|refusal| clean(&refusal.message))?;
        if !plan.blocked.is_empty() {
            return Err(format!("a directory {BLOCKED}"));
        }
        Ok(match (changes(plan), plan.conflicts.len()) {
            (paths, _) if paths.is_empty() => "no file changes".to_owned(),
            (paths, 0) => format!("{} back", paths.with_verb("goes", "go")),
            (paths, conflicts) => {
                format!("{}, {} to decide", paths.in_words(), count(conflicts, "conflict", "conflicts"))
            }
        })
    }

    /// What becomes of the prompts.
    fn prompts(&self, room: MenuSpace) -> String {
        let planned = self.preview.plan().and_then(|plan| plan.conversation.as_ref());
        let counted = self.row.number.map_or(0, |number| self.retained.saturating_sub(to_usize(number) - 1));
        let leaves = planned.map_or(counted, |planned| planned.leaves.len());
        let returns = planned.map_or(0, |planned| planned.returns.len());
        let leave = count(leaves, "prompt leaves", "prompts leave");
        match (leaves, returns, room) {
            (0, 0, _) => "no prompt leaves".to_owned(),
            (_, 0, MenuSpace::Enough) => format!("{leave} the conversation"),
            (_, 0, MenuSpace::Little) => leave,
            (0, _, _) => count(returns, "prompt comes back", "prompts come back"),
            (_, _, _) => format!("{leave}, {}", count(returns, "comes back", "come back")),
        }
    }

    /// Beside what is to be said about conflicts there is no room for much.
    fn room(&self) -> MenuSpace {
        let has_conflicts = self.preview.plan().is_some_and(|plan| !plan.conflicts.is_empty());
        if has_conflicts { MenuSpace::Little } else { MenuSpace::Enough }
    }

    /// The number of the prompt, if something can be summarised there.
    fn number(&self) -> Result<usize, String> {
        self.is_idle()?;
        self.row.number.map(to_usize).ok_or_else(|| "it is not in the conversation now".to_owned())
    }
}

#[derive(Clone, Copy)]
enum MenuSpace {
    Enough,
    Little,
}

/// Why nothing can be changed.
pub const RUNNING: &str = "a turn is running: stop it first, or wait until it has ended";
/// Why it is not yet known what would change.
pub const WAITING: &str = "working out what would change …";
/// Why a directory stops everything.
pub const BLOCKED: &str = "holds files that stay, so nothing can take its place";

/// The paths that a plan changes.
pub fn changes(plan: &RewindDocument) -> Paths {
    Paths::count(plan.files.iter().filter(|file| file.action.as_deref() != Some("unchanged")))
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX).max(1)
}
