//! A request as the server received it, and ways to read it that are the same for all wire formats.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use serde_json::value::RawValue;

use super::http::Incoming;

/// What marks the end of what a provider may cache. Within a string its quotes would be escaped, so it is only ever a mark.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The wire format of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// Chat completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
}

/// A request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Received {
    body: Arc<OnceLock<Value>>,
    /// The path that was asked for.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub text: Arc<str>,
}

impl Received {
    pub(super) fn new(incoming: Incoming) -> Self {
        let text = String::from_utf8_lossy(&incoming.body).into();
        Self { path: incoming.path, headers: incoming.headers, text, body: Arc::default() }
    }

    /// The body, parsed; `null` if it is no JSON.
    pub fn body(&self) -> &Value {
        self.body.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }

    /// Its wire format, by the path.
    pub fn wire(&self) -> Wire {
        let path = self.path.split('?').next().unwrap_or_default();
        match path.rsplit('/').next() {
            Some("messages") => Wire::Anthropic,
            Some("responses") => Wire::Responses,
            _ => Wire::OpenAi,
        }
    }

    /// The model that was asked for.
    pub fn model(&self) -> &str {
        self.body()["model"].as_str().unwrap_or_default()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The body without cache marks, otherwise byte for byte.
    pub fn text_without_marks(&self) -> String {
        self.text.replace(MARK, "")
    }

    /// What the list of messages is called.
    fn list(&self) -> &'static str {
        match self.wire() {
            Wire::Anthropic | Wire::OpenAi => "messages",
            Wire::Responses => "input",
        }
    }

    /// Each message, or item, without cache marks, otherwise byte for byte.
    pub fn messages(&self) -> Vec<String> {
        let text = self.text_without_marks();
        let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(&text).expect("a body that is a JSON object");
        let messages: Vec<Box<RawValue>> = fields
            .get(self.list())
            .map_or_else(Vec::new, |all| serde_json::from_str(all.get()).expect("a list of messages"));
        messages.iter().map(|message| message.get().to_owned()).collect()
    }

    /// The messages without cache marks, one a line.
    pub fn messages_text(&self) -> String {
        self.messages().join("\n")
    }

    /// The conversation for people to read, the same for all wire formats as long as results have no images.
    pub fn transcript(&self) -> String {
        let mut lines = Vec::new();
        let system = texts(&self.body()["system"]);
        if !system.is_empty() {
            lines.push(format!("system: {system}"));
        }
        for message in self.body()[self.list()].as_array().into_iter().flatten() {
            match self.wire() {
                Wire::Anthropic | Wire::OpenAi => add_lines(&mut lines, message),
                Wire::Responses => add_item(&mut lines, message),
            }
        }
        lines.join("\n")
    }
}

/// Adds an item of Responses; what the model thought, said and called together is one line.
fn add_item(lines: &mut Vec<String>, item: &Value) {
    let said = match item["type"].as_str().unwrap_or("message") {
        "function_call_output" => return lines.push(format!("tool: {}", texts(&item["output"]))),
        "message" if item["role"] != "assistant" => {
            let role = item["role"].as_str().unwrap_or("?");
            return lines.push(format!("{role}: {}", texts(&item["content"])));
        }
        "message" => texts(&item["content"]),
        "reasoning" => format!("[thought {}]", texts(&item["summary"])),
        "function_call" => {
            let arguments = item["arguments"].as_str().unwrap_or_default();
            shown_call(&item["name"], &serde_json::from_str(arguments).unwrap_or_default())
        }
        other => format!("[{other}]"),
    };
    match lines.last_mut().filter(|line| line.starts_with("assistant: ")) {
        Some(line) => *line = format!("{line} {said}"),
        None => lines.push(format!("assistant: {said}")),
    }
}

fn add_lines(lines: &mut Vec<String>, message: &Value) {
    let role = message["role"].as_str().unwrap_or("?");
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    lines.extend(results.map(|result| format!("tool: {}", texts(&result["content"]))));
    let mut said: Vec<String> = Vec::new();
    said.extend(message["reasoning_content"].as_str().map(|thought| format!("[thought {thought}]")));
    said.extend(
        blocks
            .iter()
            .filter(|block| block["type"] == "thinking")
            .map(|block| format!("[thought {}]", block["thinking"].as_str().unwrap_or_default())),
    );
    let text = texts(&message["content"]);
    said.extend((!text.is_empty()).then_some(text));
    said.extend(
        blocks
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| shown_call(&block["name"], &block["input"])),
    );
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        said.push(shown_call(&call["function"]["name"], &serde_json::from_str(arguments).unwrap_or_default()));
    }
    if !said.is_empty() {
        lines.push(format!("{role}: {}", said.join(" ")));
    }
}

fn shown_call(name: &Value, arguments: &Value) -> String {
    format!("[call {} {arguments}]", name.as_str().unwrap_or("?"))
}

/// The texts of a content, whichever way it is written.
fn texts(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let text = |part: &Value| match part["type"].as_str()? {
        "text" | "input_text" | "output_text" | "summary_text" => part["text"].as_str().map(str::to_owned),
        "image" => Some(format!("[image {}]", part["source"]["media_type"].as_str().unwrap_or("?"))),
        "image_url" | "input_image" => {
            let url = part["image_url"]["url"].as_str().or(part["image_url"].as_str())?;
            Some(format!("[image {}]", url.trim_start_matches("data:").split(';').next()?))
        }
        _ => None,
    };
    content.as_array().into_iter().flatten().filter_map(text).collect::<Vec<_>>().join("\n\n")
}
