//! The local socket of a live session: the contract, one JSON document a line.
//!
//! It is in a directory that only the user can enter and is itself readable by nobody else; both ends check that (`trust`). Whoever
//! serves a session holds its lock, so a socket that is there already is a dead process's and makes way.

mod trust;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use retake_engine::id::SessionId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::contract::{
    Action, Command, Event, Outgoing, Query, Reason, Refusal, Reply, Request, RequestOutcome, Response,
};
use crate::controller::{self, Attached, Beginning, Handle};
use crate::{ids, limits};

pub use trust::{Untrusted, untrusted};

/// The directory of sockets: in the runtime directory, else one of the user's own under the system's temporary directory. A runtime
/// directory that is not there, or whose name leaves no room for a socket's, is none.
pub fn directory(runtime_dir: Option<&Path>, temp_dir: &Path) -> PathBuf {
    let fits = |dir: &Path| dir.as_os_str().len() <= limits::MAX_DIRECTORY;
    match runtime_dir.filter(|dir| dir.is_dir()).map(|dir| dir.join("retake")).filter(|dir| fits(dir)) {
        Some(dir) => dir,
        None => temp_dir.join(format!("retake-{}", rustix::process::geteuid().as_raw())),
    }
}

/// A session's socket.
pub fn path(directory: &Path, session: SessionId) -> PathBuf {
    directory.join(format!("{session}.sock"))
}

/// Serves a session on its socket until the result is dropped.
pub fn serve(directory: &Path, handle: Handle) -> io::Result<Served> {
    // Nobody takes it for a dead one before it listens.
    let _lock = lock(trust::prepare(directory)?)?;
    let path = path(directory, handle.session());
    match std::fs::remove_file(&path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    let meta = std::fs::symlink_metadata(&path)?;
    let file = SocketFile { path, identity: (meta.dev(), meta.ino()) };
    let places = Arc::new(Semaphore::new(limits::MAX_CLIENTS));
    let accepting = tokio::spawn(accept(listener, file.clone(), handle, Arc::clone(&places)));
    Ok(Served { file, accepting, places })
}

/// A socket that is being served.
#[derive(Debug)]
pub struct Served {
    file: SocketFile,
    accepting: JoinHandle<()>,
    places: Arc<Semaphore>,
}

/// The socket's file, and which one it is: another process may have made its own in the same place since.
#[derive(Clone, Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    /// Removes the file. One that stays answers nobody, which clients notice.
    fn remove(&self) {
        if std::fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity) {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

impl Served {
    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        limits::MAX_CLIENTS - self.places.available_permits().min(limits::MAX_CLIENTS)
    }

    /// Waits until every client has been told everything, but not for ever. For a session that has ended.
    pub async fn finish(mut self) {
        let all = u32::try_from(limits::MAX_CLIENTS).unwrap_or(u32::MAX);
        let patience = Duration::from_millis(limits::PATIENCE_MS);
        let finished = async {
            // Once all places are asked for, a client that still came in would be turned away.
            (&mut self.accepting).await.ok();
            self.places.acquire_many(all).await.ok();
        };
        // A client that does not read is left behind.
        tokio::time::timeout(patience, finished).await.ok();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
        self.file.remove();
    }
}

/// Keeps others from making and removing sockets for as long as it lives.
fn lock(directory: OwnedFd) -> io::Result<OwnedFd> {
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(directory)
}

/// Removes the socket of a process that died.
fn remove_dead(directory: &Path, path: &Path) -> io::Result<()> {
    let _lock = lock(trust::own(directory)?)?;
    match std::os::unix::net::UnixStream::connect(path) {
        Err(err) if err.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Takes clients in until the session has ended. Then the socket goes first, and its clients learn of the end after that: a client that
/// tries again at once finds no socket.
async fn accept(listener: UnixListener, file: SocketFile, handle: Handle, places: Arc<Semaphore>) {
    let (listening, closed) = watch::channel(());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = handle.ended() => break,
        };
        match accepted {
            Ok((stream, _)) => take_in(stream, &handle, &places, &closed),
            // Too many files are open, say: that passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await,
        }
    }
    file.remove();
    // Clients that are connected already get the same answer as the others.
    while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
        take_in(stream, &handle, &places, &closed);
    }
    drop((listener, listening));
}

/// Serves a client if there is a place for it.
fn take_in(stream: UnixStream, handle: &Handle, places: &Arc<Semaphore>, closed: &watch::Receiver<()>) {
    // Another user gets this far only if somebody has opened the directory since.
    if !trust::is_own(&stream).unwrap_or(false) {
        return;
    }
    let (handle, closed) = (handle.clone(), closed.clone());
    match Arc::clone(places).try_acquire_owned() {
        Ok(place) => drop(tokio::spawn(async move {
            // A client that goes away is no error.
            converse(stream, handle, closed).await.ok();
            drop(place);
        })),
        Err(_) => drop(tokio::spawn(async move {
            let patience = Duration::from_millis(limits::PATIENCE_MS);
            tokio::time::timeout(patience, turn_away(stream)).await.ok();
        })),
    }
}

