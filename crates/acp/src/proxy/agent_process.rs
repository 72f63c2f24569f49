//! The inner agent's process, and the lifetime of the proxy around it.
//!
//! The proxy ends when the editor closes the connection or when the inner agent ends: its process exits, whoever holds its pipes, or it stops
//! reading. Then open requests are answered with an error, the log is flushed, and the agent's process group is killed, so that what a wrapper
//! script started ends too. No wait for a pipe here is unbounded: the limits are the constants below.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use retake_agent::ids;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::watchdog::Watchdog;
use super::{Proxy, ProxySetup, ProxyState, complain};
use crate::rpc_peer::Peer;
use crate::wire::{Incoming, Message, NoMessage, OversizedLine, Reader, RpcError, Writer};

/// How long a pipe is waited for at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How far is read ahead of what the inner agent takes, and what counts for a line beside its bytes.
const READ_AHEAD: usize = 16 * 1024 * 1024;
const LINE: usize = 256;

/// The proxy could not begin.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no command.
    #[error("no agent is named; `retake acp -- COMMAND` starts it")]
    NoCommand,
    /// The inner agent cannot be started.
    #[error("cannot start the agent `{command}`")]
    Start {
        /// The command.
        command: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyEnd {
    /// The editor hung up.
    ByClient,
    /// The inner agent ended, with this exit code if it has one.
    ByAgent(Option<i32>),
}

/// Runs the inner agent for a client until one of them hangs up, or `stop` comes.
pub async fn run(
    setup: ProxySetup,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<ProxyEnd, StartError> {
    let Some((program, arguments)) = setup.command.split_first() else { return Err(StartError::NoCommand) };
    let mut command = Command::new(program);
    if let Some(path) = path_with(Path::new(program), std::env::var_os("PATH").as_deref()) {
        command.env("PATH", path);
    }
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| StartError::Start { command: program.display().to_string(), source })?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let watchdog = Watchdog::over(group);
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(StartError::NoCommand);
    };
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let [a, b, c, d, ..] = ids::random();
    let prefix = format!("retake-{a:02x}{b:02x}{c:02x}{d:02x}-");
    let proxy = Arc::new(Proxy {
        client: Peer::beside_others(Writer::new(to), &prefix),
        agent: Peer::beside_others(Writer::new(stdin), &prefix),
        setup,
        name,
        runtime: tokio::runtime::Handle::current(),
        state: std::sync::Mutex::new(ProxyState::default()),
        offer: std::sync::Mutex::default(),
        order: tokio::sync::Mutex::new(()),
        last_sign: std::sync::Mutex::new(Instant::now()),
        threads: std::sync::Mutex::default(),
    });
    let mut listening = tokio::spawn(listen(Arc::clone(&proxy), stdout));
    let hung_up = tokio::select! {
        () = take_client(&proxy, from) => true,
        () = proxy.client.writer().closed() => {
            proxy.note_sign();
            true
        }
        () = stop => {
            proxy.note_sign();
            true
        }
        _ = &mut listening => false,
        _ = child.wait() => {
            // What it said last is still in the pipe; whatever it started may hold that open for ever.
            tokio::time::timeout(LAST_WORDS, &mut listening).await.ok();
            false
        }
        () = proxy.agent.writer().closed() => {
            // It may be on its way out, and say something yet.
            tokio::time::timeout(LAST_WORDS, &mut listening).await.ok();
            false
        }
    };
    let is_greeted = proxy.state().is_greeted;
    let status = end(&proxy, &mut child, group, &listening, hung_up).await;
    watchdog.dismiss().await;
    // One that a client has only tried and left again is none of these.
    if let Some(status) = status.filter(|status| !(is_greeted || hung_up && status.success())) {
        complain(&format!(
            "the agent `{}` has ended ({status}) before it answered `initialize`; is it the command that speaks the Agent Client Protocol?",
            proxy.name
        ));
    }
    Ok(match hung_up {
        true => ProxyEnd::ByClient,
        false => ProxyEnd::ByAgent(status.and_then(|status| status.code())),
    })
}

/// The search path with the directory of a program that is named by its full path, last: what it is written in is often beside it, and an
/// editor that was not started from a shell knows nothing of that place. `None` if it is there already.
fn path_with(program: &Path, path: Option<&OsStr>) -> Option<OsString> {
    let directory = program.parent().filter(|_| program.is_absolute())?;
    let mut all: Vec<PathBuf> = std::env::split_paths(path.unwrap_or_default()).collect();
    if all.iter().any(|one| one == directory) {
        return None;
    }
    all.push(directory.to_owned());
    std::env::join_paths(all).ok()
}

