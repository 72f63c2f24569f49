//! The model behind the agents: it has them write a file with a tool and others with the shell, whatever their tools are called.

use std::path::Path;

use retake_testkit::ScriptedModel;
use retake_testkit::model::{Answer, Received, Wire};
use serde_json::{Map, Value, json};

use super::outline::{Sent, is_result, last_prompt, messages, trace};

/// What agents call their tool that writes a file, and their shell.
const WRITERS: [&str; 6] = ["write", "write_file", "write_text_file", "create_file", "editor", CREATOR];
const SHELLS: [&str; 6] = ["bash", "run_shell_command", "shell", "exec_command", "terminal", "run_commands"];

/// A writer that refuses files that are there, and the tool of the same agents that changes them.
const CREATOR: &str = "create";
const EDITOR: &str = "edit";

/// The tool that Codex does not offer to models that it does not know, but takes a command of that name for.
const PATCH: &str = "apply_patch";

/// What the server says of a place that it does not have.
const NOT_THERE: &str = "there is nothing at";

pub struct Model {
    model: ScriptedModel,
}

impl Model {
    pub fn start(project: &Path) -> Self {
        let project = project.to_owned();
        let model = ScriptedModel::answering(move |received| answer(received, &project));
        model.tolerates();
        Self { model }
    }

    pub fn url(&self) -> String {
        self.model.url()
    }

    /// What the model is sent while `work` does a turn.
    pub fn during(&self, turn: u64, work: impl FnOnce()) -> Sent {
        let before = self.asked().len();
        work();
        Sent::new(turn, self.asked().split_off(before))
    }

    /// Every request that was one to a model: agents look around, too.
    pub fn asked(&self) -> Vec<Received> {
        self.model.requests().into_iter().filter(|request| !messages(request).is_empty()).collect()
    }

    /// What the server has to say about requests that it did not refuse, each once.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.model.complaints();
        remarks.retain(|why| !why.starts_with(NOT_THERE));
        remarks.sort();
        remarks.dedup();
        remarks
    }

    /// The tools that the model may call, as it is told them.
    pub fn offered(&self) -> Vec<Value> {
        let offered = self.asked().into_iter().map(|request| tools(&request)).find(|tools| !tools.is_empty());
        offered.unwrap_or_default()
    }

    /// What the agent calls the tools that were called.
    pub fn tools(&self) -> Vec<String> {
        let offered = self.offered();
        let named = |tool: Option<&Value>| tool.map_or(PATCH, name).to_owned();
        vec![named(find(&offered, &WRITERS)), named(find(&offered, &SHELLS))]
    }

    /// The wire format that the agent spoke.
    pub fn wire(&self) -> &'static str {
        match self.asked().last().map(Received::wire) {
            Some(Wire::Anthropic) => "messages",
            Some(Wire::OpenAi) => "chat completions",
            Some(Wire::Responses) => "responses",
            None => "none",
        }
    }
}

fn tools(received: &Received) -> Vec<Value> {
    received.body()["tools"].as_array().cloned().unwrap_or_default()
}

fn answer(received: &Received, project: &Path) -> Answer {
    let tools = tools(received);
    // Titles and the like are asked for without tools.
    if tools.is_empty() {
        return Answer::default().says("A title");
    }
    let (turn, results) = standing(&messages(received));
    match (turn, results) {
        (Some(turn @ (1 | 2)), 0) => write(&tools, project, turn),
        (Some(turn @ (1 | 2)), 1) => {
            let trace = trace(turn);
            call(&tools, project, &SHELLS, &trace, &format!("echo {trace} > shell.txt && cp shell.txt only-{turn}.txt"))
        }
        (Some(turn), _) => Answer::default().says(&format!("Done: {}", trace(turn))),
        (None, _) => Answer::default().says("Nothing was asked."),
    }
}

/// The turn that the last prompt names, and how many results came since.
fn standing(messages: &[Value]) -> (Option<u64>, usize) {
    let turn = |message: &Value| last_prompt(&message.to_string());
    let is_prompt = |message: &Value| message["role"] == "user" && !is_result(message) && turn(message).is_some();
    let Some(prompt) = messages.iter().rposition(is_prompt) else { return (None, 0) };
    (turn(&messages[prompt]), messages[prompt..].iter().filter(|message| is_result(message)).count())
}

/// Writes `tool.txt` with the agent's tool for that.
fn write(tools: &[Value], project: &Path, turn: u64) -> Answer {
    let trace = trace(turn);
    match find(tools, &WRITERS) {
        Some(tool) if turn > 1 && name(tool) == CREATOR => call(tools, project, &[EDITOR], &trace, ""),
        Some(_) => call(tools, project, &WRITERS, &trace, ""),
        None => {
            let patch = format!("*** Begin Patch\n*** Add File: tool.txt\n+{trace}\n*** End Patch");
            call(tools, project, &SHELLS, &trace, &format!("{PATCH} <<'EOF'\n{patch}\nEOF"))
        }
    }
}

fn name(tool: &Value) -> &str {
    tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap_or_default()
}

fn find<'a>(tools: &'a [Value], names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|wanted| tools.iter().find(|tool| name(tool).eq_ignore_ascii_case(wanted)))
}

/// Calls the first tool of one of these names, with arguments that its schema wants.
fn call(tools: &[Value], project: &Path, names: &[&str], content: &str, command: &str) -> Answer {
    let Some(tool) = find(tools, names) else {
        let all: Vec<&str> = tools.iter().map(name).collect();
        return Answer::default().says(&format!("there is none of {names:?} in {all:?}"));
    };
    let schemas = [&tool["function"]["parameters"], &tool["input_schema"], &tool["parameters"]];
    let schema = schemas.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut arguments = Map::new();
    for (key, property) in &properties {
        let value = match key.as_str() {
            "filePath" | "file_path" | "absolute_path" | "path" => json!(project.join("tool.txt")),
            "content" | "file_text" | "contents" => json!(format!("{content}\n")),
            // The file is not there before the first turn.
            "old_str" | "old_text" if content == trace(1) => continue,
            "old_str" | "old_text" => json!(trace(1)),
            "new_str" | "new_text" => json!(content),
            "command" | "cmd" => json!(command),
            "commands" => json!([command]),
            "overwrite" => json!(true),
            _ if !required.contains(&json!(key)) => continue,
            _ if property["type"] == "boolean" => json!(false),
            _ if property["type"] == "integer" || property["type"] == "number" => json!(10_000),
            _ => json!("as asked"),
        };
        arguments.insert(key.clone(), value);
    }
    Answer::default().calls(name(tool), Value::Object(arguments))
}
