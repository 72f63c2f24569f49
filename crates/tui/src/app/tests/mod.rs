//! The whole client on a buffer: keys, events and answers go in; the screen and what is to be done come out.

mod asking;
mod looks;
mod talking;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use retake_agent::contract::{Event, EventKind, Query, Question, Refusal, Reply, Rule, State};
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{
    Block, Body, CallId, EndReason, Entry, Outcome, Part, StopReason, Todo, TodoState, Usage,
};

use super::{App, Asked, Effect, Input};
use crate::theme::{Colours, Theme};

/// When every scene begins.
const BEGINNING: i64 = 1_700_000_000_000;

/// A client, and the session that it is told of.
struct Scene {
    app: App,
    now: i64,
    seq: u64,
    entries: u8,
}

impl Scene {
    fn new() -> Self {
        let view = View {
            session: "01234567-89ab".into(),
            workspace: "/work".to_owned(),
            model: "anthropic/opus".to_owned(),
            window: Some(200_000),
            ..View::default()
        };
        Self::with(view)
    }

    fn with(view: View) -> Self {
        let seq = view.seq;
        let (app, effects) = App::new(view, Theme::new(Colours::None), None, Timestamp(BEGINNING));
        assert_eq!(effects, [Effect::Ask(Asked::Store, Query::Store.into())]);
        Self { app, now: BEGINNING, seq, entries: 0 }
    }

    fn id(number: u8) -> EntryId {
        EntryId::new([number; 10])
    }

    fn input(&mut self, input: Input) -> Vec<Effect> {
        self.app.update(input, Timestamp(self.now))
    }

    fn key(&mut self, code: KeyCode) -> Vec<Effect> {
        self.input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn control(&mut self, c: char) -> Vec<Effect> {
        self.input(Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)))
    }

    /// Types a text; returns what the last key did.
    fn types(&mut self, text: &str) -> Vec<Effect> {
        text.chars().map(|c| self.key(KeyCode::Char(c))).last().unwrap_or_default()
    }

    /// Types a line and presses Enter.
    fn enters(&mut self, text: &str) -> Vec<Effect> {
        self.types(text);
        self.key(KeyCode::Enter)
    }

    fn tell(&mut self, kind: EventKind) -> Vec<Effect> {
        self.tell_of(None, kind)
    }

    /// Tells something that came of a request of this client's.
    fn tell_own(&mut self, kind: EventKind) -> Vec<Effect> {
        self.app.sent("mine".to_owned());
        self.tell_of(Some("mine"), kind)
    }

    fn tell_of(&mut self, request: Option<&str>, kind: EventKind) -> Vec<Effect> {
        self.seq += 1;
        let event = Event { seq: self.seq, request: request.map(str::to_owned), kind };
        self.input(Input::Event(Arc::new(event)))
    }

    fn append(&mut self, body: Body) -> EntryId {
        self.entries += 1;
        let id = Self::id(self.entries);
        let parent = (self.entries > 1).then(|| Self::id(self.entries - 1));
        self.tell(EventKind::Appended { entry: Entry { id, parent, at: Timestamp(self.now), body } });
        id
    }

    fn prompt(&mut self, text: &str) -> EntryId {
        self.append(Body::Prompt { parts: vec![Part::text(text)] })
    }

    fn reply(&mut self, text: &str) -> EntryId {
        let usage = Usage { input: 20_000, output: 400, cost: Some(0.42), ..Usage::default() };
        let blocks = vec![Block::Text { text: text.to_owned() }];
        self.append(Body::Reply { blocks, model: "anthropic/opus".to_owned(), usage, stop: StopReason::Done })
    }

    /// A whole turn.
    fn turn(&mut self, prompt: &str, reply: &str) -> EntryId {
        self.state(State::Running);
        let id = self.prompt(prompt);
        self.reply(reply);
        self.append(Body::Ended { reason: EndReason::Done });
        self.state(State::Idle);
        id
    }

    fn state(&mut self, state: State) {
        self.tell(EventKind::StateChanged { state });
    }

    fn ask(&mut self, call: &str, rule: Option<Rule>) {
        let question = Question {
            call: CallId(call.to_owned()),
            tool: "bash".to_owned(),
            title: "bash: npm test".to_owned(),
            detail: Some("npm test".to_owned()),
            diffs: Vec::new(),
            why: "it may change something".to_owned(),
            rule,
        };
        self.tell(EventKind::PermissionAsked { question });
        self.state(State::Paused);
        // Somebody reads it.
        self.now += 1_000;
    }

    fn answer(&mut self, asked: Asked, answer: Result<Reply, Refusal>) -> Vec<Effect> {
        self.input(Input::Answered(asked, answer))
    }

    /// The screen as text, without what is blank at the ends of its lines.
    fn screen(&mut self, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        self.app.draw(area, &mut buf);
        let row = |y: u16| {
            let (mut row, mut x) = (String::new(), 0);
            while x < width {
                let symbol = buf[(x, y)].symbol();
                row.push_str(symbol);
                // What a wide character covers is not there.
                x += u16::try_from(crate::text::width(symbol)).unwrap_or(1).max(1);
            }
            row.trim_end().to_owned()
        };
        (0..height).map(row).collect::<Vec<_>>().join("\n")
    }
}

fn npm_test() -> Option<Rule> {
    Some(Rule { tool: "bash".to_owned(), prefix: Some("npm test".to_owned()) })
}

fn todos() -> Vec<Todo> {
    let todo = |text: &str, state| Todo { text: text.to_owned(), state };
    vec![
        todo("read the parser", TodoState::Done),
        todo("mend the off-by-one", TodoState::Active),
        todo("run all tests", TodoState::Pending),
    ]
}

fn result(call: &str, title: &str, text: &str, todos: Option<Vec<Todo>>) -> Body {
    Body::ToolResult {
        call: CallId(call.to_owned()),
        title: title.to_owned(),
        outcome: Outcome::Done,
        parts: vec![Part::text(text)],
        todos,
        details: None,
    }
}
