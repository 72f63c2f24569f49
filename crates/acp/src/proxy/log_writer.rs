//! The log writer: one thread per session, the only one that writes its log.
//!
//! It turns the messages that pass into entries, in the order in which they end, under the ids that the client knows:
//!
//! - `messages`: one entry per message, or per piece of one.
//! - `tool_call`: one entry per tool call with its result; `raw_input` reads the paths in it, `active_tools` knows which tools run.
//! - `change`: rewinds, undos and redos.
//!
//! Snapshots run on the workspace thread, and the log writer never waits for them. A write that fails is reported on stderr and does not
//! stop the conversation between the editor and its agent.

mod active_tools;
mod change;
mod messages;
mod raw_input;
mod tool_call;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use retake_agent::contract::{EventKind, State};
use retake_agent::ids;
use retake_agent::query::in_words;
use retake_agent::view::View;
use retake_agent::workspace_thread::WorkspaceThread;
use retake_engine::Durability;
use retake_engine::id::EntryId;
use retake_engine::id::{OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::session::SessionWriter;
use retake_engine::session::entry::{Block, Body, CallId, EndReason, Entry, Outcome, Part, StopReason, Usage};
use retake_engine::session::{NewEntry, NewTurn, SessionError};
use tokio::runtime;
use tokio::sync::oneshot;

use super::Patience;
use super::tool_timeline::{EventTime, ToolTimeline, timing};
use super::turn_window::{PAUSE, TurnWindow};
pub(super) use change::{Changed, chain, spoken};
use messages::{MessagePieces, StreamedMessage};
use retake_agent::controller::Attached;
use retake_agent::publisher::Publisher;
pub(super) use tool_call::Places;
use tool_call::{AgentQuestion, ToolCall};

/// What may wait to be written before the inner agent has to wait too, and how long one looks whether that gets less.
const MAX_TASKS: usize = 4_096;
const BREATH: Duration = Duration::from_millis(100);

/// How often what is coming is noted.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// What is to be done, and when that was said.
type LogTask = (EventTime, Box<dyn FnOnce(&mut LogWriter) + Send>);

/// A handle to the thread; it ends when the last one goes.
#[derive(Clone, Debug)]
pub(super) struct LogHandle {
    tasks: mpsc::Sender<LogTask>,
    /// How many wait.
    waiting: Arc<AtomicUsize>,
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Voice {
    User,
    Agent,
    Thought,
}

/// The one who writes.
pub(super) struct LogWriter {
    writer: Option<SessionWriter>,
    workspace_thread: WorkspaceThread,
    watch: Arc<Mutex<TurnWindow>>,
    timeline: Arc<Mutex<ToolTimeline>>,
    /// When what is being done was said.
    at: EventTime,
    places: Places,
    /// What the inner agent is called.
    agent: String,
    turn: Option<(OperationId, EntryId)>,
    coming: Option<StreamedMessage>,
    pieces: MessagePieces,
    /// When what is coming in this turn was last noted.
    noted: Option<Instant>,
    /// Something may have come since.
    is_unnoted: bool,
    calls: HashMap<String, ToolCall>,
    /// Calls of this turn that have ended: what is still said of them changes nothing.
    settled: HashSet<String>,
    /// The order in which calls began.
    began: Vec<String>,
    /// What the agent asks the client, by the request's id.
    questions: HashMap<String, AgentQuestion>,
    /// Calls that the user allowed, as they were described then.
    granted: HashMap<String, ToolCall>,
    /// Calls that the user did not allow.
    refused: HashSet<String>,
    /// Calls that are at work.
    working: HashSet<String>,
    /// How often a tool was spoken of.
    tools: Arc<AtomicU64>,
    /// When the agent was last found to be only talking.
    idled: Instant,
    runtime: runtime::Handle,
    publisher: Publisher,
    /// Whether it was said that the log cannot be written.
    is_broken: bool,
}

impl LogHandle {
    /// Starts the thread.
    pub(super) fn start(
        writer: SessionWriter,
        workspace_thread: WorkspaceThread,
        places: Places,
        agent: String,
        patience: Patience,
    ) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (tasks, inbox) = mpsc::channel::<LogTask>();
        let view = View {
            session: writer.id().into(),
            workspace: places.root.display().to_string(),
            model: agent.clone(),
            draft: writer.draft().to_vec(),
            ..View::default()
        };
        let publisher = Publisher::new(view, writer.conversation().entries());
        let is_call = |entry: &Entry| matches!(entry.body, Body::ToolResult { .. });
        let announces = writer.conversation().entries().iter().any(is_call);
        let timeline = Arc::new(Mutex::new(ToolTimeline::new(patience.notice, patience.doubt, announces)));
        let mut log = LogWriter {
            watch: Arc::new(Mutex::new(TurnWindow::new(writer.id(), Arc::clone(&timeline)))),
            timeline,
            at: EventTime::now(),
            writer: Some(writer),
            workspace_thread,
            places,
            agent,
            turn: None,
            coming: None,
            pieces: MessagePieces::new(),
            noted: None,
            is_unnoted: false,
            calls: HashMap::new(),
            settled: HashSet::new(),
            began: Vec::new(),
            questions: HashMap::new(),
            granted: HashMap::new(),
            refused: HashSet::new(),
            working: HashSet::new(),
            tools: Arc::default(),
            idled: Instant::now(),
            runtime: runtime::Handle::current(),
            publisher,
            is_broken: false,
        };
        let waiting: Arc<AtomicUsize> = Arc::default();
        let done = Arc::clone(&waiting);
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || {
            while let Some((at, task)) = log.next(&inbox) {
                log.at = at;
                task(&mut log);
                done.fetch_sub(1, Ordering::Relaxed);
                if log.writer.is_none() {
                    // It was erased: whatever else was to be done to it is not.
                    return;
                }
                log.is_unnoted = log.turn.is_some();
            }
            log.at = EventTime::now();
            log.end(EndReason::Interrupted);
            // Whoever opens the session next finds everything stored.
            log.workspace_thread.ask(|_| ());
        })?;
        Ok((Self { tasks, waiting }, thread))
    }

    /// Has something done when everything before it is.
    pub(super) fn run(&self, task: impl FnOnce(&mut LogWriter) + Send + 'static) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The thread ends when this handle does, or when the session is erased.
        self.tasks.send((EventTime::now(), Box::new(task))).ok();
    }

    /// Waits while too much is waiting to be written, as long as that gets less: a log writer that is held up may be waiting for the very one
    /// who waits here.
    pub(super) async fn keep_up(&self) {
        let mut before = self.waiting.load(Ordering::Relaxed);
        while before > MAX_TASKS {
            tokio::time::sleep(BREATH).await;
            let now = self.waiting.load(Ordering::Relaxed);
            if now >= before {
                return;
            }
            before = now;
        }
    }

    /// Has something done and waits for what comes of it; `None` if the thread has ended.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut LogWriter) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = oneshot::channel();
        self.run(move |log| {
            tell.send(task(log)).ok();
        });
        told.await.ok()
    }
}

