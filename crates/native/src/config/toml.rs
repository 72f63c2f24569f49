//! Hooks in TOML: tables in the array `hooks`, written as `[[hooks]]` or inline.

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, TableLike, Value};

use super::{BadConfig, Insertion, line_break};

const HOOKS: &str = "hooks";

/// A hook as its keys and values, in the order in which they are written.
pub(crate) type Table = Vec<(&'static str, Value)>;

/// Where `tables` go in `text`: at its end, or into the inline array if there is one.
pub(crate) fn insertions(text: &str, tables: &[Table]) -> Result<Vec<Insertion>, BadConfig> {
    let document = parse(text)?;
    if let Some(array) = inline(text, &document)? {
        let rendered: Vec<String> = tables.iter().map(inline_table).collect();
        let last = array.iter().last().and_then(Value::span);
        let start = array.span().map_or(0, |span| span.start);
        let (at, text) = match last {
            Some(last) => (last.end, format!(", {}", rendered.join(", "))),
            None => (start + 1, rendered.join(", ")),
        };
        return Ok(vec![Insertion { at, text }]);
    }
    let newline = line_break(text);
    let mut out = String::new();
    if !text.is_empty() && !text.ends_with('\n') {
        out.push_str(newline);
    }
    for (index, table) in tables.iter().enumerate() {
        if 0 < index || !text.is_empty() {
            out.push_str(newline);
        }
        out.push_str(&format!("[[{HOOKS}]]{newline}"));
        for (key, value) in table {
            out.push_str(&format!("{key} = {}{newline}", value.to_string().trim()));
        }
    }
    let insertion = Insertion { at: text.len(), text: out };
    // What `hooks` are elsewhere in the document decides whether more of them may follow.
    parse(&super::insert(text, std::slice::from_ref(&insertion)))?;
    Ok(vec![insertion])
}

/// The string values of each hook under `event` and `command`.
pub(crate) fn entries(text: &str) -> Result<Vec<(String, String)>, BadConfig> {
    let document = parse(text)?;
    let of = |get: &dyn Fn(&str) -> Option<String>| Some((get("event")?, get("command")?));
    if let Some(array) = inline(text, &document)? {
        let tables = array.iter().filter_map(Value::as_inline_table);
        let string = |table: &InlineTable, key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
        return Ok(tables.filter_map(|table| of(&|key| string(table, key))).collect());
    }
    let tables = document.get(HOOKS).and_then(Item::as_array_of_tables).into_iter().flatten();
    let string = |table: &toml_edit::Table, key: &str| table.get(key).and_then(Item::as_str).map(str::to_owned);
    Ok(tables.filter_map(|table| of(&|key| string(table, key))).collect())
}

/// The text without the hooks whose command `is_ours`.
pub(crate) fn without(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<String, BadConfig> {
    let mut text = text.to_owned();
    while let Some(cut) = first_cut(&text, is_ours)? {
        text.replace_range(cut, "");
    }
    Ok(text)
}

/// The document's keys and values, without spaces, comments and hooks that hold nothing; `None` for what is not TOML.
pub(crate) fn meaning(text: &str) -> Option<Vec<String>> {
    let document = parse(text).ok()?;
    let mut said = Vec::new();
    flatten(document.as_table(), "", &mut said);
    Some(said)
}

fn flatten(table: &dyn TableLike, path: &str, said: &mut Vec<String>) {
    for (key, item) in table.iter() {
        let path = format!("{path}.{key:?}");
        match item {
            Item::None => {}
            Item::Table(table) => {
                said.push(path.clone());
                flatten(table, &path, said);
            }
            Item::ArrayOfTables(tables) => {
                for (index, table) in tables.iter().enumerate() {
                    said.push(format!("{path}[{index}]"));
                    flatten(table, &format!("{path}[{index}]"), said);
                }
            }
            Item::Value(value) => flatten_value(value, &path, said),
        }
    }
}

fn flatten_value(value: &Value, path: &str, said: &mut Vec<String>) {
    match value {
        Value::Array(array) if array.is_empty() && path == ".\"hooks\"" => {}
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                said.push(format!("{path}[{index}]"));
                flatten_value(value, &format!("{path}[{index}]"), said);
            }
        }
        Value::InlineTable(table) => {
            said.push(path.to_owned());
            flatten(table, path, said);
        }
        Value::String(text) => said.push(format!("{path} = {:?}", text.value())),
        other => said.push(format!("{path} = {}", other.to_string().trim())),
    }
}

/// Refuses a text that is not TOML, and hooks of another kind.
pub(crate) fn check(text: &str) -> Result<(), BadConfig> {
    let document = parse(text)?;
    inline(text, &document).map(drop)
}

fn parse(text: &str) -> Result<Document<&str>, BadConfig> {
    Document::parse(text)
        .map_err(|err| BadConfig::at(text, err.span().map_or(0, |span| span.start), err.message().to_owned()))
}

/// The hooks, if they are an inline array.
fn inline<'a>(text: &str, document: &'a Document<&str>) -> Result<Option<&'a toml_edit::Array>, BadConfig> {
    match document.get(HOOKS) {
        None | Some(Item::None | Item::ArrayOfTables(_)) => Ok(None),
        Some(Item::Value(Value::Array(array))) => Ok(Some(array)),
        Some(other) => {
            let at = other.span().map_or(0, |span| span.start);
            Err(BadConfig::at(text, at, "`hooks` is expected to be an array of tables"))
        }
    }
}

fn inline_table(table: &Table) -> String {
    let members: Vec<String> =
        table.iter().map(|(key, value)| format!("{key} = {}", value.to_string().trim())).collect();
    format!("{{ {} }}", members.join(", "))
}

fn first_cut(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<Option<Range<usize>>, BadConfig> {
    let document = parse(text)?;
    if let Some(array) = inline(text, &document)? {
        let is_ours = |value: &Value| {
            value.as_inline_table().and_then(|table| table.get("command")?.as_str()).is_some_and(is_ours)
        };
        let spans: Vec<Range<usize>> = array.iter().filter_map(Value::span).collect();
        let Some(index) = array.iter().position(is_ours) else { return Ok(None) };
        return Ok(spans.get(index).map(|span| match (index.checked_sub(1), spans.get(index + 1)) {
            // From the end of the one before, so that its comma goes; a comment in between is about ours.
            (Some(before), _) => spans[before].end..span.end,
            (None, Some(next)) => span.start..next.start,
            (None, None) => {
                let comma = text[span.end..].find(|c: char| !c.is_whitespace()).map(|skip| span.end + skip);
                let comma = comma.filter(|at| text[*at..].starts_with(','));
                span.start..comma.map_or(span.end, |at| at + 1)
            }
        }));
    }
    let Some(tables) = document.get(HOOKS).and_then(Item::as_array_of_tables) else { return Ok(None) };
    let ours = tables.iter().find(|table| table.get("command").and_then(Item::as_str).is_some_and(is_ours));
    let Some(table) = ours else { return Ok(None) };
    let header = table.span().map_or(0..0, |span| span);
    let values = table.iter().filter_map(|(_, item)| item.span()).map(|span| span.end);
    let end = values.max().unwrap_or(header.end).max(header.end);
    let line_end = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
    // The blank line that separated it from what is before.
    let mut start = text[..header.start].rfind('\n').map_or(0, |at| at + 1);
    for blank in ["\r\n", "\n"] {
        if text[..start].ends_with(&format!("\n{blank}")) {
            start -= blank.len();
            break;
        }
    }
    Ok(Some(start..line_end))
}
