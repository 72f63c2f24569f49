//! As much of HTTP/1.1 as a client of ours needs: requests with a length, chunked responses, connections that stay open.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::{Shutdown, TcpStream};

use super::answer::StreamStep;

/// How the bytes of an answer are cut up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// Each event is a piece.
    #[default]
    Events,
    /// Pieces of so many bytes.
    Bytes(usize),
    /// Pieces of random lengths, the same for the same seed.
    Random(u64),
}

/// A request as it came.
pub(super) struct Incoming {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// One connection.
pub(super) struct Connection {
    reader: BufReader<TcpStream>,
    writer: BufWriter<TcpStream>,
}

/// How sending ended.
pub(super) enum Sent {
    /// The connection can be used again.
    Whole,
    /// We cut it.
    Cut,
    /// The other side closed it.
    Gone,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream.try_clone()?), writer: BufWriter::new(stream) })
    }

    /// The next request; `None` if there is none any more.
    pub(super) fn read(&mut self) -> io::Result<Option<Incoming>> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length =
            headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.reader.read_exact(&mut body)?;
        Ok(Some(Incoming { path, headers, body }))
    }

    /// Whether the other side has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        let stream = self.reader.get_ref();
        if stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = stream.peek(&mut [0]);
        let is_gone = match &peeked {
            Ok(count) => *count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        is_gone || stream.set_nonblocking(false).is_err()
    }

    /// Sends a whole document.
    pub(super) fn send(&mut self, status: u16, headers: &[(String, String)], body: &str) -> io::Result<()> {
        self.send_head(status, headers, "application/json")?;
        write!(self.writer, "content-length: {}\r\n\r\n{body}", body.len())?;
        self.writer.flush()
    }

    /// Sends a stream of events, as far as `cut_after` many.
    pub(super) fn stream(
        &mut self,
        headers: &[(String, String)],
        steps: Vec<StreamStep>,
        cut_after: Option<usize>,
        split: Split,
    ) -> io::Result<Sent> {
        self.send_head(200, headers, "text/event-stream")?;
        self.writer.write_all(b"transfer-encoding: chunked\r\n\r\n")?;
        let mut splitter = Splitter::new(split);
        for (sent, step) in steps.into_iter().enumerate() {
            if cut_after == Some(sent) {
                self.send_chunks(&splitter.rest())?;
                self.close();
                return Ok(Sent::Cut);
            }
            match step {
                StreamStep::Event(event) => self.send_chunks(&splitter.push(event.as_bytes()))?,
                StreamStep::Wait(gate) => {
                    self.send_chunks(&splitter.rest())?;
                    self.writer.flush()?;
                    if !gate.pass(|| self.is_gone()) {
                        return Ok(Sent::Gone);
                    }
                }
            }
        }
        self.send_chunks(&splitter.rest())?;
        self.writer.write_all(b"0\r\n\r\n")?;
        self.writer.flush()?;
        Ok(Sent::Whole)
    }

    /// Sends what is written and closes the connection.
    pub(super) fn close(&mut self) {
        let flushed = self.writer.flush();
        let closed = self.reader.get_ref().shutdown(Shutdown::Both);
        // The other side may have been quicker.
        drop((flushed, closed));
    }

    fn send_head(&mut self, status: u16, headers: &[(String, String)], content_type: &str) -> io::Result<()> {
        write!(self.writer, "HTTP/1.1 {status} Scripted\r\n")?;
        if !headers.iter().any(|(name, _)| name == "content-type") {
            write!(self.writer, "content-type: {content_type}\r\n")?;
        }
        headers.iter().try_for_each(|(name, value)| write!(self.writer, "{name}: {value}\r\n"))
    }

    fn send_chunks(&mut self, chunks: &[Vec<u8>]) -> io::Result<()> {
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            write!(self.writer, "{:x}\r\n", chunk.len())?;
            self.writer.write_all(chunk)?;
            self.writer.write_all(b"\r\n")?;
        }
        Ok(())
    }
}

/// Cuts bytes up, whatever the events they belong to.
struct Splitter {
    split: Split,
    random: u64,
    rest: Vec<u8>,
    next: usize,
}

impl Splitter {
    fn new(split: Split) -> Self {
        let seed = if let Split::Random(seed) = split { seed } else { 0 };
        let mut splitter = Self { split, random: seed, rest: Vec::new(), next: 0 };
        splitter.next = splitter.choose();
        splitter
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        if self.split == Split::Events {
            return vec![bytes.to_vec()];
        }
        self.rest.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        while self.rest.len() >= self.next {
            pieces.push(self.rest.drain(..self.next).collect());
            self.next = self.choose();
        }
        pieces
    }

    fn rest(&mut self) -> Vec<Vec<u8>> {
        vec![std::mem::take(&mut self.rest)]
    }

    fn choose(&mut self) -> usize {
        match self.split {
            Split::Events => 1,
            Split::Bytes(size) => size.max(1),
            Split::Random(_) => {
                // Any sequence that looks irregular will do.
                self.random =
                    self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                1 + (self.random >> 33) as usize % 40
            }
        }
    }
}
