//! Views made by hand, and what is drawn of them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, CallId, EndReason, Entry, Outcome, Part, StopReason, Usage};

use crate::theme::{Colours, Theme};
use crate::transcript::Transcript;

pub(super) fn id(number: usize) -> EntryId {
    let mut bytes = [0; 10];
    bytes[2..].copy_from_slice(&(number as u64).to_be_bytes());
    EntryId::new(bytes)
}

/// A conversation, each entry continuing the one before it.
pub(super) fn view(bodies: impl IntoIterator<Item = Body>) -> View {
    let mut view = View::default();
    bodies.into_iter().for_each(|body| add(&mut view, body));
    view
}

pub(super) fn add(view: &mut View, body: Body) {
    let number = view.entries.len();
    let parent = number.checked_sub(1).map(id);
    view.entries.push(Entry { id: id(number), parent, at: Timestamp(0), body });
    view.seq += 1;
}

pub(super) fn prompt(text: &str) -> Body {
    Body::Prompt { parts: vec![Part::text(text)] }
}

pub(super) fn reply(blocks: Vec<Block>) -> Body {
    Body::Reply { blocks, model: "test/model".to_owned(), usage: Usage::default(), stop: StopReason::Done }
}

pub(super) fn says(text: &str) -> Body {
    reply(vec![Block::Text { text: text.to_owned() }])
}

/// A reply that only calls a tool.
pub(super) fn calls(tool: &str, arguments: &str) -> Body {
    let call = Block::Call { id: CallId("c1".to_owned()), name: tool.to_owned(), arguments: arguments.to_owned() };
    reply(vec![call])
}

/// The result of the call before it.
pub(super) fn result(title: &str, outcome: Outcome, text: &str) -> Body {
    Body::ToolResult {
        call: CallId("c1".to_owned()),
        title: title.to_owned(),
        outcome,
        parts: vec![Part::text(text)],
        todos: None,
        details: None,
    }
}

pub(super) fn ended(reason: EndReason) -> Body {
    Body::Ended { reason }
}

/// What a frame shows, without trailing spaces; asserts that nothing was drawn beside the area.
pub(super) fn frame(transcript: &mut Transcript, view: &View, width: u16, height: u16) -> Vec<String> {
    let whole = Rect::new(0, 0, width + 4, height + 2);
    let mut buf = Buffer::empty(whole);
    let area = Rect::new(2, 1, width, height);
    transcript.draw(view, 0, area, &mut buf, &Theme::new(Colours::Terminal));
    let cell = |x: u16, y: u16| buf[(x, y)].symbol();
    for y in 0..whole.height {
        for x in (0..whole.width).filter(|x| !(area.top()..area.bottom()).contains(&y) || *x < 2 || *x >= width + 2) {
            assert_eq!(cell(x, y), " ", "drawn beside the area at {x},{y}");
        }
    }
    let mut rows = Vec::new();
    for y in area.rows() {
        let mut row = String::new();
        let mut x = area.left();
        while x < area.right() {
            row.push_str(cell(x, y.y));
            x += crate::text::width(cell(x, y.y)).max(1) as u16;
        }
        rows.push(row.trim_end().to_owned());
    }
    rows
}

/// All of a short conversation, at a width.
pub(super) fn drawn(view: &View, width: u16) -> String {
    whole(&mut Transcript::new(), view, width)
}

pub(super) fn whole(transcript: &mut Transcript, view: &View, width: u16) -> String {
    frame(transcript, view, width, 200).join("\n").trim_end().to_owned()
}
