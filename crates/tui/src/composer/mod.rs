//! The composer: what the user is about to say. Several lines, pasted blocks, attached files, history.
//!
//! Text is one string with a cursor in bytes, always at a boundary of what people see as one character. A pasted block is one character in it
//! (a placeholder from the last private use plane, which no font of icons uses) that is drawn as `[pasted 12 lines]` and deleted as one.
//!
//! Written by hand, because widgets for text hold lines of text and nothing else: pasted blocks and attached files are parts of the prompt,
//! and lines wrap by the width of what people see as one character.

mod draw;
mod external_editor;
#[cfg(test)]
mod tests;

pub use draw::Rows;
use retake_engine::session::entry::Part;
use unicode_segmentation::UnicodeSegmentation;

/// A pasted text of more lines than this, or of more bytes than [`PASTE_BYTES`], is shown as a block.
const PASTE_LINES: usize = 4;
const PASTE_BYTES: usize = 400;
/// Prompts that can be called back.
const MAX_HISTORY: usize = 200;
/// The first of the characters that stand for blocks.
const FIRST_BLOCK: u32 = 0x10_0000;
const LAST_BLOCK: u32 = 0x10_FFFD;

/// What the user is about to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composer {
    text: String,
    cursor: usize,
    /// What the characters from [`FIRST_BLOCK`] on stand for.
    blocks: Vec<Part>,
    history: Vec<Vec<Part>>,
    /// Which of the history is shown, and what was there before.
    recalled: Option<(usize, Vec<Part>)>,
}

/// Which prompt of the history is recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recall {
    Earlier,
    Later,
}

impl Composer {
    /// The text with placeholders, and the cursor in it, for drawing.
    pub fn raw(&self) -> (&str, usize) {
        (&self.text, self.cursor)
    }

    /// What a character stands for.
    pub fn block(&self, c: char) -> Option<&Part> {
        self.block_number(c).map(|number| &self.blocks[number])
    }

    fn block_number(&self, c: char) -> Option<usize> {
        let number = u32::from(c).checked_sub(FIRST_BLOCK)? as usize;
        (number < self.blocks.len()).then_some(number)
    }

    fn block_character(&self, number: usize) -> Option<char> {
        char::from_u32(FIRST_BLOCK + u32::try_from(number).ok()?).filter(|c| u32::from(*c) <= LAST_BLOCK)
    }

