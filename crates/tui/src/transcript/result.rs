//! What came of a tool call: one line that says what it was and how it went, then what is worth seeing of it.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_engine::session::entry::{Body, Details, Entry, Outcome, Part, Todo, TodoState};
use serde_json::Value;

use super::cell::{call_of, counted};
use super::cell_writer::{CellWriter, Keep};
use super::{edits, prompt};
use crate::text::diff::{DiffView, counts};
use crate::text::wrap::Margin;
use crate::text::{clean, markdown, width as columns};

/// What is shown while it is folded.
const OUTPUT_LINES: usize = 6;
const DIFF_LINES: usize = 24;
const WRITTEN_LINES: usize = 10;
const COMMAND_LINES: usize = 4;
/// A longer remark is no summary.
const MAX_REMARK: usize = 60;

/// A result, and the call that it is of.
struct ShownResult<'a> {
    title: &'a str,
    outcome: Outcome,
    text: String,
    tool: &'a str,
    arguments: &'a str,
    details: Option<&'a Details>,
    todos: Option<&'a [Todo]>,
}

/// Whether nothing but one line is written of a call that went well.
pub(super) fn is_one_line(entries: &[Entry], index: usize) -> bool {
    let Some((tool, _)) = call_of(entries, index) else { return false };
    is_look(tool) || matches!(tool, "move_file" | "delete_file")
}

/// The tools that only look.
fn is_look(tool: &str) -> bool {
    matches!(tool, "read_file" | "grep" | "glob" | "list_dir")
}

/// Writes the result `entries[index]`.
pub(super) fn write(entries: &[Entry], index: usize, ink: &mut CellWriter) {
    let Body::ToolResult { title, outcome, parts, todos, details, .. } = &entries[index].body else { return };
    let (tool, arguments) = call_of(entries, index).unwrap_or_default();
    let text = parts.iter().map(told).collect::<Vec<_>>().join("\n");
    let shown = ShownResult {
        title,
        outcome: *outcome,
        text,
        tool,
        arguments,
        details: details.as_ref(),
        todos: todos.as_deref(),
    };
    match outcome {
        Outcome::Done => done(&shown, ink),
        Outcome::Failed | Outcome::Denied | Outcome::Interrupted => not_done(&shown, ink),
    }
}

fn told(part: &Part) -> String {
    match part {
        Part::Text { text } => text.trim_end().to_owned(),
        other => prompt::name(other),
    }
}

/// The output, and what the tool itself says about it: the last line, if it is in brackets.
fn remark(text: &str) -> (&str, Option<&str>) {
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    let last = text[start..].strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match last {
        Some(remark) => (text[..start].trim_end(), Some(remark.trim_end_matches('.'))),
        None => (text, None),
    }
}

fn done(shown: &ShownResult<'_>, ink: &mut CellWriter) {
    if let Some(todos) = shown.todos {
        ink.title(mark(Outcome::Done, ink), shown.title, ink.theme.plain(), Vec::new());
        return todos.iter().for_each(|todo| item(todo, ink));
    }
    if let Some(edits::ChangedText { diff, is_everywhere }) = edits::of_call(shown.tool, shown.arguments, shown.details)
    {
        let (mut suffix, limit) = match shown.tool {
            // How much was there before is not known.
            "write_file" => {
                let lines = counted(diff.added as usize, "line");
                (vec![Span::styled(lines, ink.theme.dim())], WRITTEN_LINES)
            }
            _ => (counts(diff.added, diff.removed, ink.theme), DIFF_LINES),
        };
        if is_everywhere {
            suffix.push(Span::styled(" everywhere", ink.theme.dim()));
        }
        ink.title(mark(Outcome::Done, ink), shown.title, ink.theme.plain(), suffix);
        return ink.diff(DiffView::without_headers(vec![diff]), limit);
    }
    match shown.tool {
        "bash" => command(shown, Vec::new(), ink),
        tool if is_look(tool) => look(shown, ink),
        "move_file" | "delete_file" => ink.title(mark(Outcome::Done, ink), shown.title, ink.theme.plain(), Vec::new()),
        _ => other(shown, ink),
    }
}

fn look(shown: &ShownResult<'_>, ink: &mut CellWriter) {
    let (output, remark) = remark(&shown.text);
    let summary = match remark {
        Some(remark) if columns(remark) <= MAX_REMARK => clean(remark).into_owned(),
        _ => counted(output.lines().count(), "line"),
    };
    ink.title(mark(Outcome::Done, ink), shown.title, ink.theme.plain(), vec![Span::styled(summary, ink.theme.dim())]);
    ink.can_fold();
    if ink.is_open() {
        ink.output(&shown.text, ink.theme.dim(), Keep::First(0));
    }
}

