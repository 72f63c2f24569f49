//! Whether a call may run: what is asked, and the keys that answer it.

use crossterm::event::{KeyCode, KeyEvent};
use retake_agent::contract::{Action, PermissionAnswer, Question, Rule};
use retake_engine::Timestamp;

use super::{App, Asked, Effect};

/// For so many milliseconds nobody can have read a question.
const UNSEEN: i64 = 300;

/// How far the user is with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionState {
    /// Which answer Enter gives: the first to begin with, and it is marked.
    pub chosen: usize,
    /// Lines of the preview that are above what is shown.
    pub scroll: usize,
    /// Whether the composer holds the reason for a no.
    pub is_why: bool,
    /// Whether keys go to the composer although something is asked.
    pub is_aside: bool,
    /// Since when keys go to the question: one that comes at once was not meant for it.
    pub since: Option<Timestamp>,
}

/// An answer that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerOption {
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
pub fn offers(question: &Question) -> Vec<AnswerOption> {
    let mut offers = vec![AnswerOption { key: 'y', text: "Yes, this once".into() }];
    if let Some(rule) = &question.rule {
        offers.push(AnswerOption {
            key: 'a',
            text: format!("Yes, and always `{}` in this session (then Enter)", in_words(rule)),
        });
    }
    offers.push(AnswerOption { key: 'n', text: "No".into() });
    offers.push(AnswerOption { key: 'w', text: "No, and say why".into() });
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
        self.asking = QuestionState { is_aside, since, ..QuestionState::default() };
    }

    /// Keys go to the question again, because nothing is typed any more. Those of a line that was typed ahead still come.
    pub(super) fn back_to_answers(&mut self) {
        (self.asking.is_aside, self.asking.since) = (false, Some(self.now));
    }

    /// A key while something is asked; `None` if it is not about that.
    pub(super) fn answer_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let question = self.question()?.clone();
        let offers = offers(&question);
        let is_at_once = self.asking.since.is_some_and(|since| self.now.0 - since.0 < UNSEEN);
        if is_at_once && matches!(key.code, KeyCode::Enter | KeyCode::Char(_)) && key.modifiers.is_empty() {
            // The rest of a line that was typed ahead, or a key that is held down, comes as quickly.
            self.asking.since = Some(self.now);
            return Some(Vec::new());
        }
        if self.asking.is_why {
            return match key.code {
                KeyCode::Enter => {
                    let why = self.composer.take().iter().map(crate::text::in_words).collect::<Vec<_>>().join("\n");
                    Some(self.answer(&question, PermissionAnswer::Deny { why: (!why.is_empty()).then_some(why) }))
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
            KeyCode::Up => self.asking.chosen = self.asking.chosen.saturating_sub(1),
            KeyCode::Down => self.asking.chosen = (self.asking.chosen + 1).min(offers.len() - 1),
            KeyCode::PageDown => self.asking.scroll += 10,
            KeyCode::PageUp => self.asking.scroll = self.asking.scroll.saturating_sub(10),
            KeyCode::Tab => self.asking.is_aside = true,
            KeyCode::Enter => {
                let chosen = self.asking.chosen.min(offers.len() - 1);
                return Some(self.choose(&question, offers[chosen].key));
            }
            KeyCode::Char(c) if key.modifiers.is_empty() => match offers.iter().position(|offer| offer.key == c) {
                // It lasts, and is too easily the first letter of something else.
                Some(at) if c == 'a' => self.asking.chosen = at,
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
            ('y', _) => self.answer(question, PermissionAnswer::Allow),
            ('a', Some(rule)) => self.answer(question, PermissionAnswer::AllowAlways { rule: rule.clone() }),
            ('w', _) => {
                self.asking.is_why = true;
                Vec::new()
            }
            _ => self.answer(question, PermissionAnswer::Deny { why: None }),
        }
    }

    fn answer(&mut self, question: &Question, answer: PermissionAnswer) -> Vec<Effect> {
        // It is settled when the session says so; until then a second key must not answer the next question.
        self.view.questions.retain(|other| other.call != question.call);
        self.question_changed();
        vec![Effect::Ask(Asked::Quietly, Action::Answer { call: question.call.clone(), answer }.into())]
    }
}
