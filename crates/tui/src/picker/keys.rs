//! Keys: what each of them does, and which are offered.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use retake_agent::contract::{Action, Query};
use retake_engine::rewind::OnConflict;
use unicode_segmentation::UnicodeSegmentation;

use super::list::ListMode;
use super::menu::{Item, Menu};
use super::{Crossing, CrossingAnswer, Picker, PickerRequest, PickerStage, PickerStep};

/// Lines that `Ctrl+D` and `Ctrl+U` scroll.
const HALF_PAGE: isize = 8;
/// Letters that a label or a filter may have.
const MAX_INPUT: usize = 200;

impl Picker {
    /// Takes a key. While something that was sent is under way all keys are ignored; `Ctrl+C` is the app's then.
    pub fn key(&mut self, key: KeyEvent) -> Vec<PickerStep> {
        // A key held down is no decision.
        let is_held = key.kind == KeyEventKind::Repeat && matches!(key.code, KeyCode::Enter | KeyCode::Esc);
        if key.kind == KeyEventKind::Release || is_held || self.is_busy() {
            return Vec::new();
        }
        if is_ctrl(key, 'c') {
            return vec![PickerStep::Close];
        }
        self.notice = None;
        if self.scroll_key(key) {
            return Vec::new();
        }
        match &self.stage {
            PickerStage::Browse => self.browse_key(key),
            PickerStage::Label { .. } => self.label_key(key),
            PickerStage::Menu(menu) => self.menu_key(key, menu.clone()),
            PickerStage::Deciding(_) => self.deciding_key(key),
            PickerStage::Crossing(crossing) => self.crossing_key(key, crossing.clone()),
            PickerStage::Busy { .. } => Vec::new(),
        }
    }

    /// Takes pasted text: into the filter, or into the label.
    pub fn paste(&mut self, text: &str) -> Vec<PickerStep> {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match &mut self.stage {
            PickerStage::Browse => {
                let filter = format!("{}{text}", self.list.filter.text);
                self.look_for(&filter)
            }
            PickerStage::Label { text: label, .. } => {
                *label = bounded(&format!("{label}{text}"));
                Vec::new()
            }
            PickerStage::Menu(_) | PickerStage::Deciding(_) | PickerStage::Crossing(_) | PickerStage::Busy { .. } => {
                Vec::new()
            }
        }
    }

    /// Takes the wheel: positive is down.
    pub fn wheel(&mut self, lines: i32) {
        self.scroll(lines as isize);
    }

    /// The keys that do something now, the most useful first.
    pub fn hints(&self) -> Vec<(&'static str, &'static str)> {
        match &self.stage {
            PickerStage::Browse => {
                let other = match self.list.mode {
                    ListMode::List => "tree",
                    ListMode::Tree => "list",
                };
                let esc = if self.list.filter.text.is_empty() { "close" } else { "clear filter" };
                vec![
                    ("↑↓", "choose"),
                    ("Enter", "rewind …"),
                    ("Tab", other),
                    ("^D ^U", "scroll"),
                    ("^O", if self.is_zoomed { "smaller" } else { "larger" }),
                    ("^L", "label"),
                    ("Esc", esc),
                ]
            }
            PickerStage::Label { .. } => vec![("Enter", "set label"), ("Esc", "back")],
            PickerStage::Menu(_) => vec![("1–7", "do"), ("↑↓ Enter", "choose"), ("^D ^U", "scroll"), ("Esc", "back")],
            PickerStage::Deciding(deciding) => vec![
                if deciding.can_merge() { ("k o m", "keep, overwrite, merge") } else { ("k o", "keep, overwrite") },
                ("K O M", "all"),
                ("↑↓", "file"),
                ("Enter", "rewind"),
                ("Esc", "back"),
            ],
            PickerStage::Crossing(_) => vec![("y", "go on"), ("n Esc", "back")],
            PickerStage::Busy { .. } => Vec::new(),
        }
    }

