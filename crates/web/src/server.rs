//! The server: accepts connections, bounds them, and ends them.
//!
//! It uses hyper without a framework: there are four endpoints and the files of the page, and the limits (connections, unauthenticated
//! ones, time for a request's head and body) apply to connections, below the level at which frameworks work.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use retake_engine::Environment;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::deadline::Deadline;
use crate::host::SessionOpener;
use crate::limits::{self, Limits};
use crate::login::Login;
use crate::origin_check::OriginCheck;
use crate::sessions::Sessions;
use crate::unauthenticated::{ConnectionPlace, LoginState, Unauthenticated};
use crate::{cookie_key, route};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;
/// What a server is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The workspace.
    pub environment: Environment,
    /// Where live sessions listen.
    pub sockets: PathBuf,
    /// Where it listens itself; port 0 for one that is free.
    pub address: SocketAddr,
    /// Its bounds.
    pub limits: Limits,
}

/// A server could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// Another program listens there, say.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The key that signs cookies cannot be read or written.
    #[error("cannot keep the key of the web page in `{}`", .directory.display())]
    Key {
        /// Where.
        directory: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A server, until it is stopped or dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) environment: Environment,
    pub(crate) limits: Limits,
    pub(crate) origin_check: OriginCheck,
    pub(crate) login: Login,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) bodies: Semaphore,
}

impl Server {
    /// Starts a server. Inside a runtime only.
    pub fn start(config: Config, host: Arc<dyn SessionOpener>) -> Result<Self, StartError> {
        let Config { environment, sockets, address, limits } = config;
        let failed = |source| StartError::Listen { address, source };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let directory = environment.data_dir.clone();
        let key = std::fs::create_dir_all(&directory).and_then(|()| cookie_key::load(&directory));
        let key = key.map_err(|source| StartError::Key { directory, source })?;
        let shared = Arc::new(Shared {
            origin_check: OriginCheck::new(address),
            login: Login::new(key, address.port(), limits.wrong_tokens),
            sessions: Arc::new(Sessions::new(host, environment.clone(), sockets, limits.clone())),
            streams: Arc::new(Semaphore::new(limits.streams)),
            bodies: Semaphore::new(limits.bodies),
            environment,
            limits,
        });
        let tidying = Arc::clone(&shared);
        let tasks = [
            tokio::spawn(accept(listener, Arc::clone(&shared))),
            tokio::spawn(async move { tidying.sessions.tidy().await }),
        ];
        Ok(Self { shared, address, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address that lets one browser in, once.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let here = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            address.set_ip(here);
        }
        format!("http://{address}/?token={}", self.shared.login.token())
    }

    /// Cuts all connections, closes the sessions that were opened here, and waits until everything is stored.
    pub async fn stop(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.sessions.close().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again does not wait for the connections of the one before.
    socket.set_reuseaddr(true)?;
    // Connections have what their listener has.
    socket.set_send_buffer_size(limits::SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections; all of them end with it. If there are too many, the oldest of those makes way by which nobody has asked for
/// anything who is signed in: whoever only connects locks nobody out.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut connections = JoinSet::new();
    let mut unauthenticated = Unauthenticated::default();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open, say: that passes.
            sleep(limits::ACCEPT_PAUSE).await;
            continue;
        };
        let free = || Arc::clone(&places).try_acquire_owned().ok();
        let Some(permit) = free().or_else(|| unauthenticated.send_oldest_away()).or_else(free) else {
            turn_away(stream, &mut connections, shared.limits.connections);
            continue;
        };
        let (shared, met, place) = (Arc::clone(&shared), LoginState::default(), ConnectionPlace::new(permit));
        let (stranger, taken) = (met.clone(), place.clone());
        let task = connections.spawn(async move {
            converse(stream, shared, met).await;
            drop(place.give_up());
        });
        unauthenticated.add(task, stranger, taken);
    }
}

/// Serves one connection.
async fn converse(stream: TcpStream, shared: Arc<Shared>, met: LoginState) {
    // Small pieces are sent at once; if that cannot be had, a little later.
    stream.set_nodelay(true).ok();
    let limits = &shared.limits;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(limits::HEAD);
    http.max_headers(limits::HEADERS);
    let io = TokioIo::new(Deadline::new(stream, limits.stall));
    let service = service_fn(move |request| {
        if shared.login.is_known(request.headers()) {
            met.log_in();
        }
        route::handle(Arc::clone(&shared), request)
    });
    // A client that goes away, or talks nonsense, is no error of ours.
    http.serve_connection(io, service).await.ok();
}

/// Tells a client that there is no place for it; if many are told so already, it is told nothing.
fn turn_away(mut stream: TcpStream, connections: &mut JoinSet<()>, most: usize) {
    if connections.len() >= most + limits::FAREWELLS {
        return;
    }
    let body = r#"{"error":{"message":"too many connections are open","hint":"close some of the tabs"}}"#;
    let length = body.len();
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    connections.spawn(async move {
        let farewell = async {
            stream.write_all(text.as_bytes()).await?;
            stream.shutdown().await?;
            // What it has sent is passed over: a connection that is closed with something unread loses what was written.
            let mut passed = [0; 1_024];
            while stream.read(&mut passed).await? > 0 {}
            io::Result::Ok(())
        };
        timeout(limits::FAREWELL, farewell).await.map(Result::ok).ok();
    });
}
