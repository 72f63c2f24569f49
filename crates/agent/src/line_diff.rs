//! Compares two texts line by line, in groups of changes with their context, as unified diffs have them.
//!
//! Works on bytes: line ends and encodings are kept. Clients draw the groups; the command line writes them as a patch.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

use crate::diff::LineKind;

/// Unchanged lines around a change.
const CONTEXT: u32 = 3;
/// How far to look for a NUL byte, as git does.
const BINARY_PROBE: usize = 8_000;

/// Whether a content is not text.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(BINARY_PROBE).any(|byte| *byte == 0)
}

/// The difference of two texts.
pub struct LineDiff<'a> {
    input: InternedInput<&'a [u8]>,
    diff: Diff,
}

/// How many lines are added and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCounts {
    /// Only in the second text.
    pub added: u32,
    /// Only in the first text.
    pub removed: u32,
}

/// Changes that share their context.
#[derive(Debug)]
pub struct LineGroup<'a> {
    /// Their lines in the first text, counted from 0, with the lines around them.
    pub before: Range<u32>,
    /// The same in the second text.
    pub after: Range<u32>,
    /// All lines in order, each with its end.
    pub lines: Vec<(LineKind, &'a [u8])>,
}

impl<'a> LineDiff<'a> {
    /// Compares two texts.
    pub fn new(before: &'a [u8], after: &'a [u8]) -> Self {
        let input = InternedInput::new(before, after);
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        Self { input, diff }
    }

    /// How many lines are added and removed.
    pub fn counts(&self) -> LineCounts {
        LineCounts { added: self.diff.count_additions(), removed: self.diff.count_removals() }
    }

    /// The changes in order, in groups.
    pub fn groups(&self) -> Vec<LineGroup<'a>> {
        let hunks: Vec<Hunk> = self.diff.hunks().collect();
        let groups = hunks.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT);
        groups.map(|group| self.group(group)).collect()
    }

    fn group(&self, hunks: &[Hunk]) -> LineGroup<'a> {
        let (first, last) = (&hunks[0], &hunks[hunks.len() - 1]);
        let lead = first.before.start.min(CONTEXT);
        let trail = (self.input.before.len() as u32 - last.before.end).min(CONTEXT);
        let before = first.before.start - lead..last.before.end + trail;
        let after = first.after.start - lead..last.after.end + trail;
        let mut lines = Vec::new();
        let mut add = |kind: LineKind, side: &[Token], range: Range<u32>| {
            let tokens = &side[range.start as usize..range.end as usize];
            lines.extend(tokens.iter().map(|token| (kind, self.input.interner[*token])));
        };
        let mut at = before.start;
        for hunk in hunks {
            add(LineKind::Same, &self.input.before, at..hunk.before.start);
            add(LineKind::Removed, &self.input.before, hunk.before.clone());
            add(LineKind::Added, &self.input.after, hunk.after.clone());
            at = hunk.before.end;
        }
        add(LineKind::Same, &self.input.before, at..before.end);
        LineGroup { before, after, lines }
    }
}
