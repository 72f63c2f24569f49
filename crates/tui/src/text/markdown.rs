//! Markdown as lines of a terminal.
//!
//! Every word of the source is shown, whatever it is: HTML stays as it was written, a link's address follows its text. A text may end
//! anywhere, because answers are drawn while they come. Nothing is remembered here; whoever draws keeps the lines.

mod table;
mod writer;

use pulldown_cmark::{Options, Parser};
use ratatui::text::Line;

use self::writer::Writer;
use crate::theme::Theme;

/// The lines of a whole text.
pub(crate) fn lines(text: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let parser =
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS);
    let mut definitions: Vec<(usize, String, String)> = Vec::new();
    for (label, definition) in parser.reference_definitions().iter() {
        definitions.push((
            definition.span.start,
            label.to_owned(),
            writer::address(&definition.dest, definition.title.as_deref().unwrap_or_default()),
        ));
    }
    definitions.sort();
    let mut writer = Writer::new(width, *theme);
    parser.for_each(|event| writer.event(event));
    writer.definitions(definitions.into_iter().map(|(_, label, address)| (label, address)));
    writer.finish()
}

/// The lines of a text that is still coming. A last line of which nobody can tell yet what it will be is held back: a `-` below a
/// paragraph would make a heading of it until the list's first word is there.
pub(crate) fn coming(text: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    let is_open = text[start..].chars().all(|c| "-=*_#`~|+>: ".contains(c));
    lines(if is_open { &text[..start] } else { text }, width, theme)
}

#[cfg(test)]
mod tests;
