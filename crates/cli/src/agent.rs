//! What commands that ask a model share: which model, which session, and a live session in this process or another one.

pub mod model;
mod print;
pub mod session;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use retake_agent::contract::{Allow, Command, Event, Outcome, Outgoing, Refusal, Reply, Request};
use retake_agent::controller::{self, Attached, Beginning, Handle, Opened, Setup, Unprotected, Which};
use retake_agent::mcp::Servers;
use retake_agent::model::Model;
use retake_agent::permission::{Allowed, Mode, Policy};
use retake_agent::socket::{self, Client};
use retake_agent::tool::{JobEnded, Jobs, Shell, Toolbox};
use retake_engine::session::entry::Part;
use retake_engine::{MadeBy, SessionId};
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, mpsc};

use crate::surroundings::Surroundings;
use crate::ui::Ui;
pub use print::Printer;

/// How long an MCP server may take to start.
const SERVER_LIMIT: Duration = Duration::from_secs(20);

/// The request of the prompt that this process was started for.
const OWN_REQUEST: &str = "run";

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
    #[error("the session ended before its turn did")]
    Ended,
    #[error("the turn failed: {message}")]
    TurnFailed { message: String },
    #[error("the turn was interrupted")]
    Interrupted,
    #[error("the turn was interrupted before anything came of it, and was taken back")]
    TakenBack,
    #[error("the prompt was withdrawn before it was said")]
    Withdrawn,
    #[error("the turn was stopped before it was done: {message}")]
    RoundLimit { message: String },
    #[error("cannot read `{path}`: {why}")]
    Attachment { path: String, why: String },
    #[error("the prompt is empty")]
    NoPrompt,
    #[error("session {session} is open in another process that does not answer")]
    Unreachable { session: String },
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
pub struct Manner {
    pub allowed: Allowed,
    pub unprotected: Unprotected,
}

/// A session that this process serves.
pub struct Serving {
    pub opened: Opened,
    pub socket: Option<socket::Served>,
}

impl Serving {
    /// Ends it; whoever looks next finds everything stored.
    pub fn finish(self, runtime: &Runtime) {
        let Opened { handle, served } = self.opened;
        runtime.block_on(handle.request(Command::Close)).ok();
        drop(handle);
        served.join().ok();
        if let Some(socket) = self.socket {
            runtime.block_on(socket.finish());
        }
    }
}

/// Opens a session in this process and listens on its socket.
pub fn open(
    ui: &mut Ui,
    runtime: &Runtime,
    here: &Surroundings,
    model: Model,
    which: Which,
    manner: Manner,
) -> anyhow::Result<Serving> {
    let _inside = runtime.enter();
    let tools = tools(ui, runtime, here)?;
    let policy = Policy {
        mode: Mode::Headless(manner.allowed),
        deny: here.agent.deny.clone(),
        ask: here.agent.ask.clone(),
        allow: here.agent.allow.clone(),
        approved: Vec::new(),
    };
    let opened = controller::open(Setup {
        environment: here.environment.clone(),
        which,
        model,
        policy,
        unprotected: manner.unprotected,
        made_by: MadeBy::Command,
        tools,
    });
    let opened = opened.map_err(AgentError::Open)?;
    // Without a socket the session works all the same, but nobody else can reach it.
    let socket = match socket::serve(&here.sockets, opened.handle.clone()) {
        Ok(served) => Some(served),
        Err(err) => {
            ui.warn(&format!("no other command can reach this session: {err}"))?;
            None
        }
    };
    Ok(Serving { opened, socket })
}

/// The tools of a session, those of MCP servers included; a server that does not start is a warning. Inside a runtime only.
pub fn tools(
    ui: &mut Ui,
    runtime: &Runtime,
    here: &Surroundings,
) -> anyhow::Result<(Toolbox, mpsc::Receiver<JobEnded>)> {
    let (root, shell) = (&here.environment.root, Shell::default());
    let (jobs, ended) = Jobs::new();
    let toolbox = Toolbox::new(root, shell.clone(), jobs).with_checkpoints(here.agent.checkpoints);
    if here.agent.servers.is_empty() {
        return Ok((toolbox, ended));
    }
    let (servers, failures) = runtime.block_on(Servers::start(&here.agent.servers, root, &shell, SERVER_LIMIT));
    for failure in failures {
        ui.warn(&failure.to_string())?;
    }
    Ok((toolbox.with_servers(servers), ended))
}

/// A session, wherever it lives.
pub enum Session {
    Here {
        handle: Handle,
        events: broadcast::Receiver<Arc<Event>>,
    },
    /// With events that came before an answer.
    Elsewhere {
        client: Box<Client>,
        early: VecDeque<Arc<Event>>,
    },
}

