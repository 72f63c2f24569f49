//! What the client says: to the inner agent, or to Retake.

use std::sync::Arc;

use serde_json::Value;

use super::{Asked, What};
use crate::proxy::edit::Edits;
use crate::proxy::session::Session;
use crate::proxy::{Proxy, extension};
use crate::wire::{Message, RpcError};

impl Proxy {
    /// Takes what the client says. Never waits for anything but the inner agent's pipe.
    pub(in crate::proxy) async fn take_client(self: &Arc<Self>, message: Message, line: Vec<u8>) {
        match &message {
            Message::Response { id, outcome } => {
                if self.client.answered(id, outcome.clone()) || !self.is_open(id) {
                    return;
                }
                self.to_agent(line).await;
            }
            Message::Request { id, method, params } => {
                let named = params["sessionId"].as_str();
                let session = named.and_then(|outer| self.state().sessions.get(outer).cloned());
                match (method.as_str(), session) {
                    ("initialize" | "proxy/initialize", _) => self.initialize(id, method, params, &line).await,
                    ("session/load" | "session/resume", _) => {
                        let (proxy, method, params, id) =
                            (Arc::clone(self), method.clone(), params.clone(), id.clone());
                        tokio::spawn(async move { proxy.load(id, &method, params, line).await });
                    }
                    (_, Some(session)) => session.queue(message, line),
                    (method, None) if extension::is_one(method) => {
                        let error = self.no_session(named.unwrap_or_default());
                        self.client.answer(id.clone(), Err(error)).await.ok();
                    }
                    ("session/new", None) => self.ask(id, What::New { params: params.clone() }, line).await,
                    ("session/list", None) => self.ask(id, What::List { params: params.clone() }, line).await,
                    (_, None) => self.ask(id, What::Other, line).await,
                }
            }
            Message::Notification { method, params } => {
                let session = match method.as_str() {
                    "$/cancel_request" => self.queue_of(&params["requestId"]),
                    _ => params["sessionId"].as_str().and_then(|id| self.state().sessions.get(id).cloned()),
                };
                match session {
                    Some(session) => session.queue(message, line),
                    None => self.to_agent(line).await,
                }
            }
        }
    }

    /// The session in which a request of the client waits for its turn.
    fn queue_of(&self, request: &Value) -> Option<Arc<Session>> {
        self.state().sessions.values().find(|session| session.is_queued(request)).cloned()
    }

    /// Takes what the client says in a session, one after the other.
    pub(in crate::proxy) async fn take_in_session(
        self: &Arc<Self>,
        session: &Arc<Session>,
        message: Message,
        line: Vec<u8>,
    ) {
        match message {
            Message::Request { id, method, params } => match method.as_str() {
                "session/prompt" => self.prompt(session, id, &params, &line).await,
                "session/fork" => {
                    let what = What::Fork { session: Arc::clone(session), params };
                    self.pass_to_agent(session, &line, Some((id, what))).await;
                }
                "session/close" => {
                    let what = What::Close { session: Arc::clone(session) };
                    self.pass_to_agent(session, &line, Some((id, what))).await;
                }
                "session/delete" => {
                    let what = What::Delete { session: Arc::clone(session) };
                    self.pass_to_agent(session, &line, Some((id, what))).await;
                }
                method if extension::is_one(method) => self.extension(session, id, method, &params).await,
                method => {
                    if method.starts_with("session/set_") {
                        note_setting(session, method, &params);
                    }
                    self.pass_to_agent(session, &line, Some((id, What::Other))).await;
                }
            },
            Message::Notification { .. } => self.pass_to_agent(session, &line, None).await,
            Message::Response { .. } => {}
        }
    }

    /// Passes a line of a session on to the inner agent, which may call that another name.
    async fn pass_to_agent(&self, session: &Arc<Session>, line: &[u8], asked: Option<(Value, What)>) {
        let mut edits = Edits::new(line);
        let inner = session.live().inner.clone();
        if inner != session.outer {
            edits.replace(&["params", "sessionId"], &Value::from(inner));
        }
        if let Some((id, what)) = asked {
            self.note_request(&id, what);
        }
        self.to_agent(edits.make()).await;
    }

    async fn ask(&self, id: &Value, what: What, line: Vec<u8>) {
        self.note_request(id, what);
        self.to_agent(line).await;
    }

    pub(in crate::proxy) fn note_request(&self, id: &Value, what: What) {
        self.state().requests.insert(id.to_string(), Asked { id: id.clone(), what });
    }

    async fn initialize(&self, id: &Value, method: &str, params: &Value, line: &[u8]) {
        let capabilities = match params["protocolVersion"].as_u64() {
            Some(2) => &params["capabilities"],
            _ => &params["clientCapabilities"],
        };
        self.state().wants = capabilities["_meta"]["retake"].is_object();
        let mut edits = Edits::new(line);
        if method != "initialize" {
            edits.replace(&["method"], &Value::from("initialize"));
        }
        self.ask(id, What::Initialize, edits.make()).await;
    }

    /// Whether the inner agent still waits for this answer; it does not if its turn was stopped.
    fn is_open(&self, id: &Value) -> bool {
        let sessions: Vec<Arc<Session>> = self.state().sessions.values().cloned().collect();
        for session in sessions {
            let mut live = session.live();
            if let Some(at) = live.asked.iter().position(|(asked, _)| asked == id) {
                return live.asked.remove(at).1 != "cancelled";
            }
        }
        true
    }

    pub(in crate::proxy) fn no_session(&self, outer: &str) -> RpcError {
        let why = self.state().unkept.get(outer).cloned();
        let message = match why {
            Some(why) => format!("this session cannot be rewound: {why}"),
            None => format!("there is no session `{outer}`"),
        };
        RpcError::new(RpcError::NOT_FOUND, message).with("sessionId", outer)
    }
}

/// Remembers what the client sets, for the inner session that may take this one's place.
fn note_setting(session: &Session, method: &str, params: &Value) {
    let about = format!("{method} {}", params["configId"]);
    let mut live = session.live();
    live.settings.retain(|(known, ..)| *known != about);
    live.settings.push((about, method.to_owned(), params.clone()));
}
