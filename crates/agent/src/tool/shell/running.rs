//! A running shell: its process, everything that it starts, and the pipe with their output.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use serde::Serialize;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::Shell;
use super::process::{self, ProcessGroup};
use crate::tool::CallContext;

/// How often processes that a shell left are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// Output of a shell that has ended is waiting in the pipe; what others write endlessly is not waited for.
const DRAIN: Duration = Duration::from_millis(100);
/// A process that was killed is gone by then, unless the system itself holds it.
const REAP: Duration = Duration::from_millis(20);
const BUFFER: usize = 64 << 10;

/// How a shell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or_default()), Self::Code)
    }
}

/// A shell at work.
#[derive(Debug)]
pub(crate) struct RunningShell {
    child: Child,
    pub(crate) group: ProcessGroup,
    pipe: pipe::Receiver,
    is_open: bool,
    pub(crate) started: SystemTime,
}

impl RunningShell {
    /// Starts a shell that runs `command` in `root`.
    pub(crate) fn start(shell: &Shell, surroundings: &CallContext, command: &str) -> io::Result<Self> {
        let mark = process::new_mark();
        let (reader, writer) = io::pipe()?;
        let inode = rustix::fs::fstat(&reader).ok().map(|stat| stat.st_ino);
        let pipe = pipe::Receiver::from_owned_fd(reader.into())?;
        let child = {
            let mut started = process::shell();
            started.args(["-c", command]).current_dir(&surroundings.root).envs(shell.variables());
            started.env(process::TURN_MARK, &surroundings.tag);
            process::prepare(&mut started, &mark, &shell.hidden);
            started.stdout(Stdio::from(writer.try_clone()?)).stderr(Stdio::from(writer));
            // Our own ends of the pipe go with the command: nothing would ever end the output otherwise.
            Command::from(started).spawn()?
        };
        let group = child.id().and_then(|leader| ProcessGroup::of(leader, mark, inode));
        let group = group.ok_or_else(|| io::Error::other("the shell has no process id"))?;
        Ok(Self { child, group, pipe, is_open: true, started: SystemTime::now() })
    }

    /// Passes output on until the shell itself has ended, whatever it leaves behind. Can be dropped and called again.
    pub(crate) async fn until_shell_ends(&mut self, sink: &mut (impl FnMut(&[u8]) + Send)) -> Exit {
        let exit = loop {
            tokio::select! {
                status = self.child.wait() => break status.map_or(Exit::Code(-1), Exit::from),
                readable = self.pipe.readable(), if self.is_open => {
                    self.is_open = readable.is_ok() && self.read(sink);
                }
            }
        };
        self.group.leader_ended();
        self.drain(sink);
        exit
    }

    /// Passes output on until nothing that the shell started is alive. The shell has to have ended.
    pub(crate) async fn until_all_ended(&mut self, sink: &mut (impl FnMut(&[u8]) + Send)) {
        while self.is_anything_left().await {
            // The time being over is the other way to go on.
            drop(timeout(LOOK, self.read_on(sink)).await);
        }
        self.drain(sink);
        self.group.release();
    }

    /// Passes output on for this long.
    pub(crate) async fn read_for(&mut self, time: Duration, sink: &mut (impl FnMut(&[u8]) + Send)) {
        drop(timeout(time, self.read_on(sink)).await);
    }

    /// Waits until the shell, which was killed, is no more.
    pub(crate) async fn reap(&mut self) {
        if timeout(REAP, self.child.wait()).await.is_ok() {
            self.group.leader_ended();
        }
    }

    /// Passes on what is in the pipe.
    pub(crate) fn drain(&mut self, sink: &mut impl FnMut(&[u8])) {
        let deadline = Instant::now() + DRAIN;
        let mut buffer = vec![0; BUFFER];
        while self.is_open && Instant::now() < deadline {
            // Asked of the system itself: the runtime may not know yet that there is something.
            match rustix::io::read(&self.pipe, &mut buffer) {
                Ok(0) => self.is_open = false,
                Ok(length) => sink(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    async fn is_anything_left(&self) -> bool {
        let group = self.group.clone();
        tokio::task::spawn_blocking(move || !group.members().is_empty()).await.unwrap_or_default()
    }

    async fn read_on(&mut self, sink: &mut (impl FnMut(&[u8]) + Send)) {
        while self.is_open && self.pipe.readable().await.is_ok() {
            self.is_open = self.read(sink);
        }
        std::future::pending::<()>().await;
    }

    /// Passes one piece on; `false` at the end.
    fn read(&self, sink: &mut impl FnMut(&[u8])) -> bool {
        let mut buffer = [0; BUFFER];
        match self.pipe.try_read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                sink(&buffer[..length]);
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }
}
