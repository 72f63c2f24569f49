//! Writes the hunks of a unified diff. Line ends and encodings are kept.

use std::io::{self, Write};
use std::ops::Range;

use retake_agent::diff::LineKind;
use retake_agent::line_diff::{LineDiff, LineGroup};

use crate::output::ui::{CYAN, GREEN, Paint, RED};

/// Writes the hunks of a unified diff.
pub fn write_hunks(diff: &LineDiff<'_>, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
    diff.groups().iter().try_for_each(|group| write_group(out, paint, group))
}

fn write_group(out: &mut dyn Write, paint: Paint, group: &LineGroup<'_>) -> io::Result<()> {
    let cyan = paint.with(CYAN);
    writeln!(out, "{cyan}@@ -{} +{} @@{cyan:#}", range(&group.before), range(&group.after))?;
    for &(kind, line) in &group.lines {
        let (sign, style) = match kind {
            LineKind::Same => (' ', anstyle::Style::new()),
            LineKind::Removed => ('-', paint.with(RED)),
            LineKind::Added => ('+', paint.with(GREEN)),
        };
        let text = line.strip_suffix(b"\n");
        write!(out, "{style}{sign}")?;
        out.write_all(text.unwrap_or(line))?;
        writeln!(out, "{style:#}")?;
        if text.is_none() {
            writeln!(out, "\\ No newline at end of file")?;
        }
    }
    Ok(())
}

/// `12,3`, as hunk headers have it: a length of one is left out, and an empty range stands after the line that it follows.
fn range(lines: &Range<u32>) -> String {
    match lines.end - lines.start {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(before: &str, after: &str) -> String {
        let mut out = Vec::new();
        let diff = LineDiff::new(before.as_bytes(), after.as_bytes());
        write_hunks(&diff, &mut out, Paint::Plain).expect("a Vec takes all");
        String::from_utf8(out).expect("the tests use UTF-8")
    }

    fn numbers(range: Range<u32>) -> String {
        range.map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn a_change_has_three_lines_of_context() {
        let after = numbers(0..20).replace("10\n", "ten\n");
        assert_eq!(hunks(&numbers(0..20), &after), "@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n");
    }

    #[test]
    fn changes_share_a_hunk_when_their_context_meets() {
        let change = |first: &str, second: &str| numbers(0..30).replace(first, "x\n").replace(second, "y\n");
        assert_eq!(hunks(&numbers(0..30), &change("10\n", "17\n")).matches("@@ -").count(), 1);
        assert_eq!(hunks(&numbers(0..30), &change("10\n", "18\n")).matches("@@ -").count(), 2);
    }

    #[test]
    fn new_and_emptied_texts_have_empty_ranges() {
        assert_eq!(hunks("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(hunks("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn a_missing_final_newline_is_said_and_carriage_returns_are_kept() {
        assert_eq!(hunks("a", "a\n"), "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
        assert_eq!(hunks("a\r\n", "a\n"), "@@ -1 +1 @@\n-a\r\n+a\n");
    }
}
