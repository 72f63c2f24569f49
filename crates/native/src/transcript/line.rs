//! Lines of JSON, each kept as it is written, and the change of one string in them.

use jsonc_parser::ast::Value as Ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::Odd;

/// One line of a transcript.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The bytes of the file, without the line break.
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl Line {
    /// The string at `key`.
    pub(crate) fn str(&self, key: &str) -> Option<&str> {
        self.value[key].as_str()
    }

    /// The line with another string at `path`, all else as it is written; unchanged if there is no string.
    pub(crate) fn with(&self, path: &[&str], new: &str) -> String {
        let mut text = self.text.clone();
        let is_there = path.iter().try_fold(&self.value, |value, key| value.get(key)).is_some_and(Value::is_string);
        if !is_there {
            return text;
        }
        let parsed = parse_to_ast(&self.text, &CollectOptions::default(), &ParseOptions::default());
        let root = parsed.ok().and_then(|parsed| parsed.value);
        if let Some(range) = root.as_ref().and_then(|root| find(root, path)).map(|found| found.range()) {
            text.replace_range(range.start..range.end, &Value::from(new).to_string());
        }
        text
    }
}

fn find<'a, 'b>(value: &'a Ast<'b>, path: &[&str]) -> Option<&'a Ast<'b>> {
    let Some((key, rest)) = path.split_first() else { return Some(value) };
    // The last of equal keys counts.
    let members = value.as_object()?.properties.iter().rev();
    find(&members.into_iter().find(|member| member.name.as_str() == *key)?.value, rest)
}

/// The lines of a transcript. What follows the last line break is still being written.
pub(super) fn split(content: &[u8]) -> Result<Vec<Line>, Odd> {
    let mut lines = Vec::new();
    for (number, bytes) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(bytes) = bytes.strip_suffix(b"\n") else { break };
        let text = std::str::from_utf8(bytes).map_err(|_| Odd::new(number, "it is not UTF-8"))?;
        if text.trim().is_empty() {
            continue;
        }
        let value: Value =
            serde_json::from_str(text).map_err(|err| Odd::new(number, format!("it is no JSON ({err})")))?;
        if !value.is_object() {
            return Err(Odd::new(number, "it is no JSON object"));
        }
        lines.push(Line { text: text.to_owned(), value });
    }
    if lines.is_empty() { Err(Odd::new(0, "there is no line yet")) } else { Ok(lines) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_string_changes_and_every_other_byte_stays() {
        let text = r#"{"a": "x" ,"b":{"a":"x", "c" : 1.0},"d":"x \u00e4"}"#;
        let lines = split(format!("{text}\n").as_bytes()).unwrap_or_default();
        assert_eq!(lines[0].with(&["b", "a"], "y\"z"), text.replace(r#"{"a":"x""#, r#"{"a":"y\"z""#));
        assert_eq!(lines[0].with(&["a"], "y"), text.replacen("\"x\"", "\"y\"", 1));
        assert_eq!(lines[0].with(&["b", "c"], "y"), text);
        assert_eq!(lines[0].with(&["e"], "y"), text);
    }

    #[test]
    fn a_line_that_is_still_being_written_is_left_out() {
        assert_eq!(split(b"{}\n{\"a\":1}\n{\"b").unwrap_or_default().len(), 2);
        assert!(split(b"{}\n{\"b\n{}\n").is_err_and(|odd| odd.line == 1));
        assert!(split(b"{\"a\":1}").is_err());
        assert!(split(b"1\n").is_err());
    }
}
