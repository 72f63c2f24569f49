//! Text as lines: markdown, code, diffs, wrapped to a width.