/// Takes what the client says until it hangs up. It is read further than the inner agent takes it, so that it is noticed that the client
/// has hung up although the agent does not read, but only so far.
async fn take_client(proxy: &Arc<Proxy>, from: impl AsyncRead + Unpin) {
    let (room, (queue, mut queued)) = (Arc::new(Semaphore::new(READ_AHEAD)), mpsc::unbounded_channel());
    let reading = async {
        let mut reader = Reader::new(from);
        while let Ok(Some(incoming)) = reader.next().await {
            let bytes = match &incoming {
                Incoming::Message { line, .. } | Incoming::Garbage { line, .. } => line.len() + LINE,
                Incoming::TooLong { .. } => LINE,
                Incoming::Half { .. } => break,
            };
            let bytes = u32::try_from(bytes.min(READ_AHEAD)).unwrap_or(u32::MAX);
            let Ok(taken) = Arc::clone(&room).acquire_many_owned(bytes).await else { break };
            if queue.send((incoming, taken)).is_err() {
                break;
            }
        }
        drop(queue);
    };
    let taking = async {
        while let Some((incoming, _room)) = queued.recv().await {
            take_line(proxy, incoming).await;
        }
    };
    tokio::pin!(taking);
    tokio::select! {
        () = &mut taking => return,
        () = reading => {}
    }
    // It has hung up: what it said before that is taken, unless nobody takes it.
    proxy.note_sign();
    tokio::select! {
        () = taking => {}
        () = proxy.silence() => {}
        () = tokio::time::sleep(proxy.setup.patience.stop) => {}
    }
}

async fn take_line(proxy: &Arc<Proxy>, incoming: Incoming) {
    match incoming {
        Incoming::Message { message, line } => proxy.take_client(message, line).await,
        Incoming::Garbage { error, .. } => drop(proxy.client.writer().send(error.answer()).await),
        Incoming::TooLong { bytes, seen } => {
            let error = RpcError::new(RpcError::INVALID_REQUEST, format!("a line of {bytes} bytes is too long"));
            proxy.client.answer(seen.id.filter(|_| seen.is_call).unwrap_or_default(), Err(error)).await.ok();
        }
        Incoming::Half { .. } => {}
    }
}

/// Takes what the inner agent says until it ends.
async fn listen(proxy: Arc<Proxy>, stdout: impl AsyncRead + Unpin) {
    let mut reader = Reader::new(stdout);
    let mut has_complained = false;
    loop {
        let incoming = reader.next().await;
        proxy.note_sign();
        let complaint = match incoming {
            Ok(Some(Incoming::Message { message, line })) => {
                let _order = proxy.order.lock().await;
                proxy.pass_to_client(message, line).await;
                continue;
            }
            // An answer of nothing: JavaScript leaves out what is undefined.
            Ok(Some(Incoming::Garbage { line, error: NoMessage::Empty { id } })) => {
                let _order = proxy.order.lock().await;
                proxy.pass_to_client(Message::response(id, Ok(Value::Null)), line).await;
                continue;
            }
            Ok(Some(Incoming::Garbage { line, .. } | Incoming::Half { line })) => {
                format!("the agent wrote to stdout what is no message: {}", start_of(&line))
            }
            Ok(Some(Incoming::TooLong { bytes, seen })) => {
                proxy.refuse_line(bytes, seen).await;
                format!("the agent sent a line of {bytes} bytes, which is too long")
            }
            Ok(None) | Err(_) => return,
        };
        // One is enough to know; the rest would only hide other complaints.
        if !std::mem::replace(&mut has_complained, true) {
            complain(&complaint);
        }
    }
}

