//! Sessions for editors: each opened in this process, or joined if another process has it open.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use retake_acp::agent::{Host, HostError, ListedSession, McpServer, OpenSession, Parting, WantedSession, Wish};
use retake_agent::controller::{OpenError as OpenSessionError, Which};
use retake_agent::live::{FindError, FoundSession, JoinError, LiveSession, NotOpened};
use retake_agent::mcp::ServerSettings;
use retake_agent::{ids, listing};
use retake_engine::checkpoint::ResolveError;
use retake_engine::id::SessionId;
use retake_engine::session::SessionError;
use retake_engine::{OpenError, Workspace};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::{self, AgentError, SessionOptions};
use crate::args::GlobalArgs;
use crate::failure;
use crate::failure::{Failure, Result};
use crate::workspace::context::CommandContext;

/// How often it is looked whether others still have a session open.
const LOOK: Duration = Duration::from_millis(500);
/// After this time a call of an editor's MCP server is given up.
const CALL_TIMEOUT: u64 = 60;

/// Opens sessions in the directories that an editor names.
pub struct EditorHost {
    runtime: Handle,
    global: GlobalArgs,
    model: ModelArgs,
    left: Arc<ClosedSessions>,
}

/// Sessions that the editor has closed and others still have open: they stay until those have left, or this process ends.
struct ClosedSessions {
    staying: Mutex<JoinSet<()>>,
    is_over: watch::Sender<bool>,
}

impl ClosedSessions {
    /// Keeps a session open for as long as others have it open.
    fn keep(&self, serving: agent::Serving, runtime: Handle) {
        let mut is_over = self.is_over.subscribe();
        let stay = async move {
            while serving.is_shared() && !*is_over.borrow_and_update() {
                tokio::time::timeout(LOOK, is_over.changed()).await.ok();
            }
            finish(serving, runtime).await;
        };
        let mut staying = self.staying.lock().unwrap_or_else(PoisonError::into_inner);
        while staying.try_join_next().is_some() {}
        staying.spawn(stay);
    }

    async fn end(&self) {
        self.is_over.send_replace(true);
        let staying = std::mem::take(&mut *self.staying.lock().unwrap_or_else(PoisonError::into_inner));
        staying.join_all().await;
    }
}

/// Closes a session, and waits until everything is stored.
async fn finish(serving: agent::Serving, runtime: Handle) {
    drop(blocking(move || serving.finish(&runtime)).await);
}

impl EditorHost {
    pub fn new(runtime: Handle, global: GlobalArgs, model: ModelArgs) -> Self {
        let left = ClosedSessions { staying: Mutex::default(), is_over: watch::Sender::new(false) };
        Self { runtime, global, model, left: Arc::new(left) }
    }

    /// What there is about a directory.
    fn surroundings(&self, cwd: &Path) -> Result<CommandContext, HostError> {
        let global = GlobalArgs { workspace: Some(cwd.to_owned()), ..self.global.clone() };
        CommandContext::find(&global).map_err(|error| HostError::Invalid { message: words(&error.into()) })
    }

    /// Opens a session in this process.
    async fn serve(&self, here: CommandContext, which: Which) -> Result<OpenSession, OpenRefused> {
        let (tools, warnings) = agent::tools_quietly(&here).await;
        warnings.iter().for_each(|warning| self.warn(warning));
        let (runtime, args) = (self.runtime.clone(), self.model.clone());
        let opened = blocking(move || {
            let model = model::find(&runtime, &args, &here.agent, ModelUse::Ask, None)?;
            agent::open_quietly(&runtime, &here, tools, model, which, SessionOptions::interactive())
        });
        let (serving, warning) = opened.await?.map_err(OpenRefused::from)?;
        if let Some(warning) = warning {
            self.warn(&warning);
        }
        let (view, live) = match LiveSession::here(serving.opened.handle.clone()).await {
            Ok(attached) => attached,
            Err(error) => return Err(OpenRefused::from(AgentError::from(error))),
        };
        let (runtime, left) = (self.runtime.clone(), Arc::clone(&self.left));
        let close = move |parting| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                match parting {
                    Parting::Closed if serving.is_shared() => left.keep(serving, runtime),
                    Parting::Closed | Parting::Final => finish(serving, runtime).await,
                }
            })
        };
        Ok(OpenSession { view, live, close: Box::new(close) })
    }

    /// Joins a session that another process has open, or opens it here.
    async fn resume(&self, cwd: &Path, servers: &[McpServer], session: SessionId) -> Result<OpenSession, HostError> {
        let here = self.with_servers(cwd, servers)?;
        let open = || async {
            self.serve(here.clone(), Which::Existing(session)).await.map_err(|refused| match refused {
                OpenRefused::Live => NotOpened::Taken(failed(&AgentError::unreachable(session))),
                OpenRefused::Other(error) => NotOpened::Failed(error),
            })
        };
        match here.reach().find(session, open).await {
            Ok(FoundSession::Opened(open)) => Ok(open),
            Ok(FoundSession::Joined(view, live)) => {
                Ok(OpenSession { view, live, close: Box::new(|_| Box::pin(async {})) })
            }
            Err(FindError::Open(error)) => Err(error),
            Err(FindError::Join(error)) => Err(not_joined(error)),
        }
    }

    fn with_servers(&self, cwd: &Path, servers: &[McpServer]) -> Result<CommandContext, HostError> {
        let mut here = self.surroundings(cwd)?;
        for server in servers {
            let env = server.env.iter().cloned().collect();
            let settings = ServerSettings::new(server.command.clone(), server.args.clone(), env);
            let settings = ServerSettings { timeout_seconds: CALL_TIMEOUT, ..settings };
            here.agent.servers.insert(server.name.clone(), settings);
        }
        Ok(here)
    }
}

