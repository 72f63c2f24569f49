//! A stage: a workspace, a scripted model over real HTTP, and a server that shows its sessions.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use retake_agent::controller::{self, Handle, OpenError, SessionSetup, Unprotected, Which};
use retake_agent::model::{Model, ModelSettings, Models};
use retake_agent::permission::{Allowed, Mode, Policy};
use retake_agent::socket;
use retake_agent::tool::{Jobs, Shell, Toolbox};
use retake_engine::operation::MadeBy;
use retake_engine::session::SessionError;
use retake_engine::{Breadth, Environment, Settings};
use retake_testkit::ScriptedModel;
use retake_web::{Config, Limits, OpenedSession, Problem, Server, SessionOpener};
use tokio::runtime::Runtime;

/// How long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Stage {
    pub model: ScriptedModel,
    pub dir: tempfile::TempDir,
    pub runtime: Runtime,
    server: Option<Server>,
    mode: Mode,
    limits: Limits,
    address: SocketAddr,
}

impl Stage {
    /// One on which everything may run, with these bounds.
    pub fn with(limits: Limits) -> Self {
        Self::prepare(Mode::Headless(Allowed::All), limits).raise()
    }

    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    /// One on which the user is asked.
    pub fn asking() -> Self {
        Self::prepare(Mode::Interactive, Limits::default()).raise()
    }

    fn prepare(mode: Mode, limits: Limits) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("w")).expect("a workspace");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let (runtime, model) = (runtime.expect("a runtime"), ScriptedModel::start());
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { model, dir, runtime, server: None, mode, limits, address }
    }

    fn raise(mut self) -> Self {
        self.start();
        self
    }

    pub fn start(&mut self) {
        let _inside = self.runtime.enter();
        let config = Config {
            environment: self.environment(),
            sockets: self.sockets(),
            address: self.address,
            limits: self.limits.clone(),
        };
        let server = Server::start(config, Arc::new(self.sessions())).expect("the server starts");
        self.address = server.address();
        self.server = Some(server);
    }

    pub fn stop(&mut self) {
        let server = self.server.take().expect("the server runs");
        self.runtime.block_on(server.stop());
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address that lets somebody in, once.
    pub fn url(&self) -> String {
        self.server.as_ref().expect("the server runs").url()
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    pub fn sockets(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.root().join(path), text).expect("a file");
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root().join(path)).ok()
    }

    pub fn environment(&self) -> Environment {
        Environment {
            root: self.root(),
            data_dir: self.dir.path().join("data"),
            global_excludes: None,
            homes: Vec::new(),
            breadth: Breadth::Guarded,
            settings: Settings::default(),
            threads: 2,
        }
    }

    /// What opens sessions, here or as another process would.
    pub fn sessions(&self) -> Sessions {
        let runtime = self.runtime.handle().clone();
        let (environment, sockets, url) = (self.environment(), self.sockets(), self.model.url());
        Sessions { environment, sockets, url, mode: self.mode, runtime }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }
}

/// Opens sessions with the scripted model.
pub struct Sessions {
    environment: Environment,
    sockets: PathBuf,
    url: String,
    mode: Mode,
    runtime: tokio::runtime::Handle,
}

impl SessionOpener for Sessions {
    fn open(&self, which: Which) -> Result<OpenedSession, Problem> {
        let _inside = self.runtime.enter();
        let settings = ModelSettings::parse("anthropic/scripted", Some(&self.url), |_| None).expect("settings");
        let (jobs, ended) = Jobs::new();
        let setup = SessionSetup {
            environment: self.environment.clone(),
            which,
            model: Model::new(settings).expect("a model"),
            models: Models::none(),
            policy: Policy { mode: self.mode, ..Policy::default() },
            unprotected: Unprotected::Ask,
            made_by: MadeBy::Client,
            tools: (Toolbox::new(&self.environment.root, Shell::default(), jobs), ended),
        };
        let opened = controller::open(setup).map_err(|error| match error {
            OpenError::Session(SessionError::Live { .. }) => Problem::taken(error.to_string()),
            OpenError::Session(SessionError::NotAConversation { .. }) => Problem::missing(error.to_string()),
            error => Problem::failed(error.to_string()),
        })?;
        let socket = listen(&self.sockets, opened.handle.clone());
        let (handle, runtime) = (opened.handle.clone(), self.runtime.clone());
        let finish = move || {
            runtime.block_on(opened.handle.request(retake_agent::contract::Action::Close)).ok();
            opened.served.join().expect("the controller ends in good order");
            runtime.block_on(socket.finish());
        };
        Ok(OpenedSession { handle, finish: Box::new(finish) })
    }
}

fn listen(sockets: &Path, handle: Handle) -> socket::Served {
    socket::serve(sockets, handle).expect("it listens")
}
