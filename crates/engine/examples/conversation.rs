//! Measures a long conversation: `conversation DIR STORE [TURNS]`, on directories that are empty, or that it has used before.
//!
//! Plays TURNS turns (10,000 unless told) of five entries and one tool call each, then prints one line of JSON with milliseconds
//! (best of seven) of what a client does with them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use retake_engine::checkpoint::{NewCheckpoint, Origin};
use retake_engine::id::{CheckpointId, EntryId, OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Files, Goal, NewRewind, RewindRequest};
use retake_engine::session::entry::{Block, Body, CallId, EndReason, Outcome, Part, StopReason, Usage};
use retake_engine::session::{Discard, NewSession, Scope, SessionKind, SessionWriter};
use retake_engine::session::{Moment, NewEntry, NewTurn};
use retake_engine::window::{NewWindow, PartOf, Reach};
use retake_engine::{Breadth, Durability, Environment, OpenError, Settings, Timestamp, Workspace, WorkspacePath};

const ROUNDS: usize = 7;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let usage = "usage: conversation DIR STORE [TURNS]";
    let mut args = std::env::args_os().skip(1);
    let root = PathBuf::from(args.next().ok_or(usage)?).canonicalize()?;
    let data_dir = PathBuf::from(args.next().ok_or(usage)?);
    let turns: u64 = args.next().map_or(Ok(10_000), |text| text.to_string_lossy().parse())?;
    let mut bench = Bench { workspace: open(&root, &data_dir)?, root: root.clone(), number: 0 };
    let played = bench.workspace.sessions().all()?.pop();
    let session = played.map_or_else(|| bench.play(turns), |played| Ok(played.id))?;
    bench.number = std::time::UNIX_EPOCH.elapsed()?.as_micros() as u64;
    let Bench { number, .. } = bench;
    let mut bench = Bench { workspace: open(&root, &data_dir)?, root, number };
    let workspace = &bench.workspace;
    let early = workspace.sessions().targets(session)?.pop().ok_or("there are targets")?.id;
    let conversation = workspace.sessions().conversation(session)?;
    let entries = conversation.entries().len();
    let mut random = || [0; 10];
    let mut figures = vec![
        ("open_session", best(|| Ok(workspace.sessions().open(session, Timestamp(0), &mut random)?))?),
        ("conversation", best(|| Ok(workspace.sessions().conversation(session)?))?),
        ("context", best(|| Ok(conversation.context()))?),
        ("targets", best(|| Ok(workspace.sessions().targets(session)?))?),
        ("next_to_undo", best(|| Ok(workspace.operations().next_to_undo(Some(session))?))?),
    ];
    for (name, scope) in [("plan_conversation", Scope::Conversation), ("plan_both", Scope::Both)] {
        let (files, discard) = (Files::Selective, Discard::No);
        let request = RewindRequest::new(Goal::Entry { session, entry: early, scope, files, discard });
        figures.push((name, best(|| Ok(workspace.rewinds().plan(&request, &NoProgress)?))?));
    }
    let mut writer = workspace.sessions().open(session, Timestamp(0), &mut random)?;
    figures.push(("turn", bench.turn(&mut writer, session)?));
    for (name, scope) in [("apply_conversation", Scope::Conversation), ("apply_both", Scope::Both)] {
        let (files, discard) = (Files::Selective, Discard::No);
        let request = RewindRequest::new(Goal::Entry { session, entry: early, scope, files, discard });
        figures.push((name, bench.apply(&mut writer, &request)?));
        let undo = RewindRequest::new(Goal::Undo { operation: None, session: Some(session) });
        figures.push(("undo", bench.apply(&mut writer, &undo)?));
    }
    let fields: Vec<String> = figures.iter().map(|(name, ms)| format!("\"{name}\":{ms:.3}")).collect();
    let line = format!("{{\"turns\":{turns},\"entries\":{entries},{}}}\n", fields.join(","));
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes())?;
    Ok(())
}

struct Bench {
    workspace: Workspace,
    root: PathBuf,
    number: u64,
}

impl Bench {
    fn random(&mut self) -> ([u8; 10], Timestamp) {
        self.number += 1;
        let mut random = [1; 10];
        random[..8].copy_from_slice(&self.number.wrapping_mul(0x5851_F42D_4C95_7F2D).to_le_bytes());
        (random, Timestamp(1_790_000_000_000 + self.number.cast_signed()))
    }

    fn point(&mut self) -> NewCheckpoint {
        let (random, at) = self.random();
        NewCheckpoint { id: CheckpointId::new(at, random), at, label: None }
    }

    fn entry(&mut self, body: Body) -> NewEntry {
        let (random, at) = self.random();
        NewEntry { id: EntryId::new(random), at, body }
    }

