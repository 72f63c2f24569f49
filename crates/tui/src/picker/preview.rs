//! What going back to the chosen row would change: asked of the session, one question at a time, and only for what is wanted now.
//!
//! Every want has a number. An answer to an older one is dropped; what was shown before stays, marked as old, until the new one is there.
//! A plan can be acted upon while nothing has happened since it was asked for but decisions about its own conflicts.

use retake_agent::contract::{Change, ChangeGoal, DiffOf, Query, Refusal, Reply};
use retake_agent::diff::FileDiff;
use retake_agent::rewind_document::{Bytes, RewindDocument};
use retake_engine::id::EntryId;
use retake_engine::rewind::{Files, OnConflict};
use retake_engine::session::{Discard, Scope};

use super::{PickerRequest, PickerStep, unexpected};

/// What is wanted of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Where to go back to.
    pub entry: EntryId,
    /// What goes back.
    pub scope: Scope,
    /// What was decided about conflicts.
    pub choices: Vec<(Bytes, OnConflict)>,
}

impl Want {
    /// The change in the contract's words.
    pub fn change(&self) -> Change {
        let (entry, scope) = (self.entry, self.scope);
        let goal = ChangeGoal::Rewind { entry, scope, files: Files::Selective, discard: Discard::No };
        Change { choices: self.choices.clone(), ..Change::new(goal) }
    }
}

/// Why something else is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another row is chosen, or perhaps not.
    Chosen,
    /// Something was decided about a conflict.
    Decided,
}

/// What would change.
#[derive(Debug, Default)]
pub struct Preview {
    /// Answers to questions with lower numbers are for a picker that was closed.
    first: u64,
    want: Option<Want>,
    generation: u64,
    /// Counts what makes a plan useless: another row, or something that happened.
    epoch: u64,
    /// Whether a question is on its way: the next one waits for its answer, so that a key held down asks for few rows and not for all.
    is_asking: bool,
    /// Whether something has happened since it was asked.
    is_outdated: bool,
    shown: Option<ShownPreview>,
    /// Counts what was shown.
    revision: u64,
    /// How far it is scrolled.
    pub scroll: usize,
}

/// What was answered last.
#[derive(Debug)]
pub struct ShownPreview {
    generation: u64,
    epoch: u64,
    /// Where it would go.
    pub entry: EntryId,
    /// The plan, or why there is none.
    pub plan: Result<Box<RewindDocument>, Refusal>,
    /// Line by line; `None` until that is answered.
    pub diffs: Option<Vec<FileDiff>>,
    diffs_of: Option<u64>,
}

impl Preview {
    /// Its questions have numbers above `first`.
    pub fn new(first: u64) -> Self {
        Self { first, generation: first, ..Self::default() }
    }

    /// Something has happened: what was answered cannot be acted upon any more, and the same has to be asked again.
    pub fn outdate(&mut self) {
        self.is_outdated = true;
        self.generation += 1;
        self.epoch += 1;
    }

    /// Wants something else, or the same again if something has happened since.
    pub fn want(&mut self, want: Option<Want>, why: Why) -> Vec<PickerStep> {
        if self.want == want {
            return if self.is_outdated { self.ask() } else { Vec::new() };
        }
        if self.want.as_ref().map(|want| want.entry) != want.as_ref().map(|want| want.entry) {
            self.scroll = 0;
        }
        self.generation += 1;
        self.epoch += u64::from(why != Why::Decided);
        self.want = want;
        if self.want.is_none() {
            self.shown = None;
            self.revision += 1;
        }
        self.ask()
    }

    /// Takes a plan. Returns what is to be asked next.
    pub fn take_plan(&mut self, generation: u64, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        if generation < self.first {
            return Vec::new();
        }
        self.is_asking = false;
        self.revision += 1;
        let Some(want) = self.want.as_ref().filter(|_| generation == self.generation) else { return self.ask() };
        let plan = match answer {
            Ok(Reply::Change { document }) => Ok(document),
            Ok(_) => Err(unexpected()),
            Err(refusal) => Err(refusal),
        };
        // Lines of the same place stay until there are better ones.
        let old = self.shown.take().filter(|shown| shown.entry == want.entry);
        let has_lines = want.scope != Scope::Conversation && plan.as_ref().is_ok_and(|plan| !plan.files.is_empty());
        let (diffs, diffs_of) = match (has_lines, old) {
            (false, _) => (Some(Vec::new()), Some(generation)),
            (true, Some(old)) => (old.diffs, None),
            (true, None) => (None, None),
        };
        self.shown = Some(ShownPreview { generation, epoch: self.epoch, entry: want.entry, plan, diffs, diffs_of });
        if !has_lines {
            return Vec::new();
        }
        self.is_asking = true;
        let command = Query::Diff { of: DiffOf::Change { change: want.change() } };
        vec![PickerStep::Ask(PickerRequest::Diff { generation }, Box::new(command.into()))]
    }

    /// Takes the lines. Returns what is to be asked next.
    pub fn take_diff(&mut self, generation: u64, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        if generation < self.first {
            return Vec::new();
        }
        self.is_asking = false;
        self.revision += 1;
        if generation != self.generation {
            return self.ask();
        }
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.generation == generation) {
            shown.diffs_of = Some(generation);
            shown.diffs = match answer {
                Ok(Reply::Diff { files, plan }) => {
                    // The lines are of this plan, which may be newer.
                    if let Some(plan) = plan {
                        shown.plan = Ok(plan);
                    }
                    Some(files)
                }
                // The plan says what matters; its lines are a help.
                Ok(_) | Err(_) => Some(Vec::new()),
            };
        }
        Vec::new()
    }

    /// A number that is another one whenever [`Preview::shown`] may be.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What was answered last, whatever has happened since.
    pub fn shown(&self) -> Option<&ShownPreview> {
        self.shown.as_ref()
    }

    /// What was answered about the place that is wanted, if nothing has happened since.
    pub fn fresh(&self) -> Option<&ShownPreview> {
        self.shown.as_ref().filter(|shown| shown.epoch == self.epoch)
    }

    /// The plan, if there is one and nothing has happened since.
    pub fn plan(&self) -> Option<&RewindDocument> {
        self.fresh().and_then(|shown| shown.plan.as_deref().ok())
    }

    /// The fingerprint of the plan that is shown. Choices that it does not have yet were made after it.
    pub fn seen(&self) -> Option<String> {
        let shown = self.fresh()?;
        let plan = shown.plan.as_deref().ok()?;
        match shown.generation == self.generation {
            true => plan.fingerprint.clone(),
            false => plan.fingerprint_before_choices(),
        }
    }

    /// Whether something is still being worked out.
    pub fn is_waiting(&self) -> bool {
        let is_complete = |shown: &ShownPreview| shown.diffs_of == Some(self.generation);
        self.want.is_some() && !self.shown.as_ref().is_some_and(is_complete)
    }

    /// The number of what is wanted.
    #[cfg(test)]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn ask(&mut self) -> Vec<PickerStep> {
        let Some(want) = self.want.as_ref().filter(|_| !self.is_asking) else { return Vec::new() };
        self.is_asking = true;
        self.is_outdated = false;
        let command = Query::Plan { change: want.change() };
        vec![PickerStep::Ask(PickerRequest::Plan { generation: self.generation }, Box::new(command.into()))]
    }
}
