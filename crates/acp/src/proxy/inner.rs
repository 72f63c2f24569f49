//! The inner agent's process, and the life of the proxy around it.
//!
//! It ends when the editor hangs up or when the inner agent does. Whoever waits for an answer is told, the log is written to its end, and
//! nothing is left running.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use retake_agent::fresh;
use retake_engine::session::entry::EndReason;
use serde_json::Value;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use super::{Proxy, Setup, State, complain};
use crate::peer::Peer;
use crate::wire::{Incoming, Message, NoMessage, Reader, RpcError, Writer};

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
pub enum Ended {
    /// The editor hung up.
    ByClient,
    /// The inner agent ended, with this exit code if it has one.
    ByAgent(Option<i32>),
}

/// Runs the inner agent for a client until one of them hangs up, or `stop` comes.
pub async fn run(
    setup: Setup,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<Ended, StartError> {
    let Some((program, arguments)) = setup.command.split_first() else { return Err(StartError::NoCommand) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| StartError::Start { command: program.display().to_string(), source })?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(StartError::NoCommand);
    };
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let [a, b, c, d, ..] = fresh::random();
    let prefix = format!("retake-{a:02x}{b:02x}{c:02x}{d:02x}-");
    let proxy = Arc::new(Proxy {
        client: Peer::beside_others(Writer::new(to), &prefix),
        agent: Peer::beside_others(Writer::new(stdin), &prefix),
        setup,
        name,
        runtime: tokio::runtime::Handle::current(),
        state: std::sync::Mutex::new(State::default()),
        offer: std::sync::Mutex::default(),
        order: tokio::sync::Mutex::new(()),
        threads: std::sync::Mutex::default(),
    });
    let listening = tokio::spawn(listen(Arc::clone(&proxy), stdout));
    let hung_up = tokio::select! {
        () = take_client(&proxy, from) => true,
        () = stop => true,
        _ = listening => false,
    };
    let status = end(&proxy, &mut child, hung_up).await;
    Ok(match hung_up {
        true => Ended::ByClient,
        false => Ended::ByAgent(status.and_then(|status| status.code())),
    })
}

/// Takes what the client says until it hangs up.
async fn take_client(proxy: &Arc<Proxy>, from: impl AsyncRead + Unpin) {
    let mut reader = Reader::new(from);
    loop {
        match reader.next().await {
            Ok(Some(Incoming::Message { message, line })) => proxy.take_client(message, line).await,
            Ok(Some(Incoming::Garbage { error, .. })) => {
                proxy.client.writer().send(error.answer()).await.ok();
            }
            Ok(Some(Incoming::TooLong { bytes })) => {
                let error = RpcError::new(RpcError::INVALID_REQUEST, format!("a line of {bytes} bytes is too long"));
                proxy.client.answer(Value::Null, Err(error)).await.ok();
            }
            Ok(Some(Incoming::Half { .. }) | None) | Err(_) => return,
        }
    }
}

/// Takes what the inner agent says until it ends.
async fn listen(proxy: Arc<Proxy>, stdout: impl AsyncRead + Unpin) {
    let mut reader = Reader::new(stdout);
    let mut has_complained = false;
    loop {
        let complaint = match reader.next().await {
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
            Ok(Some(Incoming::TooLong { bytes })) => {
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

/// Ends everything: whoever waits is told, the log is written, the inner agent is gone.
async fn end(proxy: &Arc<Proxy>, child: &mut Child, hung_up: bool) -> Option<ExitStatus> {
    proxy.agent.hang_up();
    proxy.client.hang_up();
    let status = if hung_up {
        proxy.agent.writer().close().await;
        None
    } else {
        tokio::time::timeout(proxy.setup.patience.stop, child.wait()).await.ok().and_then(Result::ok)
    };
    let (requests, sessions, served) = {
        let mut state = proxy.state();
        state.is_gone = true;
        state.inners.clear();
        let sessions: HashMap<_, _> = std::mem::take(&mut state.sessions);
        state.keepers.clear();
        (std::mem::take(&mut state.requests), sessions, std::mem::take(&mut state.served))
    };
    for session in sessions.values() {
        drop(session.end_turn(EndReason::Interrupted));
    }
    let how = status.map_or_else(|| "has ended".to_owned(), |status| format!("has ended ({status})"));
    for (_, asked) in requests {
        let error =
            RpcError::new(RpcError::INTERNAL, format!("the agent `{}` {how}", proxy.name)).with_reason("agent_exited");
        proxy.client.writer().send(Message::response(asked.id, Err(error))).await.ok();
    }
    proxy.client.writer().flush().await.ok();
    drop(served);
    drop(sessions);
    let status = match status {
        Some(status) => Some(status),
        None => leave(proxy, child).await,
    };
    let threads = std::mem::take(&mut *proxy.threads.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join()))).await.ok();
    status
}

/// Gives the inner agent time to end by itself.
async fn leave(proxy: &Proxy, child: &mut Child) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(proxy.setup.patience.stop, child.wait()).await {
        return status.ok();
    }
    child.kill().await.ok();
    None
}
