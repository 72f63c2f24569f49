//! The controller: one thread per session, the only one that writes to it.
//!
//! Commands of clients and facts from tools and models come in; entries go to the log and events to everybody. What is to happen next is
//! decided by the `turn` module; the controller carries it out. It never waits for a model or a tool: those report when they are done, each with
//! the number of the turn that it belongs to, so that whatever comes after a turn was cut is dropped.

mod baseline;
mod calls;
mod changes;
mod explore;
mod open;
mod publish;
mod queries;
mod queued;
mod summaries;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use retake_engine::checkpoint::CheckpointError;
use retake_engine::id::EntryId;
use retake_engine::id::{OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::session::SessionWriter;
use retake_engine::session::entry::{CallId, Part, Usage};
use retake_engine::window::{FileTime, Window};
use tokio::runtime;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::contract::{
    Action, Change, Command, Event, EventKind, Mentions, Query, Reason, Refusal, Reply, Request, RequestOutcome,
};
use crate::mention;
use crate::model::{Delta, Model, ModelAnswer, ModelError, Models, PartialAnswer};
use crate::path_search::FileList;
use crate::permission::{Mode, Policy};
use crate::publisher::Publisher;
use crate::query::refusal;
use crate::tool::{self, JobEnded, JobId, Toolbox};
use crate::turn::{Activity, CallNumber, Turn};
use crate::view::View;
use crate::workspace_thread::WorkspaceThread;
use calls::PendingCall;
use summaries::Summarising;

pub use open::{OpenError, Opened, SessionSetup, Which, open};

/// Whether tools may change something that no snapshot protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unprotected {
    /// The user is asked; if nobody can be, the tool fails.
    #[default]
    Ask,
    /// They may.
    Allow,
}

/// A client's way to a session.
#[derive(Clone, Debug)]
pub struct Handle {
    session: SessionId,
    messages: mpsc::Sender<ControllerMessage>,
    published: Arc<AtomicU64>,
}

/// What a client has from when it attached.
#[derive(Debug)]
pub struct Attached {
    /// Where to begin.
    pub beginning: Beginning,
    /// Everything that comes after it.
    pub events: broadcast::Receiver<Arc<Event>>,
}

/// Where a client begins.
#[derive(Debug)]
pub enum Beginning {
    /// With everything.
    View(Box<View>),
    /// With what it has missed.
    Missed(Vec<Arc<Event>>),
}

/// What comes to whoever serves a session from clients.
#[derive(Debug)]
pub enum ControllerMessage {
    /// Something is wanted.
    Request {
        /// What.
        request: Request,
        /// Where the answer goes.
        answer: oneshot::Sender<RequestOutcome>,
    },
    /// Somebody begins to listen.
    Attach {
        /// After this event.
        from: Option<u64>,
        /// Where the answer goes.
        answer: oneshot::Sender<Attached>,
    },
    /// The session may close.
    CloseIfIdle {
        /// Where the answer goes.
        answer: oneshot::Sender<Closing>,
    },
}

/// The way to a session that somebody else than a controller serves: whoever has the other end answers.
pub fn channel(session: SessionId) -> (Handle, mpsc::Receiver<ControllerMessage>) {
    let (messages, inbox) = mpsc::channel(crate::limits::INBOX);
    (Handle { session, messages, published: Arc::default() }, inbox)
}

/// Whether a session closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Nothing more is said in it.
    Closes,
    /// A turn is running, or a prompt is held.
    Busy,
}

/// The answer to a request that was handed in.
#[derive(Debug)]
pub struct Pending(Awaited<RequestOutcome>);

impl Pending {
    /// Waits for it. A request that nobody waits for any more is not carried out.
    pub async fn answer(self) -> Result<Reply, Refusal> {
        match self.0.answer().await.ok_or_else(gone)? {
            RequestOutcome::Ok(reply) => Ok(reply),
            RequestOutcome::Refused(refusal) => Err(refusal),
        }
    }
}

/// The answer to a message. The session's end is awaited beside it: a message that enters the channel at the moment at which the channel
/// closes stays in there, and so does the sender of its answer.
#[derive(Debug)]
struct Awaited<T> {
    answered: oneshot::Receiver<T>,
    messages: mpsc::Sender<ControllerMessage>,
}

impl<T> Awaited<T> {
    /// Waits for it; `None` if the session has ended without one.
    async fn answer(mut self) -> Option<T> {
        tokio::select! {
            biased;
            answer = &mut self.answered => answer.ok(),
            // Every message that was taken out of the channel is answered before the channel closes.
            () = self.messages.closed() => self.answered.try_recv().ok(),
        }
    }
}

