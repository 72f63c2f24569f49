//! The local socket of a live session: the contract, one JSON document a line.
//!
//! It is in a directory that only the user can enter and is itself readable by nobody else. Whoever serves a session holds its lock, so
//! a socket that is there already is a dead process's and makes way.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use retake_engine::SessionId;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, broadcast, mpsc};

use crate::contract::{Command, Event, Outcome, Outgoing, Reason, Refusal, Reply, Request, Response};
use crate::controller::{Attached, Beginning, Handle};
use crate::limits;

/// The directory of sockets: in the runtime directory, else one of the user's own under the system's temporary directory.
pub fn directory(runtime_dir: Option<&Path>, temp_dir: &Path) -> PathBuf {
    match runtime_dir {
        Some(dir) => dir.join("retake"),
        None => temp_dir.join(format!("retake-{}", rustix::process::geteuid().as_raw())),
    }
}

/// A session's socket.
pub fn path(directory: &Path, session: SessionId) -> PathBuf {
    directory.join(format!("{session}.sock"))
}

/// Serves a session on its socket until the result is dropped.
pub fn serve(directory: &Path, handle: Handle) -> io::Result<Served> {
    prepare(directory)?;
    let path = path(directory, handle.session());
    match std::fs::remove_file(&path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    let meta = std::fs::symlink_metadata(&path)?;
    let identity = (meta.dev(), meta.ino());
    let places = Arc::new(Semaphore::new(limits::MAX_CLIENTS));
    let accepting = tokio::spawn(accept(listener, handle, Arc::clone(&places)));
    Ok(Served { path, identity, accepting, places })
}

/// A socket that is being served.
#[derive(Debug)]
pub struct Served {
    path: PathBuf,
    identity: (u64, u64),
    accepting: tokio::task::JoinHandle<()>,
    places: Arc<Semaphore>,
}

impl Served {
    /// Waits until every client has been told everything, but not for ever. For a session that has ended.
    pub async fn finish(self) {
        self.accepting.abort();
        let all = u32::try_from(limits::MAX_CLIENTS).unwrap_or(u32::MAX);
        let patience = Duration::from_millis(limits::PATIENCE_MS);
        // A client that does not read is left behind.
        tokio::time::timeout(patience, self.places.acquire_many(all)).await.ok();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
        // Another process may serve the session by now. One that stays answers nobody, which clients notice.
        if std::fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity) {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Makes the directory, or checks that it is the user's own.
fn prepare(directory: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => return Ok(()),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
        Err(err) => return Err(err),
    }
    let meta = std::fs::symlink_metadata(directory)?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to somebody else"));
    }
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

async fn accept(listener: UnixListener, handle: Handle, places: Arc<Semaphore>) {
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open, say: that passes.
            tokio::time::sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await;
            continue;
        };
        let handle = handle.clone();
        tokio::spawn(async move {
            // A client that goes away is no error.
            converse(stream, handle).await.ok();
            drop(place);
        });
    }
}

/// Serves one client.
async fn converse(stream: UnixStream, handle: Handle) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let (outgoing, queue) = mpsc::channel(limits::INBOX);
    let writing = tokio::spawn(write_all(writer, queue));
    let mut lines = BufReader::new(reader);
    let mut listening: Option<tokio::task::JoinHandle<()>> = None;
    loop {
        let line = tokio::select! {
            line = read_line(&mut lines) => line,
            // What has happened until then is still told, and nothing more can.
            () = handle.ended() => break drop(listening.take()),
        };
        let Ok(Some(line)) = line else { break };
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(err) => {
                let refusal = Refusal { reason: Reason::Invalid, message: err.to_string(), hint: None, document: None };
                respond(&outgoing, id_of(&line), Err(refusal)).await;
                continue;
            }
        };
        let (handle, outgoing) = (handle.clone(), outgoing.clone());
        match request.command {
            Command::Attach { from } => {
                // Nobody listens twice.
                listening.take().inspect(tokio::task::JoinHandle::abort);
                listening = attach(request.id, from, &handle, outgoing).await;
            }
            // One that takes long must not hold up an interrupt.
            _ => drop(tokio::spawn(async move {
                let id = request.id.clone();
                let reply = handle.send(request).await;
                respond(&outgoing, id, reply).await;
            })),
        }
    }
    // Answers that are still to come are told; events would be told for ever.
    listening.inspect(tokio::task::JoinHandle::abort);
    drop(outgoing);
    writing.await.map_err(io::Error::other)?
}

