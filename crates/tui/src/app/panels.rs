//! What is between the conversation and the composer: todo list, question, what is offered, notice, hint.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::permission;
use retake_engine::session::entry::{Todo, TodoState};

use super::App;
use super::MainView;
use super::guide::Hint;
use super::notice::Tone;
use super::question::offers;
use crate::text::wrap::{self, Breaks, Margin};
use crate::text::{self, diff};
use crate::theme::Theme;

/// Rows of the todo list at most.
const MAX_TODOS: usize = 5;
/// Rows of a notice at most.
const MAX_NOTICE: usize = 8;
/// Rows of a command that is asked about.
const MAX_COMMAND: usize = 6;

impl App {
    /// All of them, from top to bottom, for a screen on which this area is left.
    pub(super) fn panels(&mut self, area: Rect) -> Vec<Line<'static>> {
        let width = area.width;
        let is_talk = matches!(self.place, MainView::Talk);
        let mut lines = Vec::new();
        if is_talk {
            lines.extend(self.todo_lines(width));
            lines.extend(self.question_lines(area));
        }
        if is_talk && !self.transcript.is_at_bottom() {
            lines.push(Line::from(Span::styled("↓ there is more below: Esc or Ctrl+End", self.theme.dim())));
        }
        lines.extend(self.notice_lines(width));
        lines.extend(self.hint_lines(width));
        if is_talk {
            lines.extend(self.completion_lines(width));
        }
        if !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }

    fn todo_lines(&self, width: u16) -> Vec<Line<'static>> {
        let todos = &self.facts.todos;
        let done = todos.iter().filter(|todo| todo.state == TodoState::Done).count();
        if !self.shows_todos || done == todos.len() {
            return Vec::new();
        }
        // What is under way, and what is around it.
        let active = todos.iter().position(|todo| todo.state != TodoState::Done).unwrap_or_default();
        let first = active.saturating_sub(1).min(todos.len().saturating_sub(MAX_TODOS));
        let title = format!("To do: {done} of {} done", todos.len());
        let mut lines = vec![Line::from(Span::styled(title, self.theme.bold()))];
        lines.extend(todos.iter().skip(first).take(MAX_TODOS).map(|todo| todo_line(todo, width, self.theme)));
        lines
    }

    fn question_lines(&mut self, area: Rect) -> Vec<Line<'static>> {
        let theme = self.theme;
        let Some(question) = self.view.questions.first() else { return Vec::new() };
        let count = match self.view.questions.len() {
            1 => String::new(),
            count => format!(" (1 of {count})"),
        };
        let title = format!("May it? {}{count}", text::clean(&question.title));
        let mut lines = wrapped(&title, area.width, theme.warning().patch(theme.bold()));
        if question.why != permission::USUAL {
            lines.extend(wrapped(&text::clean(&question.why), area.width, theme.dim()));
        }
        if let Some(command) = question.detail.as_ref().filter(|command| !question.title.ends_with(command.as_str())) {
            let mut shown: Vec<Line<'static>> = command
                .lines()
                .flat_map(|line| wrapped(&format!("  {}", text::clean(line)), area.width, theme.plain()))
                .collect();
            if shown.len() > MAX_COMMAND && !self.asking.is_aside {
                let left_out = shown.len() - MAX_COMMAND;
                let scroll = self.asking.scroll.min(left_out);
                shown = shown.into_iter().skip(scroll).take(MAX_COMMAND).collect();
                let more = format!("  … {left_out} more lines: PageUp, PageDown");
                shown.push(Line::from(Span::styled(more, theme.dim())));
            }
            lines.extend(shown);
        }
        let offers = offers(question);
        let room = usize::from(area.height).saturating_sub(lines.len() + offers.len() + 3);
        let preview = diff::lines(&question.diffs, area.width, &theme);
        let most = room.min(usize::from(area.height) / 2);
        if preview.len() > most {
            let scroll = self.asking.scroll.min(preview.len() - most.saturating_sub(1));
            self.asking.scroll = scroll;
            let left = preview.len().saturating_sub(scroll + most);
            lines.extend(preview.into_iter().skip(scroll).take(most.saturating_sub(1)));
            lines.push(Line::from(Span::styled(format!("… {left} more lines: PageUp, PageDown"), theme.dim())));
        } else {
            lines.extend(preview);
        }
        if self.asking.is_aside {
            lines.push(Line::from(Span::styled("Tab or Esc goes back to the answers", theme.dim())));
            return lines;
        }
        for (number, offer) in offers.iter().enumerate() {
            let is_chosen = number == self.asking.chosen && !self.asking.is_why;
            let mark = if is_chosen { "› " } else { "  " };
            let style = if is_chosen { theme.chosen() } else { theme.plain() };
            let key = Span::styled(format!("{mark}{} ", offer.key), theme.accent());
            let room = usize::from(area.width).saturating_sub(4);
            let text = text::fit(&text::clean(&offer.text), room);
            lines.push(Line::from(vec![key, Span::styled(text, style)]));
        }
        lines
    }

    fn completion_lines(&self, width: u16) -> Vec<Line<'static>> {
        let Some(completion) = &self.completion else { return Vec::new() };
        let (rows, chosen) = completion.window();
        let column = rows.iter().map(|row| text::width(&row.text)).max().unwrap_or(0) + 2;
        let line = |(number, row): (usize, &super::complete::Candidate)| {
            let is_chosen = number == chosen;
            let style = if is_chosen { self.theme.chosen() } else { self.theme.accent() };
            let mark = if is_chosen { "› " } else { "  " };
            let name = text::fit(&text::clean(&row.text), usize::from(width).saturating_sub(2));
            let pad = " ".repeat(column.saturating_sub(text::width(&name)));
            let left = usize::from(width).saturating_sub(column + 2);
            let about = text::fit(&row.about, left);
            Line::from(vec![
                Span::raw(mark),
                Span::styled(name, style),
                Span::raw(pad),
                Span::styled(about, self.theme.dim()),
            ])
        };
        rows.iter().enumerate().map(line).collect()
    }

    fn notice_lines(&self, width: u16) -> Vec<Line<'static>> {
        let Some(notice) = &self.notice else { return Vec::new() };
        let theme = self.theme;
        let (mark, style) = match notice.tone {
            Tone::Good => ("✓", theme.added()),
            Tone::Plain => ("·", theme.plain()),
            Tone::Warning => ("!", theme.warning()),
            Tone::Bad => ("✗", theme.removed()),
        };
        let lines = notice.text.lines().enumerate().flat_map(|(number, line)| {
            let mark = if number == 0 { mark } else { " " };
            wrapped(&format!("{mark} {}", text::clean(line)), width, style)
        });
        lines.take(MAX_NOTICE).collect()
    }

    fn hint_lines(&self, width: u16) -> Vec<Line<'static>> {
        let Some(Hint { number, of, text, .. }) = self.hint() else { return Vec::new() };
        wrapped(&format!("Demo {number}/{of}: {text}"), width, self.theme.accent().patch(self.theme.bold()))
    }
}

fn wrapped(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let margin = Margin { first: Vec::new(), next: vec![Span::raw("  ")] };
    wrap::wrap_text(text, style, usize::from(width), &margin, Breaks::Words)
}

/// An item of the todo list.
fn todo_line(todo: &Todo, width: u16, theme: Theme) -> Line<'static> {
    let (mark, style) = match todo.state {
        TodoState::Done => ("[x] ", theme.dim()),
        TodoState::Active => ("[>] ", theme.bold()),
        TodoState::Pending => ("[ ] ", theme.plain()),
    };
    let text = text::fit(&text::clean(&todo.text), usize::from(width).saturating_sub(4));
    Line::from(Span::styled(format!("{mark}{text}"), style))
}
