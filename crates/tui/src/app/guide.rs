//! A guide for newcomers: one hint at a time, which follows what has really happened.
//!
//! The app owns when a hint is asked for and where it stands; what it says is decided by whoever gives the guide, from the session as it is
//! now. So there is no order that a newcomer could leave.

use retake_agent::view::View;

use super::{App, MainView};
use crate::text;

/// Gives hints.
pub trait Guide: Send {
    /// The hint for this moment. Called after everything that happens.
    fn hint(&mut self, moment: &Moment<'_>) -> Hint;
}

/// What a hint depends on.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The session.
    pub view: &'a View,
    /// Whether the picker is open.
    pub is_picker_open: bool,
    /// What is typed.
    pub typed: &'a str,
}

/// A hint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Which step this is.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// What to do.
    pub text: String,
    /// What is put into the composer when the hint is new and nothing is typed.
    pub prompt: Option<String>,
}

impl App {
    /// Asks the guide for the hint of this moment.
    pub(super) fn follow_guide(&mut self) {
        let Some(mut guide) = self.guide.take() else { return };
        let mut hint = self.ask_guide(&mut *guide);
        let is_new = hint.prompt != self.hint.prompt || hint.number != self.hint.number;
        // A rewind or an undo brings its own prompt, which may still be on its way.
        let is_free = self.composer.is_blank() && self.changing == 0 && self.view.draft.is_empty();
        if let Some(prompt) = hint.prompt.as_ref().filter(|_| is_new && is_free && matches!(self.place, MainView::Talk))
        {
            self.composer.insert(prompt);
            hint = self.ask_guide(&mut *guide);
        }
        (self.hint, self.guide) = (hint, Some(guide));
    }

    fn ask_guide(&self, guide: &mut dyn Guide) -> Hint {
        let typed = self.composer.parts().iter().map(text::in_words).collect::<Vec<_>>().join("\n");
        let is_picker_open = matches!(self.place, MainView::Picker(_));
        guide.hint(&Moment { view: &self.view, is_picker_open, typed: &typed })
    }

    /// What to do next.
    pub(super) fn hint(&self) -> Option<&Hint> {
        self.guide.is_some().then_some(&self.hint)
    }
}