/// The id of a request that makes no sense otherwise, if it has one.
fn id_of(line: &[u8]) -> String {
    let request: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    request.and_then(|request| request["id"].as_str().map(str::to_owned)).unwrap_or_default()
}

async fn respond(outgoing: &mpsc::Sender<Outgoing>, id: String, reply: Result<Reply, Refusal>) {
    let outcome = reply.map_or_else(Outcome::Refused, Outcome::Ok);
    outgoing.send(Outgoing::Response(Box::new(Response { id, outcome }))).await.ok();
}

/// Tells a client everything, and from then on every event.
async fn attach(
    id: String,
    from: Option<u64>,
    handle: &Handle,
    outgoing: mpsc::Sender<Outgoing>,
) -> Option<tokio::task::JoinHandle<()>> {
    let Attached { beginning, events } = match handle.attach(from).await {
        Ok(attached) => attached,
        Err(refusal) => {
            respond(&outgoing, id, Err(refusal)).await;
            return None;
        }
    };
    match beginning {
        Beginning::View(view) => respond(&outgoing, id, Ok(Reply::View { view })).await,
        Beginning::Missed(missed) => {
            respond(&outgoing, id, Ok(Reply::Done)).await;
            for event in missed {
                outgoing.send(Outgoing::Event(Box::new((*event).clone()))).await.ok();
            }
        }
    }
    Some(tokio::spawn(forward(events, outgoing)))
}

async fn forward(mut events: broadcast::Receiver<Arc<Event>>, outgoing: mpsc::Sender<Outgoing>) {
    loop {
        let told = match events.recv().await {
            Ok(event) => Outgoing::Event(Box::new((*event).clone())),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                outgoing.send(Outgoing::Lagged).await.ok();
                return;
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if outgoing.send(told).await.is_err() {
            return;
        }
    }
}

async fn write_all(mut writer: OwnedWriteHalf, mut queue: mpsc::Receiver<Outgoing>) -> io::Result<()> {
    while let Some(outgoing) = queue.recv().await {
        let mut line = serde_json::to_vec(&outgoing).map_err(io::Error::other)?;
        line.push(b'\n');
        writer.write_all(&line).await?;
    }
    Ok(())
}

/// The next line; `None` at the end.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.take(limits::MAX_LINE as u64).read_until(b'\n', &mut line).await?;
    if read == limits::MAX_LINE && !line.ends_with(b"\n") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
    }
    Ok((read > 0).then_some(line))
}

/// A client of a live session in another process.
#[derive(Debug)]
pub struct Client {
    writer: OwnedWriteHalf,
    reader: BufReader<OwnedReadHalf>,
    next: u64,
}

impl Client {
    /// Connects to a session; `None` if nobody serves it.
    pub async fn connect(directory: &Path, session: SessionId) -> io::Result<Option<Self>> {
        match UnixStream::connect(path(directory, session)).await {
            Ok(stream) => {
                let (reader, writer) = stream.into_split();
                Ok(Some(Self { writer, reader: BufReader::new(reader), next: 1 }))
            }
            Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Sends a command and returns the id of the request.
    pub async fn send(&mut self, command: Command) -> io::Result<String> {
        let id = self.next.to_string();
        self.next += 1;
        let mut line = serde_json::to_vec(&Request { id: id.clone(), command }).map_err(io::Error::other)?;
        line.push(b'\n');
        self.writer.write_all(&line).await?;
        Ok(id)
    }

    /// What comes next; `None` if the session has ended.
    pub async fn next(&mut self) -> io::Result<Option<Outgoing>> {
        let Some(line) = read_line(&mut self.reader).await? else { return Ok(None) };
        serde_json::from_slice(&line).map(Some).map_err(io::Error::other)
    }

    /// Sends a command and waits for the answer; events that come meanwhile are passed over.
    pub async fn request(&mut self, command: Command) -> io::Result<Result<Reply, Refusal>> {
        let wanted = self.send(command).await?;
        while let Some(outgoing) = self.next().await? {
            if let Outgoing::Response(response) = outgoing
                && response.id == wanted
            {
                return Ok(match response.outcome {
                    Outcome::Ok(reply) => Ok(reply),
                    Outcome::Refused(refusal) => Err(refusal),
                });
            }
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the session ended before it answered"))
    }
}