/// Waits until the session has ended and its socket is closed.
async fn over(handle: &Handle, mut closed: watch::Receiver<()>) {
    handle.ended().await;
    while closed.changed().await.is_ok() {}
}

/// Tells a client that there is no place for it, whatever it wants.
async fn turn_away(stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let (outgoing, queue) = mpsc::channel(1);
    let message = format!("{} clients of this session are connected already; close one of them", limits::MAX_CLIENTS);
    let refusal = Refusal { reason: Reason::Failed, message, hint: None, document: None };
    respond(&outgoing, String::new(), Err(refusal), None).await;
    drop(outgoing);
    write_all(writer, queue).await.ok();
    // Before it has said what it wants, it would not read this.
    read_line(&mut BufReader::new(reader)).await.ok();
}

/// The requests of one connection, kept apart from those of others: inside they have its name before them.
#[derive(Clone)]
struct RequestNames(Arc<str>);

impl RequestNames {
    fn new() -> Self {
        let [a, b, c, d, ..] = ids::random();
        Self(format!("{a:02x}{b:02x}{c:02x}{d:02x}/").into())
    }

    fn inside(&self, id: &str) -> String {
        if id.is_empty() { String::new() } else { format!("{}{id}", self.0) }
    }

    /// As the client sees it: its own as it sent them.
    fn outside(&self, id: &str) -> String {
        id.strip_prefix(&*self.0).unwrap_or(id).to_owned()
    }

    fn command(&self, command: Command) -> Command {
        match command {
            Command::Action(Action::Withdraw { request }) => Action::Withdraw { request: self.inside(&request) }.into(),
            other => other,
        }
    }

    fn reply(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Held { count, request } => Reply::Held { count, request: request.map(|id| self.outside(&id)) },
            other => other,
        }
    }

    fn event(&self, event: &Event) -> Outgoing {
        let mut event = event.clone();
        event.request = event.request.map(|id| self.outside(&id));
        Outgoing::Event(Box::new(event))
    }
}

/// Serves one client.
async fn converse(stream: UnixStream, handle: Handle, closed: watch::Receiver<()>) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let (outgoing, queue) = mpsc::channel(limits::INBOX);
    let writing = tokio::spawn(write_all(writer, queue));
    let names = RequestNames::new();
    let mut lines = BufReader::new(reader);
    let mut listening: Option<JoinHandle<()>> = None;
    let mut answers = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = read_line(&mut lines) => line,
            // What has happened until then is still told, and nothing more can.
            () = over(&handle, closed.clone()) => {
                if let Some(listening) = listening.take() {
                    listening.await.ok();
                }
                while answers.join_next().await.is_some() {}
                outgoing.send(Outgoing::Ended).await.ok();
                break;
            }
        };
        let Ok(Some(line)) = line else { break };
        // It may have been waiting for long, and whoever gave up on it does not want it any more.
        if is_gone(lines.get_ref()) {
            break;
        }
        while answers.try_join_next().is_some() {}
        let Request { id, command } = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(err) => {
                let refusal = Refusal { reason: Reason::Invalid, message: err.to_string(), hint: None, document: None };
                respond(&outgoing, id_of(&line), Err(refusal), None).await;
                continue;
            }
        };
        match command {
            Command::Query(Query::Attach { from }) => {
                // Nobody listens twice.
                listening.take().inspect(JoinHandle::abort);
                listening = attach(id, from, &handle, outgoing.clone(), names.clone()).await;
            }
            Command::Query(Query::Ping) => respond(&outgoing, id, Ok(Reply::Done), None).await,
            command => {
                let request = Request { id: names.inside(&id), command: names.command(command) };
                let pending = handle.hand_in(request).await;
                let (outgoing, names, handle) = (outgoing.clone(), names.clone(), handle.clone());
                // One that takes long must not hold up an interrupt.
                answers.spawn(async move {
                    let reply = pending.answer().await;
                    respond(&outgoing, id, reply.map(|reply| names.reply(reply)), handle.published()).await;
                });
            }
        }
    }
    if is_gone(lines.get_ref()) {
        answers.abort_all();
    }
    // Answers that are still to come are told; events would be told for ever.
    listening.inspect(JoinHandle::abort);
    while answers.join_next().await.is_some() {}
    drop(outgoing);
    writing.await.map_err(io::Error::other)?
}

