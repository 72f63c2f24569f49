//! What a model saves that prunes its own exploration: the same session of many turns played twice on a scripted model over real HTTP, once
//! as it comes, once with `checkpoint` before and `rewind` after each exploration. Prints what the model was sent.
//!
//! `cargo run --release -p retake-agent --example pruned [TURNS]`
//!
//! Each turn looks for something (a grep and six files read, in four rounds), changes one file, runs the tests and says what it did. Every
//! fourth turn needs no looking. The model can read 200,000 tokens, so that a conversation which becomes longer is summarised on the way.
//! Tokens are bytes of the request divided by four; what a provider's cache would have had is what begins as the request before it did.

#![allow(clippy::print_stdout, reason = "it prints figures")]

use std::sync::{Arc, Mutex};

use retake_agent::contract::{Action, EventKind, TurnEnd};
use retake_agent::controller::{self, Attached, SessionSetup, Unprotected, Which};
use retake_agent::model::{Model, ModelSettings, Models};
use retake_agent::permission::{Allowed, Mode, Policy};
use retake_agent::tool::{Jobs, Shell, Toolbox};
use retake_engine::operation::MadeBy;
use retake_engine::session::entry::Part;
use retake_engine::{Breadth, Environment, Settings};
use retake_testkit::model::{Answer, ScriptedModel, Tokens};
use serde_json::json;

const FILES: usize = 120;

fn main() {
    let turns: usize = std::env::args().nth(1).map_or(200, |text| text.parse().expect("a number of turns"));
    println!(
        "{:>12} {:>9} {:>14} {:>12} {:>10} {:>13}",
        "", "requests", "tokens sent", "not cached", "summaries", "last request"
    );
    for explores in [false, true] {
        let sent = play(turns, explores);
        let name = if explores { "pruned" } else { "as it comes" };
        let Sent { requests, tokens, fresh, summaries, last, .. } = sent;
        println!("{name:>12} {requests:>9} {tokens:>14} {fresh:>12} {summaries:>10} {last:>13}");
    }
}

/// What the model was sent, in tokens.
#[derive(Default)]
struct Sent {
    requests: usize,
    tokens: usize,
    /// Not the same as the beginning of the request before.
    fresh: usize,
    last: usize,
    /// Requests for a summary.
    summaries: usize,
    body: String,
}

impl Sent {
    fn take(&mut self, body: &str) {
        let same = self.body.bytes().zip(body.bytes()).take_while(|(one, two)| one == two).count();
        self.requests += 1;
        self.tokens += body.len() / 4;
        self.fresh += (body.len() - same) / 4;
        self.last = body.len() / 4;
        body.clone_into(&mut self.body);
    }
}

/// The answers of one turn.
fn answers(turn: usize, explores: bool) -> Vec<Answer> {
    let read = |number: usize| json!({"path": format!("src/file{}.rs", (turn * 7 + number) % FILES)});
    let mut answers = Vec::new();
    if !turn.is_multiple_of(4) {
        if explores {
            answers.push(Answer::default().calls("checkpoint", json!({"goal": "find where it is decided"})));
        }
        answers.push(
            Answer::default()
                .says("Let me look.")
                .calls("grep", json!({"pattern": "fn handle_1", "path": "src/file1.rs"})),
        );
        for pair in [0, 2, 4] {
            answers.push(Answer::default().calls("read_file", read(pair)).calls("read_file", read(pair + 1)));
        }
        if explores {
            let report = format!(
                "It is decided in src/file{}.rs, fn handle_3 (line 40): the flag is read before the lock is taken. The other five files only \
                 pass it on. To be changed: take the lock first; tests are run with `true`.",
                (turn * 7 + 5) % FILES
            );
            answers.push(Answer::default().calls("rewind", json!({"report": report})));
        }
    }
    let command =
        format!("sed -i 's/// line 40.*/// line 40, turn {turn}/' src/file{}.rs && true", (turn * 7 + 5) % FILES);
    answers.push(Answer::default().says("I change it.").calls("bash", json!({"command": command})));
    answers.push(
        Answer::default().says(&format!("Turn {turn}: the lock is taken first now, and the tests pass. ").repeat(3)),
    );
    answers
}

fn play(turns: usize, explores: bool) -> Sent {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().join("w");
    std::fs::create_dir_all(root.join("src")).expect("a workspace");
    for file in 0..FILES {
        let line = |line: usize| match line % 12 {
            0 => {
                format!("/// line {line}\npub fn handle_{}(request: &Request) -> Result<Answer, Error> {{\n", line / 12)
            }
            11 => "}\n\n".to_owned(),
            other => format!("    let value_{other} = request.field({line})?.checked_add({file})?;\n"),
        };
        std::fs::write(root.join(format!("src/file{file}.rs")), (0..140).map(line).collect::<String>())
            .expect("a file");
    }
    let (sent, script) = (Arc::new(Mutex::new(Sent::default())), Arc::new(Mutex::new(Vec::<Answer>::new())));
    let model = ScriptedModel::answering({
        let (sent, script) = (Arc::clone(&sent), Arc::clone(&script));
        move |request| {
            let (mut sent, body) = (sent.lock().expect("no panic"), request.text_without_marks());
            sent.take(&body);
            let costs = Tokens { input: sent.last as u64, output: 100, ..Tokens::default() };
            if body.contains("is to be summarised") {
                sent.summaries += 1;
                let text =
                    "The user reports cases of a flag that is not honoured; in each the lock has to be taken first. "
                        .repeat(25);
                return Answer::default().says(&text).costs(costs);
            }
            script.lock().expect("no panic").pop().unwrap_or_default().costs(costs)
        }
    });
    model.hurries();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let environment = Environment {
        root: root.clone(),
        data_dir: dir.path().join("data"),
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    };
    let mut settings = ModelSettings::parse("anthropic/scripted", Some(&model.url()), |_| None).expect("settings");
    settings.context = Some(200_000);
    let (jobs, ended) = Jobs::new();
    let setup = SessionSetup {
        environment,
        which: Which::New,
        model: Model::new(settings).expect("a model"),
        models: Models::none(),
        policy: Policy { mode: Mode::Headless(Allowed::All), ..Policy::default() },
        unprotected: Unprotected::Ask,
        made_by: MadeBy::Client,
        tools: (Toolbox::new(&root, Shell::default(), jobs).with_checkpoints(explores), ended),
    };
    let opened = {
        let _inside = runtime.enter();
        controller::open(setup).expect("the session opens")
    };
    let Attached { mut events, .. } = runtime.block_on(opened.handle.attach(None)).expect("it is open");
    for turn in 0..turns {
        let mut answers = answers(turn, explores);
        answers.reverse();
        *script.lock().expect("no panic") = answers;
        let parts = vec![Part::text(format!(
            "Case {turn}: the flag is not honoured when two requests come at once. Please mend it."
        ))];
        runtime.block_on(opened.handle.request(Action::prompt(parts))).expect("it is said");
        loop {
            let event = runtime.block_on(events.recv()).expect("no event is missed");
            if let EventKind::TurnEnded { reason, message, .. } = &event.kind {
                assert_eq!(*reason, TurnEnd::Done, "{message:?}");
                break;
            }
        }
    }
    runtime.block_on(opened.handle.request(Action::Close)).expect("it closes");
    opened.served.join().expect("it ends in good order");
    std::mem::take(&mut *sent.lock().expect("no panic"))
}
