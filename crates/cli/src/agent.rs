//! What commands that ask a model share: which model, which session, and a live session in this process or another one.

pub mod model;
mod print;
pub mod session;
pub mod terminal;
pub mod web;

use retake_agent::contract::{Action, Allow, Command, Query, Refusal, Reply};
use retake_agent::controller::{self, Opened, SessionSetup, Unprotected, Which};
use retake_agent::live::{JoinError, LiveError, LiveSession};
use retake_agent::mcp::Servers;
use retake_agent::model::Model;
use retake_agent::permission::{Mode, Policy};
use retake_agent::socket::{self, Client};
use retake_agent::tool::{JobEnded, Jobs, Shell, Toolbox};
use retake_engine::id::SessionId;
use retake_engine::operation::MadeBy;
use thiserror::Error;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc;

use crate::failure::{Failure, Result};
use crate::output::ui::Warn;
use crate::workspace::context::CommandContext;
pub use print::Printer;
use retake_agent::view::View;

/// What keeps the agent from working.
#[derive(Debug, Error)]
pub enum AgentError {
    #[error("no model is set")]
    NoModel,
    #[error(transparent)]
    Settings(#[from] retake_agent::model::SettingsError),
    #[error(transparent)]
    Model(#[from] retake_agent::model::ModelError),
    #[error(transparent)]
    Open(#[from] controller::OpenError),
    #[error("{message}")]
    Refused { message: String, hint: Option<String>, refusal: Box<Refusal> },
    #[error("there is no conversation here yet")]
    NoSession,
    #[error("no session is open here")]
    NotOpen,
    #[error(transparent)]
    Untrusted(socket::Untrusted),
    #[error("the session was closed where it was open")]
    ClosedElsewhere,
    #[error("the session ended before its turn did")]
    Ended,
    #[error(transparent)]
    Live(LiveError),
    #[error("the prompt was not said, because the turn before it was stopped or failed")]
    Returned,
    #[error("the turn failed: {message}")]
    TurnFailed { message: String },
    #[error("the turn was interrupted")]
    Interrupted,
    #[error("the turn was interrupted before anything came of it, and was taken back")]
    TakenBack,
    #[error("the summary was stopped; nothing was changed")]
    SummaryStopped,
    #[error("the prompt was withdrawn before it was said")]
    Withdrawn,
    #[error("the turn was stopped before it was done: {message}")]
    RoundLimit { message: String },
    #[error("cannot read `{path}`: {why}")]
    Attachment { path: String, why: String },
    #[error("the prompt is empty")]
    NoPrompt,
}

impl AgentError {
    /// A session is open in another process that does not answer.
    pub fn unreachable(session: SessionId) -> Self {
        Self::Live(LiveError::Unreachable { session: session.short() })
    }
}

impl From<LiveError> for AgentError {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Ended => Self::Ended,
            LiveError::TurnedAway(refusal) => Self::from(*refusal),
            LiveError::Died | LiveError::Unreachable { .. } => Self::Live(error),
        }
    }
}

impl From<Refusal> for AgentError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { message: refusal.message.clone(), hint: refusal.hint.clone(), refusal: Box::new(refusal) }
    }
}

/// A runtime for what is asynchronous.
pub fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// How a session is opened.
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    pub mode: Mode,
    pub unprotected: Unprotected,
    pub made_by: MadeBy,
}

impl SessionOptions {
    /// Without anybody who can be asked.
    pub fn headless(allow: Allow, unprotected: Unprotected) -> Self {
        Self { mode: allow.into(), unprotected, made_by: MadeBy::Command }
    }

    /// With somebody who is asked.
    pub fn interactive() -> Self {
        Self { mode: Mode::Interactive, unprotected: Unprotected::Ask, made_by: MadeBy::Client }
    }
}

/// A session that this process serves.
pub struct Serving {
    pub opened: Opened,
    pub socket: Option<socket::Served>,
}

impl Serving {
    /// Whether other processes have it open, too.
    pub fn is_shared(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.clients() > 0)
    }

    /// Ends it; whoever looks next finds everything stored.
    pub fn finish(self, runtime: &Handle) {
        let Opened { handle, served } = self.opened;
        runtime.block_on(handle.request(Action::Close)).ok();
        drop(handle);
        served.join().ok();
        if let Some(socket) = self.socket {
            runtime.block_on(socket.finish());
        }
    }
}