fn start_of(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

impl Proxy {
    /// Whoever waits for a line that is too long is told that it will not come.
    async fn refuse_line(self: &Arc<Self>, bytes: usize, seen: OversizedLine) {
        let Some(id) = seen.id else { return };
        let text = format!("what the agent sent is too long to be passed on: {bytes} bytes");
        let error = RpcError::new(RpcError::INTERNAL, text).with_reason("too_long");
        if seen.is_call {
            self.agent.answer(id, Err(error)).await.ok();
            return;
        }
        let answer = Message::response(id, Err(error));
        let _order = self.order.lock().await;
        self.pass_to_client(answer.clone(), answer.into_line()).await;
    }
}

/// Ends everything: whoever waits is told, the log is written, the inner agent is gone.
async fn end(
    proxy: &Arc<Proxy>,
    child: &mut Child,
    group: Option<Pid>,
    listening: &JoinHandle<()>,
    hung_up: bool,
) -> Option<ExitStatus> {
    let mut reacts = Reacts::Perhaps;
    if hung_up {
        tokio::select! {
            () = proxy.stop_turns() => {}
            () = proxy.silence() => reacts = Reacts::No,
        }
    }
    proxy.agent.hang_up();
    proxy.client.hang_up();
    let mut status = None;
    if !hung_up {
        status = tokio::time::timeout(LAST_WORDS, child.wait()).await.ok().and_then(Result::ok);
    }
    // What it has not read by then it will not read.
    let patience = if reacts == Reacts::No { Duration::ZERO } else { LAST_WORDS };
    tokio::time::timeout(patience, proxy.agent.writer().close()).await.ok();
    // Whoever notes what the agent says has to be done before its turns are ended.
    listening.abort();
    let stopped = async {
        while !listening.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LAST_WORDS, stopped).await.ok();
    let (requests, sessions, served) = {
        let mut state = proxy.state();
        state.is_gone = true;
        state.inners.clear();
        let sessions: HashMap<_, _> = std::mem::take(&mut state.sessions);
        state.keepers.clear();
        (std::mem::take(&mut state.requests), sessions, std::mem::take(&mut state.served))
    };
    for session in sessions.values() {
        session.leave_turn();
    }
    let how = status.map_or_else(|| "has ended".to_owned(), |status| format!("has ended ({status})"));
    let telling = async {
        for (_, asked) in requests {
            let error = RpcError::new(RpcError::INTERNAL, format!("the agent `{}` {how}", proxy.name))
                .with_reason("agent_exited");
            proxy.client.writer().send(Message::response(asked.id, Err(error))).await.ok();
        }
        proxy.client.writer().flush().await.ok();
    };
    // A client that does not read is told nothing.
    tokio::time::timeout(LAST_WORDS, telling).await.ok();
    drop(served);
    drop(sessions);
    let ending = async {
        let status = match status {
            Some(status) => Some(status),
            None => leave(proxy, child, group, reacts).await,
        };
        kill(group, Signal::KILL);
        // Whoever still waits for a pipe waits for nothing.
        proxy.agent.writer().abort();
        proxy.client.writer().abort();
        status
    };
    // Whoever has no patience with the agent ends us too: what there is to store does not wait for it.
    let threads = std::mem::take(&mut *proxy.threads.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    let storing = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())));
    let storing = tokio::time::timeout(proxy.setup.patience.answer, let_go(proxy, storing));
    tokio::join!(ending, storing).0
}

/// Whether the inner agent does what it is asked to when it is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reacts {
    Perhaps,
    /// It was silent for too long.
    No,
}

/// Waits for the threads. They end when nobody knows their sessions, and whoever was in the middle of something may just have made one known.
async fn let_go(proxy: &Proxy, mut storing: JoinHandle<()>) {
    while tokio::time::timeout(LAST_WORDS / 10, &mut storing).await.is_err() {
        let (sessions, inners) = {
            let mut state = proxy.state();
            state.keepers.clear();
            (std::mem::take(&mut state.sessions), std::mem::take(&mut state.inners))
        };
        drop((sessions, inners));
    }
}

/// Gives the inner agent time to end by itself, and to save what it has to, then asks it to.
async fn leave(proxy: &Proxy, child: &mut Child, group: Option<Pid>, reacts: Reacts) -> Option<ExitStatus> {
    let patience = match reacts {
        Reacts::Perhaps => proxy.setup.patience.leave,
        Reacts::No => Duration::ZERO,
    };
    let ended = tokio::time::timeout(patience, child.wait()).await;
    if let Ok(status) = ended {
        return status.ok();
    }
    proxy.agent.writer().abort();
    kill(group, Signal::TERM);
    let ended = tokio::time::timeout(LAST_WORDS, child.wait()).await;
    if let Ok(status) = ended {
        return status.ok();
    }
    child.kill().await.ok();
    None
}

/// Ends what is left of the inner agent, and of what it started.
fn kill(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // Most have left by then.
        rustix::process::kill_process_group(group, signal).ok();
    }
}
