//! The state of the terminal client and the one place where it changes.
//!
//! [`App::update`] takes in a key, something that the session told, or an answer, and returns what is to be done outside. It reads no clock, no
//! file and no terminal, and it decides nothing about the session: whatever is refused is refused there, and shown here.

mod answers;
mod commands;
mod complete;
mod conflict_choices;
mod draw;
mod events;
mod guide;
mod help;
mod input;
mod keys;
mod list;
mod notice;
mod page;
mod panels;
mod question;
pub mod slash;
mod status;
#[cfg(test)]
mod tests;
mod totals;
mod welcome;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::KeyEvent;
use retake_agent::contract::{Change, Command, Event, Query, Refusal, Reply};
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::session::entry::Part;

use crate::composer::Composer;
use crate::picker::{self, Picker};
use crate::theme::Theme;
use crate::transcript::Transcript;
use complete::Completion;
pub use guide::{Guide, Hint, Moment};
use list::ListPanel;
use notice::{Notice, Tone};
use page::Page;
use question::QuestionState;
use totals::Totals;

/// Requests of this client that are remembered, to tell its own events from those of others.
const REMEMBERED: usize = 64;

/// Something that happened.
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The wheel was turned: lines up are negative.
    Wheel(i32),
    /// The mouse was clicked in a row of the screen.
    Click(u16),
    /// The session told something.
    Event(Arc<Event>),
    /// So much was missed that everything is told again.
    Missed(Box<View>),
    /// A request was answered.
    Answered(Asked, Result<Reply, Refusal>),
    /// The editor outside came back, or could not be started.
    Edited(Result<String, String>),
    /// The conversation was written to a file, or could not be.
    Exported(Result<PathBuf, String>),
    /// Where the session can be seen in a browser, or why it cannot.
    Web(Result<String, String>),
    /// Time has passed.
    Tick,
}

/// Something that is to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the session, and bring the answer back.
    Ask(Asked, Command),
    /// Say this; files that it mentions are attached first.
    Say {
        /// What was typed.
        parts: Vec<Part>,
        /// The draft that it was made from, if there was one in the composer.
        draft: Vec<Part>,
    },
    /// Have this text edited outside.
    Edit(String),
    /// Write this text to a file.
    Export(PathBuf, String),
    /// Show the session in a browser too.
    Web,
    /// Draw everything anew.
    Redraw,
    /// Go to the background, as Ctrl+Z does.
    Suspend,
    /// Leave this session.
    Leave(NextSession),
}

/// What follows a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextSession {
    /// Nothing.
    Quit,
    /// A new session.
    New,
    /// Another session of this workspace.
    Open(String),
    /// A session that was forked from this one.
    Forked(String),
}

/// What an answer is to.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A prompt.
    Said(Vec<Part>),
    /// The picker's business.
    Picker(picker::PickerRequest),
    /// An undo, or a redo.
    Change {
        /// `undo`, `redo` or `rewind`.
        verb: &'static str,
    },
    /// What a turn changed.
    Diff,
    /// What a change would do.
    Preview(Change),
    /// A fork.
    Fork,
    /// A summary.
    Summary,
    /// A label.
    Label(String),
    /// Checkpoints.
    Checkpoints,
    /// Sessions.
    Sessions,
    /// Files like this.
    Files(String),
    /// The store's size.
    Store,
    /// Another model.
    Model(String),
    /// Something of which only a refusal is news.
    Quietly,
}

/// What takes the place of the conversation.
pub enum MainView {
    /// Nothing: it is there.
    Talk,
    /// The picker.
    Picker(Box<Picker>),
    /// Keys and commands; scrolled by this many lines.
    Help(u16),
    /// Sessions or checkpoints.
    List(Box<ListPanel>),
    /// A diff, a plan or a list.
    Page(Box<Page>),
}

/// The terminal client.
pub struct App {
    /// The session.
    pub view: View,
    facts: Totals,
    transcript: Transcript,
    composer: Composer,
    /// What was put into the composer from the draft: as long as it is unchanged, it is not the user's own.
    loaded: Vec<Part>,
    /// What made room for a command, and comes back after it.
    shelved: Vec<Part>,
    place: MainView,
    notice: Option<Notice>,
    completion: Option<Completion>,
    /// A completion that the user closed: it comes back when something else is typed.
    dismissed: Option<complete::Typing>,
    asking: QuestionState,
    /// The store's size, and what it should not exceed.
    store: Option<(u64, u64)>,
    /// When the turn began that runs.
    running_since: Option<Timestamp>,
    /// When Esc was last pressed with nothing to close.
    escaped: Option<Timestamp>,
    /// When a rewind put a prompt into the composer, or Enter was pressed right after that.
    refilled: Option<Timestamp>,
    /// When it was said that another Ctrl+C, or `/quit`, leaves.
    warned: Option<Timestamp>,
    shows_todos: bool,
    own: VecDeque<String>,
    guide: Option<Box<dyn Guide>>,
    /// What the guide said last.
    hint: Hint,
    theme: Theme,
    now: Timestamp,
    /// Undos and redos that are not answered yet.
    changing: usize,
    /// The newest request for files, so that a late answer is dropped.
    files_wanted: Option<String>,
    /// Where the conversation was drawn, for clicks.
    talk_area: ratatui::layout::Rect,
}

