//! A page in the place of the conversation: a diff, a plan that can be applied, or a list. It can be scrolled, so nothing on it is cut off.
//!
//! Owns what is on the page and how it is laid out. Plans are drawn by the picker's pane, so that both say the same. Applies nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use retake_agent::contract::Change;
use retake_agent::diff::FileDiff;
use retake_agent::rewind_document::RewindDocument;

use super::draw::draw_lines;
use crate::picker::{PlanLines, plan_lines};
use crate::text::diff::DiffView;
use crate::text::wrap::{Breaks, Margin, wrap_text};
use crate::theme::Theme;

/// A page that is shown.
pub struct Page {
    /// What it is of.
    pub title: String,
    /// What is on it.
    pub body: PageBody,
    /// The first line that is shown.
    pub scroll: usize,
    /// The columns that it was last drawn in.
    pub width: u16,
}

/// What is on a page.
pub enum PageBody {
    /// What changed, by path.
    Diff(DiffView),
    /// What a change would do.
    Plan(Box<PlanPage>),
    /// One item a line.
    List(Vec<String>),
}

/// A plan on a page.
pub struct PlanPage {
    /// The change: it is made if the user wants it.
    pub change: Change,
    /// The plan of that.
    pub document: Box<RewindDocument>,
    files: Vec<FileDiff>,
    /// Its lines at one width.
    drawn: Option<(u16, PlanLines)>,
}

impl PlanPage {
    /// The plan of `change`, with what changes in each file.
    pub fn new(change: Change, document: Box<RewindDocument>, files: Vec<FileDiff>) -> Self {
        Self { change, document, files, drawn: None }
    }

    /// Whether applying it would change something, or needs a decision.
    pub fn has_work(&self) -> bool {
        !self.document.files.is_empty() || !self.document.conflicts.is_empty() || !self.files.is_empty()
    }

    fn lines(&mut self, width: u16, theme: Theme) -> &PlanLines {
        let drawn = self.drawn.take().filter(|(at, _)| *at == width);
        let drawn =
            drawn.unwrap_or_else(|| (width, plan_lines(&self.document, &self.files, usize::from(width), theme)));
        &self.drawn.insert(drawn).1
    }
}

impl PageBody {
    fn height(&mut self, width: u16, theme: Theme) -> usize {
        match self {
            Self::Diff(diff) => diff.height(width),
            Self::Plan(plan) => plan.lines(width, theme).lines.len(),
            Self::List(items) => list_lines(items, width, theme).len(),
        }
    }

    fn draw(&mut self, top: usize, area: Rect, buf: &mut Buffer, theme: Theme) {
        match self {
            Self::Diff(diff) => diff.draw(top, area, buf, &theme),
            Self::Plan(plan) => draw_lines(&plan.lines(area.width, theme).lines[top..], area, buf),
            Self::List(items) => draw_lines(&list_lines(items, area.width, theme)[top..], area, buf),
        }
    }
}

impl Page {
    /// From its first line on.
    pub fn new(title: String, body: PageBody) -> Self {
        Self { title, body, scroll: 0, width: 80 }
    }

    /// The line at which each file begins, as it was drawn last.
    pub fn starts(&mut self) -> Vec<usize> {
        match &mut self.body {
            PageBody::Diff(diff) => diff.starts(self.width),
            PageBody::Plan(plan) => plan.drawn.as_ref().map(|(_, drawn)| drawn.starts.clone()).unwrap_or_default(),
            PageBody::List(_) => Vec::new(),
        }
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: Theme) {
        let width = usize::from(area.width);
        let lines = self.title.lines();
        let title: Vec<Line<'static>> =
            lines.flat_map(|line| wrap_text(line, theme.bold(), width, &Margin::default(), Breaks::Words)).collect();
        let above = u16::try_from(title.len()).unwrap_or(1).min(area.height);
        let body = Rect { y: area.y + above, height: area.height - above, ..area };
        let last = self.body.height(area.width, theme).saturating_sub(usize::from(body.height));
        self.scroll = self.scroll.min(last);
        self.width = area.width;
        draw_lines(&title, Rect { height: above, ..area }, buf);
        self.body.draw(self.scroll, body, buf, theme);
    }
}

fn list_lines(items: &[String], width: u16, theme: Theme) -> Vec<Line<'static>> {
    let lines = |item: &String| wrap_text(item, theme.plain(), usize::from(width), &Margin::default(), Breaks::Words);
    items.iter().flat_map(lines).collect()
}
