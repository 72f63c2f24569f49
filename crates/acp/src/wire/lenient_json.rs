//! JSON that is valid and that our values cannot hold: half a surrogate pair, which JavaScript writes for an emoji cut in two, a number out
//! of range, unbounded nesting. The nearest value is read instead; the proxy passes the original bytes on.

use serde_json::Value;
use serde_json::value::RawValue;

/// How deep what is read may be nested; what is deeper is null. The library's own limit is 128.
const MAX_DEPTH: usize = 100;

/// What a line of JSON says, or something near to it; `None` if it is no JSON.
pub(super) fn parse(line: &[u8]) -> Option<Value> {
    let line = str::from_utf8(line).ok()?;
    // This looks at the form alone, however deep.
    let line = serde_json::from_str::<&RawValue>(line).ok()?.get();
    serde_json::from_str(&tame(line)).ok()
}

/// JSON with everything replaced that our values cannot hold.
fn tame(json: &str) -> String {
    let mut tamed = String::with_capacity(json.len());
    let (mut rest, mut depth) = (json, 0_usize);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string(rest),
            '-' | '0'..='9' => {
                rest.find(|at: char| !matches!(at, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if matches!(first, '[' | '{') {
            depth += 1;
            if depth == MAX_DEPTH + 1 {
                tamed.push_str("null");
            }
        }
        if depth <= MAX_DEPTH {
            match first {
                '"' => pair_surrogates(token, &mut tamed),
                '-' | '0'..='9' if !token.parse::<f64>().is_ok_and(f64::is_finite) => tamed.push('0'),
                _ => tamed.push_str(token),
            }
        }
        if matches!(first, ']' | '}') {
            depth -= 1;
        }
    }
    tamed
}

/// How long the string is with which `text` begins, its quotes included.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A string of JSON with U+FFFD for every half of a surrogate pair whose other half is missing.
fn pair_surrogates(mut string: &str, to: &mut String) {
    while let Some(at) = string.find('\\') {
        to.push_str(&string[..at]);
        string = &string[at..];
        let length = match unit(string) {
            Some(0xD800..=0xDBFF) if matches!(string.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                to.push('\u{FFFD}');
                string = &string[6..];
                continue;
            }
            Some(_) => 6,
            // A backslash and one more character, which may be a backslash too.
            None => 2,
        };
        to.push_str(&string[..length]);
        string = &string[length..];
    }
    to.push_str(string);
}

/// The unit that `text` begins with as `\uXXXX`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_our_values_cannot_hold_is_something_near_to_it() {
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        let line = format!(
            r#"{{"a":"x\ud83d","b":"\udc00\ud83d\ude00\\ud83d\"","\ud83d":1e400,"n":[-1E999,1.5,-2],"deep":{deep},"after":"é"}}"#
        );
        let mut read = parse(line.as_bytes()).expect("it is JSON");
        assert!(read["deep"].take()[0][0].is_array());
        assert_eq!(
            read,
            json!({ "a": "x\u{FFFD}", "b": "\u{FFFD}\u{1F600}\\ud83d\"", "\u{FFFD}": 0, "n": [0, 1.5, -2], "deep": null, "after": "é" })
        );
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for line in ["", "{", r#"{"a":"\ud83d}"#, "[1e400,]", "1e400 x", r#""\ud8""#] {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
        assert!(parse(b"\"\xff\"").is_none());
    }
}
