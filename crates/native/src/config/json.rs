//! Hooks in JSON with comments and trailing commas: arrays of entries by event, below the key `hooks` of the root object.
//!
//! Hooks or an event that stand twice are refused: which of them counts is up to the agent. A byte order mark stays where it is.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::{BadConfig, Insertion, line_break};

const HOOKS: &str = "hooks";
const BOM: char = '\u{feff}';
/// The indentation where the text shows none.
const USUAL_INDENT: &str = "  ";

/// An entry and the event it is for.
pub(crate) type Entry = (String, Value);

/// Where `entries` go in `text`, each at the end of its event's array. Missing objects and arrays are made.
pub(crate) fn insertions(text: &str, entries: &[Entry]) -> Result<Vec<Insertion>, BadConfig> {
    let mut insertions = insertions_after_mark(unmarked(text), entries)?;
    let mark = text.len() - unmarked(text).len();
    insertions.iter_mut().for_each(|piece| piece.at += mark);
    Ok(insertions)
}

fn unmarked(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

fn insertions_after_mark(text: &str, entries: &[Entry]) -> Result<Vec<Insertion>, BadConfig> {
    let Some(root) = parse(text)? else {
        let document = with_key(HOOKS, by_event(entries));
        let at = text.len();
        let start = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(vec![Insertion { at, text: format!("{start}{}\n", render(&document, USUAL_INDENT, "", "\n")) }]);
    };
    let Some(hooks) = hooks(text, &root)? else {
        return Ok(Slot::object(text, &root).insert(&[member(HOOKS, &by_event(entries))]));
    };
    let mut insertions = Vec::new();
    let mut missing: Vec<Entry> = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for (event, _) in entries {
        if done.contains(&event.as_str()) {
            continue;
        }
        done.push(event);
        let of_event: Vec<Entry> = entries.iter().filter(|(other, _)| other == event).cloned().collect();
        match array(text, hooks, event)? {
            None => missing.extend(of_event),
            Some(array) => {
                let items: Vec<Item> = of_event.into_iter().map(|(_, value)| Item { key: None, value }).collect();
                insertions.extend(Slot::array(text, array).insert(&items));
            }
        }
    }
    if !missing.is_empty() {
        let Value::Object(members) = by_event(&missing) else { unreachable!("entries by event are an object") };
        let items: Vec<Item> = members.iter().map(|(event, value)| member(event, value)).collect();
        insertions.extend(Slot::object(text, hooks).insert(&items));
    }
    insertions.sort_by_key(|piece| piece.at);
    Ok(insertions)
}

/// All entries of all events.
pub(crate) fn entries(text: &str) -> Result<Vec<Entry>, BadConfig> {
    let Some(root) = parse(unmarked(text))? else { return Ok(Vec::new()) };
    let Some(hooks) = hooks(text, &root)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for property in &hooks.properties {
        only(text, hooks, property.name.as_str())?;
        if let Ast::Array(array) = &property.value {
            found.extend(array.elements.iter().map(|value| (property.name.as_str().to_owned(), to_value(value))));
        }
    }
    Ok(found)
}

/// The text without the entries that `is_ours` and without the array and object that they leave empty.
///
/// An entry with a list of commands under `hooks` loses those that are ours, and goes if none is left.
pub(crate) fn without(text: &str, is_ours: &dyn Fn(&Value) -> bool) -> Result<String, BadConfig> {
    let mark = &text[..text.len() - unmarked(text).len()];
    let mut text = unmarked(text).to_owned();
    while let Some(root) = parse(&text)? {
        let Some(cuts) = first_cut(&text, &root, is_ours)? else { break };
        for cut in cuts.into_iter().rev() {
            text.replace_range(cut, "");
        }
    }
    Ok(format!("{mark}{text}"))
}

/// The document's meaning, without hooks that hold nothing.
pub(crate) fn meaning(text: &str) -> Result<Value, BadConfig> {
    let mut value = parse(unmarked(text))?.map_or(Value::Null, |root| Value::Object(to_map(&root)));
    if let Some(Value::Object(hooks)) = value.get_mut(HOOKS) {
        hooks.retain(|_, entries| *entries != Value::Array(Vec::new()));
        if hooks.is_empty() {
            value.as_object_mut().expect("it has a key").remove(HOOKS);
        }
    }
    Ok(if value == Value::Object(Map::new()) { Value::Null } else { value })
}

fn parse(text: &str) -> Result<Option<Object<'_>>, BadConfig> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|err| BadConfig::at(text, err.range().start, err.kind().to_string()))?;
    match parsed.value {
        None => Ok(None),
        Some(Ast::Object(root)) => Ok(Some(root)),
        Some(other) => Err(BadConfig::at(text, other.range().start, "an object is expected")),
    }
}

fn only<'a, 'b>(text: &str, object: &'a Object<'b>, key: &str) -> Result<Option<&'a Ast<'b>>, BadConfig> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == key);
    match (found.next(), found.next()) {
        (_, Some(second)) => Err(BadConfig::at(text, second.range.start, format!("`{key}` stands here a second time"))),
        (first, None) => Ok(first.map(|property| &property.value)),
    }
}

