//! Untrusted text made fit for a terminal: nothing in it can move the cursor, change the direction of writing or hide.
//!
//! Every character that is not drawn as itself is replaced by one that can be seen, so that nothing disappears silently.

use std::borrow::Cow;

use retake_agent::escape::is_deceptive;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a tab becomes. Stops would need the column, which changes with every wrap.
const TAB: &str = "    ";

/// `text` with everything that a terminal would obey, or not show at all, replaced by something visible; line breaks too.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(|c| c != '\t' && stand_in(c).is_none())
    {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => cleaned.push_str(TAB),
            c => cleaned.push(stand_in(c).unwrap_or(c)),
        }
    }
    Cow::Owned(cleaned)
}

/// `text` in one line of at most `width` columns, cleaned, with `…` where it was cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let cleaned = clean(text);
    if self::width(&cleaned) <= width {
        return cleaned.into_owned();
    }
    let (mut fitted, mut used) = (String::new(), 0);
    for grapheme in cleaned.graphemes(true) {
        let more = self::width(grapheme);
        if used + more + 1 > width {
            break;
        }
        used += more;
        fitted.push_str(grapheme);
    }
    fitted.truncate(fitted.trim_end().len());
    if width > 0 {
        fitted.push('…');
    }
    fitted
}

/// How many columns `text` takes, once it is cleaned.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// What is drawn in place of `c`, if it cannot be drawn as itself.
fn stand_in(c: char) -> Option<char> {
    match c {
        // Unicode has pictures of the old control characters.
        '\0'..='\x1f' => char::from_u32(0x2400 + c as u32),
        '\x7f' => Some('␡'),
        // The hyphen that may or may not be there: terminals disagree about its width.
        '\u{ad}' => Some('-'),
        c if is_deceptive(c) => Some('\u{fffd}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        assert_eq!(clean("\x1b[2J\x07 a\u{9b}31m\r\nb"), "␛[2J␇ a\u{fffd}31m␍␊b");
        assert_eq!(clean("user\u{202e}nimda\u{e0041}"), "user\u{fffd}nimda\u{fffd}");
        assert_eq!(clean("a\tb"), "a    b");
        assert!(matches!(clean("schön 漢字 👩\u{200d}💻"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_is_shortened_by_what_it_takes_on_the_screen() {
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("a longer text", 9), "a longer…");
        assert_eq!(fit("漢字漢字", 6), "漢字…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit("one two", 5), "one…");
        assert_eq!((fit("ab", 1), fit("ab", 0)), ("…".to_owned(), String::new()));
    }
}
