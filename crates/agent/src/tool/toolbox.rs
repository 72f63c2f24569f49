//! The toolbox: all tools of a session, those of MCP servers included.
//!
//! Owns the order in which the model is told of them, which never changes while the session lives: a request's beginning has to stay
//! the same for the provider's cache. A call that names no tool or does not fit comes back as a failed result.

use std::path::Path;
use std::sync::Arc;

use retake_engine::session::Conversation;

use super::arguments::{self, Argument, Arguments};
use super::edit;
use super::file::{self, SeenFiles};
use super::path::PathResolver;
use super::shell::Shell;
use super::{Exploring, Jobs, Output, Prepared, explore, job, known_files, search, shell, todo};
use crate::mcp::Servers;
use crate::model::ToolSpec;

/// A tool of Retake's own.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) arguments: &'static [Argument],
    pub(crate) prepare: fn(&ToolContext, &Arguments) -> Result<Prepared, Output>,
}

/// What tools work with.
#[derive(Clone, Debug)]
pub(crate) struct ToolContext {
    pub(crate) places: PathResolver,
    pub(crate) seen: Arc<SeenFiles>,
    pub(crate) shell: Arc<Shell>,
    pub(crate) jobs: Jobs,
}

/// In the order in which the model is told of them.
const TOOLS: [&Tool; 13] = [
    &file::READ,
    &file::WRITE,
    &edit::EDIT,
    &edit::MULTI,
    &file::MOVE,
    &file::DELETE,
    &search::LIST,
    &search::GLOB,
    &search::GREP,
    &shell::BASH,
    &job::OUTPUT,
    &job::END,
    &todo::TODO,
];

/// The names of Retake's own tools.
pub(crate) fn own_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name).chain([explore::CHECKPOINT, explore::REWIND])
}

/// All tools of a session.
#[derive(Debug)]
pub struct Toolbox {
    bench: ToolContext,
    servers: Servers,
    explores: bool,
}

impl Toolbox {
    /// Tools that work in `root`, without MCP servers. Jobs that they start are in `jobs`.
    pub fn new(root: &Path, shell: Shell, jobs: Jobs) -> Self {
        let bench = ToolContext { places: PathResolver::new(root), seen: Arc::default(), shell: Arc::new(shell), jobs };
        Self { bench, servers: Servers::default(), explores: false }
    }

    /// With the tools of these servers too.
    pub fn with_servers(self, servers: Servers) -> Self {
        Self { servers, ..self }
    }

    /// With `checkpoint` and `rewind`, by which the model prunes its own exploration.
    pub fn with_checkpoints(self, explores: bool) -> Self {
        Self { explores, ..self }
    }

    /// A call of `checkpoint` or `rewind`, if the model has them.
    pub(crate) fn exploring(&self, name: &str, arguments: &str) -> Option<Result<Exploring, Output>> {
        Exploring::read(name, arguments).filter(|_| self.explores)
    }

    /// The jobs that tools started.
    pub fn jobs(&self) -> &Jobs {
        &self.bench.jobs
    }

    /// The MCP servers.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// What the model is told of the tools; always in the same order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let own = TOOLS.iter().map(|tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            schema: arguments::schema(tool.arguments),
        });
        let explore = explore::specs().into_iter().filter(|_| self.explores);
        own.chain(explore).chain(self.servers.specs()).collect()
    }

    /// Reads a call's arguments, raw JSON as the model wrote it, and tells what the call may touch. Changes nothing.
    pub fn prepare(&self, name: &str, arguments: &str) -> Result<Prepared, Output> {
        if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
            let arguments = Arguments::parse(name, tool.arguments, arguments)?;
            return (tool.prepare)(&self.bench, &arguments);
        }
        self.servers.prepare(name, arguments).unwrap_or_else(|| Err(self.unknown(name)))
    }

    /// Knows of the files that the model has read or written what the conversation shows, and nothing else: after a restart or a rewind
    /// that is all there is.
    pub fn recall(&self, conversation: &Conversation) {
        self.bench.seen.recall(known_files::told(&self.bench.places, conversation));
    }

    /// Ends all jobs and MCP servers.
    pub async fn shutdown(&self) {
        self.bench.jobs.end_all().await;
        self.servers.shutdown().await;
    }

    fn unknown(&self, name: &str) -> Output {
        let names = self.specs().into_iter().map(|spec| format!("`{}`", spec.name)).collect::<Vec<_>>().join(", ");
        Output::failed(format!("There is no tool `{name}`; nothing was done. The tools are {names}."))
    }
}
