//! Escapes characters in other people's text that would control a terminal, reverse the direction of writing or hide.
//!
//! Owns which characters are escaped and how a count is worded, for all front ends. It drops nothing: every escaped character can be read back.

use std::borrow::Cow;
use std::fmt::Display;

/// `1 file`, `2 files`.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let noun = if number == N::from(1) { one } else { many };
    format!("{number} {noun}")
}

/// Whether a character makes a terminal do something, shows text in another order than it is in, or cannot be seen.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text that stays on its line, a label say, with deceptive characters escaped.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_deceptive, |c| c.escape_default().to_string())
}

/// Text of a model, a server or a program: lines and tabs stay, other deceptive characters are escaped.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_deceptive(c) && c != '\n' && c != '\t', |c| c.escape_default().to_string())
}

/// A JSON document that means the same, with deceptive characters in its strings as `\u` escapes. JSON has them nowhere else, except for
/// the line breaks and tabs between its parts, which stay.
pub fn json(document: &str) -> Cow<'_, str> {
    escaped(
        document,
        |c| is_deceptive(c) && c >= '\u{7f}',
        |c| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    )
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_escaped(c) { escape(c) } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|n| count(n, "gap", "gaps")), ["0 gaps", "1 gap", "2 gaps"]);
    }

    #[test]
    fn labels_stay_on_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), r"a\nb\u{1b}[31m");
        assert_eq!(one_line("a\u{202e}b"), r"a\u{202e}b");
    }

    #[test]
    fn text_for_a_terminal_keeps_its_lines_and_nothing_else() {
        assert_eq!(harmless("a\n\tb\u{1b}]0;x\u{7}\u{9b}2J"), "a\n\tb\\u{1b}]0;x\\u{7}\\u{9b}2J");
        assert_eq!(harmless("user\u{202e}nimda\u{e0041}"), r"user\u{202e}nimda\u{e0041}");
        assert!(matches!(harmless("schön 漢字 👩\u{200d}💻\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_json_document_means_the_same_afterwards() {
        let value = serde_json::json!({ "a": "\u{9b}2J \u{202e}x\u{e0041}\u{7f}\n\u{1b} 漢", "b\u{85}": [1] });
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("plain data")] {
            let told = json(&text);
            assert!(!told.contains(|c| is_deceptive(c) && c != '\n'), "{told}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&told).expect("it is JSON"), value);
        }
    }
}
