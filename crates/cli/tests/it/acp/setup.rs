//! `retake acp setup`, and that the README shows what it prints.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

const EDITORS: [(&str, &str); 4] = [("zed", "json"), ("jetbrains", "json"), ("neovim", "lua"), ("emacs", "elisp")];

/// What is printed for an editor where these programs are installed and `retake` is found by its name.
fn printed(editor: &str, installed: &[&str]) -> String {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("bin")).expect("a directory");
    for program in installed {
        fs::write(sandbox.path("bin").join(program), "").expect("a program");
    }
    let mut command = sandbox.retake_command();
    let run = Run::of(command.env("PATH", sandbox.path("bin")).args(["acp", "setup", editor])).succeeds();
    let text = String::from_utf8(run.stdout).expect("it is text");
    let here = env!("CARGO_BIN_EXE_retake");
    assert!(text.contains(here), "an editor may have another search path: {text}");
    text.replace(here, "retake")
}

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    fs::read_to_string(path).expect("there is a README")
}

#[test]
fn the_readme_shows_for_each_editor_what_is_printed() {
    for (editor, language) in EDITORS {
        let text = printed(editor, &["npx"]);
        let (what_to_do, to_copy) = text.split_once("\n\n").expect("a sentence, and what to copy");
        let shown = format!("{what_to_do}\n\n```{language}\n{to_copy}```\n");
        assert!(readme().contains(&shown), "the README lacks this:\n{shown}");
    }
}

#[test]
fn the_readme_names_every_agent_that_is_known_with_its_command() {
    let text = printed("zed", &["npx", "opencode", "qwen", "vibe-acp"]);
    let json = &text[text.find('{').expect("there is JSON")..];
    let settings: Value = serde_json::from_str(json).expect("it can be copied as it is");
    let servers = settings["agent_servers"].as_object().expect("servers");
    let wrapped: Vec<_> =
        servers.iter().filter_map(|(name, one)| Some((name.strip_suffix(" with rewind")?, one))).collect();
    assert_eq!(wrapped.len(), 5);
    for (name, server) in wrapped {
        let words: Vec<&str> = server["args"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
        let row = format!("| {name} | `retake {}` |", words.join(" "));
        assert!(readme().contains(&row), "the README lacks this:\n{row}");
    }
}
