//! Drawing: a function of the state, the room and the time. The state only learns how much room there was.
//!
//! ```text
//! Rewind: filter                     3 of 12 · list      Rewind: filter        3/12 · list
//! rows                          │ what would change      rows
//!                               │                        ── what would change ──
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::contract::State;
use retake_engine::Timestamp;

use super::list::ListMode;
use super::menu::{RUNNING, WAITING};
use super::preview_lines::{PreviewLines, PreviewSource};
use super::row_lines::{self, ONE_LINE};
use super::text_lines::{self, clean, cut, fit_end, spread, wrapped};
use super::{PendingWork, Picker, PickerStage, row_panel};
use crate::text::{fit, width as width_of};
use crate::theme::Theme;
use retake_agent::escape::count;

/// From this width on the preview is beside the rows.
const WIDE: u16 = 100;
/// With less height than this there is no room for a preview below the rows.
const LOW: u16 = 9;
/// Lines that a notice may take.
const MAX_NOTICE: usize = 2;

impl Picker {
    /// Draws it into `area`, all of it.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme, now: Timestamp) {
        buf.set_style(area, Style::reset());
        for y in area.top()..area.bottom() {
            buf.set_stringn(area.x, y, " ".repeat(area.width.into()), area.width.into(), Style::reset());
        }
        let theme = *theme;
        let mut top = self.header(area.width.into(), theme);
        top.extend(self.notice_lines(area.width.into(), theme));
        let height = u16::try_from(top.len()).unwrap_or(u16::MAX).min(area.height);
        put(buf, Rect { height, ..area }, &top);
        let body = Rect { y: area.y + height, height: area.height - height, ..area };
        if self.is_zoomed && self.stage == PickerStage::Browse {
            return self.draw_pane(body, buf, theme);
        }
        if WIDE <= area.width {
            let left = Rect { width: area.width * 9 / 20 - 1, ..body };
            let rule = Rect { x: left.right() + 1, width: 1, ..body };
            let right = Rect { x: rule.right() + 1, width: area.right() - rule.right() - 1, ..body };
            self.draw_rows(left, buf, theme, now);
            put(buf, rule, &vec![Line::styled("│", theme.dim()); body.height.into()]);
            return self.draw_pane(right, buf, theme);
        }
        let wanted = self.rows_height(body);
        let rows = Rect { height: wanted, ..body };
        self.draw_rows(rows, buf, theme, now);
        self.draw_pane(Rect { y: rows.bottom(), height: body.height - wanted, ..body }, buf, theme);
    }

    /// How much of `body` the rows get where the preview is below them.
    fn rows_height(&self, body: Rect) -> u16 {
        if body.height < LOW {
            return body.height;
        }
        let needed = match &self.stage {
            PickerStage::Browse | PickerStage::Label { .. } | PickerStage::Busy { .. } => body.height / 2,
            PickerStage::Menu(_) => 11 - 2 * u16::from(ONE_LINE <= body.width.into()),
            PickerStage::Deciding(deciding) => u16::try_from(3 * deciding.paths.len() + 2).unwrap_or(u16::MAX),
            PickerStage::Crossing(_) => 8 - 2 * u16::from(ONE_LINE <= body.width.into()),
        };
        needed.min(body.height.saturating_sub(4).max(body.height * 2 / 3))
    }

    fn header(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let (all, matching) = (self.list.rows().len(), self.list.matching().len());
        let mode = match self.list.mode {
            ListMode::List => "list",
            ListMode::Tree => "tree",
        };
        let counted = match (self.list.is_known(), self.list.filter.text.is_empty()) {
            (false, _) => String::new(),
            (true, true) => format!("{} · ", count(all, "prompt", "prompts")),
            (true, false) => format!("{matching} of {all} · "),
        };
        let right = format!("{counted}{mode}");
        let (filter, style) = match self.list.filter.text.as_str() {
            "" => ("type to filter".to_owned(), theme.dim()),
            text => (format!("{}▏", clean(text)), theme.accent()),
        };
        let room = width.saturating_sub("Rewind: ".len() + right.chars().count() + 2);
        let filter = fit_end(&filter, room);
        let left = vec![Span::styled("Rewind: ", theme.bold()), Span::styled(filter, style)];
        vec![spread(left, vec![Span::styled(right, theme.dim())], width, theme.plain())]
    }

    /// What the user should know now.
    fn notice_lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let (text, style) = match (&self.stage, &self.notice, self.state()) {
            (PickerStage::Busy { work: PendingWork::Rewind, .. }, ..) => ("Rewinding …", theme.bold()),
            (PickerStage::Busy { work: PendingWork::Fork, .. }, ..) => ("Forking …", theme.bold()),
            (PickerStage::Busy { work: PendingWork::Summary, .. }, ..) => {
                ("The model writes the summary …", theme.bold())
            }
            (_, Some(notice), _) => (notice.as_str(), theme.warning()),
            (_, None, State::Running) => (RUNNING, theme.warning()),
            (_, None, State::Idle | State::Paused) => return Vec::new(),
        };
        wrapped(text, style, width, (0, 0)).into_iter().take(MAX_NOTICE).collect()
    }

    /// The upper or left part: rows, or what was opened on one of them.
    fn draw_rows(&mut self, area: Rect, buf: &mut Buffer, theme: Theme, now: Timestamp) {
        let stage = match &self.stage {
            PickerStage::Busy { from, .. } => (**from).clone(),
            stage => stage.clone(),
        };
        let lines = match stage {
            PickerStage::Browse | PickerStage::Label { .. } => return self.draw_list(area, buf, theme, now),
            PickerStage::Menu(menu) => match self.facts() {
                Some(facts) => row_panel::menu(&menu, &facts, area, theme),
                None => Vec::new(),
            },
            PickerStage::Deciding(deciding) => row_panel::deciding(&deciding, area, theme),
            PickerStage::Crossing(crossing) => {
                let branch = self.preview.plan().and_then(|plan| plan.branch.as_ref());
                row_panel::crossing(crossing.answer, branch, area.width.into(), theme)
            }
            // It is never busy twice.
            PickerStage::Busy { .. } => Vec::new(),
        };
        put(buf, area, &lines);
    }

    /// Lists the rows so that the chosen one is seen.
    fn draw_list(&mut self, area: Rect, buf: &mut Buffer, theme: Theme, now: Timestamp) {
        let (height, width) = (usize::from(area.height), usize::from(area.width));
        if height == 0 {
            return;
        }
        let blocks = row_lines::blocks(&self.list, &self.stage, width, theme, now);
        if blocks.is_empty() {
            let text = match (self.list.is_known(), self.list.filter.text.is_empty()) {
                (false, _) => "Looking for what there is to go back to …",
                (true, true) => "Nothing was said yet: there is nothing to go back to.",
                (true, false) if self.list.filter.is_waiting() => "Looking through the names of changed files …",
                (true, false) => "No prompt, label, tool or changed file has all these words.",
            };
            return put(buf, area, &wrapped(text, theme.dim(), width, (0, 0)));
        }
        let chosen = blocks.iter().position(|block| block.is_chosen);
        let mut starts = Vec::with_capacity(blocks.len());
        let mut total = 0;
        for block in &blocks {
            starts.push(total);
            total += block.lines.len();
        }
        if let Some(at) = chosen {
            let (start, end) = (starts[at], starts[at] + blocks[at].lines.len());
            self.list.scroll = self.list.scroll.min(start).max(end.saturating_sub(height));
        }
        self.list.scroll = self.list.scroll.min(total.saturating_sub(height));
        self.list.page = (blocks.len() * height / total.max(1)).max(1);
        let lines: Vec<Line> =
            blocks.into_iter().flat_map(|block| block.lines).skip(self.list.scroll).take(height).collect();
        put(buf, area, &lines);
    }

    /// What would change.
    fn draw_pane(&mut self, area: Rect, buf: &mut Buffer, theme: Theme) {
        if area.height < 2 || area.width == 0 {
            return;
        }
        let width = usize::from(area.width);
        let is_waiting = self.preview.is_waiting();
        let title = match (is_waiting, self.preview.shown()) {
            (true, _) => WAITING,
            (false, Some(_)) => "What would change now",
            (false, None) => "",
        };
        let is_old = is_waiting && self.preview.fresh().is_none();
        let sheet = self.sheet(width, theme);
        let (room, total) = (usize::from(area.height) - 1, sheet.lines.len());
        let scroll = self.preview.scroll.min(total.saturating_sub(room));
        let lines = sheet.lines.iter().skip(scroll).take(room).cloned();
        let lines: Vec<Line> = match is_old {
            true => lines.map(|line| text_lines::faded(line, theme.dim())).collect(),
            false => lines.collect(),
        };
        let seen = (scroll + room).min(total);
        let place = if room < total { format!("{seen}/{total} ") } else { String::new() };
        put(buf, Rect { height: 1, ..area }, &[Line::styled(rule(title, &place, width), theme.dim())]);
        put(buf, Rect { y: area.y + 1, height: area.height - 1, ..area }, &lines);
        self.preview.scroll = scroll;
        self.sheet = Some(sheet);
    }

    /// The preview as lines: those of before if they still are what they were.
    fn sheet(&mut self, width: usize, theme: Theme) -> PreviewLines {
        let decision = match &self.stage {
            PickerStage::Deciding(deciding) => deciding.current().cloned(),
            _ => None,
        };
        let jobs = self.watched.as_ref().map(|watched| watched.jobs.clone()).unwrap_or_default();
        let item = self.stage.item().and_then(|item| Some((item, self.facts()?.offer(item))));
        let source = PreviewSource { revision: self.preview.revision(), decision, item, jobs, width };
        match self.sheet.take() {
            Some(sheet) if sheet.of == source => sheet,
            _ => source.draw(self.preview.shown(), theme),
        }
    }
}

/// `── text ──── place ──`
fn rule(text: &str, place: &str, width: usize) -> String {
    let text = if text.is_empty() { String::new() } else { format!(" {text} ") };
    let text = fit(&format!("──{text}"), width);
    let used = width_of(&text) + place.len();
    match width.checked_sub(used + 3) {
        Some(rest) if !place.is_empty() => format!("{text}{} {place}──", "─".repeat(rest)),
        _ => format!("{text}{}", "─".repeat(width.saturating_sub(used - place.len()))),
    }
}

fn put(buf: &mut Buffer, area: Rect, lines: &[Line<'static>]) {
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        let line = cut(
            line.spans.iter().map(|span| Span::styled(span.content.clone(), line.style.patch(span.style))).collect(),
            area.width.into(),
        );
        buf.set_line(area.x, y, &line, area.width);
    }
}
