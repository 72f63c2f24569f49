//! The screen as a function of state: what takes the conversation's place, what is between it and the composer, the composer, the status.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use retake_engine::Timestamp;

use super::list::{self, ListPanel};
use super::page::PageBody;
use super::{App, MainView, help, welcome};
use crate::composer::Rows;
use crate::text;
use crate::theme::Theme;

/// Rows of the composer at most; it scrolls beyond.
const MAX_COMPOSER: u16 = 10;
/// Rows that are left to the conversation whatever else there is.
const LEAST: u16 = 3;
/// What stands before what is typed.
const PROMPT: &str = "> ";

impl App {
    /// Draws everything; returns where the cursor is.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        if area.height < 4 || area.width < 10 {
            draw_lines(&[Line::from("too small")], area, buf);
            return None;
        }
        let composer = self.composer.rows(usize::from(area.width) - PROMPT.len(), self.theme);
        let most = MAX_COMPOSER.min(area.height / 3).max(1);
        let rows = u16::try_from(composer.lines.len()).unwrap_or(u16::MAX).clamp(1, most);
        let above = area.height - rows - 2;
        let under = self.panels(Rect { height: above, ..area });
        let height = u16::try_from(under.len()).unwrap_or(u16::MAX).min(above.saturating_sub(LEAST));
        let place = Rect { height: above - height, ..area };
        self.draw_place(place, buf);
        let skip = under.len() - usize::from(height);
        draw_lines(&under[skip..], Rect { y: place.bottom(), height, ..area }, buf);
        self.draw_bottom(Rect { y: area.y + above, height: rows + 2, ..area }, buf, &composer)
    }

    fn draw_place(&mut self, area: Rect, buf: &mut Buffer) {
        let (theme, now) = (self.theme, self.now);
        match &mut self.place {
            MainView::Talk => {
                self.talk_area = area;
                if self.view.entries.is_empty() {
                    return draw_lines(&welcome::lines(&self.view, area.width, theme), area, buf);
                }
                self.transcript.draw(&self.view, u64::try_from(now.0).unwrap_or(0), area, buf, &theme);
            }
            MainView::Picker(picker) => picker.draw(area, buf, &theme, now),
            MainView::Help(scroll) => {
                let lines = help::lines(area.width, theme);
                let last = lines.len().saturating_sub(usize::from(area.height));
                *scroll = (*scroll).min(u16::try_from(last).unwrap_or(u16::MAX));
                draw_lines(&lines[usize::from(*scroll)..], area, buf);
                if usize::from(*scroll) < last {
                    let more = Line::from(Span::styled("… more below: PageDown", theme.dim()));
                    let row = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
                    buf.set_string(row.x, row.y, " ".repeat(usize::from(row.width)), theme.plain());
                    draw_lines(&[more], row, buf);
                }
            }
            MainView::List(list) => draw_list(list, area, buf, theme, now),
            MainView::Page(page) => page.draw(area, buf, theme),
        }
    }

    /// The composer between a line and the status.
    fn draw_bottom(&self, area: Rect, buf: &mut Buffer, composer: &Rows) -> Option<Position> {
        let theme = self.theme;
        buf.set_string(area.x, area.y, "─".repeat(usize::from(area.width)), theme.dim());
        let rows = usize::from(area.height - 2);
        let first = (composer.cursor.0 + 1).saturating_sub(rows);
        let input = Rect { y: area.y + 1, height: area.height - 2, ..area };
        buf.set_string(input.x, input.y, PROMPT, theme.accent());
        let typed = Rect { x: input.x + 2, width: input.width - 2, ..input };
        let has_focus = matches!(self.place, MainView::Talk) && (self.question().is_none() || self.asking.is_why);
        if composer.lines.iter().all(|line| line.spans.is_empty()) {
            let hint = text::fit(&self.placeholder(), usize::from(typed.width));
            buf.set_string(typed.x, typed.y, hint, theme.dim());
        } else {
            draw_lines(&composer.lines[first..], typed, buf);
        }
        let status = Rect { y: area.bottom() - 1, height: 1, ..area };
        draw_lines(&[self.status(area.width)], status, buf);
        let column = u16::try_from(composer.cursor.1).unwrap_or(0).min(typed.width - 1);
        let row = u16::try_from(composer.cursor.0 - first.min(composer.cursor.0)).unwrap_or(0);
        has_focus.then(|| Position::new(typed.x + column, typed.y + row))
    }

    /// What an empty composer says.
    fn placeholder(&self) -> String {
        let text = match &self.place {
            MainView::Picker(picker) => {
                let hints = picker.hints();
                return hints.iter().map(|(key, does)| format!("{key} {does}")).collect::<Vec<_>>().join(" · ");
            }
            MainView::Page(page) if matches!(page.body, PageBody::List(_)) => "↑↓ PageUp PageDown scroll · Esc back",
            MainView::Page(_) => "↑↓ PageUp PageDown scroll · n p next and previous file · Esc back",
            MainView::List(_) | MainView::Help(_) => "Esc goes back to the conversation",
            MainView::Talk if self.asking.is_why => "Why not? The model is told. Enter says no, Esc goes back",
            MainView::Talk if self.question().is_some() => {
                "Enter takes › · y yes · n no · Esc stops the turn · or say something else"
            }
            MainView::Talk if self.running_since.is_some() => "Say something: it is held until the turn has ended",
            MainView::Talk => "Ask for something · @ mentions a file · / commands · ? help",
        };
        text.to_owned()
    }
}

/// Draws lines from the top of an area; what does not fit is cut.
pub(super) fn draw_lines(lines: &[Line<'static>], area: Rect, buf: &mut Buffer) {
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        buf.set_line(area.x, row, line, area.width);
    }
}

fn draw_list(list: &ListPanel, area: Rect, buf: &mut Buffer, theme: Theme, now: Timestamp) {
    let rows = list.shown();
    let filter = match list.filter.as_str() {
        "" => Span::styled(format!("type to filter · {} · Esc closes", list.enter), theme.dim()),
        filter => Span::styled(format!("{}▏", text::clean(filter)), theme.accent()),
    };
    let title = Line::from(vec![Span::styled(list.title, theme.bold()), Span::raw("  "), filter]);
    let mut lines = vec![title, Line::default()];
    let height = usize::from(area.height).saturating_sub(lines.len()).max(1);
    let first = (list.at + 1).saturating_sub(height);
    for (number, row) in rows.iter().enumerate().skip(first).take(height) {
        let is_chosen = number == list.at;
        let mark = if is_chosen { "› " } else { "  " };
        let (age, more) = (format!("{:<9}", list::when(row, now)), format!("  {}", row.more));
        let room = usize::from(area.width).saturating_sub(mark.len() + age.len());
        let about = room.saturating_sub(text::width(&more)).max(room * 2 / 3);
        let name = text::fit(&text::clean(&row.text), about);
        let more = text::fit(&text::clean(&more), room.saturating_sub(text::width(&name)));
        let style = if is_chosen { theme.chosen() } else { theme.plain() };
        lines.push(Line::from(vec![
            Span::styled(mark, style),
            Span::styled(age, if is_chosen { style } else { theme.dim() }),
            Span::styled(name, style),
            Span::styled(more, theme.dim()),
        ]));
    }
    if rows.is_empty() {
        lines.push(Line::from(Span::styled("There is none like this.", theme.dim())));
    }
    draw_lines(&lines, area, buf);
}
