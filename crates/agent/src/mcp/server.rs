//! One MCP server: its process and the conversation with it.

use std::collections::VecDeque;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientConfig, Implementation, Tool};
use rmcp::service::{RunningService, ServiceError, serve_client};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;

use super::result;
use super::{ServerSettings, StartError};
use crate::tool::Output;
use crate::tool::shell::{GRACE, ProcessGroup, new_mark, prepare_process};
use crate::tool::{Shell, interruption};

const MAX_STDERR: usize = 4000;

/// A server that is running, or was.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) is_trusted: bool,
    pub(crate) tools: Vec<Tool>,
    peer: Peer<RoleClient>,
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, ClientConfig>>>,
    group: EndOnDrop,
    stderr: Tail,
    call_limit: Duration,
}

impl Server {
    /// Starts a server and asks for its tools.
    pub(crate) async fn start(
        name: &str,
        settings: &ServerSettings,
        root: &Path,
        shell: &Shell,
    ) -> Result<Self, StartError> {
        let run = |source| StartError::Run { server: name.to_owned(), source };
        let (mut child, group) = spawn(settings, root, shell).map_err(run)?;
        let group = EndOnDrop(group);
        let (Some(stdout), Some(stdin), Some(pipe)) = (child.stdout.take(), child.stdin.take(), child.stderr.take())
        else {
            return Err(run(std::io::Error::other("it has no standard input and output")));
        };
        let stderr = Tail::follow(child, pipe, group.0.clone());
        let info = ClientConfig::new(Default::default(), Implementation::new("retake", env!("CARGO_PKG_VERSION")));
        let greeting = async {
            let service = serve_client(info, (stdout, stdin)).await.map_err(|error| error.to_string())?;
            let tools = service.list_all_tools().await.map_err(|error| error.to_string())?;
            Ok((service, tools))
        };
        let limit = Duration::from_secs(settings.start_timeout_seconds);
        let talk = |why, stderr| StartError::Talk { server: name.to_owned(), why, stderr };
        let (service, tools) = match tokio::time::timeout(limit, greeting).await {
            Ok(Ok(greeted)) => greeted,
            Ok(Err(why)) => return Err(talk(why, stderr.last_words().await)),
            Err(_) => return Err(talk(format!("no answer within {} s", limit.as_secs()), stderr.on_lines())),
        };
        Ok(Self {
            name: name.to_owned(),
            is_trusted: settings.trust,
            tools,
            peer: service.peer().clone(),
            service: tokio::sync::Mutex::new(Some(service)),
            group,
            stderr,
            call_limit: Duration::from_secs(settings.timeout_seconds),
        })
    }

    /// Calls a tool. A call that is given up is cancelled at the server.
    pub(crate) async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        interrupted: watch::Receiver<bool>,
    ) -> Output {
        let calling = self.peer.call_tool_once(CallToolRequestParams::new(tool).with_arguments(arguments));
        let answer = tokio::select! {
            biased;
            () = interruption(interrupted) => return Output::interrupted("Interrupted by the user; the server was told to stop."),
            answer = tokio::time::timeout(self.call_limit, calling) => answer,
        };
        match answer {
            Ok(Ok(CallToolResponse::Complete(answer))) => result::told(answer),
            Ok(Ok(_)) => {
                Output::failed(format!("The MCP server `{}` asks for something that Retake cannot give.", self.name))
            }
            Ok(Err(ServiceError::McpError(error))) => {
                Output::failed(format!("The MCP server `{}` refused: {}", self.name, error.message))
            }
            Ok(Err(error)) => Output::failed(format!(
                "The MCP server `{}` is gone or cannot be understood ({error}). Its tools cannot be used any more.{}",
                self.name,
                self.stderr.last_words().await
            )),
            Err(_) => Output::failed(format!(
                "The MCP server `{}` gave no answer within {} s.",
                self.name,
                self.call_limit.as_secs()
            )),
        }
    }

    /// Ends the conversation, then the process with everything that it started.
    pub(crate) async fn shutdown(&self) {
        if let Some(mut service) = self.service.lock().await.take() {
            // However it goes, the process is ended below.
            drop(service.close_with_timeout(GRACE).await);
        }
        let group = self.group.0.clone();
        drop(tokio::task::spawn_blocking(move || group.end(GRACE)).await);
    }
}

fn spawn(settings: &ServerSettings, root: &Path, shell: &Shell) -> std::io::Result<(Child, ProcessGroup)> {
    let mark = new_mark();
    let mut command = std::process::Command::new(&settings.command);
    command.args(&settings.args).current_dir(root).process_group(0);
    prepare_process(&mut command, &mark, &shell.hidden);
    command.envs(&settings.env).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Command::from(command).spawn()?;
    let group = child.id().and_then(|leader| ProcessGroup::of(leader, mark, None));
    Ok((child, group.ok_or_else(|| std::io::Error::other("it has no process id"))?))
}

/// Ends the server's processes when it goes without a shutdown.
#[derive(Debug)]
struct EndOnDrop(ProcessGroup);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(Duration::ZERO);
    }
}

/// The last of what a server wrote to standard error.
#[derive(Clone, Debug)]
struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    /// Whether the process has ended and all that it wrote is here.
    is_whole: watch::Receiver<bool>,
}

impl Tail {
    /// Reads what a server writes, and waits for its process, so that none is left as a zombie.
    fn follow(child: Child, pipe: ChildStderr, group: ProcessGroup) -> Self {
        let (whole, is_whole) = watch::channel(false);
        let tail = Self { bytes: Arc::default(), is_whole };
        tokio::spawn(tail.clone().read(child, pipe, group, whole));
        tail
    }

    async fn read(self, mut child: Child, mut pipe: ChildStderr, group: ProcessGroup, whole: watch::Sender<bool>) {
        let mut buffer = [0; 4096];
        let mut is_open = true;
        loop {
            tokio::select! {
                read = pipe.read(&mut buffer), if is_open => match read {
                    Ok(length @ 1..) => self.keep(&buffer[..length]),
                    _ => is_open = false,
                },
                ended = child.wait() => {
                    if ended.is_ok() {
                        group.leader_ended();
                    }
                    break;
                }
            }
        }
        // The pipe does not block, and by now it holds all that the process has written. Its children may have it open still.
        while let Ok(length @ 1..) = rustix::io::read(&pipe, &mut buffer) {
            self.keep(&buffer[..length]);
        }
        // Nobody may be waiting.
        whole.send(true).ok();
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            self.keep(&buffer[..length]);
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut tail = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(bytes);
        let over = tail.len().saturating_sub(MAX_STDERR);
        tail.drain(..over);
    }

    /// The same as [`Self::on_lines`] for a server that has hung up: all that it wrote, if its process ends soon.
    async fn last_words(&self) -> String {
        tokio::time::timeout(GRACE, self.is_whole.clone().wait_for(|is_whole| *is_whole)).await.ok();
        self.on_lines()
    }

    /// Empty, or on lines of its own.
    fn on_lines(&self) -> String {
        let bytes: Vec<u8> = self.bytes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        if text.trim().is_empty() { String::new() } else { format!("\nIt wrote:\n{}", text.trim()) }
    }
}
