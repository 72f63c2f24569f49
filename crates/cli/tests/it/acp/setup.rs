//! `retake acp setup`, and that the documents show its output.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

const EDITORS: [(&str, &str); 4] = [("zed", "json"), ("jetbrains", "json"), ("neovim", "lua"), ("emacs", "elisp")];

/// The programs of all agents that are known.
const KNOWN: [&str; 12] = [
    "npx",
    "pi",
    "opencode",
    "copilot",
    "cline",
    "kilo",
    "qwen",
    "vibe-acp",
    "fast-agent",
    "hermes-acp",
    "gemini",
    "goose",
];

/// What is printed for an editor where these programs are installed and `retake` is found by its name.
fn printed(editor: &str, installed: &[&str]) -> String {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("bin")).expect("a directory");
    for program in installed {
        let file = sandbox.path("bin").join(program);
        fs::write(&file, "").expect("a program");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let mut command = sandbox.retake_command();
    let run = Run::of(command.env("PATH", sandbox.path("bin")).args(["acp", "setup", editor])).succeeds();
    let text = String::from_utf8(run.stdout).expect("it is text");
    let here = env!("CARGO_BIN_EXE_retake");
    assert!(text.contains(here), "an editor may have another search path: {text}");
    let bin = sandbox.path("bin").canonicalize().expect("it is there").display().to_string();
    // Pi is started by its adapter.
    for program in installed.iter().filter(|program| **program != "pi") {
        assert!(text.contains(&format!("{bin}/{program}\"")), "it is found there and nowhere else: {text}");
    }
    text.replace(here, "retake").replace(&format!("{bin}/"), "")
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).expect("there is such a document")
}

#[test]
fn the_editors_page_shows_for_each_editor_what_is_printed() {
    let page = document("editors.md");
    for (editor, language) in EDITORS {
        let text = printed(editor, &["npx"]);
        let (what_to_do, to_copy) = text.split_once("\n\n").expect("a sentence, and what to copy");
        let shown = format!("{what_to_do}\n\n```{language}\n{to_copy}```\n");
        assert!(page.contains(&shown), "docs/editors.md lacks this:\n{shown}");
    }
}

#[test]
fn the_agents_page_lists_every_known_agent_with_its_command() {
    let text = printed("zed", &KNOWN);
    let (_, json) = text.split_once("\n\n").expect("a paragraph, and what to copy");
    let settings: Value = serde_json::from_str(json).expect("it can be copied as it is");
    let servers = settings["agent_servers"].as_object().expect("servers");
    let wrapped: Vec<_> =
        servers.iter().filter_map(|(name, one)| Some((name.strip_suffix(" with rewind")?, one))).collect();
    assert_eq!(wrapped.len(), 13);
    let page = document("agents.md");
    for (name, server) in wrapped {
        let words: Vec<&str> = server["args"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
        let row = format!("| {name} | `retake {}` |", words.join(" "));
        assert!(page.contains(&row), "docs/agents.md lacks this:\n{row}");
    }
}

#[test]
fn a_program_can_read_what_is_printed() {
    let sandbox = Sandbox::new();
    let document = sandbox.retake(["acp", "setup", "--json"]).json();
    assert_eq!(document["agents"][0]["name"], "Retake");
    assert!(document["agents"][0]["needs"].as_str().expect("a text").contains("model"));
    let editors: Vec<_> = document["editors"].as_array().expect("editors").iter().map(|one| &one["editor"]).collect();
    assert_eq!(editors, ["zed", "jetbrains", "neovim", "emacs"]);
    let text = document["editors"][0]["text"].as_str().expect("a text");
    serde_json::from_str::<Value>(text).expect("it can be copied as it is");
}

#[test]
fn an_agent_that_is_not_named_is_a_usage_error() {
    let sandbox = Sandbox::new();
    let run = sandbox.retake(["acp", "--"]).fails(2);
    run.says("no agent is named after `--`");
}

#[test]
fn what_is_no_program_is_not_installed() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("bin/goose")).expect("a directory");
    fs::write(sandbox.path("bin").join("opencode"), "").expect("a file");
    let mut command = sandbox.retake_command();
    let run = Run::of(command.env("PATH", sandbox.path("bin")).args(["acp", "setup", "zed"])).succeeds();
    let text = String::from_utf8(run.stdout).expect("it is text");
    assert!(!text.contains("OpenCode") && !text.contains("Goose"), "{text}");
    // With none of them, one shows how it is done.
    assert!(text.contains("\"npx\", \"-y\", \"@agentclientprotocol/claude-agent-acp\""), "{text}");
}