fn hooks<'a, 'b>(text: &str, root: &'a Object<'b>) -> Result<Option<&'a Object<'b>>, BadConfig> {
    match only(text, root, HOOKS)? {
        None => Ok(None),
        Some(Ast::Object(hooks)) => Ok(Some(hooks)),
        Some(other) => Err(BadConfig::at(text, other.range().start, "`hooks` is expected to be an object")),
    }
}

fn array<'a, 'b>(text: &str, hooks: &'a Object<'b>, event: &str) -> Result<Option<&'a Array<'b>>, BadConfig> {
    match only(text, hooks, event)? {
        None => Ok(None),
        Some(Ast::Array(array)) => Ok(Some(array)),
        Some(other) => Err(BadConfig::at(text, other.range().start, format!("`{event}` is expected to be an array"))),
    }
}

fn to_map(object: &Object<'_>) -> Map<String, Value> {
    object.properties.iter().map(|property| (property.name.as_str().to_owned(), to_value(&property.value))).collect()
}

fn to_value(value: &Ast<'_>) -> Value {
    match value {
        Ast::StringLit(text) => Value::String(text.value.clone().into_owned()),
        // What is no number for `serde_json` is compared as it is written.
        Ast::NumberLit(number) => serde_json::from_str(number.value).unwrap_or_else(|_| number.value.into()),
        Ast::BooleanLit(boolean) => Value::Bool(boolean.value),
        Ast::Object(object) => Value::Object(to_map(object)),
        Ast::Array(array) => Value::Array(array.elements.iter().map(to_value).collect()),
        Ast::NullKeyword(_) => Value::Null,
    }
}

fn with_key(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

fn by_event(entries: &[Entry]) -> Value {
    let mut events = Map::new();
    for (event, entry) in entries {
        if let Value::Array(list) = events.entry(event).or_insert_with(|| Value::Array(Vec::new())) {
            list.push(entry.clone());
        }
    }
    Value::Object(events)
}

/// A member of an object, or an element of an array.
struct Item {
    key: Option<String>,
    value: Value,
}

fn member(key: &str, value: &Value) -> Item {
    Item { key: Some(key.to_owned()), value: value.clone() }
}

/// The end of a container, where items are added.
struct Slot<'a> {
    text: &'a str,
    /// The container, its brackets included.
    start: usize,
    end: usize,
    /// Where its first item starts and its last one ends, if it has any.
    items: Option<(usize, usize)>,
}

impl<'a> Slot<'a> {
    fn object(text: &'a str, object: &Object<'_>) -> Self {
        let items = object.properties.first().zip(object.properties.last());
        let items = items.map(|(first, last)| (first.range.start, last.range.end));
        Self { text, start: object.range.start, end: object.range.end, items }
    }

    fn array(text: &'a str, array: &Array<'_>) -> Self {
        let items = array.elements.first().zip(array.elements.last());
        let items = items.map(|(first, last)| (first.range().start, last.range().end));
        Self { text, start: array.range.start, end: array.range.end, items }
    }

    /// Adds `items` after all that the container holds, comments included, in the manner of its text.
    fn insert(&self, items: &[Item]) -> Vec<Insertion> {
        let newline = line_break(self.text);
        let inside = &self.text[self.start + 1..self.end - 1];
        let content_end = self.start + 1 + inside.trim_end().len();
        let mut insertions = Vec::new();
        if let Some((_, last)) = self.items.filter(|(_, last)| !self.has_comma_after(*last)) {
            insertions.push(Insertion { at: last, text: ",".to_owned() });
        }
        if self.items.is_some() && !inside.contains('\n') {
            let rendered: Vec<String> = items.iter().map(Item::inline).collect();
            insertions.push(Insertion { at: content_end, text: format!(" {}", rendered.join(", ")) });
            return insertions;
        }
        let outer = line_indent(self.text, self.start);
        let unit = indent_unit(self.text);
        let indent = match self.items {
            Some((first, _)) if is_first_on_line(self.text, first) => line_indent(self.text, first).to_owned(),
            _ => format!("{outer}{unit}"),
        };
        let rendered: Vec<String> = items.iter().map(|item| item.render(unit, &indent, newline)).collect();
        let mut text = format!("{newline}{indent}{}", rendered.join(&format!(",{newline}{indent}")));
        if !self.text[content_end..self.end - 1].contains('\n') {
            text.push_str(newline);
            text.push_str(outer);
        }
        insertions.push(Insertion { at: content_end, text });
        insertions
    }

    /// Whether a comma follows byte `at`, before the container's end.
    fn has_comma_after(&self, at: usize) -> bool {
        skip_blank(self.text, at).is_some_and(|next| self.text.as_bytes()[next] == b',')
    }
}

impl Item {
    fn inline(&self) -> String {
        self.keyed(self.value.to_string())
    }

    fn render(&self, unit: &str, indent: &str, newline: &str) -> String {
        self.keyed(render(&self.value, unit, indent, newline))
    }

