//! `diff --stat`: one row per path with a bar of its changed lines, fitted to the terminal.

use std::io::{self, Write};

use retake_engine::snapshot::{Change, Node, NodeKind};
use retake_engine::view::ContentError;
use unicode_width::UnicodeWidthStr;

use super::{ChangedContent, Comparison};
use crate::output::messages;
use crate::output::quote;
use crate::output::size::human;
use crate::output::ui::{GREEN, Paint, RED};
use retake_agent::line_diff::{LineCounts, LineDiff};

/// What a bar needs at least, however long the names are.
const MIN_BAR: usize = 6;

/// One path.
#[derive(Debug)]
pub struct StatRow {
    name: String,
    is_directory: bool,
    what: StatValue,
}

#[derive(Debug)]
enum StatValue {
    Lines(LineCounts),
    /// Something that has no lines.
    Note(String),
}

impl StatRow {
    pub fn new(comparison: &Comparison<'_>, change: &Change) -> Result<Self, ContentError> {
        let either = change.after.as_ref().or(change.before.as_ref());
        let is_directory = either.is_some_and(|node| node.kind == NodeKind::Directory);
        let slash = if is_directory { "/" } else { "" };
        let name = format!("{}{slash}", quote::name(change.path.as_bytes()));
        let what = match comparison.content(change)? {
            ChangedContent::Text { before, after } => StatValue::Lines(LineDiff::new(&before, &after).counts()),
            ChangedContent::Binary { .. } => StatValue::Note(format!("binary, {}", sizes(change))),
            ChangedContent::TooLarge => StatValue::Note(format!("large, {}", sizes(change))),
            ChangedContent::Same => StatValue::Note(without_content(change)),
        };
        Ok(Self { name, is_directory, what })
    }

    /// The path, a directory's with a slash.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What changed without a bar: `+3 -1`, or a note.
    pub fn brief(&self, paint: Paint) -> String {
        let (green, red) = (paint.with(GREEN), paint.with(RED));
        match &self.what {
            StatValue::Lines(counts) => {
                format!("{green}+{}{green:#} {red}-{}{red:#}", counts.added, counts.removed)
            }
            StatValue::Note(note) => note.clone(),
        }
    }
}

/// Writes the table and its summary, at most `columns` wide where that is possible at all.
pub fn write(out: &mut dyn Write, paint: Paint, rows: &[StatRow], columns: usize) -> io::Result<()> {
    let totals: Vec<u64> = rows.iter().filter_map(|row| lines(row).map(total)).collect();
    let most = totals.iter().copied().max().unwrap_or(0);
    let number = most.to_string().len();
    // ` name | 12 +++--`
    let fixed = " ".len() + " | ".len() + number + " ".len();
    let longest = rows.iter().map(|row| row.name.width()).max().unwrap_or(0);
    let name = longest.min(columns.saturating_sub(fixed + MIN_BAR).max(MIN_BAR));
    let bar = columns.saturating_sub(fixed + name).max(MIN_BAR);
    for row in rows {
        let shown = shortened(&row.name, name);
        let padding = " ".repeat(name.saturating_sub(shown.width()));
        write!(out, " {shown}{padding} | ")?;
        match &row.what {
            StatValue::Lines(counts) => write_bar(out, paint, *counts, number, scale(*counts, most, bar))?,
            StatValue::Note(note) => writeln!(out, "{note}")?,
        }
    }
    writeln!(out, " {}", summary(rows))
}

fn write_bar(
    out: &mut dyn Write,
    paint: Paint,
    counts: LineCounts,
    number: usize,
    bar: (usize, usize),
) -> io::Result<()> {
    let (green, red) = (paint.with(GREEN), paint.with(RED));
    let (plus, minus) = ("+".repeat(bar.0), "-".repeat(bar.1));
    let blank = if bar == (0, 0) { "" } else { " " };
    writeln!(out, "{:>number$}{blank}{green}{plus}{green:#}{red}{minus}{red:#}", total(counts))
}

/// The bar's pluses and minuses: one a line while they fit, else in proportion, with at least one for what there is.
fn scale(counts: LineCounts, most: u64, width: usize) -> (usize, usize) {
    let part = |count: u32| match u64::from(count) {
        count if most <= width as u64 => count as usize,
        0 => 0,
        count => (count * width as u64 / most).max(1) as usize,
    };
    let (plus, minus) = (part(counts.added), part(counts.removed));
    let excess = (plus + minus).saturating_sub(width);
    if minus < plus { (plus - excess, minus) } else { (plus, minus - excess) }
}

