//! Tries a real agent behind the proxy, on the scripted model: `cargo xtask interop` runs this.
//!
//! `interop RETAKE NAME URL_VARIABLES… -- COMMAND`: two prompts that write files, by a tool and by the shell; back to before the second, both
//! halves; a third one. The model must have been sent turn one and the new prompt, and nothing of turn two; a load after a restart must
//! show the cut history; undo must bring both back. What is known of an agent's tools is what it tells the model.

#![allow(clippy::print_stdout, clippy::unwrap_used, unreachable_pub)]

mod editor;
mod model;

use std::path::{Path, PathBuf};

use editor::Editor;
use model::Model;
use serde_json::{Value, json};

fn main() {
    let mut args = std::env::args_os().skip(1);
    let retake = PathBuf::from(args.next().expect("the program that is tried"));
    let home = PathBuf::from(args.next().expect("a directory for everything"));
    let command: Vec<_> = args.collect();
    let project = home.join("project");
    std::fs::create_dir_all(&project).unwrap();
    let model = Model::start(&project);
    configure(&home, &model.url());
    let start = || Editor::start(&retake, &command, &home, &project);
    let mut editor = start();
    let session = editor.new_session();
    editor.prompt(&session, "RETAKE-TURN-1");
    let after_first = files(&project);
    assert_eq!(after_first.len(), 2, "the tool and the shell wrote a file each: {after_first:?}");
    editor.prompt(&session, "RETAKE-TURN-2");
    let after_second = files(&project);
    assert_ne!(after_first, after_second);

    let points = editor.ask("_session/rewind_points", &json!({ "sessionId": session }));
    let point = points["points"][0]["messageId"].clone();
    let rewound = editor.ask("_session/rewind", &json!({ "sessionId": session, "beforeMessageId": point }));
    let strategy = rewound["_meta"]["retake"]["strategy"].as_str().unwrap_or("none").to_owned();
    assert_eq!(files(&project), after_first, "the files are those before turn two");
    editor.prompt(&session, "RETAKE-TURN-3");
    let seen = model.last_seen();
    assert!(seen.contains("RETAKE-TURN-1") && seen.contains("RETAKE-TURN-3"), "{seen}");
    assert!(!seen.contains("RETAKE-TURN-2"), "{seen}");
    editor.hang_up();

    let mut editor = start();
    let shown = editor.load(&session);
    assert!(shown.contains("RETAKE-TURN-1") && shown.contains("RETAKE-TURN-3"), "{shown}");
    assert!(!shown.contains("RETAKE-TURN-2"), "{shown}");
    for _ in 0..2 {
        editor.ask("_session/undo", &json!({ "sessionId": session }));
    }
    assert_eq!(files(&project), after_second, "undo brings the files back");
    editor.prompt(&session, "RETAKE-TURN-4");
    let seen = model.last_seen();
    assert!(seen.contains("RETAKE-TURN-2") && !seen.contains("RETAKE-TURN-3"), "{seen}");
    let agent = editor.agent.clone();
    editor.hang_up();
    println!("{}", json!({ "agent": agent, "strategy": strategy, "requests": model.requests() }));
}

/// The files of a workspace and what is in them.
fn files(project: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(project)
        .unwrap()
        .map(|file| file.unwrap())
        .filter(|file| file.path().is_file())
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap()))
        .filter(|(name, _)| name.ends_with(".txt"))
        .collect();
    files.sort();
    files
}

/// Tells the agents that are configured by files where the model is; the others are told by variables.
fn configure(home: &Path, url: &str) {
    let write = |path: &str, text: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": format!("{url}/v1"), "apiKey": "none" },
        "models": { "scripted": { "name": "scripted", "tool_call": true } },
    });
    let permission = json!({ "edit": "allow", "bash": "allow", "external_directory": "allow" });
    let opencode: Value = json!({
        "provider": { "scripted": provider },
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": false,
        "permission": permission,
    });
    write(".config/opencode/opencode.json", &opencode.to_string());
    let vibe = format!(
        "active_model = \"scripted\"\n[[providers]]\nname = \"scripted\"\napi_base = \"{url}/v1\"\napi_key_env_var = \"OPENAI_API_KEY\"\napi_style = \"openai\"\nbackend = \"generic\"\n[[models]]\nname = \"scripted\"\nprovider = \"scripted\"\nalias = \"scripted\"\n"
    );
    write(".vibe/config.toml", &vibe);
    write("url", url);
}
