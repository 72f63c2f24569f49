//! A scripted model to try the agent by hand: `cargo run -p retake-testkit --example model -- SCRIPT`.
//!
//! Each line of SCRIPT is one answer: `{"thinks": "…", "says": "…", "calls": [["bash", {"command": "ls"}]], "pause_ms": 500}`. The URL is
//! printed first, then every request as the model saw it. When the script is at its end it begins again.

#![allow(clippy::print_stdout, reason = "it talks to whoever tries it")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use retake_testkit::model::{Answer, Received, ScriptedModel};
use serde_json::Value;

fn main() {
    let path = std::env::args().nth(1).expect("name a script");
    let script = std::fs::read_to_string(path).expect("the script can be read");
    let lines = script.lines().filter(|line| !line.trim().is_empty());
    let answers: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let next = AtomicUsize::new(0);
    let model = ScriptedModel::answering(move |request: &Received| {
        println!("---- request\n{}", request.transcript());
        let wanted = &answers[next.fetch_add(1, Ordering::Relaxed) % answers.len()];
        std::thread::sleep(Duration::from_millis(wanted["pause_ms"].as_u64().unwrap_or(0)));
        let mut answer = Answer::default();
        if let Some(text) = wanted["thinks"].as_str() {
            answer = answer.thinks(text);
        }
        if let Some(text) = wanted["says"].as_str() {
            answer = answer.says(text);
        }
        for call in wanted["calls"].as_array().into_iter().flatten() {
            answer = answer.calls(call[0].as_str().expect("a call names a tool"), call[1].clone());
        }
        answer
    });
    println!("{}", model.url());
    loop {
        std::thread::park();
    }
}
