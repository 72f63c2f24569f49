//! Tools of MCP servers, which are programs that Retake starts and talks to over their standard input and output.
//!
//! Servers are strangers: one that does not start costs a warning, one that dies or hangs costs the call, none costs the session. What
//! a server says of its tools is believed only if the settings trust it. All are ended with Retake, and everything that they started.

mod result;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use self::server::Server;
use crate::model::ToolSpec;
use crate::tool::{Access, Output, Prepared, Shell};

/// Providers refuse longer names of tools.
const MAX_NAME: usize = 64;
/// In characters. What a server says is sent with every request.
const MAX_DESCRIPTION: usize = 4000;
const DEFAULT_CALL_TIMEOUT: u64 = 300;
const DEFAULT_START_TIMEOUT: u64 = 20;

/// `[mcp.NAME]` of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables that it gets besides ours; the keys of models are not among ours.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Believe it which of its tools only read.
    #[serde(default)]
    pub trust: bool,
    /// After this time a call is given up.
    #[serde(default = "default_call_timeout")]
    pub timeout_seconds: u64,
    /// After this time a server that has not started is given up.
    #[serde(default = "default_start_timeout")]
    pub start_timeout_seconds: u64,
}

impl ServerSettings {
    /// A server whose settings are the default ones.
    pub fn new(command: String, args: Vec<String>, env: BTreeMap<String, String>) -> Self {
        let (timeout_seconds, start_timeout_seconds) = (DEFAULT_CALL_TIMEOUT, DEFAULT_START_TIMEOUT);
        Self { command, args, env, trust: false, timeout_seconds, start_timeout_seconds }
    }
}

fn default_start_timeout() -> u64 {
    DEFAULT_START_TIMEOUT
}

fn default_call_timeout() -> u64 {
    DEFAULT_CALL_TIMEOUT
}

/// Why a server is not there.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its program could not be run.
    #[error("the MCP server `{server}` cannot be started: {source}")]
    Run {
        /// Its name in the settings.
        server: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not answer as an MCP server does.
    #[error("the MCP server `{server}` did not begin to talk: {why}{stderr}")]
    Talk {
        /// Its name in the settings.
        server: String,
        /// What it did instead.
        why: String,
        /// The last of what it wrote to standard error, on lines of its own.
        stderr: String,
    },
}

/// The servers that are running.
#[derive(Debug, Default)]
pub struct Servers {
    tools: Vec<Offered>,
    servers: Vec<Arc<Server>>,
}

/// A tool of a server.
#[derive(Debug)]
struct Offered {
    spec: ToolSpec,
    /// What the server calls it.
    name: String,
    access: Access,
    server: Arc<Server>,
}

impl Servers {
    /// Starts all servers at the same time, in `root`.
    pub async fn start(
        settings: &BTreeMap<String, ServerSettings>,
        root: &Path,
        shell: &Shell,
    ) -> (Self, Vec<StartError>) {
        let starting = settings.iter().map(|(name, settings)| Server::start(name, settings, root, shell));
        let (mut servers, mut failures, mut names) = (Self::default(), Vec::new(), BTreeSet::new());
        for started in join_all(starting).await {
            match started {
                Ok(server) => {
                    let server = Arc::new(server);
                    servers
                        .tools
                        .extend(offered(&server).into_iter().filter(|tool| names.insert(tool.spec.name.clone())));
                    servers.servers.push(server);
                }
                Err(error) => failures.push(error),
            }
        }
        (servers, failures)
    }

    /// Ends all servers and everything that they started.
    pub async fn shutdown(&self) {
        join_all(self.servers.iter().map(|server| server.shutdown())).await;
    }

    pub(crate) fn specs(&self) -> impl Iterator<Item = ToolSpec> + '_ {
        self.tools.iter().map(|tool| tool.spec.clone())
    }

    /// Prepares a call; `None` if no server has such a tool.
    pub(crate) fn prepare(&self, name: &str, arguments: &str) -> Option<Result<Prepared, Output>> {
        let tool = self.tools.iter().find(|tool| tool.spec.name == name)?;
        Some(arguments_of(tool, arguments).map(|arguments| {
            let (server, called) = (Arc::clone(&tool.server), tool.name.clone());
            Prepared {
                title: format!("{}: {}", tool.server.name, tool.name),
                access: tool.access.clone(),
                preview: None,
                run: Box::new(move |surroundings| {
                    Box::pin(async move { server.call(called, arguments, surroundings.interrupted).await })
                }),
            }
        }))
    }
}

/// Whether the arguments fit is the server's to say; it knows its schema.
fn arguments_of(tool: &Offered, raw: &str) -> Result<Map<String, Value>, Output> {
    let raw = if raw.trim().is_empty() { "{}" } else { raw };
    serde_json::from_str(raw).map_err(|error| {
        let fields = tool.spec.schema["properties"].as_object();
        let names: Vec<String> = fields.into_iter().flat_map(Map::keys).map(|name| format!("`{name}`")).collect();
        Output::failed(format!(
            "The arguments of `{}` must be a JSON object with {} ({error}); nothing was done.",
            tool.spec.name,
            if names.is_empty() { "no fields".to_owned() } else { names.join(", ") }
        ))
    })
}

fn offered(server: &Arc<Server>) -> Vec<Offered> {
    let tools = server.tools.iter().map(|tool| {
        let only_reads = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap_or_default();
        Offered {
            spec: ToolSpec {
                name: exposed_name(&server.name, &tool.name),
                description: tool.description.as_deref().unwrap_or_default().chars().take(MAX_DESCRIPTION).collect(),
                schema: Value::Object(tool.input_schema.as_ref().clone()),
            },
            name: tool.name.to_string(),
            access: if only_reads && server.is_trusted { Access::Reads } else { Access::Unknown },
            server: Arc::clone(server),
        }
    });
    let mut tools: Vec<Offered> = tools.collect();
    // A server may list them in another order the next time.
    tools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    tools
}

/// `NAME__tool`, in the letters that providers take.
fn exposed_name(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    format!("{server}__{tool}").chars().map(|c| if is_plain(c) { c } else { '_' }).take(MAX_NAME).collect()
}