impl Session {
    /// Whether other people's turns are none of this process's business.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Elsewhere { .. })
    }

    pub async fn here(handle: Handle) -> Result<Self, AgentError> {
        let Attached { beginning: Beginning::View(_) | Beginning::Missed(_), events } = handle.attach(None).await?;
        Ok(Self::Here { handle, events })
    }

    pub async fn elsewhere(mut client: Client) -> Result<Self, AgentError> {
        client.request(Command::Attach { from: None }).await.map_err(|_| AgentError::Ended)??;
        Ok(Self::Elsewhere { client: Box::new(client), early: VecDeque::new() })
    }

    /// Says something, and returns the request that all events of its turn carry. While another turn runs it is held.
    pub async fn prompt(&mut self, parts: Vec<Part>, manner: Manner) -> anyhow::Result<String> {
        let allow = match manner.allowed {
            Allowed::All => Allow::All,
            Allowed::Edits => Allow::Edits,
            Allowed::None => Allow::None,
        };
        let unprotected = manner.unprotected == Unprotected::Allow;
        let command = Command::Prompt { parts, allow: Some(allow), unprotected };
        match self {
            Self::Here { handle, .. } => {
                let id = OWN_REQUEST.to_owned();
                handle.send(Request { id: id.clone(), command }).await.map_err(AgentError::from)?;
                Ok(id)
            }
            Self::Elsewhere { client, early } => {
                let id = client.send(command).await?;
                loop {
                    match client.next().await?.ok_or(AgentError::Ended)? {
                        Outgoing::Event(event) => early.push_back(Arc::from(event)),
                        Outgoing::Response(response) if response.id == id => match response.outcome {
                            Outcome::Ok(_) => return Ok(id),
                            Outcome::Refused(refusal) => return Err(AgentError::from(refusal).into()),
                        },
                        Outgoing::Response(_) => {}
                        Outgoing::Lagged => return Err(AgentError::Ended.into()),
                    }
                }
            }
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> anyhow::Result<Arc<Event>> {
        match self {
            Self::Here { events, .. } => loop {
                match events.recv().await {
                    Ok(event) => return Ok(event),
                    // What was missed is of no use to anybody who prints it, and the end of the turn comes last.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Err(AgentError::Ended.into()),
                }
            },
            Self::Elsewhere { client, early } => loop {
                if let Some(event) = early.pop_front() {
                    return Ok(event);
                }
                match client.next().await?.ok_or(AgentError::Ended)? {
                    Outgoing::Event(event) => return Ok(Arc::from(event)),
                    Outgoing::Response(_) => {}
                    Outgoing::Lagged => drop(client.send(Command::Attach { from: None }).await?),
                }
            },
        }
    }

    /// Cuts what the model sees.
    pub async fn clear(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Here { handle, .. } => drop(handle.request(Command::Clear).await.map_err(AgentError::from)?),
            Self::Elsewhere { client, .. } => drop(client.request(Command::Clear).await?.map_err(AgentError::from)?),
        }
        Ok(())
    }

    /// Stops the turn of `request`; a prompt that has not been said yet is withdrawn. Other people's turns go on.
    pub async fn stop(&mut self, request: &str) -> anyhow::Result<Stopped> {
        let withdraw = Command::Withdraw { request: request.to_owned() };
        match self {
            Self::Here { handle, .. } => {
                if handle.request(withdraw).await.is_ok() {
                    return Ok(Stopped::Withdrawn);
                }
                handle.request(Command::Interrupt).await.map_err(AgentError::from)?;
            }
            Self::Elsewhere { client, early } => {
                let id = client.send(withdraw).await?;
                loop {
                    match client.next().await?.ok_or(AgentError::Ended)? {
                        Outgoing::Event(event) => early.push_back(Arc::from(event)),
                        Outgoing::Response(response) if response.id == id => match response.outcome {
                            Outcome::Ok(_) => return Ok(Stopped::Withdrawn),
                            Outcome::Refused(_) => break,
                        },
                        Outgoing::Response(_) => {}
                        Outgoing::Lagged => return Err(AgentError::Ended.into()),
                    }
                }
                client.send(Command::Interrupt).await?;
            }
        }
        Ok(Stopped::Interrupted)
    }
}

/// What stopping came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The turn is coming to its end.
    Interrupted,
    /// It had not begun.
    Withdrawn,
}

/// Asks a live session in another process; `None` if it lives nowhere.
pub fn ask_live(
    here: &Surroundings,
    session: SessionId,
    command: Command,
) -> anyhow::Result<Option<Result<Reply, Refusal>>> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let Some(mut client) = Client::connect(&here.sockets, session).await? else { return Ok(None) };
        Ok(Some(client.request(command).await?))
    })
}

/// Whether a live session in another process answers.
pub fn is_served(here: &Surroundings, session: SessionId) -> anyhow::Result<bool> {
    let runtime = runtime()?;
    Ok(runtime.block_on(Client::connect(&here.sockets, session))?.is_some())
}
