//! Replacing bytes: where a text occurs, and what the content is afterwards. Pure.

use std::borrow::Cow;

use memchr::memmem;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) occurrences: Occurrences,
}

/// How often a text may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrences {
    /// Exactly once.
    One,
    /// At least once; all are replaced.
    All,
}

/// What a replacement made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EditApplied {
    pub(crate) content: Vec<u8>,
    /// Of the first occurrence, counted from 1.
    pub(crate) first_line: usize,
    pub(crate) count: usize,
}

/// Why a replacement was not made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditRefused {
    Empty,
    Same,
    NotFound,
    Several {
        /// The first ones.
        lines: Vec<usize>,
        count: usize,
    },
}

const MAX_LINES_TOLD: usize = 20;

/// Makes one replacement.
pub(crate) fn apply(content: &[u8], edit: &Edit) -> Result<EditApplied, EditRefused> {
    if edit.old.is_empty() {
        return Err(EditRefused::Empty);
    }
    if edit.old == edit.new {
        return Err(EditRefused::Same);
    }
    let (old, new, found) = find(content, edit).ok_or(EditRefused::NotFound)?;
    if found.len() > 1 && edit.occurrences == Occurrences::One {
        let lines = found.iter().take(MAX_LINES_TOLD).map(|at| line_of(content, *at)).collect();
        return Err(EditRefused::Several { lines, count: found.len() });
    }
    let mut result = Vec::with_capacity(content.len() + new.len());
    let mut rest = 0;
    for at in &found {
        result.extend_from_slice(&content[rest..*at]);
        result.extend_from_slice(new.as_bytes());
        rest = at + old.len();
    }
    result.extend_from_slice(&content[rest..]);
    Ok(EditApplied { content: result, first_line: line_of(content, found[0]), count: found.len() })
}

/// The texts with line endings as the content has them, and where the old one occurs.
fn find<'a>(content: &[u8], edit: &'a Edit) -> Option<(Cow<'a, str>, Cow<'a, str>, Vec<usize>)> {
    let as_given = (Cow::from(&edit.old), Cow::from(&edit.new));
    let as_crlf = || (with_crlf(&edit.old), with_crlf(&edit.new));
    let as_lf = || (with_lf(&edit.old), with_lf(&edit.new));
    let attempts = match Endings::of(content) {
        // Every newline of the file is CRLF, so every newline that the model means is one, in the new text too.
        Endings::Crlf => vec![as_crlf()],
        Endings::Lf => vec![as_given, as_lf()],
        Endings::Mixed => vec![as_given, as_crlf(), as_lf()],
    };
    attempts.into_iter().find_map(|(old, new)| {
        let found: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
        (!found.is_empty()).then_some((old, new, found))
    })
}

/// The line endings of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endings {
    /// Or none at all.
    Lf,
    Crlf,
    Mixed,
}

impl Endings {
    pub(crate) fn of(content: &[u8]) -> Self {
        let all = memchr::memchr_iter(b'\n', content).count();
        match memmem::find_iter(content, b"\r\n").count() {
            0 => Self::Lf,
            crlf if crlf == all => Self::Crlf,
            _ => Self::Mixed,
        }
    }
}

fn with_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

fn with_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { with_lf(text).replace('\n', "\r\n").into() } else { text.into() }
}

fn line_of(content: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &content[..at]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(old: &str, new: &str) -> Edit {
        Edit { old: old.to_owned(), new: new.to_owned(), occurrences: Occurrences::One }
    }

    fn applied(content: &[u8], edit: &Edit) -> Vec<u8> {
        apply(content, edit).expect("applies").content
    }

    #[test]
    fn line_endings_stay_as_the_file_has_them() {
        assert_eq!(applied(b"a\r\nb\r\nc", &one("a\nb", "x\ny\nz")), b"x\r\ny\r\nz\r\nc");
        assert_eq!(
            applied(b"a\r\nb\r\n", &one("a", "x\ny")),
            b"x\r\ny\r\nb\r\n",
            "also where only the new text has any"
        );
        assert_eq!(applied(b"a\nb\n", &one("a\r\nb", "x\r\ny")), b"x\ny\n");
        assert_eq!(applied(b"a\nb\r\nc\r\nd\n", &one("b\nc", "x\ny")), b"a\nx\r\ny\r\nd\n", "mixed");
        assert_eq!(applied(b"a\r\nb", &one("a\r\nb", "c\r\nd")), b"c\r\nd");
    }

    #[test]
    fn other_bytes_stay_whatever_they_are() {
        assert_eq!(applied(b"\xff\xfe old \x00\xc4\xe3", &one("old", "new")), b"\xff\xfe new \x00\xc4\xe3");
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        assert_eq!(apply(b"a\na\n", &one("a", "b")), Err(EditRefused::Several { lines: vec![1, 2], count: 2 }));
        assert_eq!(apply(b"a", &one("", "b")), Err(EditRefused::Empty));
        assert_eq!(apply(b"a", &one("a", "a")), Err(EditRefused::Same));
        assert_eq!(apply(b"a", &one("b", "a")), Err(EditRefused::NotFound));
        let all = Edit { occurrences: Occurrences::All, ..one("a", "b") };
        assert_eq!(applied(b"a\na\n", &all), b"b\nb\n");
    }
}
