//! Arguments of calls: what a tool takes, as a table from which both the schema and the checks are made.
//!
//! Models slip. Where what they meant cannot be doubted (a number or a list as a string, `null` for something left out) it is taken;
//! anything else is a failed result that names the arguments, so that the next attempt can be right.

use serde_json::{Map, Value, json};

use super::Output;

/// One argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: ArgumentKind,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

/// Whether an argument may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentKind {
    Text,
    /// A whole number of at least this.
    Integer(u64),
    Flag,
    Choice(&'static [&'static str]),
    /// A list of objects with these fields.
    List(&'static [Argument]),
}

/// An argument that has to be given.
pub(crate) const fn required(name: &'static str, kind: ArgumentKind, about: &'static str) -> Argument {
    Argument { name, kind, need: Need::Required, about }
}

/// An argument that may be left out.
pub(crate) const fn optional(name: &'static str, kind: ArgumentKind, about: &'static str) -> Argument {
    Argument { name, kind, need: Need::Optional, about }
}

/// The JSON schema of an object with these fields.
pub(crate) fn schema(fields: &[Argument]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field_schema(field))).collect();
    let required: Vec<&str> = fields.iter().filter(|f| f.need == Need::Required).map(|f| f.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn field_schema(field: &Argument) -> Value {
    let mut schema = match field.kind {
        ArgumentKind::Text => json!({ "type": "string" }),
        ArgumentKind::Integer(least) => json!({ "type": "integer", "minimum": least }),
        ArgumentKind::Flag => json!({ "type": "boolean" }),
        ArgumentKind::Choice(choices) => json!({ "type": "string", "enum": choices }),
        ArgumentKind::List(fields) => json!({ "type": "array", "items": schema(fields) }),
    };
    schema["description"] = Value::from(field.about);
    schema
}

/// Arguments that fit a tool's table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads what the model wrote.
    pub(crate) fn parse(tool: &str, fields: &[Argument], raw: &str) -> Result<Self, Output> {
        let fault = |why: String| Output::failed(format!("{why} {}", usage(tool, fields)));
        // A call without arguments is written as nothing by some models.
        let raw = if raw.trim().is_empty() { "{}" } else { raw };
        let value: Value = serde_json::from_str(raw).map_err(|error| {
            fault(format!("The arguments of `{tool}` are not valid JSON ({error}); nothing was done."))
        })?;
        let Value::Object(given) = value else {
            return Err(fault(format!("The arguments of `{tool}` must be a JSON object; nothing was done.")));
        };
        fit(given, fields).map(Self).map_err(|why| fault(format!("{why}; nothing was done.")))
    }

    /// A text; empty if it was left out.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A text that may be left out.
    pub(crate) fn text_if_given(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A number that may be left out.
    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// Whether a flag was set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The objects of a list.
    pub(crate) fn list(&self, name: &str) -> Vec<Self> {
        let items = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_object).map(|item| Self(item.clone())).collect()
    }
}

/// The tool's arguments, for a model that got them wrong.
fn usage(tool: &str, fields: &[Argument]) -> String {
    if fields.is_empty() {
        return format!("`{tool}` takes no arguments: `{{}}`.");
    }
    let fields = fields.iter().map(|field| {
        let need = if field.need == Need::Required { "required" } else { "optional" };
        format!("`{}` ({}, {need})", field.name, kind_in_words(field.kind))
    });
    format!("`{tool}` takes {}.", fields.collect::<Vec<_>>().join(", "))
}

