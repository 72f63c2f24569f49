//! Lists in place of the conversation: sessions to go to, checkpoints to look at and to go back to.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use retake_agent::contract::{
    Change, ChangeGoal, CheckpointFacts, CheckpointRef, DiffOf, Query, SessionFacts, SessionRef,
};
use retake_engine::Timestamp;

use super::{App, Asked, Effect, MainView, NextSession};
use crate::text::age;
use retake_agent::escape::count;

/// A list.
pub struct ListPanel {
    /// What it is of.
    pub title: &'static str,
    /// What Enter does.
    pub enter: &'static str,
    /// In order.
    pub rows: Vec<ListRow>,
    /// Which is chosen, among those that fit the filter.
    pub at: usize,
    /// What rows have to contain.
    pub filter: String,
}

/// A row of a list.
pub struct ListRow {
    /// When it was.
    pub when: Timestamp,
    /// What it is.
    pub text: String,
    /// More about it.
    pub more: String,
    /// What Enter does.
    pub target: ListTarget,
}

/// What is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListTarget {
    /// A session.
    Session(SessionRef),
    /// This very session.
    Here,
    /// A checkpoint.
    Checkpoint(CheckpointRef),
}

impl ListPanel {
    /// Sessions; `own` is the one that is open here.
    pub fn of_sessions(sessions: Vec<SessionFacts>, own: &str) -> Self {
        let row = |facts: SessionFacts| {
            let is_own = *facts.session == *own;
            let short = facts.session.short().to_owned();
            let mut more = vec![short, count(facts.prompts, "prompt", "prompts")];
            more.extend(is_own.then(|| "this one".to_owned()));
            more.extend((facts.live && !is_own).then(|| "open elsewhere: you join it".to_owned()));
            more.extend(facts.forked_from.as_ref().map(|_| "a fork".to_owned()));
            let text = match (facts.title.is_empty(), facts.draft) {
                (true, Some(draft)) => format!("(to be said) {draft}"),
                (true, None) => "(nothing said yet)".to_owned(),
                (false, _) => facts.title,
            };
            let target = if is_own { ListTarget::Here } else { ListTarget::Session(facts.session) };
            ListRow { when: facts.at, text, more: more.join(" · "), target }
        };
        let rows = sessions.into_iter().map(row).collect();
        Self { title: "Sessions of this directory", enter: "Enter opens", rows, at: 0, filter: String::new() }
    }

    /// Checkpoints.
    pub fn of_checkpoints(checkpoints: Vec<CheckpointFacts>) -> Self {
        let row = |facts: CheckpointFacts| {
            let short = facts.checkpoint.short();
            let text = match (&facts.label, &facts.note) {
                (Some(label), _) => format!("{short}  {label}"),
                (None, Some(note)) => format!("{short}  {note}"),
                (None, None) => short.to_owned(),
            };
            let (changed, since) = match facts.turn {
                Some(turn) => (turn, "by this turn"),
                None => (facts.changed, "since the one before"),
            };
            let mut more = match (changed.added, changed.modified, changed.deleted) {
                (0, 0, 0) => String::new(),
                (added, modified, deleted) => format!("+{added} ~{modified} -{deleted} {since}"),
            };
            if facts.gaps > 0 {
                more.push_str(&format!(" · {} not captured", count(facts.gaps, "file", "files")));
            }
            ListRow { when: facts.at, text, more, target: ListTarget::Checkpoint(facts.checkpoint) }
        };
        let rows = checkpoints.into_iter().map(row).collect();
        Self {
            title: "Checkpoints of this directory",
            enter: "Enter shows what going back would change",
            rows,
            at: 0,
            filter: String::new(),
        }
    }

    /// The rows that fit the filter.
    pub fn shown(&self) -> Vec<&ListRow> {
        let filter = self.filter.to_lowercase();
        self.rows
            .iter()
            .filter(|row| filter.split_whitespace().all(|word| row.text.to_lowercase().contains(word)))
            .collect()
    }

    /// Moves the choice.
    pub fn step(&mut self, by: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }
}

impl App {
    pub(super) fn list_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let MainView::List(list) = &mut self.place else { return Vec::new() };
        match key.code {
            KeyCode::Up => list.step(-1),
            KeyCode::Down => list.step(1),
            KeyCode::PageUp => list.step(-10),
            KeyCode::PageDown => list.step(10),
            KeyCode::Home => list.step(isize::MIN),
            KeyCode::End => list.step(isize::MAX),
            KeyCode::Esc if !list.filter.is_empty() => list.filter.clear(),
            KeyCode::Esc => self.close_place(),
            KeyCode::Backspace => drop(list.filter.pop()),
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                list.filter.push(c);
                list.at = 0;
            }
            KeyCode::Enter => return self.choose_row(),
            _ => {}
        }
        Vec::new()
    }

    fn choose_row(&mut self) -> Vec<Effect> {
        let MainView::List(list) = &mut self.place else { return Vec::new() };
        let Some(target) = list.shown().get(list.at).map(|row| row.target.clone()) else { return Vec::new() };
        match target {
            ListTarget::Here => {
                self.close_place();
                Vec::new()
            }
            ListTarget::Session(session) => self.leave_for(NextSession::Open(session.into())),
            ListTarget::Checkpoint(checkpoint) => {
                let change = Change::new(ChangeGoal::Checkpoint { checkpoint: checkpoint.into(), files: None });
                let command = Query::Diff { of: DiffOf::Change { change: change.clone() } };
                vec![Effect::Ask(Asked::Preview(change), command.into())]
            }
        }
    }
}

/// The age of a row, for drawing.
pub fn when(row: &ListRow, now: Timestamp) -> String {
    age(row.when, now)
}