    fn play(&mut self, turns: u64) -> Fallible<SessionId> {
        let (random, at) = self.random();
        let session = SessionId::new(at, random);
        let new = NewSession { id: session, at, title: String::new(), kind: SessionKind::Conversation };
        self.workspace.sessions_mut().create(new)?;
        let baseline = self.point();
        self.workspace.checkpoints_mut().take(baseline, Durability::Soon, &NoProgress)?;
        let mut writer = self.workspace.sessions().open(session, at, &mut || [0; 10])?;
        for _ in 0..turns {
            self.turn(&mut writer, session)?;
        }
        Ok(session)
    }

    /// One turn; returns what Retake's part of it took.
    fn turn(&mut self, writer: &mut SessionWriter, session: SessionId) -> Fallible<f64> {
        let started = Instant::now();
        let number = self.number;
        let text = format!("prompt {number}: {}", "please do something about it. ".repeat(5));
        let prompt = self.entry(Body::Prompt { parts: vec![Part::text(text)] });
        let (random, at) = self.random();
        let (id, operation) = (prompt.id, OperationId::new(at, random));
        let entries = vec![prompt];
        writer.begin_turn(NewTurn { operation, at, made_by: MadeBy::Client, entries, draft: Vec::new() })?;
        let new = self.point();
        let moment = Moment { session, entry: Some(id), origin: Origin::Prompt };
        self.workspace.checkpoints_mut().take_at(moment, new, Durability::Soon, &NoProgress)?;
        let call = CallId(format!("call-{number}"));
        let arguments = "{\"path\":\"file\",\"content\":\"x\"}".to_owned();
        let blocks = vec![
            Block::Reasoning { text: "I think. ".repeat(20), opaque: "{\"signature\":\"abc\"}".to_owned() },
            Block::Call { id: call.clone(), name: "write_file".to_owned(), arguments },
        ];
        let reply = self.reply(blocks, StopReason::Calls);
        writer.append(vec![reply], Durability::Soon)?;
        let path = WorkspacePath::parse(format!("file{}", number % 50).as_bytes())?;
        let window = NewWindow {
            session,
            turn: Some(id.to_string()),
            tool: format!("write_file {}", path.display()),
            reach: Reach::Declared,
            declared: vec![path.clone()],
            operation: PartOf::Turn(operation),
        };
        let (before, after) = (self.point(), self.point());
        let began = self.workspace.windows().begin(window, before, &NoProgress)?;
        std::fs::write(self.root.join(path.to_path()), number.to_string())?;
        self.workspace.windows().end(began.window, after, Durability::Soon, &NoProgress)?;
        let (title, parts) = ("write_file".to_owned(), vec![Part::text("Written. ".repeat(30))]);
        let result =
            self.entry(Body::ToolResult { call, title, outcome: Outcome::Done, parts, todos: None, details: None });
        let reply = self.reply(vec![Block::Text { text: "It is done. ".repeat(20) }], StopReason::Done);
        writer.append(vec![result, reply], Durability::Soon)?;
        let end = self.entry(Body::Ended { reason: EndReason::Done });
        let moment = Moment { session, entry: Some(end.id), origin: Origin::Turn };
        writer.end_turn(operation, end)?;
        let new = self.point();
        self.workspace.checkpoints_mut().take_at(moment, new, Durability::Soon, &NoProgress)?;
        Ok(millis(started))
    }

    fn reply(&mut self, blocks: Vec<Block>, stop: StopReason) -> NewEntry {
        let usage = Usage { input: 1000, output: 100, ..Usage::default() };
        self.entry(Body::Reply { blocks, model: "anthropic/model".to_owned(), usage, stop })
    }

    fn apply(&mut self, writer: &mut SessionWriter, request: &RewindRequest) -> Fallible<f64> {
        let (random, at) = self.random();
        let (second, _) = self.random();
        let new = NewRewind {
            operation: OperationId::new(at, random),
            safety: CheckpointId::new(at, random),
            after: CheckpointId::new(at, second),
            note: EntryId::new(random),
            at,
        };
        let started = Instant::now();
        self.workspace.rewinds_mut().apply_in(writer, request, None, &new, &NoProgress)?;
        Ok(millis(started))
    }
}

fn best<T>(mut work: impl FnMut() -> Fallible<T>) -> Fallible<f64> {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        drop(work()?);
        best = best.min(millis(started));
    }
    Ok(best)
}

fn open(root: &Path, data_dir: &Path) -> Result<Workspace, OpenError> {
    Workspace::open_or_create(Environment {
        root: root.to_owned(),
        data_dir: data_dir.to_owned(),
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    })
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
