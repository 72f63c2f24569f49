//! A browser, as far as a server can tell: requests over TCP, byte by byte as the test wants them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage};

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }

    /// What a program is told of something that could not be done.
    pub fn error(&self) -> String {
        let document = self.json();
        let message = document["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {self:?}"));
        format!("{} {message}", self.status)
    }
}

/// One that is signed in, if it has a cookie.
#[derive(Clone, Debug)]
pub struct Browser {
    pub address: SocketAddr,
    pub cookie: Option<String>,
}

impl Browser {
    pub fn stranger(stage: &Stage) -> Self {
        Self { address: stage.address(), cookie: None }
    }

    pub fn signed_in(stage: &Stage) -> Self {
        let mut browser = Self::stranger(stage);
        let url = stage.url();
        let answer = browser.get(&url[url.find("/?").unwrap()..]);
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
        browser.cookie = Some(cookie.to_owned());
        browser
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The headers of its own page, without `without` and with `with`.
    pub fn head(&self, method: &str, path: &str, without: &[&str], with: &[(&str, &str)]) -> String {
        let address = self.address.to_string();
        let mut headers = vec![("Host", address.clone()), ("Sec-Fetch-Site", "same-origin".to_owned())];
        if method != "GET" {
            headers.push(("Origin", format!("http://{address}")));
            headers.push(("X-Retake", "1".to_owned()));
            headers.push(("Content-Type", "application/json".to_owned()));
        }
        headers.extend(self.cookie.clone().map(|cookie| ("Cookie", cookie)));
        headers.retain(|(name, _)| !without.contains(name));
        headers.extend(with.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} {path} HTTP/1.1\r\n{headers}\r\n")
    }

    /// Sends something, and reads the answer.
    pub fn send(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        read(&mut BufReader::new(stream))
    }

    /// A request with other headers than usual.
    pub fn ask(&self, method: &str, path: &str, without: &[&str], with: &[(&str, &str)]) -> Answer {
        let with = [with, &[("Content-Length", "0")]].concat();
        self.send(self.head(method, path, without, &with).as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(self.head("GET", path, &["Sec-Fetch-Site"], &[]).as_bytes())
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], &[])
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        let head = self.head("POST", path, &[], &[("Content-Length", &body.len().to_string())]);
        self.send(format!("{head}{body}").as_bytes())
    }

    /// A new session.
    pub fn begin(&self) -> String {
        let answer = self.post("/api/sessions", "");
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["session"].as_str().unwrap().to_owned()
    }

    /// Has a command carried out; gives the contract's response.
    pub fn command(&self, session: &str, id: &str, command: &Value) -> Value {
        let answer =
            self.post(&format!("/api/sessions/{session}/commands"), &json!({"id": id, "command": command}).to_string());
        assert_eq!((answer.status, answer.json()["id"].as_str()), (200, Some(id)), "{answer:?}");
        answer.json()
    }

    /// Has a command carried out that is not refused.
    pub fn done(&self, session: &str, command: &Value) -> Value {
        let answer = self.command(session, "some-request", command);
        assert_eq!(answer["refused"], Value::Null, "{answer:#}");
        answer["ok"].clone()
    }

    pub fn say(&self, session: &str, text: &str) -> String {
        let said = self.done(session, &json!({"type": "prompt", "parts": [{"type": "text", "text": text}]}));
        said["prompt"].as_str().unwrap_or_else(|| panic!("not said: {said}")).to_owned()
    }

    /// Whether the session still does what it is told.
    pub fn works(&self, session: &str) {
        assert_eq!(self.done(session, &json!({"type": "ping"})), json!({"type": "done"}));
    }
}

/// The head of an answer: its status and headers.
pub fn read_head(reader: &mut impl BufRead) -> Answer {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {line:?}")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    Answer { status, headers, body: String::new() }
}

/// A whole answer.
pub fn read(reader: &mut impl BufRead) -> Answer {
    let mut answer = read_head(reader);
    let length = answer.header("content-length").unwrap_or("0").parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    answer.body = String::from_utf8(body).unwrap();
    answer
}
