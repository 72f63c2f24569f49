//! The model behind the agents: it has them write a file with a tool and another with the shell, whatever their tools are called.

use std::path::Path;
use std::sync::{Arc, Mutex};

use retake_testkit::ScriptedModel;
use retake_testkit::model::{Answer, Received};
use serde_json::{Map, Value, json};

pub struct Model {
    model: ScriptedModel,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Model {
    pub fn start(project: &Path) -> Self {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (noted, project) = (Arc::clone(&seen), project.to_owned());
        let model = ScriptedModel::answering(move |received| answer(received, &noted, &project));
        model.hurries();
        Self { model, seen }
    }

    pub fn url(&self) -> String {
        self.model.url()
    }

    /// What the model was sent last, tools aside.
    pub fn last_seen(&self) -> String {
        self.seen.lock().unwrap().last().cloned().unwrap_or_default()
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn answer(received: &Received, seen: &Mutex<Vec<String>>, project: &Path) -> Answer {
    let body = received.body();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    // Titles and the like are asked for without tools.
    if tools.is_empty() {
        return Answer::default().says("A title");
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    seen.lock().unwrap().push(Value::Array(messages.clone()).to_string());
    let (turn, results) = standing(&messages);
    match (turn, results) {
        (Some(turn @ (1 | 2)), 0) => call(&tools, project, &["write", "write_file", "create_file"], turn),
        (Some(turn @ (1 | 2)), 1) => call(&tools, project, &["bash", "run_shell_command", "shell"], turn),
        (turn, _) => Answer::default().says(&format!("done with turn {}", turn.unwrap_or_default())),
    }
}

/// The turn that the last prompt names, and how many results came since.
fn standing(messages: &[Value]) -> (Option<u64>, usize) {
    let is_result = |message: &Value| {
        message["role"] == "tool"
            || message["content"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "tool_result"))
    };
    let prompt = messages.iter().rposition(|message| {
        message["role"] == "user" && !is_result(message) && message.to_string().contains("RETAKE-TURN-")
    });
    let Some(prompt) = prompt else { return (None, 0) };
    let text = messages[prompt].to_string();
    // What a proxy tells before it names earlier turns.
    let at = text.rfind("RETAKE-TURN-").map(|at| at + "RETAKE-TURN-".len());
    let turn = at.and_then(|at| text[at..].chars().next()).and_then(|digit| digit.to_digit(10)).map(u64::from);
    (turn, messages[prompt..].iter().filter(|message| is_result(message)).count())
}

/// Calls the first tool of one of these names, with arguments that its schema wants.
fn call(tools: &[Value], project: &Path, names: &[&str], turn: u64) -> Answer {
    let name =
        |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap_or_default().to_owned();
    let found = names.iter().find_map(|wanted| tools.iter().find(|tool| name(tool).eq_ignore_ascii_case(wanted)));
    let Some(tool) = found else {
        let all: Vec<String> = tools.iter().map(name).collect();
        return Answer::default().says(&format!("there is none of {names:?} in {all:?}"));
    };
    let schema = if tool["function"].is_object() { &tool["function"]["parameters"] } else { &tool["input_schema"] };
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut arguments = Map::new();
    for (key, property) in &properties {
        let value = match key.as_str() {
            "filePath" | "file_path" | "absolute_path" | "path" => json!(project.join("tool.txt")),
            "content" => json!(format!("turn {turn}\n")),
            "command" => json!(format!("echo shell {turn} > {}", project.join("shell.txt").display())),
            _ if !required.contains(&json!(key)) => continue,
            _ if property["type"] == "boolean" => json!(false),
            _ if property["type"] == "integer" || property["type"] == "number" => json!(10_000),
            _ => json!("as asked"),
        };
        arguments.insert(key.clone(), value);
    }
    Answer::default().calls(&name(tool), Value::Object(arguments))
}
