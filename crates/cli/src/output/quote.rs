//! Names and labels on one line: the way git quotes odd file names, and escapes for text that is only shown.

use std::borrow::Cow;
use std::fmt::Write as _;

use retake_agent::escape::is_deceptive;
pub use retake_agent::escape::{harmless, json, one_line};
use retake_engine::WorkspacePath;

/// Paths as [`name`] shows them.
pub fn names<'a>(paths: impl IntoIterator<Item = &'a WorkspacePath>) -> Vec<String> {
    paths.into_iter().map(|path| name(path.as_bytes()).into_owned()).collect()
}

/// A file name as git's diffs write it with `core.quotePath=false`: as it is when it is plain UTF-8, else C-quoted.
///
/// `git apply` reads both back to the same bytes.
pub fn name(bytes: &[u8]) -> Cow<'_, str> {
    prefixed("", bytes)
}

/// [`name`] with `prefix` (`a/`, say) inside the quotes.
pub fn prefixed<'a>(prefix: &str, bytes: &'a [u8]) -> Cow<'a, str> {
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains(needs_quotes) && prefix.is_empty() => Cow::Borrowed(text),
        Ok(text) if !text.contains(needs_quotes) => Cow::Owned(format!("{prefix}{text}")),
        _ => Cow::Owned(c_quoted(prefix, bytes)),
    }
}

/// In a name, unlike in a sentence, a joiner that cannot be seen makes two names look the same.
fn needs_quotes(c: char) -> bool {
    is_deceptive(c) || matches!(c, '"' | '\\' | '\u{200c}' | '\u{200d}')
}

fn c_quoted(prefix: &str, bytes: &[u8]) -> String {
    let mut quoted = format!("\"{prefix}");
    for &byte in bytes {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            0x07 => quoted.push_str("\\a"),
            0x08 => quoted.push_str("\\b"),
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            0x0b => quoted.push_str("\\v"),
            0x0c => quoted.push_str("\\f"),
            b'\r' => quoted.push_str("\\r"),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => write!(quoted, "\\{byte:03o}").expect("writing to a String cannot fail"),
        }
    }
    quoted.push('"');
    quoted
}

/// `text` so that it can be pasted into a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@=:,%".contains(c);
    let is_word = !text.is_empty() && text.chars().all(is_plain);
    if is_word { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_pasted() {
        assert_eq!(shell_word("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn plain_utf8_stays_as_it_is() {
        assert_eq!(name("src/größe.rs".as_bytes()), "src/größe.rs");
        assert_eq!(prefixed("a/", b"with space"), "a/with space");
    }

    #[test]
    fn odd_bytes_are_quoted_as_git_does() {
        assert_eq!(name(b"tab\tquote\"back\\"), r#""tab\tquote\"back\\""#);
        assert_eq!(prefixed("b/", b"new\nline"), r#""b/new\nline""#);
        assert_eq!(name(b"caf\xe9\x1b"), r#""caf\351\033""#);
    }
}
