//! Finds out whose answer a line is that is too long to be read, from its beginning and its end.

use serde_json::Value;

/// How much of either end is looked at.
pub(super) const ENDS: usize = 4 * 1024;

/// What comes before a field.
const BETWEEN: [char; 4] = [',', ' ', '\t', '\r'];

/// A line that is too long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OversizedLine {
    /// Its id, if that is near its beginning or its end.
    pub id: Option<Value>,
    /// Whether it asks or tells something; else it is an answer, as far as can be seen.
    pub is_call: bool,
}

/// Looks at the ends of a line.
pub(super) fn oversized(head: &[u8], tail: &[u8]) -> OversizedLine {
    let mut seen = OversizedLine::default();
    let head = String::from_utf8_lossy(head);
    let mut rest = head.trim_start().strip_prefix('{').unwrap_or_default();
    while let Some((key, value, after)) = field(rest) {
        match key {
            "\"id\"" => seen.id = serde_json::from_str(value).ok(),
            "\"method\"" => seen.is_call = true,
            _ => {}
        }
        rest = after;
    }
    // The one whose value is cut off.
    seen.is_call |= rest.trim_start_matches(BETWEEN).starts_with("\"params\"");
    if seen.id.is_none() {
        seen.id = last_id(&String::from_utf8_lossy(tail));
    }
    seen.id = seen.id.filter(|id| id.is_string() || id.is_number());
    seen
}

/// The first field of what is left of an object, and what comes after it; `None` if its value is not whole.
fn field(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches(BETWEEN);
    let (key, text) = text.split_at(token(text)?);
    let text = text.trim_start().strip_prefix(':')?.trim_start();
    let (value, text) = text.split_at(token(text)?);
    key.starts_with('"').then_some((key, value, text))
}

/// How long the string, number or word is with which `text` begins; `None` if that is none, or is not whole.
fn token(text: &str) -> Option<usize> {
    match text.chars().next()? {
        '"' => {
            let mut is_escaped = false;
            for (at, byte) in text.bytes().enumerate().skip(1) {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' => is_escaped = true,
                    b'"' => return Some(at + 1),
                    _ => {}
                }
            }
            None
        }
        '{' | '[' => None,
        _ => text.find([',', '}', ' ']),
    }
}

/// The id, if that is among the last fields and only simple ones come after it.
fn last_id(text: &str) -> Option<Value> {
    let at = text.rfind("\"id\"")?;
    let fields: serde_json::Map<String, Value> = serde_json::from_str(&format!("{{{}", text[at..].trim())).ok()?;
    let is_outer = fields.keys().all(|key| key == "id" || key == "jsonrpc");
    fields.get("id").filter(|_| is_outer).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_known_by_its_id_at_either_end() {
        let seen = |head: &str, tail: &str| oversized(head.as_bytes(), tail.as_bytes());
        let answer = |id: Value| OversizedLine { id: Some(id), is_call: false };
        assert_eq!(seen(r#"{"jsonrpc":"2.0", "id" : 5 ,"result":{"x":"hhh"#, r#"hhh"}}"#), answer(json!(5)));
        assert_eq!(seen(r#" {"id":"a\"b","result":"hhh"#, "hhh\"}"), answer(json!("a\"b")));
        assert_eq!(seen(r#"{"jsonrpc":"2.0","result":{"id":7,"x":"hhh"#, r#"hhh","id":8},"id":9}"#), answer(json!(9)));
        assert_eq!(seen(r#"{"result":["hhh"#, r#"hhh"],"id":9, "jsonrpc":"2.0"} "#), answer(json!(9)));
        assert_eq!(seen(r#"{"result":{"id":7,"x":"hhh"#, r#"hhh","id":8}}"#), OversizedLine::default());
        let call = OversizedLine { id: Some(json!(1)), is_call: true };
        assert_eq!(seen(r#"{"id":1,"method":"m","params":{"x":"hhh"#, r#"hhh"}}"#), call);
        assert_eq!(seen(r#"{"id":1,"params":{"x":"hhh"#, r#"hhh"},"method":"m"}"#), call);
        assert_eq!(seen("hhh", "hhh"), OversizedLine::default());
    }
}
