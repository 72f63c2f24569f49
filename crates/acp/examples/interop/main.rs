//! Tries a real agent behind the proxy, on the scripted model: `cargo xtask interop` runs this.
//!
//! `interop RETAKE HOME VERSION COMMAND…`, `VERSION` being that of the protocol: two prompts that write files, by a tool and by the shell; back to before the second, both halves; a
//! third one; a restart and a fourth; undo and a fifth. What the model was sent, what is on disk and what a load shows is held against
//! what has to be so; the first thing that is not ends the program. Else it prints one line of JSON: the agent, the strategies that were
//! used, what the model received for each prompt, and what was asserted. What is known of an agent's tools is what it tells the model.

#![allow(clippy::print_stdout, clippy::unwrap_used, unreachable_pub)]

mod claims;
mod configure;
mod editor;
mod model;
mod outline;

use std::path::{Path, PathBuf};

use claims::Claims;
use editor::{Editor, Setting, Version};
use model::Model;
use outline::{prompt, trace};
use serde_json::{Value, json};

fn main() {
    let mut args = std::env::args_os().skip(1);
    let retake = PathBuf::from(args.next().expect("the program that is tried"));
    let home = PathBuf::from(args.next().expect("a directory for everything"));
    let version = match args.next().expect("a version of the protocol").to_str() {
        Some("1") => Version::V1,
        Some("2") => Version::V2,
        other => panic!("there is no version {other:?}"),
    };
    let command: Vec<_> = args.collect();
    let project = home.join("project");
    std::fs::create_dir_all(&project).unwrap();
    let model = Model::start(&project);
    configure::write_all(&home, &model.url());
    let url = model.url();
    let setting = Setting { retake: &retake, command: &command, version, home: &home, project: &project, url: &url };
    let start = || Editor::start(&setting);
    let mut claims = Claims::default();

    let mut editor = start();
    let session = editor.new_session();
    editor.prompt(&session, &prompt(1));
    let after_first = files(&project);
    let evidence = (&after_first, model.offered());
    claims.hold("turn 1 wrote one file by a tool and others by the shell", after_first == written(&[1]), &evidence);
    editor.prompt(&session, &prompt(2));
    let after_second = files(&project);
    claims.hold("turn 2 changed both and added another", after_second == written(&[1, 2]), &after_second);

    let points = editor.ask("_session/rewind_points", &json!({ "sessionId": session }));
    let point = &points["points"][0];
    claims.hold("the newest point is the second prompt", text_of(point).contains(&prompt(2)), point);
    let params = json!({ "sessionId": session, "beforeMessageId": point["messageId"], "scope": "both" });
    let mut contested = Vec::new();
    let strategy = strategy(&editor.change("_session/rewind", &params, &mut contested));
    claims.hold("after the rewind the files are those before turn 2", files(&project) == after_first, &files(&project));

    let sent = model.during(3, || editor.prompt(&session, &prompt(3)));
    sent.must_tell(&mut claims, "after the rewind", &[1, 3], &[2]);
    let mut received = vec![("after the rewind", sent)];
    editor.hang_up();

    let mut editor = start();
    let shown = editor.load(&session);
    let is_cut = outline::tells(&shown, &[1, 3], &[2]);
    claims.hold("a load after a restart shows turns 1 and 3 and nothing of turn 2", is_cut, &shown);
    let sent = model.during(4, || editor.prompt(&session, &prompt(4)));
    sent.must_tell(&mut claims, "after a restart", &[1, 3, 4], &[2]);
    received.push(("after a restart", sent));

    let mut undone = Value::Null;
    for _ in ["turn 4", "turn 3", "the rewind"] {
        undone = editor.change("_session/undo", &json!({ "sessionId": session }), &mut contested);
    }
    let undo_strategy = self::strategy(&undone);
    claims.hold("undo brings the files of turn 2 back", files(&project) == after_second, &files(&project));
    let sent = model.during(5, || editor.prompt(&session, &prompt(5)));
    sent.must_tell(&mut claims, "after undo", &[1, 2, 5], &[3, 4]);
    received.push(("after undo", sent));
    let shown = editor.load(&session);
    let is_back = outline::tells(&shown, &[1, 2, 5], &[3, 4]);
    claims.hold("a load after undo shows turns 1, 2 and 5 and nothing of turns 3 and 4", is_back, &shown);
    contested.sort();
    contested.dedup();
    let agent = editor.agent.clone();
    editor.hang_up();
    let torn: Vec<String> = model.asked().iter().filter_map(outline::torn).collect();
    claims.hold("no request has a call without its result or a result without its call", torn.is_empty(), &torn);

    let received: Vec<Value> = received.iter().map(|(when, sent)| sent.document(when)).collect();
    let row = json!({
        "agent": agent,
        "strategy": strategy,
        "undo_strategy": undo_strategy,
        "wire": model.wire(),
        "tools": model.tools(),
        "requests": model.asked().len(),
        "contested": contested,
        "remarks": model.remarks(),
        "received": received,
        "asserted": claims.held(),
    });
    println!("{row}");
}

fn strategy(answer: &Value) -> String {
    answer["_meta"]["retake"]["strategy"].as_str().unwrap_or("none").to_owned()
}

fn text_of(point: &Value) -> &str {
    point["text"].as_str().unwrap_or_default()
}

/// What the workspace holds when these turns have written, the last one last.
fn written(turns: &[u64]) -> Vec<(String, String)> {
    let last = trace(*turns.last().expect("a turn"));
    let mut files: Vec<(String, String)> =
        turns.iter().map(|turn| (format!("only-{turn}.txt"), trace(*turn))).collect();
    files.extend([("shell.txt".to_owned(), last.clone()), ("tool.txt".to_owned(), last)]);
    files
}

/// The files of a workspace and what is in them, but for what agents keep there for themselves.
fn files(project: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(project)
        .unwrap()
        .map(|file| file.unwrap())
        .filter(|file| file.path().is_file())
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap()))
        .filter(|(name, _)| name.ends_with(".txt"))
        .map(|(name, text)| (name, text.trim_end().to_owned()))
        .collect();
    files.sort();
    files
}
