//! A long session: thousands of turns with tools on a scripted model over real HTTP. Prints what a turn costs as the conversation grows,
//! where that goes, how much memory is resident, and how long it takes to open the session again.
//!
//! `cargo run --release -p retake-agent --example long [TURNS [WINDOW]]`
//!
//! Each turn is a prompt, a `write_file`, a `bash` and a `read_file`, so four requests. The model can read WINDOW tokens (200,000 unless told),
//! and earlier parts are summarised before that; without any, every request holds the whole conversation, and what it takes to make it,
//! send it and receive it has to grow. Nothing else may. The model's server is part of the process.

#![allow(clippy::print_stdout, reason = "it prints figures")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use retake_agent::contract::{Action, Change, ChangeGoal, Command, Event, EventKind, Query, Reply, TurnEnd};
use retake_agent::controller::{self, Attached, Handle, Opened, SessionSetup, Unprotected, Which};
use retake_agent::model::{Model, ModelSettings, Models};
use retake_agent::permission::{Allowed, Mode, Policy};
use retake_agent::tool::{Jobs, Shell, Toolbox};
use retake_engine::id::EntryId;
use retake_engine::operation::MadeBy;
use retake_engine::rewind::Files;
use retake_engine::session::entry::{Body, Part};
use retake_engine::session::{Discard, Scope};
use retake_engine::{Breadth, Environment, Settings, Workspace};
use retake_testkit::model::{Answer, ScriptedModel, Tokens};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

/// Files that turns write, one after another.
const FILES: usize = 50;
const ROUNDS: usize = 4;

/// Where the time of turns goes.
const PHASES: [&str; 7] = ["say", "ask", "answer", "write_file", "bash", "read_file", "end"];