    fn browse_key(&mut self, key: KeyEvent) -> Vec<PickerStep> {
        let page = isize::try_from(self.list.page.max(2) - 1).unwrap_or(isize::MAX);
        let filter = &self.list.filter.text;
        match key.code {
            KeyCode::Esc if filter.is_empty() => return vec![PickerStep::Close],
            KeyCode::Esc => return self.look_for(""),
            KeyCode::Enter => return self.open_menu(),
            KeyCode::Tab => return self.switch(),
            KeyCode::Up => self.list.step(-1),
            KeyCode::Down => self.list.step(1),
            KeyCode::PageUp => self.list.step(-page),
            KeyCode::PageDown => self.list.step(page),
            KeyCode::Home => self.list.step(isize::MIN),
            KeyCode::End => self.list.step(isize::MAX),
            KeyCode::Backspace if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                return self.look_for(&without_word(filter));
            }
            KeyCode::Backspace => return self.look_for(&without_letter(filter)),
            KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => match c.to_ascii_lowercase() {
                'p' => self.list.step(-1),
                'n' => self.list.step(1),
                't' => return self.switch(),
                'w' => return self.look_for(&without_word(filter)),
                'h' => return self.look_for(&without_letter(filter)),
                'l' => return self.begin_label(),
                'o' => self.is_zoomed = !self.is_zoomed,
                _ => {}
            },
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::ALT) => {
                return self.look_for(&format!("{filter}{c}"));
            }
            _ => {}
        }
        self.choose()
    }

    fn look_for(&mut self, text: &str) -> Vec<PickerStep> {
        self.list.look_for(bounded(text.trim_start()));
        let mut steps = self.ask_for_files();
        steps.extend(self.choose());
        steps
    }

    fn switch(&mut self) -> Vec<PickerStep> {
        let mode = match self.list.mode {
            ListMode::List => ListMode::Tree,
            ListMode::Tree => ListMode::List,
        };
        self.list.switch(mode);
        let mut steps = Vec::new();
        if mode == ListMode::Tree {
            steps.push(PickerStep::Ask(PickerRequest::Tree { generation: self.lists }, Box::new(Query::Tree.into())));
        }
        steps.extend(self.choose());
        steps
    }

    fn begin_label(&mut self) -> Vec<PickerStep> {
        if let Some(row) = self.list.chosen() {
            self.stage = PickerStage::Label { entry: row.id, text: row.label.clone().unwrap_or_default() };
        }
        Vec::new()
    }

    fn label_key(&mut self, key: KeyEvent) -> Vec<PickerStep> {
        let PickerStage::Label { entry, text } = &mut self.stage else { return Vec::new() };
        match key.code {
            KeyCode::Esc => self.stage = PickerStage::Browse,
            KeyCode::Enter => {
                let label = Some(text.trim().to_owned()).filter(|label| !label.is_empty());
                let command = Action::Label { prompt: *entry, label };
                self.stage = PickerStage::Browse;
                return vec![PickerStep::Ask(PickerRequest::Label, Box::new(command.into()))];
            }
            KeyCode::Backspace if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                *text = without_word(text);
            }
            KeyCode::Backspace => *text = without_letter(text),
            KeyCode::Char(_) if is_ctrl(key, 'w') => *text = without_word(text),
            KeyCode::Char(_) if is_ctrl(key, 'h') => *text = without_letter(text),
            KeyCode::Char(_) if is_ctrl(key, 'u') => text.clear(),
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                *text = bounded(&format!("{text}{c}"));
            }
            _ => {}
        }
        Vec::new()
    }

    fn menu_key(&mut self, key: KeyEvent, mut menu: Menu) -> Vec<PickerStep> {
        let digit = |c: char| c.to_digit(10).and_then(|digit| Item::ALL.get((digit as usize).checked_sub(1)?).copied());
        match key.code {
            KeyCode::Esc => self.stage = PickerStage::Browse,
            KeyCode::Enter => return self.act(menu.entry, menu.chosen),
            KeyCode::Char(c) if is_plain(key) => {
                let Some(item) = digit(c) else { return Vec::new() };
                menu.chosen = item;
                let entry = menu.entry;
                self.stage = PickerStage::Menu(menu);
                return self.act(entry, item);
            }
            _ => {
                menu.step(vertical(key));
                self.stage = PickerStage::Menu(menu);
            }
        }
        Vec::new()
    }

    fn deciding_key(&mut self, key: KeyEvent) -> Vec<PickerStep> {
        let PickerStage::Deciding(deciding) = &mut self.stage else { return Vec::new() };
        let is_other = match key.code {
            KeyCode::Esc => {
                let (entry, scope) = (deciding.entry, deciding.scope);
                let chosen = super::apply::item_of(scope);
                self.stage = PickerStage::Menu(Menu { entry, chosen });
                true
            }
            KeyCode::Enter => {
                let deciding = deciding.clone();
                return self.agree(deciding);
            }
            KeyCode::Left => deciding.turn(-1),
            KeyCode::Right | KeyCode::Char(' ') => deciding.turn(1),
            KeyCode::Char('k') if is_plain(key) => deciding.choose(OnConflict::Keep),
            KeyCode::Char('o') if is_plain(key) => deciding.choose(OnConflict::Overwrite),
            KeyCode::Char('m') if is_plain(key) && !deciding.can_merge() => {
                self.notice =
                    Some("this one cannot be merged: both changed the same lines, or it is no text".to_owned());
                return Vec::new();
            }
            KeyCode::Char('m') if is_plain(key) => deciding.choose(OnConflict::Merge),
            KeyCode::Char('K') if is_plain(key) => deciding.choose_all(OnConflict::Keep),
            KeyCode::Char('O') if is_plain(key) => deciding.choose_all(OnConflict::Overwrite),
            KeyCode::Char('M') if is_plain(key) => deciding.choose_all(OnConflict::Merge),
            _ => {
                deciding.step(vertical(key));
                self.preview.scroll = 0;
                false
            }
        };
        if is_other { self.decided() } else { Vec::new() }
    }

    fn crossing_key(&mut self, key: KeyEvent, mut crossing: Crossing) -> Vec<PickerStep> {
        match (key.code, crossing.answer) {
            (KeyCode::Char('y' | 'Y'), _) | (KeyCode::Enter, CrossingAnswer::GoOn) => {
                crossing.answer = CrossingAnswer::GoOn;
                self.stage = PickerStage::Crossing(crossing.clone());
                return self.cross(&crossing);
            }
            (KeyCode::Char('n' | 'N') | KeyCode::Esc, _) | (KeyCode::Enter, CrossingAnswer::Back) => {
                let (entry, chosen) = (crossing.entry, super::apply::item_of(crossing.scope));
                let menu = || PickerStage::Menu(Menu { entry, chosen });
                self.stage = crossing.deciding.map_or_else(menu, PickerStage::Deciding);
            }
            _ => {
                crossing.answer = match vertical(key) {
                    0 => crossing.answer,
                    1.. => CrossingAnswer::GoOn,
                    _ => CrossingAnswer::Back,
                };
                self.stage = PickerStage::Crossing(crossing);
            }
        }
        Vec::new()
    }

    /// Scrolls the preview, if the key is for that.
    fn scroll_key(&mut self, key: KeyEvent) -> bool {
        let is_shifted = key.modifiers.contains(KeyModifiers::SHIFT);
        let is_label = matches!(self.stage, PickerStage::Label { .. });
        let by = match key.code {
            KeyCode::Up if is_shifted => -1,
            KeyCode::Down if is_shifted => 1,
            KeyCode::PageUp if is_shifted => -2 * HALF_PAGE,
            KeyCode::PageDown if is_shifted => 2 * HALF_PAGE,
            KeyCode::Char(_) if is_ctrl(key, 'd') && !is_label => HALF_PAGE,
            KeyCode::Char(_) if is_ctrl(key, 'u') && !is_label => -HALF_PAGE,
            _ => return false,
        };
        self.scroll(by);
        true
    }

    /// Drawing sees to it that it does not go beyond the end.
    fn scroll(&mut self, by: isize) {
        self.preview.scroll = self.preview.scroll.saturating_add_signed(by);
    }
}

