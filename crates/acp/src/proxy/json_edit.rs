//! Replaces single values in a line of JSON and keeps every other byte: unknown fields, the order of keys, the spelling of numbers.

use std::fmt::{self, Display};
use std::ops::Range;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Changes to a line that are collected first and made together. A place that is not there is not changed.
pub(super) struct JsonEdits<'a> {
    line: &'a str,
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> JsonEdits<'a> {
    /// Of a line of JSON.
    pub(super) fn new(line: &'a [u8]) -> Self {
        // What was parsed as JSON is UTF-8.
        Self { line: str::from_utf8(line).unwrap_or_default(), changes: Vec::new() }
    }

    /// Whether there is a value at `path`.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.span(path).is_some()
    }

    /// Puts another value in the place of the one at `path`, and of every other one that is there by the same name: readers differ in
    /// which of two they take.
    pub(super) fn replace(&mut self, path: &[&str], json: &impl Display) {
        for span in self.spans(path) {
            self.changes.push((span, json.to_string()));
        }
    }

    /// Puts a field first into the object at `path`, which has none of that name.
    pub(super) fn insert(&mut self, path: &[&str], key: &str, json: &impl Display) {
        let Some(span) = self.span(path).filter(|span| self.line[span.clone()].starts_with('{')) else { return };
        let comma = if self.is_empty(&span) { "" } else { "," };
        let field = format!("{}:{json}", Value::from(key));
        let place = span.start + 1..span.start + 1;
        // Whatever was put there before comes after it.
        match self.changes.iter_mut().find(|(span, _)| *span == place) {
            Some((_, text)) => *text = format!("{field},{text}"),
            None => self.changes.push((place, format!("{field}{comma}"))),
        }
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

    fn is_object(&self, path: &[&str]) -> bool {
        self.span(path).is_some_and(|span| self.line[span].starts_with('{'))
    }

    fn is_null(&self, path: &[&str]) -> bool {
        self.span(path).is_some_and(|span| &self.line[span] == "null")
    }

    fn is_empty(&self, span: &Range<usize>) -> bool {
        self.line[span.start + 1..span.end - 1].trim().is_empty()
    }

    /// Where the value at `path` is: the last one, if there are several.
    fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        self.spans(path).pop()
    }

    /// Where all values at `path` are.
    fn spans(&self, path: &[&str]) -> Vec<Range<usize>> {
        let whole = self.line.trim();
        let start = self.line.len() - self.line.trim_start().len();
        let whole = start..start + whole.len();
        path.iter().fold(vec![whole], |found, key| found.into_iter().flat_map(|span| self.fields(span, key)).collect())
    }

    /// Where the values of the fields of an object are that have this name.
    fn fields(&self, object: Range<usize>, name: &str) -> Vec<Range<usize>> {
        let text = &self.line[object.clone()];
        let mut reader = serde_json::Deserializer::from_str(text);
        let fields = reader.deserialize_map(Fields).unwrap_or_default();
        // A name that is no text, half a surrogate pair, say, is none that is looked for.
        let is_it = |key: &RawValue| serde_json::from_str::<String>(key.get()).is_ok_and(|key| key == name);
        let values = fields.into_iter().filter(|(key, _)| is_it(key)).map(|(_, value)| value.get());
        // They are parts of the line: only where they begin has to be known.
        let start = |value: &str| object.start + (value.as_ptr() as usize - text.as_ptr() as usize);
        values.map(|value| start(value)..start(value) + value.len()).collect()
    }
}

/// `line` with `value` at `path`; objects that are missing on the way, or null, are made. As it was if something else is in the way.
pub(crate) fn put(line: &[u8], path: &[&str], value: &Value) -> Vec<u8> {
    let mut edits = JsonEdits::new(line);
    for depth in (0..path.len()).rev() {
        let nested =
            path[depth + 1..].iter().rev().fold(value.clone(), |value, key| serde_json::json!({ *key: value }));
        let place = &path[..=depth];
        if edits.has(place) {
            if depth + 1 == path.len() || edits.is_null(place) {
                edits.replace(place, &nested);
            }
            break;
        }
        if edits.is_object(&path[..depth]) {
            edits.insert(&path[..depth], path[depth], &nested);
            break;
        }
    }
    edits.make()
}

/// The fields of an object in order, all unread.
struct Fields;

impl<'a> Visitor<'a> for Fields {
    type Value = Vec<(&'a RawValue, &'a RawValue)>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_place_that_is_meant_changes() {
        let line = br#" {"z":1.0e2, "params" : { "sessionId" :"a\u0062", "big":123456789012345678901234567890,"list":[ ]},"a":{}} "#;
        let mut edits = JsonEdits::new(line);
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
        assert_eq!(JsonEdits::new(line).make(), line);
    }

    #[test]
    fn several_fields_can_be_put_into_an_empty_object() {
        let mut edits = JsonEdits::new(b"{\"a\":{ }}");
        edits.insert(&["a"], "x", &"1");
        edits.insert(&["a"], "y", &"2");
        assert_eq!(edits.make(), b"{\"a\":{\"y\":2,\"x\":1 }}");
    }

    #[test]
    fn all_fields_of_a_name_are_changed_and_names_that_are_no_text_are_passed_over() {
        let mut edits = JsonEdits::new(br#"{"\ud83d":"\ud83d","params":{"id":1,"\udc00":0,"\u0069d":2}}"#);
        edits.replace(&["params", "id"], &"3");
        assert_eq!(edits.make(), br#"{"\ud83d":"\ud83d","params":{"id":3,"\udc00":0,"\u0069d":3}}"#);
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        let put = |line: &str| {
            String::from_utf8(put(line.as_bytes(), &["a", "b", "c"], &Value::from(1))).expect("it is text")
        };
        for (line, expected) in [
            ("{}", r#"{"a":{"b":{"c":1}}}"#),
            (r#"{"a":null,"z":0}"#, r#"{"a":{"b":{"c":1}},"z":0}"#),
            (r#"{"a":{}}"#, r#"{"a":{"b":{"c":1}}}"#),
            (r#"{"a":{"b":null}}"#, r#"{"a":{"b":{"c":1}}}"#),
            (r#"{"a":{"b":{"d":2}}}"#, r#"{"a":{"b":{"c":1,"d":2}}}"#),
            (r#"{"a":{"b":{"c":0}}}"#, r#"{"a":{"b":{"c":1}}}"#),
            (r#"{"a":[]}"#, r#"{"a":[]}"#),
            (r#"{"a":{"b":7}}"#, r#"{"a":{"b":7}}"#),
        ] {
            assert_eq!(put(line), expected, "{line}");
        }
    }
}
