//! What `examples/frames.rs` measures: the drawing itself, without a terminal. Not for anybody else.

use std::io::Sink;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use retake_agent::diff::FileDiff;
use retake_agent::view::View;
use retake_engine::Timestamp;

use crate::app::{App, Input};
use crate::screen::Screen;
use crate::text::code;
use crate::text::diff::DiffView;
use crate::theme::Theme;
use crate::transcript::Transcript;

/// Loads what highlights code, and waits for it.
pub fn load_grammars() {
    code::load();
}

/// A conversation on a screen of its own.
#[derive(Debug)]
pub struct Conversation {
    /// What is drawn.
    pub view: View,
    transcript: Transcript,
    buffer: Buffer,
}

impl Conversation {
    /// Nothing is drawn yet.
    pub fn new(view: View, width: u16, height: u16) -> Self {
        Self { view, transcript: Transcript::new(), buffer: Buffer::empty(Rect::new(0, 0, width, height)) }
    }

    /// Goes down, or up if `lines` is negative, with the next frame.
    pub fn scroll(&mut self, lines: i32) {
        self.transcript.scroll(lines);
    }

    /// Unfolds everything, or folds it.
    pub fn toggle_all(&mut self) {
        self.transcript.toggle_all();
    }

    /// Another size of the screen.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.buffer = Buffer::empty(Rect::new(0, 0, width, height));
    }

    /// One frame.
    pub fn draw(&mut self) {
        self.buffer.reset();
        self.transcript.draw(&self.view, 0, self.buffer.area, &mut self.buffer, &Theme::default());
    }
}

/// The whole client, writing to nowhere.
pub struct Client {
    app: App,
    screen: Screen<Sink>,
    area: Rect,
}

impl Client {
    /// On a session, with the first frame drawn.
    pub fn new(view: View, width: u16, height: u16) -> Self {
        let area = Rect::new(0, 0, width, height);
        let (app, _) = App::new(view, Theme::default(), None, Timestamp(0));
        let mut client = Self { app, screen: Screen::new(std::io::sink(), area), area };
        client.paint();
        client
    }

    /// A letter is typed and painted. Returns how many cells were written.
    pub fn press(&mut self, letter: char) -> usize {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
        self.app.update(Input::Key(key), Timestamp(0));
        self.paint()
    }

    fn paint(&mut self) -> usize {
        let mut frame = Buffer::empty(self.area);
        let cursor = self.app.draw(self.area, &mut frame);
        self.screen.show(frame, cursor).unwrap_or_default()
    }
}

/// A diff on a screen of its own.
#[derive(Debug)]
pub struct Difference {
    view: DiffView,
    buffer: Buffer,
}

impl Difference {
    /// Nothing is drawn yet.
    pub fn new(files: Vec<FileDiff>, width: u16, height: u16) -> Self {
        Self { view: DiffView::new(files), buffer: Buffer::empty(Rect::new(0, 0, width, height)) }
    }

    /// How many lines there are.
    pub fn height(&mut self) -> usize {
        self.view.height(self.buffer.area.width)
    }

    /// One frame, from the line `top` on.
    pub fn draw(&mut self, top: usize) {
        self.buffer.reset();
        self.view.draw(top, self.buffer.area, &mut self.buffer, &Theme::default());
    }
}