/// The end of `name`, which tells more than its beginning, in at most `width` columns.
fn shortened(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let fits = |start: &usize| name[*start..].width() < width;
    let start = name.char_indices().map(|(start, _)| start).find(fits).unwrap_or(name.len());
    format!("…{}", &name[start..])
}

fn summary(rows: &[StatRow]) -> String {
    let directories = rows.iter().filter(|row| row.is_directory).count() as u64;
    let mut parts = Vec::new();
    match (rows.len() as u64 - directories, directories) {
        (0, directories) => parts.push(format!("{} changed", messages::count(directories, "directory", "directories"))),
        (files, 0) => parts.push(format!("{} changed", messages::count(files, "file", "files"))),
        (files, directories) => parts.push(format!(
            "{} and {} changed",
            messages::count(files, "file", "files"),
            messages::count(directories, "directory", "directories")
        )),
    }
    let (mut added, mut removed) = (0_u64, 0_u64);
    for counts in rows.iter().filter_map(lines) {
        added += u64::from(counts.added);
        removed += u64::from(counts.removed);
    }
    if added != 0 {
        parts.push(format!("{}(+)", messages::count(added, "insertion", "insertions")));
    }
    if removed != 0 {
        parts.push(format!("{}(-)", messages::count(removed, "deletion", "deletions")));
    }
    parts.join(", ")
}

fn lines(row: &StatRow) -> Option<LineCounts> {
    match row.what {
        StatValue::Lines(counts) => Some(counts),
        StatValue::Note(_) => None,
    }
}

fn total(counts: LineCounts) -> u64 {
    u64::from(counts.added) + u64::from(counts.removed)
}

/// `1.0 KiB to 2.0 KiB`
fn sizes(change: &Change) -> String {
    let size = |node: Option<&Node>| human(node.map_or(0, |node| node.size));
    format!("{} to {}", size(change.before.as_ref()), size(change.after.as_ref()))
}

/// What happened to a path whose content, if it has any, stayed.
fn without_content(change: &Change) -> String {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) if before == after => "as it is".to_owned(),
        (Some(before), Some(after)) if before.kind == after.kind => {
            format!("mode {:04o} to {:04o}", before.mode, after.mode)
        }
        (Some(_), Some(_)) => "type changed".to_owned(),
        (None, _) => "new directory".to_owned(),
        (_, None) => "deleted directory".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, added: u32, removed: u32) -> StatRow {
        StatRow { name: name.to_owned(), is_directory: false, what: StatValue::Lines(LineCounts { added, removed }) }
    }

    fn table(rows: &[StatRow], columns: usize) -> String {
        let mut out = Vec::new();
        write(&mut out, Paint::Plain, rows, columns).expect("a Vec takes all");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn small_changes_have_one_sign_a_line() {
        let note = StatRow { name: "d/".into(), is_directory: true, what: StatValue::Note("new directory".into()) };
        assert_eq!(
            table(&[row("a.rs", 3, 1), row("src/b.rs", 0, 12), note], 80),
            concat!(
                " a.rs     |  4 +++-\n",
                " src/b.rs | 12 ------------\n",
                " d/       | new directory\n",
                " 2 files and 1 directory changed, 3 insertions(+), 13 deletions(-)\n"
            )
        );
    }

    #[test]
    fn long_names_and_big_changes_fit_the_terminal() {
        let long = "a/very/long/path/that/goes/on/and/on/for/more/than/forty/columns.rs";
        let rows = [row(long, 4_000, 1), row("größe/文件.rs", 1, 9_999), row("c", 0, 0)];
        for columns in [40, 100] {
            let table = table(&rows, columns);
            for line in table.lines().take(rows.len()) {
                assert!(line.width() <= columns, "{columns}: {line}");
            }
            assert!(table.contains("columns.rs"), "the end of a name is kept: {table}");
        }
    }

    #[test]
    fn every_kind_of_change_stays_visible_in_a_scaled_bar() {
        assert_eq!(scale(LineCounts { added: 10_000, removed: 1 }, 10_001, 20), (19, 1));
        assert_eq!(scale(LineCounts { added: 1, removed: 0 }, 10_001, 20), (1, 0));
    }
}