/// Whether a client has closed its connection. One that only says no more still listens.
fn is_gone(reader: &OwnedReadHalf) -> bool {
    let stream: &UnixStream = reader.as_ref();
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut polled, Some(&now)).is_ok_and(|_| polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// The id of a request that makes no sense otherwise, if it has one.
fn id_of(line: &[u8]) -> String {
    let request: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    request.and_then(|request| request["id"].as_str().map(str::to_owned)).unwrap_or_default()
}

async fn respond(outgoing: &mpsc::Sender<Outgoing>, id: String, reply: Result<Reply, Refusal>, seq: Option<u64>) {
    let outcome = reply.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok);
    outgoing.send(Outgoing::Response(Box::new(Response { id, outcome, seq }))).await.ok();
}

/// Tells a client everything, and from then on every event.
async fn attach(
    id: String,
    from: Option<u64>,
    handle: &Handle,
    outgoing: mpsc::Sender<Outgoing>,
    names: RequestNames,
) -> Option<JoinHandle<()>> {
    let Attached { beginning, events } = match handle.attach(from).await {
        Ok(attached) => attached,
        Err(refusal) => {
            respond(&outgoing, id, Err(refusal), None).await;
            return None;
        }
    };
    match beginning {
        Beginning::View(view) => respond(&outgoing, id, Ok(Reply::View { view }), None).await,
        Beginning::Missed(missed) => {
            respond(&outgoing, id, Ok(Reply::Done), None).await;
            for event in missed {
                outgoing.send(names.event(&event)).await.ok();
            }
        }
    }
    Some(tokio::spawn(forward(events, outgoing, names)))
}

async fn forward(mut events: broadcast::Receiver<Arc<Event>>, outgoing: mpsc::Sender<Outgoing>, names: RequestNames) {
    loop {
        let told = match events.recv().await {
            Ok(event) => names.event(&event),
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
    /// What has come of the next line, should somebody stop waiting for it.
    line: Vec<u8>,
    next: u64,
}

impl Client {
    /// Connects to a session; `None` if nobody serves it. What is not the user's own is [`Untrusted`], and nothing is sent to it.
    pub async fn connect(directory: &Path, session: SessionId) -> io::Result<Option<Self>> {
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
        let path = path(directory, session);
        match trust::own(directory) {
            Err(err) if err.kind() == NotFound => return Ok(None),
            owned => drop(owned?),
        }
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                match trust::check_peer(directory, &stream) {
                    // It stopped listening just then, and the system does not remember who it was.
                    Err(err) if err.kind() == io::ErrorKind::NotConnected => return Ok(None),
                    checked => checked?,
                }
                let (reader, writer) = stream.into_split();
                Ok(Some(Self { writer, reader: BufReader::new(reader), line: Vec::new(), next: 1 }))
            }
            Err(err) if err.kind() == ConnectionRefused => {
                // If it stays, it only takes up room.
                remove_dead(directory, &path).ok();
                Ok(None)
            }
            // Reset if it stopped listening just then.
            Err(err) if matches!(err.kind(), NotFound | ConnectionReset) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Sends a command and returns the id of the request.
    pub async fn send(&mut self, command: impl Into<Command>) -> io::Result<String> {
        let id = format!("#{}", self.next);
        self.next += 1;
        let request = Request { id, command: command.into() };
        self.send_request(&request).await?;
        Ok(request.id)
    }

    /// Sends a request whose id the caller has chosen: one that begins otherwise than with `#` is not chosen here.
    pub async fn send_request(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::other)?;
        line.push(b'\n');
        self.writer.write_all(&line).await
    }

    /// What comes next; the last word is [`Outgoing::Ended`], and without it the process has died. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> io::Result<Outgoing> {
        let room = limits::MAX_LINE - self.line.len();
        (&mut self.reader).take(room as u64).read_until(b'\n', &mut self.line).await?;
        let line = std::mem::take(&mut self.line);
        match line.last() {
            Some(b'\n') => serde_json::from_slice(&line).map_err(io::Error::other),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process that had the session open has died")),
        }
    }

    /// Sends a command and waits for the answer; events that come meanwhile are passed over.
    pub async fn request(&mut self, command: impl Into<Command>) -> io::Result<Result<Reply, Refusal>> {
        let wanted = self.send(command).await?;
        loop {
            if let Some(answer) = answer_to(&wanted, self.next().await?) {
                return Ok(answer);
            }
        }
    }
}

/// What requests are answered with that a session did not get to before it ended: it did nothing of them.
pub fn ended() -> Refusal {
    controller::gone()
}

/// The answer to request `wanted`, if this is it.
fn answer_to(wanted: &str, outgoing: Outgoing) -> Option<Result<Reply, Refusal>> {
    match outgoing {
        // Whoever is turned away is so whatever they asked.
        Outgoing::Response(response) if response.id == wanted || response.id.is_empty() => {
            Some(match response.outcome {
                RequestOutcome::Ok(reply) => Ok(reply),
                RequestOutcome::Refused(refusal) => Err(refusal),
            })
        }
        Outgoing::Ended => Some(Err(ended())),
        Outgoing::Response(_) | Outgoing::Event(_) | Outgoing::Lagged => None,
    }
}
