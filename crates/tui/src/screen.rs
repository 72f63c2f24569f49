//! The terminal as something that is written to: only what has changed, and text that moved up is moved up by the terminal itself.

use std::io::{self, Write};

use crossterm::{cursor, queue};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// Begin and end of what is to appear at once.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// A terminal, and what it shows.
pub struct Screen<W: Write> {
    backend: CrosstermBackend<W>,
    shown: Buffer,
    cursor: Option<Position>,
}

impl<W: Write> Screen<W> {
    /// An empty one.
    pub fn new(writer: W, area: Rect) -> Self {
        Self { backend: CrosstermBackend::new(writer), shown: Buffer::empty(area), cursor: None }
    }

    /// Has everything drawn anew next time.
    pub fn reset(&mut self, area: Rect) -> io::Result<()> {
        self.backend.clear()?;
        self.shown = Buffer::empty(area);
        Ok(())
    }

    /// Shows a frame. Returns how many cells were written.
    pub fn show(&mut self, frame: Buffer, cursor: Option<Position>) -> io::Result<usize> {
        let has_moved = self.scroll(&frame)?;
        let changes = self.shown.diff(&frame);
        let count = changes.len();
        if count == 0 && cursor == self.cursor && !has_moved {
            return Ok(0);
        }
        self.backend.write_all(BEGIN)?;
        queue!(self.backend, cursor::Hide)?;
        self.backend.draw(changes.into_iter())?;
        if let Some(Position { x, y }) = cursor {
            queue!(self.backend, cursor::MoveTo(x, y), cursor::Show)?;
        }
        self.backend.write_all(END)?;
        Write::flush(&mut self.backend)?;
        self.shown = frame;
        self.cursor = cursor;
        Ok(count)
    }

    /// If most rows of the frame are those of the screen, moved up, has the terminal move them. Returns whether it did.
    fn scroll(&mut self, frame: &Buffer) -> io::Result<bool> {
        let Some(Moved { top, bottom, by }) = moved(&self.shown, frame) else { return Ok(false) };
        write!(self.backend, "\x1b[{};{}r\x1b[{by}S\x1b[r", top + 1, bottom)?;
        let width = usize::from(self.shown.area.width);
        let (from, to) = (usize::from(top) * width, usize::from(bottom) * width);
        let region = &mut self.shown.content[from..to];
        region.rotate_left(usize::from(by) * width);
        let emptied = region.len() - usize::from(by) * width;
        region[emptied..].iter_mut().for_each(ratatui::buffer::Cell::reset);
        Ok(true)
    }
}

/// Rows that moved up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moved {
    top: u16,
    /// Behind the last one.
    bottom: u16,
    by: u16,
}

/// Rows of `before` that are found further up in `after`, if they are most of those that differ.
fn moved(before: &Buffer, after: &Buffer) -> Option<Moved> {
    if before.area != after.area {
        return None;
    }
    let (width, height) = (usize::from(before.area.width), before.area.height);
    let row = |buffer: &Buffer, number: u16| -> std::ops::Range<usize> {
        let start = usize::from(number) * width;
        debug_assert!(start + width <= buffer.content.len());
        start..start + width
    };
    let same = |one: u16, other: u16| before.content[row(before, one)] == after.content[row(after, other)];
    let top = (0..height).find(|&number| !same(number, number))?;
    let bottom = (top..height).rev().find(|&number| !same(number, number))? + 1;
    let changed = bottom - top;
    if changed < 4 {
        return None;
    }
    // A blank row is like every other one, and says nothing.
    let is_blank = |number: u16| after.content[row(after, number)].iter().all(|cell| cell.symbol() == " ");
    let fits = |by: u16| (top..bottom - by).filter(|&number| !is_blank(number) && same(number + by, number)).count();
    let by = (1..=changed / 2).max_by_key(|&by| (fits(by), std::cmp::Reverse(by)))?;
    let telling = (top..bottom).filter(|&number| !is_blank(number)).count();
    (fits(by) * 2 > telling).then_some(Moved { top, bottom, by })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    fn frame(rows: &[&str]) -> Buffer {
        Buffer::with_lines(rows.iter().map(|row| format!("{row:<8}")))
    }

    #[test]
    fn what_did_not_change_is_not_written() {
        let first = frame(&["one", "two", "three"]);
        let mut screen = Screen::new(Vec::new(), first.area);
        assert_eq!(screen.show(first.clone(), None).expect("it writes"), 11);
        assert_eq!(screen.show(first, None).expect("it writes"), 0);
        assert_eq!(screen.show(frame(&["one", "tvo", "three"]), None).expect("it writes"), 1);
    }

    #[test]
    fn rows_that_move_up_are_moved_by_the_terminal() {
        let before = frame(&["a", "b", "c", "d", "e", "> typed"]);
        let after = frame(&["b", "c", "d", "e", "f", "> typed"]);
        assert_eq!(moved(&before, &after), Some(Moved { top: 0, bottom: 5, by: 1 }));
        let mut screen = Screen::new(Vec::new(), before.area);
        screen.show(before, None).expect("it writes");
        assert_eq!(screen.show(after, None).expect("it writes"), 1, "only the new row is written");
    }

    #[test]
    fn a_move_that_uncovers_only_a_blank_row_is_shown_at_once() {
        let before = frame(&["a", "b", "c", "d", "e", "> typed"]);
        let flushes = Rc::new(Cell::new(0));
        let mut screen = Screen::new(Flushed(Rc::clone(&flushes)), before.area);
        screen.show(before, None).expect("it writes");
        let before = flushes.get();
        screen.show(frame(&["b", "c", "d", "e", "", "> typed"]), None).expect("it writes");
        assert!(flushes.get() > before);
    }

    /// Counts how often something is shown.
    struct Flushed(Rc<Cell<usize>>);

    impl Write for Flushed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.set(self.0.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn another_text_is_not_taken_for_a_moved_one() {
        assert_eq!(moved(&frame(&["a", "b", "c", "d", "e"]), &frame(&["v", "w", "x", "y", "z"])), None);
        assert_eq!(moved(&frame(&["", "", "", "", "a"]), &frame(&["", "", "", "", "b"])), None);
    }
}