/// What comes to a controller from those who work for it.
enum WorkerFact {
    Delta {
        turn: u64,
        delta: Delta,
    },
    Answered {
        turn: u64,
        result: Result<ModelAnswer, ModelError>,
    },
    Summarised {
        turn: u64,
        result: Result<(String, Usage), ModelError>,
    },
    RetryDue {
        turn: u64,
    },
    OutOfPatience {
        turn: u64,
    },
    WindowOpened {
        turn: u64,
        call: CallNumber,
        result: Result<(), CheckpointError>,
    },
    CallOutput {
        turn: u64,
        call: CallNumber,
        text: String,
    },
    CallReturned {
        turn: u64,
        call: CallNumber,
        output: tool::Output,
        at: FileTime,
    },
    WindowClosed {
        turn: u64,
        call: CallNumber,
        output: tool::Output,
    },
    /// The workspace thread has come to something that everybody is to be told.
    Told {
        request: Option<String>,
        kind: Box<EventKind>,
    },
    JobEnded(JobEnded),
}

/// A session is gone: its process is ending.
pub(crate) fn gone() -> Refusal {
    Refusal {
        hint: Some("nothing was done; run the command again".to_owned()),
        ..refusal(Reason::Ended, "the session has ended")
    }
}

impl Handle {
    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The number of the last event that the controller has published: at least that of every event that came before an answer which a
    /// client has. `None` where no controller serves the session.
    pub fn published(&self) -> Option<u64> {
        Some(self.published.load(Ordering::Acquire)).filter(|seq| *seq > 0)
    }

    /// Has a command carried out.
    pub async fn request(&self, command: impl Into<Command>) -> Result<Reply, Refusal> {
        self.send(Request { id: String::new(), command: command.into() }).await
    }

    /// Has a request carried out.
    pub async fn send(&self, request: Request) -> Result<Reply, Refusal> {
        self.hand_in(request).await.answer().await
    }

    /// Hands a request in: those that were handed in first are carried out first, whenever their answers come.
    pub async fn hand_in(&self, request: Request) -> Pending {
        Pending(self.deliver(|answer| ControllerMessage::Request { request, answer }).await)
    }

    /// Sends a message with the way back for its answer. If the session has ended, [`Awaited::answer`] says so.
    async fn deliver<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> ControllerMessage) -> Awaited<T> {
        let (answer, answered) = oneshot::channel();
        self.messages.send(message(answer)).await.ok();
        Awaited { answered, messages: self.messages.clone() }
    }

    /// Closes the session if nothing goes on in it. What is said later is refused, and not stopped half-way.
    pub async fn close_if_idle(&self) -> Closing {
        let closing = self.deliver(|answer| ControllerMessage::CloseIfIdle { answer }).await;
        closing.answer().await.unwrap_or(Closing::Closes)
    }

    /// Waits until the session has ended.
    pub async fn ended(&self) {
        self.messages.closed().await;
    }

    /// Begins to listen: with everything, or with what came after event number `from`.
    pub async fn attach(&self, from: Option<u64>) -> Result<Attached, Refusal> {
        let attached = self.deliver(|answer| ControllerMessage::Attach { from, answer }).await;
        attached.answer().await.ok_or_else(gone)
    }
}

/// The one who writes to a session.
struct Controller {
    runtime: runtime::Handle,
    workspace_thread: WorkspaceThread,
    /// Away only while the workspace thread makes a change with it.
    writer: Option<SessionWriter>,
    root: PathBuf,
    model: Model,
    models: Models,
    toolbox: Arc<Toolbox>,
    policy: Policy,
    unprotected: Unprotected,
    made_by: MadeBy,
    turn: Turn,
    /// The number of the turn: whatever carries another one is late.
    number: u64,
    current: Option<Current>,
    summarising: Option<Summarising>,
    held: VecDeque<QueuedPrompt>,
    /// What the user is about to say. The stored one begins with what is held, should the process die.
    draft: Vec<Part>,
    /// A change that waits for the turn to come to its end.
    waiting: Option<(WantedChange, oneshot::Sender<RequestOutcome>)>,
    /// Whether the user stopped the last turn.
    stopped: bool,
    /// The last turn that is retained, and the head that it left.
    last_turn: Option<(OperationId, EntryId)>,
    /// Windows of background jobs.
    job_windows: HashMap<JobId, Window>,
    /// The results that told the model of background jobs.
    job_entries: HashMap<JobId, EntryId>,
    /// The workspace thread's, for whoever types a path.
    files: Arc<Mutex<FileList>>,
    /// Knows the request that is being carried out.
    publisher: Publisher,
    facts: mpsc::UnboundedSender<WorkerFact>,
    is_closing: bool,
}