/// A shell command: its end is what matters most.
fn command(shown: &ShownResult<'_>, suffix: Vec<Span<'static>>, ink: &mut CellWriter) {
    let taken: usize = suffix.iter().map(|span| columns(&span.content) + 2).sum();
    ink.title(mark(shown.outcome, ink), shown.title, ink.theme.plain(), suffix);
    let arguments: Option<Value> = serde_json::from_str(shown.arguments).ok();
    let command = arguments.as_ref().and_then(|arguments| arguments.get("command")?.as_str()).unwrap_or_default();
    let is_cut = columns(shown.title) + taken + 2 > ink.columns() || command.trim().lines().nth(1).is_some();
    if is_cut && !command.is_empty() {
        let style = ink.theme.accent();
        ink.output(command.trim(), style, Keep::First(COMMAND_LINES));
    }
    let (output, _) = remark(&shown.text);
    let style = if shown.outcome == Outcome::Done { ink.theme.dim() } else { ink.theme.plain() };
    ink.output(output, style, Keep::Last(OUTPUT_LINES));
}

/// Tools of others, and those that say all there is in their answer.
fn other(shown: &ShownResult<'_>, ink: &mut CellWriter) {
    ink.title(mark(Outcome::Done, ink), shown.title, ink.theme.plain(), Vec::new());
    match shown.details {
        Some(Details::Rewound { report, .. }) => {
            let lines = markdown::lines(report, ink.inner_width(), &ink.theme);
            ink.indented(lines);
        }
        Some(Details::Checkpoint { .. }) => {}
        Some(Details::Edited { .. }) | None => ink.output(&shown.text, ink.theme.dim(), Keep::First(OUTPUT_LINES)),
    }
}

fn not_done(shown: &ShownResult<'_>, ink: &mut CellWriter) {
    let (word, style) = match shown.outcome {
        Outcome::Denied => ("denied", ink.theme.warning()),
        Outcome::Interrupted => ("interrupted", ink.theme.dim()),
        Outcome::Done | Outcome::Failed => ("failed", ink.theme.removed()),
    };
    let (_, remark) = remark(&shown.text);
    if shown.tool == "bash" {
        let remark = remark.filter(|remark| shown.outcome == Outcome::Failed && columns(remark) <= MAX_REMARK);
        let suffix =
            remark.map_or_else(|| word.to_owned(), |remark| format!("{word}: {}", clean(&in_sentence(remark))));
        // A remark that leaves no room for the command is not worth it.
        let room = ink.columns().saturating_sub(columns(&suffix) + 4);
        let suffix = if room < ink.columns() / 2 && room < columns(shown.title) { word.to_owned() } else { suffix };
        return command(shown, vec![Span::styled(suffix, style)], ink);
    }
    ink.title(mark(shown.outcome, ink), shown.title, ink.theme.plain(), vec![Span::styled(word, style)]);
    let keep = Keep::First(OUTPUT_LINES);
    ink.prose(&shown.text, if shown.outcome == Outcome::Failed { ink.theme.plain() } else { ink.theme.dim() }, keep);
}

/// `Exit code 1` as a part of a sentence.
fn in_sentence(remark: &str) -> String {
    let mut chars = remark.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn mark(outcome: Outcome, ink: &CellWriter) -> Span<'static> {
    match outcome {
        Outcome::Done => Span::styled("● ", ink.theme.added()),
        Outcome::Failed => Span::styled("✗ ", ink.theme.removed()),
        Outcome::Denied => Span::styled("! ", ink.theme.warning()),
        Outcome::Interrupted => Span::styled("○ ", ink.theme.dim()),
    }
}

fn item(todo: &Todo, ink: &mut CellWriter) {
    let (sign, sign_style, style) = match todo.state {
        TodoState::Done => ("  [x] ", ink.theme.added(), ink.theme.dim()),
        TodoState::Active => ("  [>] ", ink.theme.accent(), ink.theme.bold()),
        TodoState::Pending => ("  [ ] ", ink.theme.dim(), Style::new()),
    };
    let margin = Margin::hanging(Span::styled(sign, sign_style));
    ink.wrapped(&Line::styled(todo.text.replace('\n', " "), style), &margin);
}
