//! Conflicts: what to do with each path that others changed too. The safe choice is the first and the default.

use retake_agent::rewind_document::{Bytes, ConflictFacts};
use retake_engine::id::EntryId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;

/// Paths that need a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deciding {
    /// The prompt that one goes back to.
    pub entry: EntryId,
    /// What goes back.
    pub scope: Scope,
    /// In the plan's order.
    pub paths: Vec<Decision>,
    /// The one that keys are about.
    pub at: usize,
}

/// A path that needs a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The path.
    pub path: Bytes,
    /// Why it needs one.
    pub why: String,
    /// What can be decided.
    pub choices: Vec<OnConflict>,
    /// What is decided.
    pub choice: OnConflict,
}

impl Decision {
    fn new(conflict: &ConflictFacts) -> Self {
        // To stop is to leave.
        let choices: Vec<_> = conflict.choices.iter().copied().filter(|choice| *choice != OnConflict::Stop).collect();
        let choice = choices.first().copied().unwrap_or(OnConflict::Keep);
        Self { path: conflict.path.clone(), why: conflict.text.clone(), choices, choice }
    }
}

impl Deciding {
    /// With the safe choice for each.
    pub fn new(entry: EntryId, scope: Scope, conflicts: &[ConflictFacts]) -> Self {
        Self { entry, scope, paths: conflicts.iter().map(Decision::new).collect(), at: 0 }
    }

    /// Takes the conflicts of a newer plan: what was decided stays decided where it can. Returns whether the decisions are others now.
    pub fn refresh(&mut self, conflicts: &[ConflictFacts]) -> Fate {
        let before = self.choices();
        let here = self.paths.get(self.at).map(|decision| decision.path.clone());
        let known = std::mem::take(&mut self.paths);
        self.paths = conflicts.iter().map(Decision::new).collect();
        for decision in &mut self.paths {
            let old = known.iter().find(|old| old.path == decision.path);
            if let Some(old) = old.filter(|old| decision.choices.contains(&old.choice)) {
                decision.choice = old.choice;
            }
        }
        self.at = self.paths.iter().position(|decision| Some(&decision.path) == here.as_ref()).unwrap_or(0);
        match () {
            () if self.paths.is_empty() => Fate::Settled,
            () if self.choices() == before => Fate::Same,
            () => Fate::Others,
        }
    }

    /// The one that keys are about.
    pub fn current(&self) -> Option<&Decision> {
        self.paths.get(self.at)
    }

    /// Whether the one that keys are about can be merged.
    pub fn can_merge(&self) -> bool {
        self.current().is_some_and(|decision| decision.choices.contains(&OnConflict::Merge))
    }

    /// Moves, and stops at the ends.
    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.paths.len().saturating_sub(1));
    }

    /// Takes the next choice or the one before, around the ends. Returns whether it is another.
    pub fn turn(&mut self, by: isize) -> bool {
        let Some(decision) = self.paths.get_mut(self.at).filter(|decision| 1 < decision.choices.len()) else {
            return false;
        };
        let at = decision.choices.iter().position(|choice| *choice == decision.choice).unwrap_or(0);
        let count = decision.choices.len();
        decision.choice = decision.choices[(at + count).saturating_add_signed(by) % count];
        true
    }

    /// Makes a choice for the path that keys are about. Returns whether it is another.
    pub fn choose(&mut self, choice: OnConflict) -> bool {
        self.paths.get_mut(self.at).is_some_and(|decision| decision.choose(choice))
    }

    /// Makes a choice for all paths that have it. Returns whether one is another.
    pub fn choose_all(&mut self, choice: OnConflict) -> bool {
        self.paths.iter_mut().map(|decision| decision.choose(choice)).fold(false, |any, one| any | one)
    }

    /// What is decided, for the session.
    pub fn choices(&self) -> Vec<(Bytes, OnConflict)> {
        self.paths.iter().map(|decision| (decision.path.clone(), decision.choice)).collect()
    }
}

impl Decision {
    fn choose(&mut self, choice: OnConflict) -> bool {
        let is_other = self.choice != choice && self.choices.contains(&choice);
        self.choice = if is_other { choice } else { self.choice };
        is_other
    }
}

/// What became of decisions when the plan changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They hold.
    Same,
    /// There are others to make.
    Others,
    /// There is nothing to decide any more.
    Settled,
}

/// The word for a choice.
pub fn word(choice: OnConflict) -> &'static str {
    match choice {
        OnConflict::Stop => "stop",
        OnConflict::Keep => "keep",
        OnConflict::Overwrite => "overwrite",
        OnConflict::Merge => "merge",
    }
}