    fn keyed(&self, value: String) -> String {
        match &self.key {
            Some(key) => format!("{}: {value}", Value::String(key.clone())),
            None => value,
        }
    }
}

/// Pretty JSON whose lines after the first start with `indent`.
fn render(value: &Value, unit: &str, indent: &str, newline: &str) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    serde::Serialize::serialize(value, &mut serializer).expect("writing JSON into memory cannot fail");
    String::from_utf8(out).expect("JSON is UTF-8").replace('\n', &format!("{newline}{indent}"))
}

/// The next byte from `at` on that belongs to neither a space nor a comment.
fn skip_blank(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        let next = rest.find(|c: char| !c.is_whitespace())?;
        at += next;
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n')? + 1
        } else if rest.starts_with("/*") {
            rest.find("*/")? + 2
        } else {
            return Some(at);
        };
        at += length;
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The spaces and tabs that the line of byte `at` starts with.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn is_first_on_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].chars().all(|c| matches!(c, ' ' | '\t'))
}

/// The indentation of the first line that has any.
fn indent_unit(text: &str) -> &str {
    let indents = text.lines().map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
    let is_unit = |indent: &&str| !indent.is_empty() && indent.len() <= 8;
    indents
        .filter(is_unit)
        .map(|indent| if indent.starts_with('\t') { "\t" } else { indent })
        .next()
        .unwrap_or(USUAL_INDENT)
}

/// The first thing to remove: an entry of ours, or what is left empty around one.
fn first_cut(
    text: &str,
    root: &Object<'_>,
    is_ours: &dyn Fn(&Value) -> bool,
) -> Result<Option<Vec<Range<usize>>>, BadConfig> {
    let Some(hooks) = hooks(text, root)? else { return Ok(None) };
    for (index, property) in hooks.properties.iter().enumerate() {
        let Ast::Array(array) = &property.value else { continue };
        for (place, entry) in array.elements.iter().enumerate() {
            let commands = commands(entry);
            let ours =
                commands.iter().flat_map(|list| &list.elements).filter(|value| is_ours(&to_value(value))).count();
            let is_whole =
                is_ours(&to_value(entry)) || commands.is_some_and(|list| 0 < ours && ours == list.elements.len());
            if is_whole {
                // With its last entry goes the array, and with the last array the object, unless comments are in them.
                if array.elements.len() == 1 && is_bare(text, array.range.start, array.range.end, entry) {
                    let is_last = hooks.properties.len() == 1;
                    if is_last && is_bare(text, hooks.range.start, hooks.range.end, property) {
                        let members = &root.properties;
                        let at = members.iter().rposition(|member| member.name.as_str() == HOOKS);
                        let at = at.expect("hooks were found");
                        return Ok(Some(cut(text, members, at)));
                    }
                    return Ok(Some(cut(text, &hooks.properties, index)));
                }
                return Ok(Some(cut(text, &array.elements, place)));
            }
            if let Some(list) = commands.filter(|_| 0 < ours) {
                let place = list.elements.iter().position(|value| is_ours(&to_value(value)));
                return Ok(place.map(|place| cut(text, &list.elements, place)));
            }
        }
    }
    Ok(None)
}

fn commands<'a, 'b>(entry: &'a Ast<'b>) -> Option<&'a Array<'b>> {
    let mut lists = entry.as_object()?.properties.iter().filter(|property| property.name.as_str() == HOOKS);
    lists.next_back()?.value.as_array()
}

/// Whether a container holds `item` and nothing else, not even a comment.
fn is_bare(text: &str, start: usize, end: usize, item: &impl Ranged) -> bool {
    let around = [&text[start + 1..item.range().start], &text[item.range().end..end - 1]];
    around.iter().all(|part| part.chars().all(|c| c.is_whitespace() || c == ','))
}

/// The bytes of item `index` with its comma and, if it has them to itself, its lines. A comment between the two stays.
fn cut(text: &str, items: &[impl Ranged], index: usize) -> Vec<Range<usize>> {
    let range = items[index].range();
    let (mut start, mut end) = (range.start, range.end);
    let mut comma = None;
    match skip_blank(text, end).filter(|at| text.as_bytes()[*at] == b',') {
        Some(at) if text[end..at].trim().is_empty() => end = at + 1,
        Some(at) => comma = Some(at),
        None if 0 < index => {
            let before = items[index - 1].range().end;
            comma = skip_blank(text, before).filter(|at| text.as_bytes()[*at] == b',');
        }
        None => {}
    }
    let line = line_start(text, start);
    let rest = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
    if text[line..start].trim().is_empty() && text[end..rest].trim().is_empty() && 0 < line {
        (start, end) = (line, rest);
    }
    // A comma on the item's own last line went with it.
    let comma = comma.filter(|at| !(start..end).contains(at)).map(|at| at..at + 1);
    let mut cuts: Vec<Range<usize>> = comma.into_iter().chain(std::iter::once(start..end)).collect();
    cuts.sort_by_key(|cut| cut.start);
    cuts
}
