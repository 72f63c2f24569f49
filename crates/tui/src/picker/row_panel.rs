//! What opens on a row, as lines: the menu, the decisions about conflicts, the question about another branch.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use retake_agent::rewind_document::Branch;
use retake_engine::rewind::OnConflict;

use super::CrossingAnswer;
use super::conflicts::{Deciding, Decision, word};
use super::menu::{Item, Menu, MenuFacts};
use super::row_lines::ONE_LINE;
use super::text_lines::{clean, cut, filled, fit_end, spread, wrapped};
use crate::text::diff::path_text;
use crate::text::fit;
use crate::theme::Theme;
use retake_agent::escape::count;

/// The things that can be done, with what they would do: below each, beside each, or below all of the chosen one, as there is room.
pub fn menu(menu: &Menu, facts: &MenuFacts<'_>, area: Rect, theme: Theme) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let number = facts.row.number.map(|number| format!("{number} ")).unwrap_or_default();
    let title = format!("Rewind to before {number}“{}”", facts.row.text);
    let mut lines = vec![Line::styled(fit(&title, width), theme.bold())];
    let mut below = Vec::new();
    // Each on lines of its own if all fit; else only that of the chosen one is whole.
    let explain = |what: &str, style| wrapped(what, style, width, (4, 4));
    let taken = |item: Item| match facts.offer(item) {
        Ok(what) | Err(what) => 1 + explain(&what, theme.plain()).len(),
    };
    let is_roomy = Item::ALL.into_iter().map(taken).sum::<usize>() < height;
    for (at, item) in Item::ALL.into_iter().enumerate() {
        let (offer, is_chosen) = (facts.offer(item), item == menu.chosen);
        let (Ok(what) | Err(what)) = &offer;
        let style = match (&offer, is_chosen) {
            (_, true) => theme.chosen(),
            (Ok(_), false) => theme.plain(),
            (Err(_), false) => theme.dim(),
        };
        let explained = if offer.is_err() { theme.warning() } else { theme.dim() };
        let text = format!("{} {} {}", if is_chosen { "›" } else { " " }, at + 1, item.title());
        if 2 * Item::ALL.len() < height {
            lines.push(filled(vec![Span::styled(fit(&text, width), style)], width, style));
            match is_roomy || is_chosen {
                true => lines.extend(explain(what, explained)),
                false => lines.push(Line::styled(fit(&format!("    {what}"), width), explained)),
            }
        } else if ONE_LINE <= width {
            let spans = vec![Span::styled(format!("{text:<27}"), style), Span::styled(format!(" {what}"), explained)];
            lines.push(cut(spans, width));
        } else {
            lines.push(filled(vec![Span::styled(fit(&text, width), style)], width, style));
            let wrapped = wrapped(what, explained, width, (0, 0)).into_iter().take(3);
            below.extend(wrapped.filter(|_| is_chosen));
        }
    }
    lines.extend(below);
    lines
}

/// Paths with what can be decided about them, so that the current one is seen.
pub fn deciding(deciding: &Deciding, area: Rect, theme: Theme) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let title = format!("{} a decision", count(deciding.paths.len(), "file needs", "files need"));
    let blocks = deciding.paths.iter().enumerate();
    let blocks: Vec<Vec<Line>> = blocks
        .map(|(at, path)| {
            decision(path, if at == deciding.at { RowPlace::Current } else { RowPlace::Other }, width, theme)
        })
        .collect();
    let end: usize = blocks.iter().take(deciding.at + 1).map(Vec::len).sum();
    let from = end.saturating_sub(height.saturating_sub(1));
    let head = Line::styled(fit(&title, width), theme.bold());
    std::iter::once(head).chain(blocks.into_iter().flatten().skip(from)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPlace {
    Current,
    Other,
}

/// A path, what can be decided about it, and why that has to be.
fn decision(decision: &Decision, place: RowPlace, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let (mark, style, chosen) = match place {
        RowPlace::Current => ("› ", theme.bold(), theme.chosen()),
        RowPlace::Other => ("  ", theme.plain(), theme.bold()),
    };
    let choice = |choice: &OnConflict| match *choice == decision.choice {
        true => Span::styled(format!(" [{}]", word(*choice)), chosen),
        false => Span::styled(format!("  {} ", word(*choice)), theme.dim()),
    };
    let choices: Vec<Span> = decision.choices.iter().map(choice).collect();
    let taken: usize = choices.iter().map(Span::width).sum();
    let path = path_text(&decision.path);
    let why = Line::styled(fit(&format!("    {}", decision.why), width), theme.dim());
    if taken + 16 <= width {
        let path = fit_end(&path, width.saturating_sub(taken + 2));
        return vec![spread(vec![Span::styled(format!("{mark}{path}"), style)], choices, width, theme.plain()), why];
    }
    let path = Line::styled(format!("{mark}{}", fit_end(&path, width.saturating_sub(2))), style);
    vec![path, why, cut([vec![Span::raw("   ")], choices].concat(), width)]
}

/// Whether to go on although another branch is checked out; the safe answer comes first.
pub fn crossing(answer: CrossingAnswer, branch: Option<&Branch>, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let words = branch.map(|branch| clean(&branch.in_words())).unwrap_or_default();
    let text = "Files would go back to what they were on the other one.";
    let mut lines = vec![Line::styled(fit("Another branch is checked out", width), theme.bold())];
    lines.extend([words.as_str(), text].into_iter().flat_map(|text| wrapped(text, theme.warning(), width, (0, 0))));
    for (one, text) in [(CrossingAnswer::Back, "n No, change nothing"), (CrossingAnswer::GoOn, "y Yes, go on")] {
        let (mark, style) = if one == answer { ("›", theme.chosen()) } else { (" ", theme.plain()) };
        lines.push(Line::styled(fit(&format!("{mark} {text}"), width), style));
    }
    lines
}