fn kind_in_words(kind: ArgumentKind) -> String {
    match kind {
        ArgumentKind::Text => "string".to_owned(),
        ArgumentKind::Integer(least) => format!("integer of at least {least}"),
        ArgumentKind::Flag => "boolean".to_owned(),
        ArgumentKind::Choice(choices) => format!("one of {}", choices.join(", ")),
        ArgumentKind::List(fields) => {
            format!(
                "array of objects with {}",
                fields.iter().map(|f| format!("`{}`", f.name)).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn fit(mut given: Map<String, Value>, fields: &[Argument]) -> Result<Map<String, Value>, String> {
    let mut fitting = Map::new();
    for field in fields {
        match given.remove(field.name) {
            None | Some(Value::Null) if field.need == Need::Required => {
                return Err(format!("The argument `{}` is missing", field.name));
            }
            None | Some(Value::Null) => {}
            Some(value) => {
                fitting.insert(field.name.to_owned(), fit_value(value, field)?);
            }
        }
    }
    match given.keys().next() {
        Some(unknown) => Err(format!("There is no argument `{unknown}`")),
        None => Ok(fitting),
    }
}

fn fit_value(value: Value, field: &Argument) -> Result<Value, String> {
    let wrong = || format!("The argument `{}` must be {}", field.name, kind_in_words(field.kind));
    match (field.kind, value) {
        (ArgumentKind::Text, value @ Value::String(_)) => Ok(value),
        (ArgumentKind::Integer(least), value) => {
            whole_number(&value).filter(|n| *n >= least).map(Value::from).ok_or_else(wrong)
        }
        (ArgumentKind::Flag, value @ Value::Bool(_)) => Ok(value),
        (ArgumentKind::Flag, Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(wrong()),
        },
        (ArgumentKind::Choice(choices), Value::String(text)) if choices.contains(&text.as_str()) => {
            Ok(Value::String(text))
        }
        (ArgumentKind::List(fields), value) => fit_list(value, field.name, fields, &wrong),
        (ArgumentKind::Text | ArgumentKind::Flag | ArgumentKind::Choice(_), _) => Err(wrong()),
    }
}

fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        // 12.0 is 12; what has a fraction is no line number.
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().filter(|n| n.fract() == 0.0 && (0.0..9e15).contains(n)).map(|n| n as u64)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn fit_list(value: Value, name: &str, fields: &[Argument], wrong: &dyn Fn() -> String) -> Result<Value, String> {
    let items = match value {
        Value::Array(items) => items,
        Value::String(text) => serde_json::from_str(&text).map_err(|_| wrong())?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return Err(wrong()),
    };
    let fit_item = |(at, item): (usize, Value)| match item {
        Value::Object(item) => fit(item, fields).map(Value::Object).map_err(|why| format!("In `{name}[{at}]`: {why}")),
        _ => Err(wrong()),
    };
    items.into_iter().enumerate().map(fit_item).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Argument] = &[
        required("path", ArgumentKind::Text, "A file."),
        optional("offset", ArgumentKind::Integer(1), "First line."),
        optional("all", ArgumentKind::Flag, "All of them."),
        optional("edits", ArgumentKind::List(&[required("old", ArgumentKind::Text, "Old.")]), "Edits."),
    ];

    fn parse(raw: &str) -> Result<Arguments, String> {
        Arguments::parse("t", FIELDS, raw).map_err(|output| output.text())
    }

    #[test]
    fn slips_that_cannot_be_misunderstood_are_taken() {
        let arguments = parse(r#"{"path":"a","offset":"12","all":"true","edits":"[{\"old\":\"x\"}]"}"#).expect("fits");
        assert_eq!((arguments.integer("offset"), arguments.is_set("all")), (Some(12), true));
        assert_eq!(arguments.list("edits")[0].text("old"), "x");
        assert_eq!(parse(r#"{"path":"a","offset":3.0,"all":null}"#).expect("fits").integer("offset"), Some(3));
    }

    #[test]
    fn what_is_wrong_is_named_with_all_arguments() {
        for (raw, why) in [
            ("", "`path` is missing"),
            ("{\"path\":", "not valid JSON"),
            ("[]", "must be a JSON object"),
            (r#"{"path":1}"#, "`path` must be string"),
            (r#"{"path":"a","offset":0}"#, "`offset` must be integer of at least 1"),
            (r#"{"path":"a","offset":1.5}"#, "`offset` must be integer"),
            (r#"{"path":"a","file":"b"}"#, "no argument `file`"),
            (r#"{"path":"a","edits":[{"new":"x"}]}"#, "In `edits[0]`: The argument `old` is missing"),
        ] {
            let text = parse(raw).expect_err(raw);
            assert!(text.contains(why) && text.contains("`t` takes `path` (string, required)"), "{raw}: {text}");
        }
    }
}
