//! A validator for as much of JSON Schema as the protocol uses. A keyword that it does not know fails, so that none is passed over.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Keywords that say nothing about what is valid.
const SILENT: [&str; 12] = [
    "description",
    "title",
    "default",
    "format",
    "discriminator",
    "contentEncoding",
    "$schema",
    "$defs",
    "x-side",
    "x-method",
    "examples",
    "$comment",
];

/// The definitions of a schema.
pub(super) struct Validator {
    definitions: Map<String, Value>,
    methods: HashMap<(String, String), String>,
}

impl Validator {
    pub(super) fn new(mut schema: Value) -> Self {
        let definitions = schema["$defs"].as_object_mut().map(std::mem::take).unwrap_or_default();
        let mut methods = HashMap::new();
        for (name, definition) in &definitions {
            let kind = ["Request", "Response", "Notification"].iter().find(|kind| name.ends_with(*kind));
            if let (Some(kind), Some(method)) = (kind, definition["x-method"].as_str()) {
                methods.insert((method.to_owned(), (*kind).to_owned()), name.clone());
            }
        }
        Self { definitions, methods }
    }

    /// The definition of a method's message.
    pub(super) fn definition(&self, method: &str, kinds: &[&str]) -> Option<String> {
        kinds.iter().find_map(|kind| self.methods.get(&(method.to_owned(), (*kind).to_owned())).cloned())
    }

    /// What is wrong with a value that should be `definition`.
    pub(super) fn check(&self, definition: &str, value: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let schema = self.definitions.get(definition).unwrap_or_else(|| panic!("there is no `{definition}`"));
        self.value(schema, value, definition, &mut wrong);
        wrong
    }

    fn is_valid(&self, schema: &Value, value: &Value, at: &str) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        self.value(schema, value, at, &mut wrong);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn value(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        let Some(keywords) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                wrong.push(format!("{at}: nothing is allowed here"));
            }
            return;
        };
        for (keyword, rule) in keywords {
            match keyword.as_str() {
                "$ref" => {
                    let name = rule.as_str().and_then(|path| path.strip_prefix("#/$defs/")).expect("a local reference");
                    self.value(&self.definitions[name], value, at, wrong);
                }
                "type" => check_type(rule, value, at, wrong),
                "const" if rule != value => wrong.push(format!("{at}: {value} is not {rule}")),
                "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => {
                    wrong.push(format!("{at}: {value} is none of {rule}"));
                }
                "anyOf" => self.some_of(rule, value, at, wrong, 1..),
                "oneOf" => self.some_of(rule, value, at, wrong, 1..=1),
                "allOf" => items(rule).for_each(|one| self.value(one, value, at, wrong)),
                "not" if self.is_valid(rule, value, at).is_ok() => wrong.push(format!("{at}: this is ruled out")),
                "required" => {
                    let lacks = |name: &&Value| value.is_object() && value.get(name.as_str().unwrap_or("")).is_none();
                    wrong.extend(items(rule).filter(lacks).map(|name| format!("{at}: {name} is missing")));
                }
                "properties" => self.properties(rule, value, at, wrong),
                "additionalProperties" => self.others(keywords, rule, value, at, wrong),
                "items" => {
                    for (index, one) in items(value).enumerate() {
                        self.value(rule, one, &format!("{at}[{index}]"), wrong);
                    }
                }
                "minItems" | "minLength" | "minimum" | "maximum" | "maxItems" => limit(keyword, rule, value, at, wrong),
                "const" | "enum" | "not" => {}
                silent if SILENT.contains(&silent) || silent.starts_with("x-deserialize") => {}
                unknown => panic!("the keyword `{unknown}` is not known here"),
            }
        }
    }

    fn some_of(
        &self,
        rule: &Value,
        value: &Value,
        at: &str,
        wrong: &mut Vec<String>,
        count: impl std::ops::RangeBounds<usize>,
    ) {
        let tried: Vec<_> = items(rule).map(|one| self.is_valid(one, value, at)).collect();
        let fitting = tried.iter().filter(|result| result.is_ok()).count();
        if !count.contains(&fitting) {
            let why: Vec<String> = tried.into_iter().filter_map(Result::err).flatten().take(12).collect();
            wrong.push(format!("{at}: {fitting} of several fit {value}: {}", why.join("; ")));
        }
    }

    fn properties(&self, rule: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        for (name, schema) in rule.as_object().into_iter().flatten() {
            if let Some(value) = value.get(name) {
                self.value(schema, value, &format!("{at}.{name}"), wrong);
            }
        }
    }

    fn others(&self, all: &Map<String, Value>, rule: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        let is_known = |name: &str| all.get("properties").is_some_and(|known| known.get(name).is_some());
        for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| !is_known(name)) {
            self.value(rule, value, &format!("{at}.{name}"), wrong);
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn check_type(rule: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the type `{other}` is not known here"),
    };
    let fits = match rule {
        Value::String(name) => is(name),
        several => items(several).filter_map(Value::as_str).any(is),
    };
    if !fits {
        wrong.push(format!("{at}: {value} is no {rule}"));
    }
}

fn limit(keyword: &str, rule: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let bound = rule.as_f64().unwrap_or_default();
    let (size, is_least) = match keyword {
        "minItems" => (value.as_array().map(|all| all.len() as f64), true),
        "maxItems" => (value.as_array().map(|all| all.len() as f64), false),
        "minLength" => (value.as_str().map(|text| text.chars().count() as f64), true),
        "minimum" => (value.as_f64(), true),
        _ => (value.as_f64(), false),
    };
    if size.is_some_and(|size| if is_least { size < bound } else { bound < size }) {
        wrong.push(format!("{at}: {value} is beyond {keyword} {rule}"));
    }
}