impl Host for EditorHost {
    async fn open(&self, wish: Wish) -> Result<OpenSession, HostError> {
        let Wish { cwd, which, servers } = wish;
        match which {
            WantedSession::New => match self.serve(self.with_servers(&cwd, &servers)?, Which::New).await {
                Ok(open) => Ok(open),
                Err(OpenRefused::Other(error)) => Err(error),
                Err(OpenRefused::Live) => {
                    Err(HostError::Failed { message: "the new session is open already".to_owned() })
                }
            },
            WantedSession::Existing(text) => {
                let here = self.surroundings(&cwd)?;
                let found = blocking(move || find(here, &text)).await??;
                self.resume(&cwd, &servers, found).await
            }
        }
    }

    async fn list(&self, cwd: Option<PathBuf>) -> Result<Vec<ListedSession>, HostError> {
        let roots = match cwd {
            Some(cwd) => vec![cwd],
            None => {
                let here = CommandContext::find(&self.global);
                let here = here.map_err(|error| HostError::Failed { message: words(&error.into()) })?;
                Workspace::roots(&here.environment.data_dir)
            }
        };
        // One that is not there any more, or cannot be read, has no sessions that could be opened.
        let all: Vec<CommandContext> = roots.iter().filter_map(|root| self.surroundings(root).ok()).collect();
        blocking(move || {
            let mut listed: Vec<ListedSession> = all.into_iter().flat_map(sessions).collect();
            listed.sort_by_key(|one| std::cmp::Reverse(one.at));
            listed
        })
        .await
    }

    async fn delete(&self, session: String) -> Result<(), HostError> {
        let all = self.list(None).await?;
        let found = all.into_iter().find(|one| one.session == session);
        let cwd = found.ok_or(HostError::Unknown { session: session.clone() })?.cwd;
        let here = self.surroundings(&cwd)?;
        let deleted = blocking(move || delete(here, &session)).await?;
        deleted.map_err(|error| HostError::Failed { message: words(&error) })
    }

    async fn end(&self) {
        self.left.end().await;
    }

    fn warn(&self, text: &str) {
        // If nobody reads it, nobody needs to.
        writeln!(anstream::stderr(), "warning: {text}").ok();
    }
}

/// Why a session could not be opened here.
enum OpenRefused {
    /// Another process has it.
    Live,
    Other(HostError),
}

impl From<AgentError> for OpenRefused {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Open(OpenSessionError::Session(SessionError::Live { .. })) => Self::Live,
            other => Self::Other(failed(&other)),
        }
    }
}

impl From<HostError> for OpenRefused {
    fn from(error: HostError) -> Self {
        Self::Other(error)
    }
}

fn not_joined(error: JoinError) -> HostError {
    match error {
        JoinError::Live(error) => failed(&error.into()),
        error => HostError::Failed { message: words(&agent::cannot_join(error)) },
    }
}

fn find(here: CommandContext, text: &str) -> Result<SessionId, HostError> {
    let unknown = || HostError::Unknown { session: text.to_owned() };
    let workspace = match Workspace::open(here.environment) {
        Ok(workspace) => workspace,
        Err(OpenError::NotAWorkspace { .. }) => return Err(unknown()),
        Err(error) => return Err(HostError::Failed { message: words(&error.into()) }),
    };
    match workspace.sessions().resolve(text) {
        Ok(found) => Ok(found.id),
        Err(ResolveError::Store(error)) => Err(HostError::Failed { message: words(&error.into()) }),
        Err(_) => Err(unknown()),
    }
}

fn delete(here: CommandContext, session: &str) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    let found = workspace.sessions().resolve(session)?;
    let writer = workspace.sessions().open(found.id, ids::now(), &mut ids::random)?;
    workspace.sessions_mut().delete(writer)?;
    Ok(())
}

fn sessions(here: CommandContext) -> Vec<ListedSession> {
    let root = here.environment.root.clone();
    let Ok(workspace) = Workspace::open(here.environment) else { return Vec::new() };
    let facts = listing::sessions(&workspace).unwrap_or_default().into_iter();
    facts
        .map(|one| ListedSession { session: one.session.into(), cwd: root.clone(), title: one.title, at: one.at })
        .collect()
}

/// Does something that waits.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HostError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| HostError::Failed { message: "something went wrong here; see stderr".to_owned() })
}

fn failed(error: &AgentError) -> HostError {
    let hint = failure::hint(error).map(|hint| format!("; {hint}")).unwrap_or_default();
    HostError::Failed { message: format!("{error}{hint}") }
}

fn words(error: &Failure) -> String {
    format!("{error:#}")
}