fn main() {
    let turns: usize = std::env::args().nth(1).map_or(2_000, |text| text.parse().expect("a number of turns"));
    let window: u64 = std::env::args().nth(2).map_or(200_000, |text| text.parse().expect("a number of tokens"));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().join("w");
    std::fs::create_dir(&root).expect("a workspace");
    for file in 0..1_000 {
        std::fs::write(root.join(format!("other{file}.txt")), format!("file {file}\n")).expect("a file");
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let model = scripted(&asked);
    let environment = Environment {
        root,
        data_dir: dir.path().join("data"),
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    };
    let opened = open(&runtime, &environment, &model, Which::New, window);
    let session = opened.handle.session();
    let Attached { mut events, .. } = runtime.block_on(opened.handle.attach(None)).expect("it is open");

    let every = (turns / 20).max(1);
    let marks = [0, turns / 2 - every / 2, turns - every];
    println!("{:>12} {:>9} {}", "turns", "ms/turn", PHASES.map(|phase| format!("{phase:>10}")).concat());
    let mut block = Costs::default();
    let mut first = None;
    for number in 0..turns {
        let cost = turn(&runtime, &opened.handle, &mut events, &asked, &mut first);
        if let Some(from) = marks.iter().find(|from| (**from..**from + every).contains(&number)) {
            block.add(&cost);
            if number + 1 == from + every {
                std::mem::take(&mut block).print(from + 1, number + 1);
                on_demand(&runtime, &opened.handle, first.expect("a turn was made"));
            }
        }
    }
    close(&runtime, opened);
    let began = Instant::now();
    let opened = open(&runtime, &environment, &model, Which::Existing(session), window);
    runtime.block_on(opened.handle.attach(None)).expect("it is open");
    println!("opened again in {:.1} ms", ms(began.elapsed()));
    on_demand(&runtime, &opened.handle, first.expect("a turn was made"));
    close(&runtime, opened);
    let workspace = Workspace::open_or_create(environment).expect("it opens");
    let began = Instant::now();
    let conversation = workspace.sessions().conversation(session).expect("it is stored");
    let read = began.elapsed();
    let began = Instant::now();
    let context = conversation.context();
    let built = began.elapsed();
    let (began, messages) = (Instant::now(), context.messages.len());
    drop(context);
    println!(
        "{} entries read in {:.1} ms; a context of {messages} messages built in {:.1} ms and dropped in {:.1} ms",
        conversation.entries().len(),
        ms(read),
        ms(built),
        ms(began.elapsed())
    );
}

/// Answers by the number of the request alone, and notes when it came.
fn scripted(asked: &Arc<Mutex<Vec<Instant>>>) -> ScriptedModel {
    let (count, asked) = (AtomicUsize::new(0), Arc::clone(asked));
    let model = ScriptedModel::answering(move |received| {
        let tokens = Tokens { input: received.text.len() as u64 / 4, output: 50, ..Tokens::default() };
        if received.text.contains("is to be summarised") {
            return Answer::default().says(&"What was done until now, in short. ".repeat(40)).costs(tokens);
        }
        asked.lock().expect("no panic").push(Instant::now());
        let request = count.fetch_add(1, Ordering::Relaxed);
        let turn = request / ROUNDS;
        let path = format!("src/file{}.txt", turn % FILES);
        let answer = Answer::default().costs(tokens);
        match request % ROUNDS {
            0 => answer
                .says("I will write it.")
                .calls("write_file", json!({"path": path, "content": format!("turn {turn}\n").repeat(10)})),
            1 => answer.calls("bash", json!({"command": format!("echo {turn} > log.txt; echo done")})),
            2 => answer.calls("read_file", json!({"path": path})),
            _ => answer.says(&format!("Turn {turn} is done, and this is what I have to say about it. ").repeat(4)),
        }
    });
    model.hurries();
    model
}

fn open(runtime: &Runtime, environment: &Environment, model: &ScriptedModel, which: Which, window: u64) -> Opened {
    let mut settings = ModelSettings::parse("anthropic/scripted", Some(&model.url()), |_| None).expect("settings");
    settings.context = Some(window);
    let _inside = runtime.enter();
    let (jobs, ended) = Jobs::new();
    let setup = SessionSetup {
        environment: environment.clone(),
        which,
        model: Model::new(settings).expect("a model"),
        models: Models::none(),
        policy: Policy { mode: Mode::Headless(Allowed::All), ..Policy::default() },
        unprotected: Unprotected::Ask,
        made_by: MadeBy::Client,
        tools: (Toolbox::new(&environment.root, Shell::default(), jobs), ended),
    };
    controller::open(setup).expect("the session opens")
}

fn close(runtime: &Runtime, opened: Opened) {
    runtime.block_on(opened.handle.request(Action::Close)).expect("it closes");
    opened.served.join().expect("it ends in good order");
}

/// Makes one turn and tells where its time went.
fn turn(
    runtime: &Runtime,
    handle: &Handle,
    events: &mut broadcast::Receiver<Arc<Event>>,
    asked: &Mutex<Vec<Instant>>,
    first: &mut Option<EntryId>,
) -> Costs {
    let mut cost = Costs { turns: 1, ..Costs::default() };
    asked.lock().expect("no panic").clear();
    let began = Instant::now();
    let parts = vec![Part::text("write the next file, run the command and read the file again")];
    // Not waited for here, so that what follows is seen when it happens.
    let saying = runtime.spawn({
        let handle = handle.clone();
        async move { handle.request(Action::prompt(parts)).await.expect("it is said") }
    });
    let (mut last, mut round) = (began, 0);
    loop {
        let event = runtime.block_on(events.recv()).expect("no event is missed");
        let now = Instant::now();
        let phase = match &event.kind {
            EventKind::Appended { entry } => match &entry.body {
                Body::Prompt { .. } => {
                    first.get_or_insert(entry.id);
                    0
                }
                Body::Reply { .. } => {
                    let came = asked.lock().expect("no panic")[round];
                    cost.phases[1] += came.saturating_duration_since(last);
                    last = came.max(last);
                    round += 1;
                    2
                }
                Body::ToolResult { .. } => 2 + round,
                _ => continue,
            },
            EventKind::TurnEnded { reason, message, .. } => {
                assert_eq!(*reason, TurnEnd::Done, "{message:?}");
                6
            }
            EventKind::Snapshot { ms, .. } => {
                cost.snapshots += *ms;
                continue;
            }
            _ => continue,
        };
        cost.phases[phase] += now - last;
        last = now;
        if phase == 6 {
            cost.all = now - began;
            runtime.block_on(saying).expect("no panic");
            return cost;
        }
    }
}

/// What is only done when somebody asks for it.
fn on_demand(runtime: &Runtime, handle: &Handle, first: EntryId) {
    let timed = |command: Command| {
        let began = Instant::now();
        let reply = runtime.block_on(handle.request(command)).expect("it is answered");
        (ms(began.elapsed()), reply)
    };
    let (context, body) = timed(Query::Context.into());
    let Reply::Context { body } = body else { panic!("no context") };
    let (targets, _) = timed(Query::Targets { query: None }.into());
    let goal = ChangeGoal::Rewind { entry: first, scope: Scope::Both, files: Files::Selective, discard: Discard::No };
    let (plan, _) = timed(Query::Plan { change: Change::new(goal) }.into());
    let began = Instant::now();
    runtime.block_on(handle.attach(None)).expect("it is open");
    println!(
        "{:>12} a request of {:.2} MB made in {context:.1} ms; targets in {targets:.1} ms; plan to the first in {plan:.1} ms; attached in {:.1} \
         ms; {} MB resident",
        "",
        body.len() as f64 / 1e6,
        ms(began.elapsed()),
        resident_mb()
    );
}

#[derive(Default)]
struct Costs {
    turns: u32,
    all: Duration,
    phases: [Duration; PHASES.len()],
    snapshots: f64,
}

impl Costs {
    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.all += other.all;
        self.snapshots += other.snapshots;
        self.phases.iter_mut().zip(other.phases).for_each(|(sum, phase)| *sum += phase);
    }

    fn print(self, from: usize, to: usize) {
        let per_turn = |time: Duration| ms(time / self.turns);
        let phases = self.phases.map(|phase| format!("{:>10.2}", per_turn(phase))).concat();
        println!("{:>12} {:>9.2} {phases}", format!("{from}-{to}"), per_turn(self.all));
        println!("{:>12} of which snapshots {:.2} ms/turn", "", self.snapshots / f64::from(self.turns));
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Resident memory, where the system tells.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
