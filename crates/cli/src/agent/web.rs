//! The page in a browser: a server in this process, which opens sessions as the terminal does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use retake_agent::controller::{OpenError, Which};
use retake_agent::model::Model;
use retake_engine::session::SessionError;
use retake_web::{Config, Limits, OpenedSession, Problem, Server, SessionOpener, StartError};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::{self, AgentError, SessionOptions};
use crate::failure::Failure;
use crate::output::ui::Warn;
use crate::workspace::context::CommandContext;

/// The port that is taken unless another one is wished for.
pub const PORT: u16 = 7180;

/// Starts a server with what its sessions have to warn of.
pub fn start(
    runtime: &Handle,
    here: &CommandContext,
    model: Model,
    address: SocketAddr,
) -> Result<(Server, mpsc::UnboundedReceiver<String>), StartError> {
    let _inside = runtime.enter();
    let (warn, warnings) = mpsc::unbounded_channel();
    let host = WebSessions { here: here.clone(), model, runtime: runtime.clone(), warnings: Warnings(warn) };
    let config = Config {
        environment: here.environment.clone(),
        sockets: here.sockets.clone(),
        address,
        limits: Limits::default(),
    };
    Ok((Server::start(config, Arc::new(host))?, warnings))
}

/// Starts a server at the usual port, or at a free one if that is taken.
pub fn start_somewhere(
    runtime: &Handle,
    here: &CommandContext,
    model: &Model,
    host: IpAddr,
) -> Result<(Server, mpsc::UnboundedReceiver<String>), StartError> {
    match start(runtime, here, model.clone(), SocketAddr::new(host, PORT)) {
        Err(StartError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
            start(runtime, here, model.clone(), SocketAddr::new(host, 0))
        }
        started => started,
    }
}

/// A server beside the terminal, which is started when it is first wished for.
pub struct TerminalWeb {
    runtime: Handle,
    here: CommandContext,
    args: ModelArgs,
    server: Mutex<Option<Server>>,
}

impl TerminalWeb {
    pub fn new(runtime: &Handle, here: &CommandContext, args: &ModelArgs) -> Self {
        Self { runtime: runtime.clone(), here: here.clone(), args: args.clone(), server: Mutex::default() }
    }

    /// An address that lets one browser in, once. On a thread that may wait.
    pub fn url(&self) -> Result<String, String> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = &*server {
            return Ok(server.url());
        }
        let model = model::find(&self.runtime, &self.args, &self.here.agent, ModelUse::Ask, None);
        let model = model.map_err(|error| error.to_string())?;
        let started = start_somewhere(&self.runtime, &self.here, &model, Ipv4Addr::LOCALHOST.into());
        // Warnings of sessions that the page opens have no place on a screen that shows another one.
        let (started, _) = started.map_err(|error| format!("{:#}", Failure::from(error)))?;
        Ok(server.insert(started).url())
    }

    /// Ends it, if it was ever wished for.
    pub fn stop(&self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(server) = server {
            self.runtime.block_on(server.stop());
        }
    }
}

/// Opens sessions as the terminal does: with somebody who is asked.
struct WebSessions {
    here: CommandContext,
    model: Model,
    runtime: Handle,
    warnings: Warnings,
}

/// Warnings for whoever listens, if anybody does.
#[derive(Clone)]
struct Warnings(mpsc::UnboundedSender<String>);

impl Warn for Warnings {
    fn warn(&mut self, text: &str) -> io::Result<()> {
        self.0.send(text.to_owned()).ok();
        Ok(())
    }
}

impl SessionOpener for WebSessions {
    fn open(&self, which: Which) -> Result<OpenedSession, Problem> {
        let (runtime, mut warnings) = (self.runtime.clone(), self.warnings.clone());
        let serving = runtime.block_on(agent::tools(&mut warnings, &self.here)).and_then(|tools| {
            let model = self.model.clone();
            agent::open(&mut warnings, &runtime, &self.here, tools, model, which, SessionOptions::interactive())
        });
        let serving = serving.map_err(|error| problem(&error))?;
        let handle = serving.opened.handle.clone();
        Ok(OpenedSession { handle, finish: Box::new(move || serving.finish(&runtime)) })
    }
}

fn problem(error: &Failure) -> Problem {
    let message = format!("{error:#}");
    let problem = match error.downcast_ref() {
        Some(AgentError::Open(OpenError::Session(SessionError::Live { .. }))) => Problem::taken(message),
        // Somebody has deleted it meanwhile.
        Some(AgentError::Open(OpenError::Session(SessionError::NotAConversation { .. }))) => Problem::missing(message),
        _ => Problem::failed(message),
    };
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}
