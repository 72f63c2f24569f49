//! One thing at a time that the user should know, above the composer.

use super::{App, Effect};

/// Something that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub text: String,
    /// Until when it is true.
    pub lasts: Lasts,
}

/// Until when a notice is true, if nothing replaces it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// Whatever happens.
    On,
    /// While the turn runs.
    Turn,
}

/// How a notice is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It was done.
    Good,
    /// It is so.
    Plain,
    /// Something needs attention.
    Warning,
    /// It was not done.
    Bad,
}

impl App {
    pub(super) fn say(&mut self, tone: Tone, text: impl Into<String>) -> Vec<Effect> {
        self.notice = Some(Notice { tone, text: text.into(), lasts: Lasts::On });
        Vec::new()
    }

    /// Says something that is true only while the turn runs.
    pub(super) fn say_of_turn(&mut self, tone: Tone, text: impl Into<String>) -> Vec<Effect> {
        self.notice = Some(Notice { tone, text: text.into(), lasts: Lasts::Turn });
        Vec::new()
    }

    /// Takes away what was true only while the turn ran.
    pub(super) fn end_notice_of_turn(&mut self) {
        self.notice = self.notice.take().filter(|notice| notice.lasts != Lasts::Turn);
    }

    /// Says something beside what was done, whichever of the two is known first.
    pub(super) fn add_to_notice(&mut self, text: &str) {
        match &mut self.notice {
            Some(notice) if notice.tone == Tone::Good && notice.text.contains(text) => {}
            Some(notice) if notice.tone == Tone::Good => notice.text = format!("{}. {text}", notice.text),
            _ => drop(self.say_plain(text)),
        }
    }

    pub(super) fn say_good(&mut self, text: impl Into<String>) -> Vec<Effect> {
        self.say(Tone::Good, text)
    }

    pub(super) fn say_plain(&mut self, text: impl Into<String>) -> Vec<Effect> {
        self.say(Tone::Plain, text)
    }

    pub(super) fn say_bad(&mut self, text: impl Into<String>) -> Vec<Effect> {
        self.say(Tone::Bad, text)
    }
}