impl App {
    /// Begins with everything that the session tells.
    pub fn new(view: View, theme: Theme, guide: Option<Box<dyn Guide>>, now: Timestamp) -> (Self, Vec<Effect>) {
        let mut app = Self {
            facts: Totals::of(&view),
            transcript: Transcript::new(),
            composer: Composer::default(),
            loaded: Vec::new(),
            shelved: Vec::new(),
            place: MainView::Talk,
            notice: None,
            completion: None,
            dismissed: None,
            asking: QuestionState::default(),
            store: None,
            running_since: None,
            escaped: None,
            refilled: None,
            warned: None,
            shows_todos: true,
            own: VecDeque::new(),
            guide,
            hint: Hint::default(),
            theme,
            now,
            changing: 0,
            files_wanted: None,
            talk_area: ratatui::layout::Rect::ZERO,
            view,
        };
        app.remember_prompts();
        app.load_draft();
        app.watch_state();
        app.follow_guide();
        (app, vec![Effect::Ask(Asked::Store, Query::Store.into())])
    }

    /// Takes something in; returns what is to be done.
    pub fn update(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        let effects = self.take(input);
        self.follow_guide();
        effects
    }

    fn take(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Paste(text) => self.paste(&text),
            Input::Wheel(lines) => self.wheel(lines),
            Input::Click(row) => self.click(row),
            Input::Event(event) => self.event(&event),
            Input::Missed(view) => self.missed(*view),
            Input::Answered(asked, answer) => self.answered(asked, answer),
            Input::Edited(Ok(text)) => {
                self.asking.is_aside = !self.asking.is_why;
                self.composer.take_edited(&text);
                self.typed()
            }
            Input::Edited(Err(why)) => self.say_bad(format!("the editor could not be used: {why}")),
            Input::Exported(Ok(path)) => self.say_good(format!("Written to {}", path.display())),
            Input::Exported(Err(why)) => self.say_bad(format!("not written: {why}")),
            Input::Web(Ok(url)) => self.say_good(format!("Open this in a browser; it works once:\n{url}")),
            Input::Web(Err(why)) => self.say_bad(format!("not in a browser: {why}")),
            Input::Tick => Vec::new(),
        }
    }

    /// The process is to end: what is being typed waits in the session.
    pub fn stop(&mut self) -> Vec<Effect> {
        self.leave()
    }

    /// What was about to be said, in words; what came from the draft is there still.
    pub fn unsent(&self) -> String {
        let parts = self.composer.parts();
        let is_own = parts != self.loaded && parts != self.view.draft;
        parts.iter().filter(|_| is_own).map(crate::text::in_words).collect::<Vec<_>>().join("\n")
    }

    /// Remembers a request as this client's own.
    pub fn sent(&mut self, request: String) {
        self.own.push_back(request);
        if self.own.len() > REMEMBERED {
            self.own.pop_front();
        }
    }

    /// Says something to begin with.
    pub fn greet(&mut self, text: String) {
        self.say_plain(text);
    }

    /// Says that what looks like a mention of a file names none.
    fn warn_of_missing(&mut self, parts: &[Part]) {
        let missing = complete::missing(parts);
        if !missing.is_empty() {
            self.say(
                Tone::Warning,
                format!("There is no file {} here: nothing went along with the name", missing.join(", ")),
            );
        }
    }

    /// Whether something moves on the screen without anything happening.
    pub fn is_moving(&self) -> bool {
        self.running_since.is_some()
            || self.view.summarising
            || self.view.baseline.is_some()
            || self.transcript.is_unfinished()
    }

    /// The prompt that the newest turn began with.
    fn last_prompt(&self) -> Option<EntryId> {
        use retake_engine::session::entry::Body;
        self.view.entries.iter().rev().find(|entry| matches!(entry.body, Body::Prompt { .. })).map(|entry| entry.id)
    }
}