/// Opens a session in this process with these tools, and listens on its socket.
pub fn open(
    ui: &mut impl Warn,
    runtime: &Handle,
    here: &CommandContext,
    tools: Tools,
    model: Model,
    which: Which,
    manner: SessionOptions,
) -> Result<Serving> {
    let (serving, warning) = open_quietly(runtime, here, tools, model, which, manner)?;
    if let Some(warning) = warning {
        ui.warn(&warning)?;
    }
    Ok(serving)
}

/// The same on any thread that may wait; what people should know is returned.
pub fn open_quietly(
    runtime: &tokio::runtime::Handle,
    here: &CommandContext,
    tools: Tools,
    model: Model,
    which: Which,
    manner: SessionOptions,
) -> Result<(Serving, Option<String>), AgentError> {
    let _inside = runtime.enter();
    let policy = Policy {
        mode: manner.mode,
        deny: here.agent.deny.clone(),
        ask: here.agent.ask.clone(),
        allow: here.agent.allow.clone(),
        approved: Vec::new(),
    };
    let opened = controller::open(SessionSetup {
        environment: here.environment.clone(),
        which,
        models: model::others(&model, &here.agent),
        model,
        policy,
        unprotected: manner.unprotected,
        made_by: manner.made_by,
        tools,
    })?;
    // Without a socket the session works all the same, but nobody else can reach it.
    Ok(match socket::serve(&here.sockets, opened.handle.clone()) {
        Ok(served) => (Serving { opened, socket: Some(served) }, None),
        Err(err) => {
            let place = here.sockets.display();
            let warning = format!("no other command can reach this session: cannot listen in `{place}`: {err}");
            (Serving { opened, socket: None }, Some(warning))
        }
    })
}

/// The tools of a session, and the channel on which they tell that a job has ended.
pub type Tools = (Toolbox, mpsc::Receiver<JobEnded>);

/// The tools of a session, those of MCP servers included; a server that does not start is a warning. Inside a runtime only.
pub async fn tools(ui: &mut impl Warn, here: &CommandContext) -> Result<Tools> {
    let (tools, warnings) = tools_quietly(here).await;
    for warning in warnings {
        ui.warn(&warning)?;
    }
    Ok(tools)
}

/// The same; what people should know is returned.
pub async fn tools_quietly(here: &CommandContext) -> (Tools, Vec<String>) {
    let (root, shell) = (&here.environment.root, Shell::default());
    let (jobs, ended) = Jobs::new();
    let toolbox = Toolbox::new(root, shell.clone(), jobs).with_checkpoints(here.agent.checkpoints);
    if here.agent.servers.is_empty() {
        return ((toolbox, ended), Vec::new());
    }
    let (servers, failures) = Servers::start(&here.agent.servers, root, &shell).await;
    let warnings = failures.iter().map(ToString::to_string).collect();
    ((toolbox.with_servers(servers), ended), warnings)
}

/// Asks a live session in another process; `None` if it lives nowhere.
pub fn ask_live(
    here: &CommandContext,
    session: SessionId,
    command: impl Into<Command>,
) -> Result<Option<Result<Reply, Refusal>>> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let Some(client) = connect(here, session).await? else { return Ok(None) };
        let reply = LiveSession::elsewhere(client, session).asker.ask(command).await.map_err(AgentError::from)?;
        Ok(Some(reply))
    })
}

/// The way to a live session in another process; `None` if it lives nowhere.
pub async fn connect(here: &CommandContext, session: SessionId) -> Result<Option<Client>> {
    here.reach().connect(session).await.map_err(cannot_join)
}

/// Joins a live session in another process; `None` if it lives nowhere.
pub async fn join(here: &CommandContext, session: SessionId) -> Result<Option<(Box<View>, LiveSession)>> {
    here.reach().join(session).await.map_err(cannot_join)
}

/// Why a session cannot be joined, as commands tell it.
pub fn cannot_join(error: JoinError) -> Failure {
    match error {
        JoinError::Untrusted(untrusted) => AgentError::Untrusted(untrusted).into(),
        JoinError::Live(error) => AgentError::from(error).into(),
        JoinError::Io(error) => error.into(),
    }
}

/// Whether a live session in another process answers.
pub fn is_served(here: &CommandContext, session: SessionId) -> Result<bool> {
    match ask_live(here, session, Query::Ping) {
        Ok(answer) => Ok(answer.is_some_and(|answer| answer.is_ok())),
        // What it left behind accepted the connection.
        Err(error) if matches!(error.downcast_ref(), Some(AgentError::Live(LiveError::Died))) => Ok(false),
        Err(error) => Err(error),
    }
}