/// Whether a key is `Ctrl` and a letter.
fn is_ctrl(key: KeyEvent, letter: char) -> bool {
    let is_letter = matches!(key.code, KeyCode::Char(c) if c.eq_ignore_ascii_case(&letter));
    is_letter && key.modifiers.contains(KeyModifiers::CONTROL)
}

fn is_plain(key: KeyEvent) -> bool {
    !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

/// How far a key goes down.
fn vertical(key: KeyEvent) -> isize {
    match key.code {
        KeyCode::Up | KeyCode::BackTab | KeyCode::Left => -1,
        KeyCode::Down | KeyCode::Tab | KeyCode::Right => 1,
        KeyCode::Char(_) if is_ctrl(key, 'p') => -1,
        KeyCode::Char(_) if is_ctrl(key, 'n') => 1,
        KeyCode::Home | KeyCode::PageUp => isize::MIN,
        KeyCode::End | KeyCode::PageDown => isize::MAX,
        _ => 0,
    }
}

fn bounded(text: &str) -> String {
    text.graphemes(true).take(MAX_INPUT).collect()
}

fn without_letter(text: &str) -> String {
    text.grapheme_indices(true).next_back().map_or("", |(at, _)| &text[..at]).to_owned()
}

fn without_word(text: &str) -> String {
    let text = text.trim_end();
    text.rfind(char::is_whitespace).map_or("", |at| &text[..=at]).to_owned()
}