/// A change that a client wants.
struct WantedChange {
    /// The request that it came with.
    request: Option<String>,
    change: Change,
    /// The fingerprint of the plan that the user saw.
    plan_seen: Option<String>,
}

/// A prompt that waits for the end of the turn.
struct QueuedPrompt {
    request: Option<String>,
    parts: Vec<Part>,
    terms: Terms,
}

/// What may run in a turn.
#[derive(Clone, Copy, Debug)]
struct Terms {
    mode: Mode,
    unprotected: Unprotected,
}

/// A turn under way.
struct Current {
    prompt: EntryId,
    operation: OperationId,
    /// The request that began it.
    request: Option<String>,
    terms: Terms,
    heard: PartialAnswer,
    /// The entry that the answer which is coming will be.
    reply: EntryId,
    /// Whether anything has come of it that is kept.
    has_output: bool,
    calls: Vec<PendingCall>,
    asking: Option<tokio::task::AbortHandle>,
}

impl Controller {
    /// Serves until it is told to close and everything has come to its end.
    fn serve(
        mut self,
        mut messages: mpsc::Receiver<ControllerMessage>,
        mut facts: mpsc::UnboundedReceiver<WorkerFact>,
    ) {
        enum Next {
            Message(ControllerMessage),
            Fact(WorkerFact),
            Nobody,
        }
        let runtime = self.runtime.clone();
        let mut is_alone = false;
        while !(self.is_closing && self.current.is_none()) {
            let next = runtime.block_on(async {
                tokio::select! {
                    biased;
                    Some(fact) = facts.recv() => Next::Fact(fact),
                    message = messages.recv(), if !is_alone => message.map_or(Next::Nobody, Next::Message),
                    else => Next::Nobody,
                }
            });
            match next {
                Next::Fact(fact) => self.take_fact(fact),
                Next::Message(ControllerMessage::Attach { from, answer }) => drop(answer.send(self.attach(from))),
                // Whoever gave up on it, maybe long ago, does not want it any more.
                Next::Message(ControllerMessage::Request { answer, .. }) if answer.is_closed() => {}
                Next::Message(ControllerMessage::Request { request, answer }) => self.take_request(request, answer),
                Next::Message(ControllerMessage::CloseIfIdle { answer }) => drop(answer.send(self.close_if_idle())),
                // All clients are gone, and nobody can come back.
                Next::Nobody => {
                    is_alone = true;
                    self.close();
                }
            }
        }
        self.tell_of_jobs_left();
        self.runtime.block_on(self.toolbox.shutdown());
        for (_, window) in std::mem::take(&mut self.job_windows) {
            self.end_window(window);
        }
        // Whoever still listens is told how it ended.
        self.workspace_thread.ask(|_| ());
        while let Ok(fact) = facts.try_recv() {
            self.take_fact(fact);
        }
        self.forget_if_empty();
    }

    /// A session in which nothing was ever said is none.
    fn forget_if_empty(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        if !writer.conversation().entries().is_empty() || !writer.draft().is_empty() {
            return;
        }
        self.workspace_thread.run(move |workspace| {
            // What was said and taken back can be had again.
            if workspace.sessions().all_entries(writer.id()).is_ok_and(|entries| entries.is_empty()) {
                // One that stays is listed nowhere.
                workspace.sessions_mut().delete(writer).ok();
            }
        });
    }

    fn take_request(&mut self, request: Request, answer: oneshot::Sender<RequestOutcome>) {
        self.publisher.request = (!request.id.is_empty()).then(|| request.id.clone());
        match request.command {
            Command::Query(query) => self.take_query(query, answer),
            Command::Action(action) => self.take_action(action, answer),
        }
        self.publisher.request = None;
    }

    /// Answers a query: from memory, or from the workspace, which the workspace thread reads.
    fn take_query(&mut self, query: Query, answer: oneshot::Sender<RequestOutcome>) {
        let reply = match query {
            Query::Attach { .. } => {
                let view = self.publisher.view_with(self.writer().conversation().entries());
                Reply::View { view: Box::new(view) }
            }
            Query::Context => Reply::Context { body: self.model_request().body().to_owned() },
            Query::Ping => Reply::Done,
            Query::Plan { .. }
            | Query::Targets { .. }
            | Query::Diff { .. }
            | Query::Tree
            | Query::Operations
            | Query::Checkpoints
            | Query::Sessions
            | Query::Files { .. }
            | Query::Store => return self.look_around(query, answer),
        };
        // A client that is gone needs no answer.
        answer.send(RequestOutcome::Ok(reply)).ok();
    }

