//! The input line: keys that edit it, completions, Enter.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use retake_agent::contract::Query;

use super::complete::{self, Completion, Typing};
use super::slash::{self, Meaning};
use super::{App, Asked, Effect};
use crate::composer::Composer;

/// Within this many milliseconds after a rewind, Enter was meant for the picker.
const STILL: i64 = 400;

impl App {
    /// A key that edits what is about to be said.
    pub(super) fn composer_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let (control, alt) = (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        let by_word = control || alt;
        let composer = &mut self.composer;
        match key.code {
            KeyCode::Enter => composer.insert("\n"),
            KeyCode::Char('j') if control => composer.insert("\n"),
            KeyCode::Char('a') if control => composer.home(),
            KeyCode::Char('e') if control => composer.end(),
            KeyCode::Char('b') if control => composer.left(),
            KeyCode::Char('f') if control => composer.right(),
            KeyCode::Char('b') if alt => composer.word_left(),
            KeyCode::Char('f') if alt => composer.word_right(),
            KeyCode::Char('d') if control => composer.delete(),
            KeyCode::Char('h') if control => composer.backspace(),
            KeyCode::Char('w') if control => composer.delete_word(),
            KeyCode::Char('u') if control => composer.delete_to_start(),
            KeyCode::Char('k') if control => composer.delete_to_end(),
            KeyCode::Char('p') if control => return self.recall(Composer::up),
            KeyCode::Char('n') if control => return self.recall(Composer::down),
            KeyCode::Char(c) if !control && !alt => composer.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Left if by_word => composer.word_left(),
            KeyCode::Right if by_word => composer.word_right(),
            KeyCode::Left => composer.left(),
            KeyCode::Right => composer.right(),
            KeyCode::Up => return self.recall(Composer::up),
            KeyCode::Down => return self.recall(Composer::down),
            KeyCode::Home => composer.home(),
            KeyCode::End => composer.end(),
            KeyCode::Backspace if by_word => composer.delete_word(),
            KeyCode::Backspace => composer.backspace(),
            KeyCode::Delete => composer.delete(),
            _ => return Vec::new(),
        }
        self.typed()
    }

    /// Moves to another line or to another entry of the history. Nothing is offered there, or the list would take the next arrow key.
    fn recall(&mut self, step: fn(&mut Composer) -> bool) -> Vec<Effect> {
        step(&mut self.composer);
        self.dismissed = complete::typing(&self.composer);
        self.completion = None;
        self.typed()
    }

    /// What is about to be said has changed: something may be completed.
    pub(super) fn typed(&mut self) -> Vec<Effect> {
        if self.composer.is_blank() {
            // Nobody types any more.
            self.back_to_answers();
            self.unshelve();
        }
        let typing = complete::typing(&self.composer);
        if typing != self.dismissed {
            self.dismissed = None;
        }
        match typing.filter(|typing| self.dismissed.as_ref() != Some(typing)) {
            Some(Typing::Command(name)) => self.completion = Completion::of_commands(&name),
            Some(Typing::File(query)) => {
                self.files_wanted = Some(query.clone());
                return vec![Effect::Ask(Asked::Files(query.clone()), Query::Files { query }.into())];
            }
            None => self.completion = None,
        }
        Vec::new()
    }

    /// A key while something is offered; `None` if it is not about that.
    pub(super) fn completion_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let completion = self.completion.as_mut()?;
        match key.code {
            KeyCode::Up => completion.step(-1),
            KeyCode::Down => completion.step(1),
            KeyCode::Esc => {
                self.dismissed = self.completion.take().map(|completion| completion.what);
            }
            KeyCode::Tab => self.complete(" "),
            KeyCode::Enter if matches!(completion.what, Typing::File(_)) => self.complete(""),
            KeyCode::Enter if key.modifiers.is_empty() => {
                self.complete("");
                return None;
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn complete(&mut self, after: &str) {
        let Some(completion) = self.completion.take() else { return };
        let text = &completion.chosen().text;
        let after = if text.ends_with(' ') { "" } else { after };
        self.composer.complete(&format!("{text}{after}"));
    }

    /// Enter: says what is there, or does what it asks for.
    pub(super) fn enter(&mut self) -> Vec<Effect> {
        self.completion = None;
        if self.is_still_rewinding() {
            return Vec::new();
        }
        if self.composer.ends_with_backslash() {
            self.composer.backspace();
            self.composer.insert("\n");
            return Vec::new();
        }
        let parts = self.composer.parts();
        let line = match parts.as_slice() {
            [] => return Vec::new(),
            [retake_engine::session::entry::Part::Text { text }] => text.as_str(),
            _ => "",
        };
        match slash::read(line) {
            Meaning::Command(slash, argument) => {
                self.composer.take();
                self.notice = None;
                self.unshelve();
                self.command(slash, &argument)
            }
            Meaning::TooMuch(name) => {
                self.say_bad(format!("nothing follows /{name}; if this is for the model, put a blank before it"))
            }
            Meaning::Unknown(name) => self.say_bad(format!("there is no command /{name}; /help lists them")),
            Meaning::Prompt => {
                self.composer.take();
                let draft = std::mem::take(&mut self.loaded);
                self.back_to_answers();
                self.notice = None;
                self.transcript.to_bottom();
                vec![Effect::Say { parts, draft }]
            }
        }
    }

    /// Whether Enter was pressed once too often, or is held down: what a rewind put into the composer is not said by that.
    fn is_still_rewinding(&mut self) -> bool {
        let is_untouched = self.composer.parts() == self.loaded;
        let is_soon = self.refilled.take().is_some_and(|then| self.now.0 - then.0 < STILL);
        self.refilled = (is_untouched && is_soon).then_some(self.now);
        self.refilled.is_some()
    }

    /// Whether what is typed came from the draft and was not touched: a command is not meant to be a part of it.
    pub(super) fn is_untouched(&self) -> bool {
        !self.loaded.is_empty() && self.composer.is_at_end() && self.composer.parts() == self.loaded
    }

    /// Begins a command; what waits to be said comes back after it.
    pub(super) fn shelve(&mut self) {
        self.shelved = std::mem::take(&mut self.loaded);
        self.composer.set(&[]);
        self.composer.insert("/");
        self.completion = Completion::of_commands("");
    }

    /// Puts back what made room for a command. Returns whether there was something.
    pub(super) fn unshelve(&mut self) -> bool {
        if self.shelved.is_empty() {
            return false;
        }
        self.loaded = std::mem::take(&mut self.shelved);
        self.composer.set(&self.loaded);
        self.completion = None;
        true
    }
}
