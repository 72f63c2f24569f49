//! Lines: read with a limit, written whole.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::oversized::{ENDS, OversizedLine, oversized};
use super::{Message, NoMessage};

/// How long a line may be. A longer one is skipped and told of: images are a few megabytes.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// How many messages wait to be written before whoever writes more has to wait.
const QUEUE: usize = 256;
/// Bytes that are written at once, if that many wait.
const BATCH: usize = 64 << 10;

/// What was read.
#[derive(Debug)]
pub enum Incoming {
    /// A message, and the line that it came as, without its end.
    Message {
        /// The message.
        message: Message,
        /// The line.
        line: Vec<u8>,
    },
    /// A line that is no message. Empty lines are not told of.
    Garbage {
        /// What is wrong.
        error: NoMessage,
        /// The line, without its end.
        line: Vec<u8>,
    },
    /// A line that was too long to be taken in.
    TooLong {
        /// How long it was.
        bytes: usize,
        /// What could be seen of it.
        seen: OversizedLine,
    },
    /// The stream ended in the middle of a line.
    Half {
        /// What there was of it.
        line: Vec<u8>,
    },
}

/// Reads messages.
#[derive(Debug)]
pub struct Reader<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// How much of the line at hand was thrown away.
    skipped: usize,
    /// The end of what was thrown away.
    tail: Vec<u8>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads from a stream.
    pub fn new(from: R) -> Self {
        Self::with_limit(from, MAX_LINE)
    }

    /// With another limit to the length of a line.
    pub fn with_limit(from: R, limit: usize) -> Self {
        Self { from: BufReader::with_capacity(64 * 1024, from), line: Vec::new(), skipped: 0, tail: Vec::new(), limit }
    }

    /// What comes next; `None` at the end. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            let is_whole = self.fill().await?;
            let line = std::mem::take(&mut self.line);
            let skipped = std::mem::take(&mut self.skipped);
            if skipped > 0 {
                let tail = std::mem::take(&mut self.tail);
                let seen = oversized(&line[..line.len().min(ENDS)], &tail);
                return Ok(Some(Incoming::TooLong { bytes: line.len() + skipped, seen }));
            }
            let text = line.trim_ascii();
            if text.is_empty() {
                if is_whole {
                    continue;
                }
                return Ok(None);
            }
            return Ok(Some(match Message::parse(text) {
                // A last line whose end is missing is taken if it is a message all the same.
                Ok(message) => Incoming::Message { message, line },
                Err(_) if !is_whole => Incoming::Half { line },
                Err(error) => Incoming::Garbage { error, line },
            }));
        }
    }

    /// Reads on to the end of the line; whether that was seen. What was read stays with us at every point at which this can be dropped.
    async fn fill(&mut self) -> io::Result<bool> {
        loop {
            let available = self.from.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let room = self.limit.saturating_sub(self.line.len());
            let taken = if self.skipped > 0 { 0 } else { part.len().min(room) };
            self.line.extend_from_slice(&part[..taken]);
            let skipped = &part[taken..];
            self.skipped += skipped.len();
            self.tail.extend_from_slice(&skipped[skipped.len().saturating_sub(ENDS)..]);
            let old = self.tail.len().saturating_sub(ENDS);
            self.tail.drain(..old);
            let consumed = part.len() + usize::from(end.is_some());
            self.from.consume(consumed);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Writes messages, from as many places as there are clones of it.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Line>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    written: Option<oneshot::Sender<()>>,
    is_last: bool,
}

impl Writer {
    /// Writes to a stream until all clones are gone, or it fails.
    pub fn new(to: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (queue, lines) = mpsc::channel(QUEUE);
        let task = tokio::spawn(write_all(to, lines)).abort_handle();
        Self { queue, task }
    }

    /// Hands a message in; waits while too many wait already. An error if the other side reads no more.
    pub async fn send(&self, message: Message) -> io::Result<()> {
        self.send_line(message.into_line()).await
    }

    /// Hands a line in, as it is; its end is added if it has none.
    pub async fn send_line(&self, bytes: Vec<u8>) -> io::Result<()> {
        self.hand_in(Line { bytes, written: None, is_last: false }).await
    }

    /// Waits until all that was handed in before is written.
    pub async fn flush(&self) -> io::Result<()> {
        let (written, done) = oneshot::channel();
        self.hand_in(Line { bytes: Vec::new(), written: Some(written), is_last: false }).await?;
        done.await.map_err(|_| closed())
    }

    /// Hangs up once all that was handed in before is written.
    pub async fn close(&self) {
        self.hand_in(Line { bytes: Vec::new(), written: None, is_last: true }).await.ok();
    }

    /// Hangs up at once; what waits is not written.
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Waits until the other side reads no more.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }

    async fn hand_in(&self, line: Line) -> io::Result<()> {
        self.queue.send(line).await.map_err(|_| closed())
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the other side reads no more")
}

/// Writes what waits; several lines that wait go out together, since a write to a file of the process costs a hand-over to another thread.
async fn write_all(mut to: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Line>) {
    let (mut waiting, mut batch) = (Vec::new(), Vec::new());
    while lines.recv_many(&mut waiting, QUEUE).await > 0 {
        for Line { mut bytes, written, is_last } in waiting.drain(..) {
            if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                bytes.push(b'\n');
            }
            batch.append(&mut bytes);
            // Whoever hands something in next is told.
            if (batch.len() > BATCH || written.is_some() || is_last) && write(&mut to, &mut batch).await.is_err() {
                return;
            }
            if is_last {
                return;
            }
            if let Some(written) = written {
                written.send(()).ok();
            }
        }
        if write(&mut to, &mut batch).await.is_err() {
            return;
        }
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), batch: &mut Vec<u8>) -> io::Result<()> {
    to.write_all(batch).await?;
    to.flush().await?;
    batch.clear();
    // One long line is no reason to keep its room.
    batch.shrink_to(BATCH);
    Ok(())
}
