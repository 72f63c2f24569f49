//! How long frames take: `cargo run --release -p retake-tui --example frames`.
//!
//! Prints best and median of 50 frames of each kind, in milliseconds. A frame has 16 of them.

#![allow(clippy::print_stdout, reason = "this program's output is its purpose")]

use std::time::Instant;

use retake_agent::diff::{DiffLine, FileDiff, HunkLines, LineKind};
use retake_agent::rewind_document::Bytes;
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, CallId, Entry, Outcome, Part, StopReason, Usage};
use retake_tui::bench::{Client, Conversation, Difference, load_grammars};

const FRAMES: usize = 50;
const WIDTH: u16 = 120;
const HEIGHT: u16 = 50;

fn main() {
    let start = Instant::now();
    load_grammars();
    println!("load the grammars, once, beside everything       {:8.3} ms", ms(start));
    keys();
    conversation();
    stream();
    unseen_code();
    difference();
}

/// From a key to what is written of it, after short and long histories.
fn keys() {
    for entries in [100, 1_000, 10_000] {
        let mut client = Client::new(long(entries), WIDTH, HEIGHT);
        let mut written = 0;
        measure(&format!("{entries} entries: a key, typed and painted"), |n| {
            written = written.max(client.press(char::from(b'a' + (n % 26) as u8)));
        });
        println!("  at most {written} cells were written for one");
    }
}

fn conversation() {
    let start = Instant::now();
    let mut shown = Conversation::new(long(10_000), WIDTH, HEIGHT);
    let built = ms(start);
    let start = Instant::now();
    shown.draw();
    println!("10,000 entries ({built:.0} ms to make): first frame      {:8.3} ms", ms(start));
    measure("10,000 entries: the end, again", |_| shown.draw());
    measure("10,000 entries: a page up, never seen before", |_| {
        shown.scroll(-i32::from(HEIGHT));
        shown.draw();
    });
    shown.scroll(-30_000);
    shown.draw();
    measure("10,000 entries: the middle, again", |_| shown.draw());
    measure("10,000 entries: the middle, while text comes", |_| {
        shown.view.coming.text.push_str("more of `what` comes\n");
        shown.view.seq += 1;
        shown.draw();
    });
    measure("10,000 entries: another width each time", |n| {
        shown.resize(WIDTH - (n % 40) as u16, HEIGHT);
        shown.draw();
    });
    shown.toggle_all();
    measure("10,000 entries: all unfolded, again", |_| shown.draw());
}

fn stream() {
    let mut shown = Conversation::new(long(1_000), WIDTH, HEIGHT);
    shown.view.coming.text = format!("Here it is:\n\n```rust\n{}", CODE.repeat(100));
    shown.draw();
    let lines = shown.view.coming.text.lines().count();
    measure(&format!("an answer with {lines} lines of code, while more comes"), |_| {
        shown.view.coming.text.push_str("    let x = f(\"more\", 12);\n");
        shown.view.seq += 1;
        shown.draw();
    });
}

/// Code that was never seen before has to be parsed in the frame that shows it.
fn unseen_code() {
    measure("an answer with 400 new lines of code", |n| {
        let text = format!("```rust\n// {n}\n{}```\n", CODE.repeat(50));
        let mut shown = Conversation::new(View::default(), WIDTH, HEIGHT);
        shown.view.coming.text = text;
        shown.draw();
    });
}

fn difference() {
    let line = |n: usize| {
        let kind = [LineKind::Same, LineKind::Removed, LineKind::Added][n % 3];
        DiffLine {
            kind,
            text: format!("    let number_{n} = some_function(argument, {n}); // {}", "words ".repeat(n % 20)),
        }
    };
    let hunks = (0..50).map(|hunk| {
        let first = hunk * 100 + 1;
        HunkLines { start: (first as u32, first as u32), lines: (first..first + 100).map(line).collect() }
    });
    let file = FileDiff {
        path: Bytes::Text("src/lib.rs".to_owned()),
        added: 1_666,
        removed: 1_667,
        instead: None,
        hunks: hunks.collect(),
        left_out: 0,
        about: None,
    };
    let start = Instant::now();
    let mut shown = Difference::new(vec![file.clone()], WIDTH, HEIGHT);
    shown.draw(0);
    println!("a diff of 5,000 lines: first frame                {:8.3} ms", ms(start));
    let height = shown.height();
    measure("a diff of 5,000 lines: anywhere", |n| shown.draw(height * n / FRAMES));
    measure("a diff of 5,000 lines: measured anew", |n| {
        Difference::new(vec![file.clone()], WIDTH - n as u16 % 40, HEIGHT).draw(height / 2);
    });
}

const CODE: &str = "/// Adds.\npub fn add(a: u32, b: &str) -> Result<u32, Error> {\n    let number: u32 = b.parse()?;\n    \
    if number > 10 { return Err(Error::TooLarge { number }); }\n    // Done.\n    Ok(a + number)\n}\n\n";

fn long(count: usize) -> View {
    let mut view = View::default();
    let texts = "It has **two** parts:\n\n- one with `code` in it\n- and another, which is a little longer than one line of a terminal \
        can be, so that it has to be wrapped somewhere\n\n```rust\n";
    let output: String = (0..200).map(|n| format!("test number_{n} ... ok\n")).collect();
    for number in 0..count {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&(number as u64).to_be_bytes());
        let body = match number % 6 {
            0 => Body::Prompt { parts: vec![Part::text(format!("Question {number}: what about this?"))] },
            1 => reply(Block::Text { text: format!("Answer {number}. {texts}{CODE}// {number}\n```\n") }),
            2 => call("bash", "{\"command\":\"cargo test\"}"),
            3 => result("bash: cargo test", &format!("{output}[Exit code 0.]")),
            4 => call("edit_file", "{\"path\":\"a.rs\",\"old\":\"a\\nb\\nc\",\"new\":\"a\\nx\\nc\\nd\"}"),
            _ => result("edit a.rs", "Edited `a.rs`."),
        };
        let parent = view.entries.last().map(|entry| entry.id);
        view.entries.push(Entry { id: EntryId::new(bytes), parent, at: Timestamp(0), body });
    }
    view
}

fn reply(block: Block) -> Body {
    Body::Reply { blocks: vec![block], model: String::new(), usage: Usage::default(), stop: StopReason::Done }
}

fn call(tool: &str, arguments: &str) -> Body {
    reply(Block::Call { id: CallId("c".to_owned()), name: tool.to_owned(), arguments: arguments.to_owned() })
}

fn result(title: &str, text: &str) -> Body {
    let (call, parts) = (CallId("c".to_owned()), vec![Part::text(text)]);
    Body::ToolResult { call, title: title.to_owned(), outcome: Outcome::Done, parts, todos: None, details: None }
}

fn measure(what: &str, mut frame: impl FnMut(usize)) {
    let mut times: Vec<f64> = (0..FRAMES)
        .map(|n| {
            let start = Instant::now();
            frame(n);
            ms(start)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{what:<52} best {:7.3} ms, median {:7.3} ms, worst {:7.3} ms",
        times[0],
        times[FRAMES / 2],
        times[FRAMES - 1]
    );
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1_000.0
}
