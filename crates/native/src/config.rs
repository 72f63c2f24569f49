//! Careful changes of a user's own configuration: text is inserted, and nothing else is touched.
//!
//! Neither a JSON nor a TOML serializer writes the file. A parser says where things stand, the new entries become [`Insertion`]s between
//! the user's own bytes, and the file without the insertions is the user's file, byte for byte. That is why the editors of the parsing
//! crates are not used: they may reformat what is next to a change.
//!
//! A configuration that does not parse, or that holds something else in the place of hooks, is refused with its place.

pub(crate) mod json;
pub(crate) mod toml;

use thiserror::Error;

/// Text of ours between bytes of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Insertion {
    /// Where it goes in the user's text.
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// Why a configuration is left alone.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}, column {column}: {problem}")]
pub struct BadConfig {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

impl BadConfig {
    /// The problem at byte `at` of `text`.
    pub(crate) fn at(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..at.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Self { line, column, problem: problem.into() }
    }
}

/// The text with the insertions in it. They are in order of their places.
pub(crate) fn insert(text: &str, insertions: &[Insertion]) -> String {
    let mut out = String::with_capacity(text.len() + insertions.iter().map(|piece| piece.text.len()).sum::<usize>());
    let mut done = 0;
    for Insertion { at, text: piece } in insertions {
        out.push_str(&text[done..*at]);
        out.push_str(piece);
        done = *at;
    }
    out.push_str(&text[done..]);
    out
}

/// The text without the insertions, if each is still where [`insert`] put it.
pub(crate) fn take_out(text: &str, insertions: &[Insertion]) -> Option<String> {
    let (mut out, mut rest, mut base) = (String::with_capacity(text.len()), text, 0);
    for Insertion { at, text: piece } in insertions {
        let (kept, after) = rest.split_at_checked(at.checked_sub(base)?)?;
        out.push_str(kept);
        rest = after.strip_prefix(piece.as_str())?;
        base = *at;
    }
    out.push_str(rest);
    Some(out)
}

/// The line break that the text uses.
pub(crate) fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_out_undoes_inserting() {
        let text = "one two";
        let pieces = [
            Insertion { at: 3, text: "ly".into() },
            Insertion { at: 3, text: ",".into() },
            Insertion { at: 7, text: "!".into() },
        ];
        let with = insert(text, &pieces);
        assert_eq!(with, "only".replace('o', "one").replace("nly", "") + "ly, two!");
        assert_eq!(take_out(&with, &pieces).as_deref(), Some(text));
        assert_eq!(take_out("onely: two!", &pieces), None);
        assert_eq!(take_out("o", &pieces), None);
    }

    #[test]
    fn a_place_is_a_line_and_a_column_of_characters() {
        let bad = BadConfig::at("a\näb!", 5, "no");
        assert_eq!(bad.to_string(), "line 2, column 3: no");
        assert_eq!(BadConfig::at("", 9, "no").line, 1);
    }
}