    /// Carries an action out. Some are answered later: by the workspace thread, or when a turn has come to its end.
    fn take_action(&mut self, action: Action, answer: oneshot::Sender<RequestOutcome>) {
        let outcome = match action {
            Action::Apply { change, head_seen, plan_seen, running } => {
                let wanted = WantedChange { request: self.publisher.request.clone(), change, plan_seen };
                return self.apply(wanted, head_seen, running, answer);
            }
            Action::Fork { entry } => return self.fork(entry, answer),
            Action::Label { prompt, label } => return self.label(prompt, label, answer),
            Action::Summarise { extent, instructions } => {
                return self.summarise(extent, instructions.as_deref(), answer);
            }
            Action::Prompt { parts, allow, unprotected, draft, mentions } => {
                let terms = self.terms(allow, unprotected);
                let (parts, draft) = match mentions {
                    Mentions::Leave => (parts, draft),
                    Mentions::Attach => (mention::attach(&self.root, parts.clone()), draft.or(Some(parts))),
                };
                self.prompt(parts, draft.as_deref(), terms)
            }
            Action::Withdraw { request } => self.withdraw(&request),
            Action::Interrupt { turn } => self.interrupt_turn(turn),
            Action::Answer { call, answer } => self.answer(&call, answer),
            Action::Draft { parts } => self.set_draft(parts),
            Action::Clear => self.clear(),
            Action::EndJob { job } => self.end_job(&job),
            Action::Model { model } => self.change_model(&model),
            Action::Close => {
                self.close();
                Ok(Reply::Done)
            }
        };
        // A client that is gone needs no answer.
        answer.send(outcome.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok)).ok();
    }

    fn take_fact(&mut self, fact: WorkerFact) {
        self.publisher.request = self.current.as_ref().and_then(|current| current.request.clone());
        match fact {
            WorkerFact::Told { request, kind } => {
                self.publisher.request = request;
                self.publish(*kind);
            }
            WorkerFact::JobEnded(ended) => self.job_ended(&ended),
            WorkerFact::WindowOpened { turn, call, result } => self.window_opened(turn, call, result),
            WorkerFact::CallReturned { turn, call, output, at } => self.call_returned(turn, call, output, at),
            WorkerFact::WindowClosed { turn, call, output } if turn == self.number => self.settle_call(call, output),
            WorkerFact::CallOutput { turn, call, text } if turn == self.number => self.call_output(call, text),
            WorkerFact::Delta { turn, delta } if turn == self.number => self.take_delta(&delta),
            WorkerFact::Answered { turn, result } if turn == self.number => self.take_answer(result),
            WorkerFact::Summarised { turn, result } if turn == self.number => self.take_summary(result),
            WorkerFact::RetryDue { turn } if turn == self.number => self.step(crate::turn::Fact::RetryDue),
            WorkerFact::OutOfPatience { turn } if turn == self.number => self.step(crate::turn::Fact::OutOfPatience),
            // Of a turn that is over.
            WorkerFact::WindowClosed { .. }
            | WorkerFact::CallOutput { .. }
            | WorkerFact::Delta { .. }
            | WorkerFact::Answered { .. }
            | WorkerFact::Summarised { .. }
            | WorkerFact::RetryDue { .. }
            | WorkerFact::OutOfPatience { .. } => {}
        }
        self.publisher.request = None;
    }

    /// The one who appends.
    fn writer(&self) -> &SessionWriter {
        self.writer.as_ref().expect("the writer is away only while a change is being made")
    }

    fn writer_mut(&mut self) -> &mut SessionWriter {
        self.writer.as_mut().expect("the writer is away only while a change is being made")
    }

    /// Gives the writer away for as long as `work` takes.
    fn lend_writer<T>(&mut self, work: impl FnOnce(SessionWriter) -> (SessionWriter, T)) -> T {
        let writer = self.writer.take().expect("the writer is away only while a change is being made");
        let (writer, value) = work(writer);
        self.writer = Some(writer);
        value
    }

    fn close(&mut self) {
        self.is_closing = true;
        if self.turn.activity() != Activity::Idle {
            self.interrupt();
        }
    }

    fn close_if_idle(&mut self) -> Closing {
        if self.current.is_some() || !self.held.is_empty() {
            return Closing::Busy;
        }
        self.close();
        Closing::Closes
    }

    fn call_id(&self, number: CallNumber) -> Option<CallId> {
        Some(self.current.as_ref()?.calls.get(number)?.id.clone())
    }
}