impl LogWriter {
    /// What is to be done next, when there is something; what is coming is noted meanwhile.
    fn next(&mut self, inbox: &mpsc::Receiver<LogTask>) -> Option<LogTask> {
        while self.is_unnoted {
            let left = self.noted.map_or(Duration::ZERO, |noted| NOTED_EVERY.saturating_sub(noted.elapsed()));
            match inbox.recv_timeout(left) {
                Ok(task) if !left.is_zero() => return Some(task),
                Ok(task) => {
                    self.note_coming();
                    return Some(task);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => self.note_coming(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            }
        }
        inbox.recv().ok()
    }

    /// The session.
    pub(super) fn id(&self) -> SessionId {
        self.writer().id()
    }

    /// What is retained.
    pub(super) fn entries(&self) -> &[Entry] {
        self.writer().conversation().entries()
    }

    /// The workspace.
    pub(super) fn root(&self) -> &std::path::Path {
        &self.places.root
    }

    /// The workspace's workspace thread.
    pub(super) fn workspace_thread(&self) -> &WorkspaceThread {
        &self.workspace_thread
    }

    /// How it all stands, for whoever listens on the socket, and what happens from now on.
    pub(super) fn attach(&self, from: Option<u64>) -> Attached {
        self.publisher.attach(self.entries(), from)
    }

    fn writer(&self) -> &SessionWriter {
        self.writer.as_ref().expect("the writer is away only while a change is being made")
    }

    fn writer_mut(&mut self) -> &mut SessionWriter {
        self.writer.as_mut().expect("the writer is away only while a change is being made")
    }

    /// Begins a turn, durably, and has its snapshot taken: `taken` is told when that is done. If one runs, it ends: its tools go on in
    /// the new one.
    pub(super) fn begin(
        &mut self,
        prompt: EntryId,
        parts: Vec<Part>,
        taken: oneshot::Sender<Result<(), String>>,
    ) -> Result<(), String> {
        self.flush();
        let (at, operation) = (ids::now(), ids::operation());
        let entry = NewEntry { id: prompt, at, body: Body::Prompt { parts } };
        // What is said while a turn runs, and taken up by the agent, begins another one.
        if let Some((operation, _)) = self.turn.take() {
            let end = NewEntry { id: ids::entry(), at, body: Body::Ended { reason: EndReason::Done } };
            let ended = self.writer_mut().end_turn(operation, end).map(drop);
            self.note(ended);
        }
        let turn = NewTurn { operation, at, made_by: MadeBy::Client, entries: vec![entry], draft: Vec::new() };
        self.writer_mut().begin_turn(turn).map_err(|error| in_words(&error))?;
        self.turn = Some((operation, prompt));
        self.settled.clear();
        self.pieces.clear();
        self.noted = None;
        timing(&self.timeline).begin(self.at);
        // First: whoever sees the prompt must not take the session for idle.
        self.publisher.publish(EventKind::StateChanged { state: State::Running });
        self.publish_appended();
        let watch = Arc::clone(&self.watch);
        self.workspace_thread.run(move |workspace| {
            taken.send(watching(&watch).begin(workspace, operation, prompt)).ok();
        });
        Ok(())
    }

    /// The agent only talks, unless it says soon that it runs a tool: then what changes meanwhile is not its own.
    fn watch_idle(&mut self) {
        let is_still = self.calls.is_empty() && self.working.is_empty() && timing(&self.timeline).announces();
        if self.turn.is_none() || !is_still || self.idled.elapsed() < PAUSE {
            return;
        }
        self.idled = Instant::now();
        let (watch, workspace_thread, tools) =
            (Arc::clone(&self.watch), self.workspace_thread.clone(), Arc::clone(&self.tools));
        let seen = tools.load(Ordering::Relaxed);
        self.runtime.spawn(async move {
            tokio::time::sleep(PAUSE).await;
            workspace_thread.run(move |workspace| {
                if tools.load(Ordering::Relaxed) == seen {
                    watching(&watch).idle(workspace);
                }
            });
        });
    }

    /// Ends the turn.
    pub(super) fn end(&mut self, reason: EndReason) {
        self.flush();
        self.interrupt_calls();
        let Some((operation, _)) = self.turn.take() else { return };
        self.forget_work();
        timing(&self.timeline).end(self.at);
        let end = NewEntry { id: ids::entry(), at: ids::now(), body: Body::Ended { reason } };
        let ended = self.writer_mut().end_turn(operation, end).map(drop);
        self.note(ended);
        self.publish_appended();
        self.publisher.publish(EventKind::StateChanged { state: State::Idle });
        let watch = Arc::clone(&self.watch);
        self.workspace_thread.run(move |workspace| {
            watching(&watch).end(workspace);
            workspace.rest();
        });
        // An editor stays open for days, and most of the time nothing is said.
        self.writer().rest();
        self.tell_failure();
    }

    /// A history that was told by the inner agent has come to its end.
    pub(super) fn settle_import(&mut self) {
        self.flush();
        self.interrupt_calls();
    }

    /// Lets go of the session: whoever opens it next finds everything stored. Nothing else is done to it here.
    pub(super) fn close(&mut self) {
        self.end(EndReason::Interrupted);
        self.workspace_thread.ask(|_| ());
        self.writer = None;
    }

    /// Removes the session from the log, and with `also` what is kept beside it.
    pub(super) fn erase(&mut self, also: impl FnOnce(&std::path::Path) -> std::io::Result<()> + Send + 'static) {
        self.coming = None;
        let Some(writer) = self.writer.take() else { return };
        let removed = self.workspace_thread.ask(move |workspace| {
            let store = workspace.store_dir().to_owned();
            let deleted = workspace.sessions_mut().delete(writer).map(drop).map_err(|error| in_words(&error));
            deleted.and_then(|()| also(&store).map_err(|error| error.to_string()))
        });
        if let Err(why) = removed {
            super::complain(&format!("the session's log could not be removed: {why}"));
        }
    }

    fn reply(&self, blocks: Vec<Block>, stop: StopReason) -> Body {
        Body::Reply { blocks, model: self.agent.clone(), usage: Usage::default(), stop }
    }

    fn append(&mut self, bodies: Vec<(EntryId, Body)>) {
        let at = ids::now();
        let new = bodies.into_iter().map(|(id, body)| NewEntry { id, at, body }).collect();
        let appended = self.writer_mut().append(new, Durability::Soon).map(drop);
        self.note(appended);
        self.publish_appended();
    }

    fn note(&mut self, written: Result<(), SessionError>) {
        if let Err(error) = written {
            self.complain(&in_words(&error));
        }
    }

    /// Tells people once that the log has a hole.
    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_broken, true) {
            super::complain(&format!("what is said from now on may be missing from Retake's log: {why}"));
        }
    }

    fn tell_failure(&mut self) {
        let watch = Arc::clone(&self.watch);
        self.workspace_thread.run(move |_| {
            if let Some(why) = watching(&watch).failure.take() {
                super::complain(&format!("a snapshot could not be taken: {why}"));
            }
        });
    }

    fn publish_appended(&mut self) {
        let Self { writer: Some(writer), publisher, .. } = self else { return };
        publisher.appended(writer.conversation().entries());
    }
}

/// The watch; whoever panicked with it has not left it in pieces.
pub(super) fn watching(watch: &Mutex<TurnWindow>) -> MutexGuard<'_, TurnWindow> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tool call and its result as entries.
fn call_entries(log: &LogWriter, id: &str, call: &ToolCall, outcome: Outcome) -> Vec<(EntryId, Body)> {
    let block = Block::Call { id: CallId(id.to_owned()), name: call.tool(), arguments: call.to_json() };
    let result = Body::ToolResult {
        call: CallId(id.to_owned()),
        title: call.title(),
        outcome,
        parts: call.parts(),
        todos: None,
        details: None,
    };
    vec![(ids::entry(), log.reply(vec![block], StopReason::Calls)), (ids::entry(), result)]
}
