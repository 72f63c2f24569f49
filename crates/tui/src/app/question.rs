//! Whether a call may run: what is asked, and the keys that answer it.

use crossterm::event::{KeyCode, KeyEvent};
use retake_agent::contract::{Answer, Command, Question, Rule};
use retake_engine::Timestamp;

use super::{App, Asked, Effect};

/// For so many milliseconds nobody can have read a question.
const UNSEEN: i64 = 300;

/// How far the user is with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// Which answer is chosen; none to begin with, so that an Enter that was meant for something else answers nothing.
    pub chosen: Option<usize>,
    /// Lines of the preview that are above what is shown.
    pub scroll: usize,
    /// Whether the composer holds the reason for a no.
    pub is_why: bool,
    /// Whether keys go to the composer although something is asked.
    pub is_aside: bool,
    /// Since when it is asked: a key that comes at once was not meant for it.
    pub since: Option<Timestamp>,
}

/// An answer that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The key.
    pub key: char,
    /// What it does.
    pub text: String,
}

/// A rule in words: `bash: npm test`.
pub fn in_words(rule: &Rule) -> String {
    match &rule.prefix {
        Some(prefix) => format!("{}: {prefix}", rule.tool),
        None => rule.tool.clone(),
    }
}

/// The answers to a question, the most careful yes first.
pub fn offers(question: &Question) -> Vec<Offer> {
    let mut offers = vec![Offer { key: 'y', text: "Yes, this once".into() }];
    if let Some(rule) = &question.rule {
        offers.push(Offer {
            key: 'a',
            text: format!("Yes, and always `{}` in this session (then Enter)", in_words(rule)),
        });
    }
    offers.push(Offer { key: 'n', text: "No".into() });
    offers.push(Offer { key: 'w', text: "No, and say why".into() });
    offers
}

impl App {
    /// The question that keys answer now.
    pub(super) fn question(&self) -> Option<&Question> {
        self.view.questions.first().filter(|_| !self.asking.is_aside)
    }

    /// What was asked is settled, or something new is asked. Somebody who is typing goes on typing.
    pub(super) fn question_changed(&mut self) {
        let (is_aside, since) = (!self.composer.is_blank(), Some(self.now));
        self.asking = Asking { is_aside, since, ..Asking::default() };
    }

    /// A key while something is asked; `None` if it is not about that.
    pub(super) fn answer_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let question = self.question()?.clone();
        let offers = offers(&question);
        let is_at_once = self.asking.since.is_some_and(|since| self.now.0 - since.0 < UNSEEN);
        if is_at_once && matches!(key.code, KeyCode::Enter | KeyCode::Char(_)) && key.modifiers.is_empty() {
            return Some(Vec::new());
        }
        if self.asking.is_why {
            return match key.code {
                KeyCode::Enter => {
                    let why = self.composer.take().iter().map(crate::text::in_words).collect::<Vec<_>>().join("\n");
                    Some(self.answer(&question, Answer::Deny { why: (!why.is_empty()).then_some(why) }))
                }
                KeyCode::Esc => {
                    self.asking.is_why = false;
                    self.composer.clear();
                    Some(Vec::new())
                }
                _ => None,
            };
        }
        match key.code {
            KeyCode::Up => self.asking.chosen = Some(self.asking.chosen.unwrap_or(offers.len()).saturating_sub(1)),
            KeyCode::Down => {
                self.asking.chosen = Some(self.asking.chosen.map_or(0, |chosen| (chosen + 1).min(offers.len() - 1)));
            }
            KeyCode::PageDown => self.asking.scroll += 10,
            KeyCode::PageUp => self.asking.scroll = self.asking.scroll.saturating_sub(10),
            KeyCode::Tab => self.asking.is_aside = true,
            KeyCode::Enter => match self.asking.chosen {
                Some(chosen) => return Some(self.choose(&question, offers[chosen].key)),
                None => return Some(self.say_plain("y allows it, n does not; arrow keys and Enter choose")),
            },
            KeyCode::Char(c) if key.modifiers.is_empty() => match offers.iter().position(|offer| offer.key == c) {
                // It lasts, and is too easily the first letter of something else.
                Some(at) if c == 'a' => self.asking.chosen = Some(at),
                Some(_) => return Some(self.choose(&question, c)),
                // Somebody begins to say something: the rest of it answers nothing.
                None => {
                    self.asking.is_aside = true;
                    return None;
                }
            },
            // Esc, Ctrl+C, Ctrl+R and the like mean what they always do.
            _ => return None,
        }
        Some(Vec::new())
    }

    fn choose(&mut self, question: &Question, key: char) -> Vec<Effect> {
        match (key, &question.rule) {
            ('y', _) => self.answer(question, Answer::Allow),
            ('a', Some(rule)) => self.answer(question, Answer::AllowAlways { rule: rule.clone() }),
            ('w', _) => {
                self.asking.is_why = true;
                Vec::new()
            }
            _ => self.answer(question, Answer::Deny { why: None }),
        }
    }

    fn answer(&mut self, question: &Question, answer: Answer) -> Vec<Effect> {
        // It is settled when the session says so; until then a second key must not answer the next question.
        self.view.questions.retain(|other| other.call != question.call);
        self.question_changed();
        vec![Effect::Ask(Asked::Quietly, Command::Answer { call: question.call.clone(), answer })]
    }
}
