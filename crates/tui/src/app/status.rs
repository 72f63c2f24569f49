//! The last row: what the session does, which model, how full its context is, what it cost, how large the store is. What does not fit is
//! left out, the least important first.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::contract::State;
use unicode_width::UnicodeWidthStr;

use super::App;
use crate::text::{self, size};

/// What turns while something runs.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long each is shown, in milliseconds.
const TURN_MS: i64 = 120;

/// A piece of the row.
struct StatusItem {
    text: String,
    style: Style,
    /// The higher, the longer it stays.
    weight: u8,
}

impl App {
    /// The row in `width` columns.
    pub(super) fn status(&self, width: u16) -> Line<'static> {
        let mut pieces = self.pieces();
        let length = |pieces: &[StatusItem]| pieces.iter().map(|piece| piece.text.width() + 2).sum::<usize>();
        while length(&pieces) > usize::from(width) && pieces.len() > 1 {
            let least = pieces.iter().enumerate().min_by_key(|(_, piece)| piece.weight).map(|(at, _)| at);
            pieces.remove(least.unwrap_or_default());
        }
        let spans = pieces.into_iter().flat_map(|piece| [Span::styled(piece.text, piece.style), Span::raw("  ")]);
        Line::from(spans.collect::<Vec<_>>())
    }

    fn pieces(&self) -> Vec<StatusItem> {
        let theme = self.theme;
        let mut pieces = vec![self.state_piece()];
        let mut add = |weight: u8, text: String, style: Style| pieces.push(StatusItem { text, style, weight });
        if self.view.held > 0 {
            add(8, format!("{} held", self.view.held), theme.warning());
        }
        let jobs = self.view.jobs.iter().filter(|job| job.ended.is_none()).count();
        if jobs > 0 {
            add(6, format!("{jobs} in the background"), theme.warning());
        }
        if let Some(baseline) = self.view.baseline {
            add(7, format!("first snapshot: {} files, {}", baseline.files, size(baseline.bytes)), theme.dim());
        }
        let model = self.view.model.split_once('/').map_or(self.view.model.as_str(), |(_, name)| name);
        add(4, crate::text::clean(model).into_owned(), theme.dim());
        add(5, self.context_piece(), theme.dim());
        if let Some(cost) = self.facts.usage.cost {
            add(3, format!("${cost:.2}"), theme.dim());
        }
        if let Some((bytes, budget)) = self.store {
            let style = if bytes > budget { theme.warning() } else { theme.dim() };
            add(2, format!("store {}", size(bytes)), style);
        }
        let place = self.view.workspace.rsplit('/').next().unwrap_or_default();
        add(1, text::fit(&text::clean(place), 24), theme.dim());
        add(5, "? help".to_owned(), theme.dim());
        pieces.retain(|piece| !piece.text.is_empty());
        pieces
    }

    fn state_piece(&self) -> StatusItem {
        let theme = self.theme;
        let (text, style) = match (self.view.state, self.running_since) {
            (State::Paused, _) if !self.view.questions.is_empty() => ("? waits for you".to_owned(), theme.warning()),
            // A question that was just answered is not yet settled; the turn goes on.
            (State::Running, since) | (State::Paused, since @ Some(_)) => {
                let elapsed = since.map_or(0, |since| (self.now.0 - since.0).max(0));
                let turn = SPINNER[usize::try_from(elapsed / TURN_MS).unwrap_or(0) % SPINNER.len()];
                if self.view.summarising {
                    let text = format!("{turn} {} · the model writes a summary · Esc stops", elapsed_in_words(elapsed));
                    return StatusItem { text, style: theme.accent(), weight: u8::MAX };
                }
                let written =
                    self.facts.turn.output + (self.view.coming.text.len() + self.view.coming.thinking.len()) as u64 / 4;
                let tokens = if written > 0 { format!(" · {} tokens", tokens(written)) } else { String::new() };
                (format!("{turn} {}{tokens} · Esc stops", elapsed_in_words(elapsed)), theme.accent())
            }
            (State::Paused, _) => ("■ stopped".to_owned(), theme.warning()),
            (State::Idle, _) => ("● ready".to_owned(), theme.added()),
        };
        StatusItem { text, style, weight: u8::MAX }
    }

    fn context_piece(&self) -> String {
        match (self.facts.context, self.view.window) {
            (Some(used), Some(window)) if window > 0 => {
                format!("context {} % of {}", used * 100 / window, tokens(window))
            }
            (Some(used), _) => format!("context {}", tokens(used)),
            (None, _) => String::new(),
        }
    }
}

/// `340`, `1.2k`, `200k`, `1.0M`.
fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..10_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `12 s`, `3 min 05 s`.
fn elapsed_in_words(ms: i64) -> String {
    let seconds = ms / 1_000;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {:02} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0, 999, 1_250, 200_000, 1_050_000].map(tokens), ["0", "999", "1.2k", "200k", "1.0M"]);
        assert_eq!([999, 61_000].map(elapsed_in_words), ["0 s", "1 min 01 s"]);
    }
}
