//! The page in a browser: a server in this process, which opens sessions as the terminal does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use retake_agent::controller::{OpenError, Which};
use retake_agent::model::Model;
use retake_engine::SessionError;
use retake_web::{Config, Host, Limits, Opened, Problem, Server, StartError};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::agent::{self, AgentError, Manner};
use crate::failure;
use crate::surroundings::Surroundings;
use crate::ui::Warn;

/// The port that is taken unless another one is wished for.
pub const PORT: u16 = 7180;

/// Starts a server with what its sessions have to warn of.
pub fn start(
    runtime: &Handle,
    here: &Surroundings,
    model: Model,
    address: SocketAddr,
) -> Result<(Server, mpsc::UnboundedReceiver<String>), StartError> {
    let _inside = runtime.enter();
    let (warn, warnings) = mpsc::unbounded_channel();
    let host = Sessions { here: here.clone(), model, runtime: runtime.clone(), warnings: Warnings(warn) };
    let config = Config {
        environment: here.environment.clone(),
        sockets: here.sockets.clone(),
        address,
        limits: Limits::default(),
    };
    Ok((Server::start(config, Arc::new(host))?, warnings))
}

/// Opens sessions as the terminal does: with somebody who is asked.
struct Sessions {
    here: Surroundings,
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

impl Host for Sessions {
    fn open(&self, which: Which) -> Result<Opened, Problem> {
        let (runtime, mut warnings) = (self.runtime.clone(), self.warnings.clone());
        let serving = runtime.block_on(agent::tools(&mut warnings, &self.here)).and_then(|tools| {
            let model = self.model.clone();
            agent::open(&mut warnings, &runtime, &self.here, tools, model, which, Manner::interactive())
        });
        let serving = serving.map_err(|error| problem(&error))?;
        let handle = serving.opened.handle.clone();
        Ok(Opened { handle, finish: Box::new(move || serving.finish(&runtime)) })
    }
}

fn problem(error: &anyhow::Error) -> Problem {
    let message = format!("{error:#}");
    let is_taken =
        matches!(error.downcast_ref(), Some(AgentError::Open(OpenError::Session(SessionError::Live { .. }))));
    let problem = if is_taken { Problem::taken(message) } else { Problem::failed(message) };
    match failure::advise(error) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}
