//! Changes single places of a line of JSON and leaves every other byte as it came: unknown fields, the order of keys, the way in which
//! numbers are written.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;

use serde_json::value::RawValue;

/// Changes to a line that are collected first and made together. A place that is not there is not changed.
pub(super) struct Edits<'a> {
    line: &'a str,
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    /// Of a line of JSON.
    pub(super) fn new(line: &'a [u8]) -> Self {
        // What was parsed as JSON is UTF-8.
        Self { line: str::from_utf8(line).unwrap_or_default(), changes: Vec::new() }
    }

    /// Whether there is a value at `path`.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.span(path).is_some()
    }

    /// Puts another value in the place of the one at `path`.
    pub(super) fn replace(&mut self, path: &[&str], json: &impl Display) {
        if let Some(span) = self.span(path) {
            self.changes.push((span, json.to_string()));
        }
    }

    /// Puts a field first into the object at `path`, which has none of that name.
    pub(super) fn insert(&mut self, path: &[&str], key: &str, json: &impl Display) {
        let Some(span) = self.span(path).filter(|span| self.line[span.clone()].starts_with('{')) else { return };
        let comma = if self.is_empty(&span) { "" } else { "," };
        let field = format!("{}:{json}{comma}", serde_json::Value::from(key));
        self.changes.push((span.start + 1..span.start + 1, field));
    }

    /// Sets a field of the object at `path`, be it there or not.
    pub(super) fn set(&mut self, path: &[&str], key: &str, json: &impl Display) {
        let field: Vec<&str> = path.iter().copied().chain([key]).collect();
        match self.has(&field) {
            true => self.replace(&field, json),
            false => self.insert(path, key, json),
        }
    }

    /// Puts a value first into the array at `path`.
    pub(super) fn prepend(&mut self, path: &[&str], json: &impl Display) {
        let Some(span) = self.array(path) else { return };
        let comma = if self.is_empty(&span) { "" } else { "," };
        self.changes.push((span.start + 1..span.start + 1, format!("{json}{comma}")));
    }

    /// Puts values, each but the last with a comma after it, last into the array at `path`.
    pub(super) fn append(&mut self, path: &[&str], json: &impl Display) {
        let Some(span) = self.array(path) else { return };
        let comma = if self.is_empty(&span) { "" } else { "," };
        self.changes.push((span.end - 1..span.end - 1, format!("{comma}{json}")));
    }

    /// The line with the changes; as it was if there are none.
    pub(super) fn make(mut self) -> Vec<u8> {
        self.changes.sort_by_key(|(span, _)| span.start);
        let mut made = String::with_capacity(self.line.len() + 64);
        let mut at = 0;
        for (span, text) in self.changes {
            made.push_str(&self.line[at..span.start]);
            made.push_str(&text);
            at = span.end;
        }
        made.push_str(&self.line[at..]);
        made.into_bytes()
    }

    fn array(&self, path: &[&str]) -> Option<Range<usize>> {
        self.span(path).filter(|span| self.line[span.clone()].starts_with('['))
    }

    fn is_empty(&self, span: &Range<usize>) -> bool {
        self.line[span.start + 1..span.end - 1].trim().is_empty()
    }

    /// Where the value at `path` is.
    fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        let whole = self.line.trim();
        let start = self.line.len() - self.line.trim_start().len();
        let mut span = start..start + whole.len();
        for key in path {
            let object = &self.line[span.clone()];
            let fields: HashMap<String, &RawValue> = serde_json::from_str(object).ok()?;
            let value = fields.get(*key)?.get();
            // It is a part of the line: only where it begins has to be known.
            let offset = value.as_ptr() as usize - object.as_ptr() as usize;
            span = span.start + offset..span.start + offset + value.len();
        }
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_place_that_is_meant_changes() {
        let line = br#" {"z":1.0e2, "params" : { "sessionId" :"a\u0062", "big":123456789012345678901234567890,"list":[ ]},"a":{}} "#;
        let mut edits = Edits::new(line);
        edits.replace(&["params", "sessionId"], &r#""other""#);
        edits.append(&["params", "list"], &r#"{"x":1}"#);
        edits.insert(&["a"], "k", &"2");
        edits.set(&["params"], "new", &"true");
        edits.replace(&["params", "nowhere"], &"0");
        let made = String::from_utf8(edits.make()).expect("it is text");
        let expected = r#" {"z":1.0e2, "params" : {"new":true, "sessionId" :"other", "big":123456789012345678901234567890,"list":[ {"x":1}]},"a":{"k":2}} "#;
        assert_eq!(made, expected);
    }

    #[test]
    fn without_changes_every_byte_stays() {
        let line = "{\"a\" :\t1e400,\"\u{e9}\":\"\\/\"}".as_bytes();
        assert_eq!(Edits::new(line).make(), line);
    }
}
