//! A client that watches a session: server-sent events, folded into what it shows.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use retake_agent::contract::{Event, EventKind, Question, TurnEnd};
use retake_agent::view::View;
use retake_engine::session::entry::Part;
use serde_json::Value;

use crate::browser::{Browser, read_head};

/// One event of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub event: String,
    pub id: Option<u64>,
    pub data: String,
}

impl Frame {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

pub struct Watcher {
    reader: BufReader<Chunked>,
    pub view: View,
    /// The last event when the stream began.
    pub now: u64,
    /// Empty events that came: signs of life.
    pub heartbeats: usize,
}

/// What comes in a stream.
enum Came {
    Frame(Frame),
    Heartbeat,
}

impl Watcher {
    /// Begins to watch, with everything.
    pub fn of(browser: &Browser, session: &str) -> Self {
        let mut watcher = Self::open(browser, session, &[], "").unwrap_or_else(|status| panic!("refused: {status}"));
        let frame = watcher.frame().expect("it begins with a view");
        assert_eq!(frame.event, "view", "{frame:?}");
        watcher.take(&frame);
        watcher
    }

    /// Begins to watch after event number `seen`.
    pub fn back(browser: &Browser, session: &str, view: View) -> Self {
        let seen = view.seq.to_string();
        let mut watcher = Self::open(browser, session, &[("Last-Event-ID", &seen)], "").unwrap();
        watcher.view = view;
        watcher
    }

    /// Opens a stream; the status if it is refused.
    pub fn open(browser: &Browser, session: &str, with: &[(&str, &str)], query: &str) -> Result<Self, u16> {
        let path = format!("/api/sessions/{session}/events{query}");
        let mut stream = browser.connect();
        stream.write_all(browser.head("GET", &path, &[], with).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader);
        if head.status != 200 {
            return Err(head.status);
        }
        assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
        assert_eq!(head.header("cache-control"), Some("no-store"), "{head:?}");
        let now = head.header("x-retake-seq").and_then(|seq| seq.parse().ok()).expect("it tells where it is");
        let reader = BufReader::new(Chunked { inner: reader, left: 0 });
        Ok(Self { reader, view: View::default(), now, heartbeats: 0 })
    }

    /// Shows what comes until there were so many signs of life.
    pub fn until_heartbeats(&mut self, count: usize) {
        while self.heartbeats < count {
            if let Came::Frame(frame) = self.next().expect("the stream goes on") {
                self.take(&frame);
            }
        }
    }

    /// The next event; `None` at the end of the stream.
    pub fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Came::Frame(frame) = self.next()? {
                return Some(frame);
            }
        }
    }

    fn next(&mut self) -> Option<Came> {
        let mut frame = Frame { event: String::new(), id: None, data: String::new() };
        loop {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                Ok(1..) => {}
                Ok(0) => return None,
                Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => return None,
                Err(err) if err.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(err) => panic!("nothing came: {err}; shown: {:#?}", self.view),
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", event)) => frame.event = event.to_owned(),
                Some(("id", id)) => frame.id = Some(id.parse().unwrap()),
                Some(("data", data)) => frame.data = data.to_owned(),
                Some(("retry", wait)) => assert_eq!(wait, "1000"),
                None if line == ":\n" => {
                    self.heartbeats += 1;
                    return Some(Came::Heartbeat);
                }
                None if line == "\n" && !frame.event.is_empty() => return Some(Came::Frame(frame)),
                None if line == "\n" => {}
                _ => panic!("no event: {line:?}"),
            }
        }
    }

    /// Shows what came.
    pub fn take(&mut self, frame: &Frame) -> Option<EventKind> {
        match frame.event.as_str() {
            "view" => {
                self.view = serde_json::from_str(&frame.data).unwrap();
                assert_eq!(frame.id, Some(self.view.seq));
                None
            }
            "event" => {
                let event: Event = serde_json::from_str(&frame.data).unwrap();
                assert_eq!((frame.id, event.seq), (Some(event.seq), self.view.seq + 1), "events follow one another");
                self.view.apply(&event);
                Some(event.kind)
            }
            other => panic!("`{other}` is not expected: {frame:?}"),
        }
    }

    /// Shows what comes until something wanted does.
    pub fn until(&mut self, mut wanted: impl FnMut(&EventKind) -> bool) -> EventKind {
        loop {
            let frame = self.frame().expect("the stream goes on");
            if let Some(kind) = self.take(&frame).filter(|kind| wanted(kind)) {
                return kind;
            }
        }
    }

    pub fn until_ended(&mut self) -> TurnEnd {
        match self.until(|kind| matches!(kind, EventKind::TurnEnded { .. })) {
            EventKind::TurnEnded { reason, .. } => reason,
            _ => unreachable!(),
        }
    }

    pub fn until_asked(&mut self) -> Question {
        match self.until(|kind| matches!(kind, EventKind::PermissionAsked { .. })) {
            EventKind::PermissionAsked { question } => question,
            _ => unreachable!(),
        }
    }

    /// Shows what comes until somebody is about to say `text`.
    pub fn until_draft(&mut self, text: &str) {
        self.until(|kind| matches!(kind, EventKind::DraftChanged { parts } if *parts == [Part::text(text)]));
    }

    /// Shows what comes until event number `seq`.
    pub fn until_seq(&mut self, seq: u64) {
        while self.view.seq < seq {
            let frame = self.frame().expect("the stream goes on");
            self.take(&frame);
        }
    }

    pub fn texts(&self) -> Vec<String> {
        let conversation = self.view.conversation();
        conversation.prompts().map(|(_, parts)| retake_engine::session::first_line(parts)).collect()
    }
}

/// A body that comes in chunks.
struct Chunked {
    inner: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            if self.inner.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.left = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let count = self.inner.read(&mut buffer[..most])?;
        self.left -= count;
        if self.left == 0 {
            self.inner.read_line(&mut String::new())?;
        }
        Ok(count)
    }
}
