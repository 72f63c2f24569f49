//! Two texts compared line by line, and the hunks of a unified diff. Bytes in, bytes out: line ends and encodings are kept as they are.

use std::io::{self, Write};
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

use crate::ui::{CYAN, GREEN, Paint, RED};

/// Unchanged lines shown around a change.
const CONTEXT: u32 = 3;

pub struct LineDiff<'a> {
    input: InternedInput<&'a [u8]>,
    diff: Diff,
}

/// How many lines came and went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCounts {
    pub added: u32,
    pub removed: u32,
}

impl<'a> LineDiff<'a> {
    pub fn new(before: &'a [u8], after: &'a [u8]) -> Self {
        let input = InternedInput::new(before, after);
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        Self { input, diff }
    }

    pub fn counts(&self) -> LineCounts {
        LineCounts { added: self.diff.count_additions(), removed: self.diff.count_removals() }
    }

    /// Writes the hunks of a unified diff.
    pub fn write_hunks(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let hunks: Vec<Hunk> = self.diff.hunks().collect();
        for group in hunks.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT) {
            self.write_group(out, paint, group)?;
        }
        Ok(())
    }

    /// Writes changes that share their context as one hunk.
    fn write_group(&self, out: &mut dyn Write, paint: Paint, group: &[Hunk]) -> io::Result<()> {
        let [first, .., last] = &[&group[0], &group[group.len() - 1]];
        let lead = first.before.start.min(CONTEXT);
        let trail = (self.input.before.len() as u32 - last.before.end).min(CONTEXT);
        let before = first.before.start - lead..last.before.end + trail;
        let after = first.after.start - lead..last.after.end + trail;
        let cyan = paint.with(CYAN);
        writeln!(out, "{cyan}@@ -{} +{} @@{cyan:#}", range(&before), range(&after))?;

        let mut at = before.start;
        for hunk in group {
            self.write_lines(out, Mark::Context, paint, &self.input.before, at..hunk.before.start)?;
            self.write_lines(out, Mark::Removed, paint, &self.input.before, hunk.before.clone())?;
            self.write_lines(out, Mark::Added, paint, &self.input.after, hunk.after.clone())?;
            at = hunk.before.end;
        }
        self.write_lines(out, Mark::Context, paint, &self.input.before, at..before.end)
    }

    fn write_lines(
        &self,
        out: &mut dyn Write,
        mark: Mark,
        paint: Paint,
        side: &[Token],
        lines: Range<u32>,
    ) -> io::Result<()> {
        let (sign, style) = match mark {
            Mark::Context => (' ', anstyle::Style::new()),
            Mark::Removed => ('-', paint.with(RED)),
            Mark::Added => ('+', paint.with(GREEN)),
        };
        for &token in &side[lines.start as usize..lines.end as usize] {
            let line = self.input.interner[token];
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
}

#[derive(Clone, Copy)]
enum Mark {
    Context,
    Removed,
    Added,
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
        diff.write_hunks(&mut out, Paint::Plain).expect("a Vec takes all");
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
