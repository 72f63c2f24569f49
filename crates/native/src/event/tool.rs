//! Tools: what a call says about the files it may change.

use std::path::PathBuf;

use serde_json::Value;

use crate::ids::CallId;

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The agent's name for the tool.
    pub name: String,
    /// The call, where the agent numbers its calls.
    pub call: Option<CallId>,
    /// The files that the call says it changes, as they are written there: relative ones are relative to the agent's directory.
    pub paths: Vec<PathBuf>,
    /// What it may change.
    pub reach: Reach,
}

/// What a tool may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// No file: it is known to read only.
    Nothing,
    /// The files that the call names.
    Declared,
    /// Any file.
    Anything,
}

/// Tools that are known to change no file of the workspace. An unknown tool may change anything.
const READERS: [&str; 38] = [
    "AskUserQuestion",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "LS",
    "Read",
    "TaskOutput",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "ask_user",
    "ask_user_question",
    "fetch",
    "glob",
    "google_web_search",
    "grep",
    "grep_search",
    "list",
    "list_directory",
    "question",
    "read",
    "read_bash",
    "read_file",
    "read_many_files",
    "report_intent",
    "rg",
    "search_file_content",
    "todo_write",
    "todoread",
    "todowrite",
    "update_plan",
    "view",
    "web_fetch",
    "web_search",
    "webfetch",
];

/// Tools that change the files that their arguments name.
const WRITERS: [&str; 14] = [
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "StrReplaceFile",
    "Write",
    "WriteFile",
    "apply_patch",
    "create",
    "edit",
    "patch",
    "replace",
    "str_replace",
    "write",
    "write_file",
];

/// The arguments that name a file.
const PATH_KEYS: [&str; 6] = ["file_path", "filePath", "notebook_path", "path", "absolute_path", "filename"];
/// The arguments that may hold a patch.
const PATCH_KEYS: [&str; 5] = ["command", "patchText", "patch", "input", "patch_text"];
const PATCH_START: &str = "*** Begin Patch";
const PATCH_PATHS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

impl Tool {
    /// Reads the call in an event's input.
    pub(super) fn parse(input: &Value) -> Self {
        let text = |keys: &[&str]| keys.iter().find_map(|key| input[*key].as_str());
        let name = text(&["tool_name", "toolName", "tool"]).unwrap_or("").to_owned();
        let arguments = ["tool_input", "toolArgs", "args"].iter().find_map(|key| input.get(*key));
        let arguments = arguments.map(parsed).unwrap_or(Value::Null);
        // Qwen gives two ids; the one that the transcript has, too, is the call's.
        let call = text(&["tool_call_id", "tool_use_id", "callID", "toolCallId"]).map(CallId::from);
        let is_writer = WRITERS.contains(&name.as_str());
        let mut paths = patched(&arguments);
        if is_writer {
            paths.extend(PATH_KEYS.iter().filter_map(|key| arguments[*key].as_str()).map(PathBuf::from));
        }
        let reach = match (READERS.contains(&name.as_str()), is_writer && !paths.is_empty()) {
            (true, _) => Reach::Nothing,
            (false, true) => Reach::Declared,
            (false, false) => Reach::Anything,
        };
        Self { name, call, paths, reach }
    }
}

/// Arguments may be JSON within a string.
fn parsed(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) => serde_json::from_str(text)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| serde_json::json!({ "input": text })),
        other => other.clone(),
    }
}

/// The files of a patch among the arguments, also where it is part of a shell command.
fn patched(arguments: &Value) -> Vec<PathBuf> {
    let texts = PATCH_KEYS.iter().filter_map(|key| arguments[*key].as_str());
    let lines = texts.filter(|text| text.contains(PATCH_START)).flat_map(str::lines);
    let named = lines.filter_map(|line| PATCH_PATHS.iter().find_map(|start| line.strip_prefix(start)));
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in named.map(|path| PathBuf::from(path.trim_end())) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}
