//! Rows as lines: one line each if the screen is wide enough, otherwise two.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use retake_engine::Timestamp;

use super::PickerStage;
use super::list::{ListMode, RowList};
use super::rows::{Filter, PromptRow};
use super::text_lines::{clean, filled, fit_end, spread};
use super::tree::Node;
use crate::text::{age, fit, width as columns};
use crate::theme::Theme;

/// From this width on a row is one line.
pub const ONE_LINE: usize = 72;

/// From this width on reasons are told at length.
const ROOMY: usize = 56;

/// The lines of a row.
pub struct RowBlock {
    /// In order.
    pub lines: Vec<Line<'static>>,
    /// Whether it is the chosen one.
    pub is_chosen: bool,
}

/// How a row stands among the others.
struct RowContext<'a> {
    filter: &'a Filter,
    is_chosen: bool,
    /// What is drawn before it.
    graph: &'a str,
    /// What is drawn before its second line.
    below: &'a str,
    /// Whether it matters less: it was left behind, or is not looked for.
    is_dim: bool,
    is_head: bool,
    number_width: usize,
    /// The label that is being written.
    label: Option<&'a str>,
    width: usize,
    theme: Theme,
    now: Timestamp,
}

/// The rows that are shown.
pub fn blocks(list: &RowList, stage: &PickerStage, width: usize, theme: Theme, now: Timestamp) -> Vec<RowBlock> {
    let chosen = list.chosen().map(|row| row.id);
    let number_width = list.retained().to_string().len().max(2);
    let label = match stage {
        PickerStage::Label { text, .. } => Some(text.as_str()),
        _ => None,
    };
    let standing = |row: &PromptRow, is_dim: bool| {
        let is_chosen = Some(row.id) == chosen;
        let label = label.filter(|_| is_chosen);
        let (graph, below, is_head, filter) = ("", "", false, &list.filter);
        RowContext { filter, is_chosen, graph, below, is_dim, is_head, number_width, label, width, theme, now }
    };
    match list.mode {
        ListMode::List => list.matching().into_iter().map(|row| block(row, &standing(row, row.files_gone))).collect(),
        ListMode::Tree => {
            let node = |node: &Node| {
                let is_dim = !node.retained || node.row.files_gone || !node.row.matches(&list.filter);
                let room = (width / 3).max(4);
                let (graph, below) = (fit_end(&node.graph, room) + " ", fit_end(&node.below, room) + " ");
                let standing = standing(&node.row, is_dim);
                block(&node.row, &RowContext { graph: &graph, below: &below, is_head: node.is_head, ..standing })
            };
            list.nodes().iter().map(node).collect()
        }
    }
}

fn block(row: &PromptRow, standing: &RowContext<'_>) -> RowBlock {
    let RowContext { theme, width, .. } = *standing;
    let base = match (standing.is_chosen, standing.is_dim) {
        (true, true) => theme.chosen().patch(theme.dim()),
        (true, false) => theme.chosen(),
        (false, true) => theme.dim(),
        (false, false) => theme.plain(),
    };
    let details = details(row, standing);
    let is_one_line = ONE_LINE <= width && standing.label.is_none() && row.limit().is_none();
    let right = right(row, standing, base);
    let taken: usize = right.iter().map(Span::width).sum();
    let mut left = left(row, standing, base);
    let room = width.saturating_sub(taken + left.iter().map(Span::width).sum::<usize>());
    let beside = if is_one_line { fit(&details, (width / 3).min(room.saturating_sub(12))) } else { String::new() };
    let text = fit(&row.text, room.saturating_sub(if beside.is_empty() { 0 } else { columns(&beside) + 2 }));
    left.extend(marked(&text, standing.filter, base));
    let mut ends = Vec::new();
    if !beside.is_empty() {
        ends.push(Span::styled("  ", base));
        ends.extend(marked(&beside, standing.filter, base.patch(theme.dim())));
    }
    ends.extend(right);
    let mut lines = vec![spread(left, ends, width, base)];
    if let Some(label) = standing.label {
        lines.push(Line::styled(fit_end(&format!("    label: {}▏", clean(label)), width), theme.accent()));
    } else if !is_one_line && !details.is_empty() {
        let indent = 2 + columns(standing.graph);
        let text = fit(&details, width.saturating_sub(indent + 2));
        let mut spans = vec![Span::styled(format!("  {}  ", standing.below), theme.dim())];
        spans.extend(marked(&text, standing.filter, theme.dim()));
        lines.push(filled(spans, width, theme.plain()));
    }
    if standing.is_chosen {
        // Colours behind text are hard to read.
        lines[0].spans.iter_mut().for_each(|span| span.style.fg = None);
    }
    RowBlock { lines, is_chosen: standing.is_chosen }
}

/// Mark, graph, number and age.
fn left(row: &PromptRow, standing: &RowContext<'_>, base: Style) -> Vec<Span<'static>> {
    let mark = if standing.is_chosen { "› " } else { "  " };
    let number = row.number.map(|number| number.to_string()).unwrap_or_default();
    let (number_width, age) = (standing.number_width, age(row.at, standing.now));
    vec![
        Span::styled(mark, base),
        Span::styled(standing.graph.to_owned(), base),
        Span::styled(format!("{number:>number_width$} "), base),
        Span::styled(format!("{age:>3} "), base.patch(standing.theme.dim())),
        Span::styled(if row.outside().next().is_some() { "! " } else { "  " }, base.patch(standing.theme.warning())),
    ]
}

/// What the turn did to files.
fn right(row: &PromptRow, standing: &RowContext<'_>, base: Style) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if standing.is_head {
        spans.push(Span::styled("  ← head", base.patch(standing.theme.accent())));
    }
    let changed = row.changed();
    for part in changed.split_whitespace() {
        let style = match part.chars().next() {
            Some('+') => standing.theme.added(),
            Some('−') => standing.theme.removed(),
            _ => standing.theme.warning(),
        };
        spans.push(Span::styled(if part.starts_with('+') { "  " } else { " " }, base));
        spans.push(Span::styled(part.to_owned(), base.patch(style)));
    }
    spans
}

/// Why not everything can go back, what stays, by which file it was found, label, forks and tools.
fn details(row: &PromptRow, standing: &RowContext<'_>) -> String {
    let label = row.label.as_ref().filter(|_| standing.label.is_none()).map(|label| format!("[{label}]"));
    let forks = (!row.forks.is_empty()).then(|| format!("forked: {}", row.forks.join(", ")));
    let tools = Some(row.tools()).filter(|tools| !tools.is_empty());
    let limit = if standing.width < ROOMY { row.short_limit() } else { row.limit() };
    let limit = limit.map(str::to_owned);
    let outside = row.outside().collect::<Vec<_>>().join(" · ");
    let outside = (!outside.is_empty()).then(|| format!("stays: {outside}"));
    let files = standing.filter.only_by_file(row);
    let files = (!files.is_empty()).then(|| format!("file `{}`", clean(&files.join("`, `"))));
    [limit, outside, files, label, forks, tools].into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// `text` with what is looked for marked.
fn marked(text: &str, filter: &Filter, style: Style) -> Vec<Span<'static>> {
    let (mut spans, mut at) = (Vec::new(), 0);
    for mark in filter.marks(text) {
        spans.push(Span::styled(text[at..mark.start].to_owned(), style));
        let emphasis = style.remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        spans.push(Span::styled(text[mark.clone()].to_owned(), emphasis));
        at = mark.end;
    }
    spans.push(Span::styled(text[at..].to_owned(), style));
    spans
}