    /// What is to be said.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let flush = |text: &mut String, parts: &mut Vec<Part>| {
            let trimmed = text.trim_matches('\n');
            if !trimmed.trim().is_empty() {
                parts.push(Part::text(trimmed));
            }
            text.clear();
        };
        for c in self.text.chars() {
            match self.block(c) {
                Some(block) => {
                    flush(&mut text, &mut parts);
                    parts.push(block.clone());
                }
                None => text.push(c),
            }
        }
        flush(&mut text, &mut parts);
        parts
    }

    /// Puts `parts` in place of everything. A file that is mentioned is left out: it goes along as it is when this is said.
    pub fn set(&mut self, parts: &[Part]) {
        self.text.clear();
        self.blocks.clear();
        for part in parts {
            match part {
                Part::Text { text } => self.text.push_str(&clean(text)),
                Part::File { path, .. } if is_mentioned(path, parts) => {}
                block => {
                    let c = self.new_block(block.clone());
                    self.text.extend(c);
                }
            }
        }
        self.cursor = self.text.len();
        self.recalled = None;
    }

    /// Whether not even a blank is there.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the cursor is behind the last character.
    pub fn is_at_end(&self) -> bool {
        self.cursor == self.text.len()
    }

    /// Takes everything away.
    pub fn clear(&mut self) {
        self.set(&[]);
    }

    /// Takes what is there away, and remembers it.
    pub fn take(&mut self) -> Vec<Part> {
        let parts = self.parts();
        if !parts.is_empty() {
            self.remember(parts.clone());
        }
        self.clear();
        parts
    }

    /// Remembers something that was said.
    pub fn remember(&mut self, parts: Vec<Part>) {
        if self.history.last() != Some(&parts) {
            self.history.push(parts);
            let excess = self.history.len().saturating_sub(MAX_HISTORY);
            self.history.drain(..excess);
        }
    }

    /// Whether a backslash is right before the cursor at the end, as in a shell.
    pub fn ends_with_backslash(&self) -> bool {
        self.cursor == self.text.len() && self.text.ends_with('\\')
    }

    /// Puts text at the cursor.
    pub fn insert(&mut self, text: &str) {
        let text = clean(text);
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Takes a paste: as it is if it is short, else as a block.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.lines().count() <= PASTE_LINES && text.len() <= PASTE_BYTES {
            return self.insert(&text);
        }
        self.attach(Part::Paste { text });
    }

    /// Puts a block at the cursor.
    pub fn attach(&mut self, part: Part) {
        if let Some(c) = self.new_block(part) {
            self.text.insert(self.cursor, c);
            self.cursor += c.len_utf8();
        }
    }

    fn new_block(&mut self, part: Part) -> Option<char> {
        let c = self.block_character(self.blocks.len())?;
        self.blocks.push(part);
        Some(c)
    }

    /// One character back.
    pub fn left(&mut self) {
        self.cursor = self.before(self.cursor);
    }

    /// One character on.
    pub fn right(&mut self) {
        self.cursor = self.after(self.cursor);
    }

    fn before(&self, at: usize) -> usize {
        self.text[..at].grapheme_indices(true).next_back().map_or(0, |(start, _)| start)
    }

    fn after(&self, at: usize) -> usize {
        self.text[at..].graphemes(true).next().map_or(at, |one| at + one.len())
    }

    /// To the beginning of a word.
    pub fn word_left(&mut self) {
        let mut words = self.text[..self.cursor].unicode_word_indices();
        self.cursor = words.next_back().map_or(0, |(start, _)| start);
    }

    /// To the end of a word.
    pub fn word_right(&mut self) {
        let mut words = self.text[self.cursor..].unicode_word_indices();
        self.cursor = words.next().map_or(self.text.len(), |(start, word)| self.cursor + start + word.len());
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// To the beginning of the line.
    pub fn home(&mut self) {
        self.cursor = self.line_start();
    }

    /// To the end of the line.
    pub fn end(&mut self) {
        self.cursor = self.line_end();
    }

    /// To the line above; calls back what was said before from the first line. Returns whether anything moved.
    pub fn up(&mut self) -> bool {
        let start = self.line_start();
        if start == 0 {
            return self.recall(Recall::Earlier);
        }
        let column = self.text[start..self.cursor].graphemes(true).count();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = at_column(&self.text, above, start - 1, column);
        true
    }

    /// To the line below; from the last one to what was said after. Returns whether anything moved.
    pub fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return self.recall(Recall::Later);
        }
        let column = self.text[self.line_start()..self.cursor].graphemes(true).count();
        let below_end = self.text[end + 1..].find('\n').map_or(self.text.len(), |at| end + 1 + at);
        self.cursor = at_column(&self.text, end + 1, below_end, column);
        true
    }

    fn recall(&mut self, which: Recall) -> bool {
        let (at, kept) = match (self.recalled.take(), which) {
            (None, Recall::Earlier) if !self.history.is_empty() => (self.history.len() - 1, self.parts()),
            (None, _) => return false,
            (Some((at, kept)), Recall::Earlier) => (at.saturating_sub(1), kept),
            (Some((at, kept)), Recall::Later) if at + 1 < self.history.len() => (at + 1, kept),
            (Some((_, kept)), Recall::Later) => {
                self.set(&kept);
                return true;
            }
        };
        let parts = self.history[at].clone();
        self.set(&parts);
        self.recalled = Some((at, kept));
        true
    }

    /// Takes the character before the cursor away.
    pub fn backspace(&mut self) {
        let from = self.before(self.cursor);
        self.text.drain(from..self.cursor);
        self.cursor = from;
    }

    /// Takes the character at the cursor away.
    pub fn delete(&mut self) {
        let to = self.after(self.cursor);
        self.text.drain(self.cursor..to);
    }

    /// Takes the word before the cursor away.
    pub fn delete_word(&mut self) {
        let to = self.cursor;
        self.word_left();
        self.text.drain(self.cursor..to);
    }

    /// Takes away what is before the cursor in its line.
    pub fn delete_to_start(&mut self) {
        let from = self.line_start();
        self.text.drain(from..self.cursor);
        self.cursor = from;
    }

    /// Takes away what is after the cursor in its line.
    pub fn delete_to_end(&mut self) {
        let to = self.line_end();
        self.text.drain(self.cursor..to);
    }

    /// The word before the cursor, from the last blank on, and where it begins.
    pub fn word(&self) -> (usize, &str) {
        let start = self.text[..self.cursor].rfind(char::is_whitespace);
        let start = start.map_or(0, |at| at + self.text[at..].chars().next().map_or(1, char::len_utf8));
        (start, &self.text[start..self.cursor])
    }

    /// Puts `text` in place of the word before the cursor.
    pub fn complete(&mut self, text: &str) {
        let (start, _) = self.word();
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }
}

/// Whether a text among `parts` mentions the file.
fn is_mentioned(path: &str, parts: &[Part]) -> bool {
    let mentions = |part: &Part| match part {
        Part::Text { text } => text.contains(&format!("@{path}")) || text.contains(&format!("@\"{path}\"")),
        Part::Paste { .. } | Part::File { .. } | Part::Image { .. } => false,
    };
    parts.iter().any(mentions)
}

/// The place of column `column` in the line from `start` to `end`.
fn at_column(text: &str, start: usize, end: usize, column: usize) -> usize {
    text[start..end].grapheme_indices(true).nth(column).map_or(end, |(at, _)| start + at)
}

/// Without what would confuse a terminal, or be taken for a block.
fn clean(text: &str) -> String {
    let is_good = |c: &char| {
        (!c.is_control() || matches!(c, '\n' | '\t')) && !(FIRST_BLOCK..=LAST_BLOCK).contains(&u32::from(*c))
    };
    text.replace("\r\n", "\n").chars().filter(is_good).collect()
}
