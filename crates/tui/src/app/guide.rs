//! A guide for newcomers: one hint at a time, gone on when what it asks for has happened.

use super::App;

/// What is done next, step by step.
#[derive(Clone, Debug, Default)]
pub struct Guide {
    /// In order.
    pub steps: Vec<Step>,
    /// Which one is shown.
    pub at: usize,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What to do.
    pub hint: String,
    /// What is put into the composer for it, if that is empty.
    pub prompt: Option<String>,
    /// When it is done.
    pub until: Until,
}

/// When a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// A prompt was said.
    Said,
    /// The turn has ended.
    TurnEnded,
    /// The picker is open.
    PickerOpen,
    /// The conversation or the files went back.
    WentBack,
    /// Never: it is the last one.
    Left,
}

impl App {
    pub(super) fn begin_guide(&mut self) {
        self.prefill();
    }

    /// Goes on if the step that is shown is done by this.
    pub(super) fn guided(&mut self, happened: Until) {
        let Some(guide) = &mut self.guide else { return };
        if guide.steps.get(guide.at).is_some_and(|step| step.until == happened) {
            guide.at += 1;
            self.prefill();
        }
    }

    /// Goes back to the step that asks for the picker if it was closed again.
    pub(super) fn picker_closed(&mut self) {
        let Some(guide) = &mut self.guide else { return };
        let is_before = guide.at.checked_sub(1).and_then(|at| guide.steps.get(at));
        let is_waiting = guide.steps.get(guide.at).is_some_and(|step| step.until == Until::WentBack);
        if is_waiting && is_before.is_some_and(|step| step.until == Until::PickerOpen) {
            guide.at -= 1;
        }
    }

    fn prefill(&mut self) {
        let step = self.guide.as_ref().and_then(|guide| guide.steps.get(guide.at));
        if let Some(prompt) = step.and_then(|step| step.prompt.clone())
            && self.composer.is_blank()
        {
            self.composer.insert(&prompt);
        }
    }

    /// What to do next.
    pub(super) fn hint(&self) -> Option<(usize, usize, &str)> {
        let guide = self.guide.as_ref()?;
        let step = guide.steps.get(guide.at)?;
        Some((guide.at + 1, guide.steps.len(), &step.hint))
    }
}
