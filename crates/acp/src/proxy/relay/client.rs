//! What the client says: to the inner agent, or to Retake.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{PendingKind, PendingRequest};
use crate::extension::methods::Method;
use crate::proxy::Proxy;
use crate::proxy::change::CLOSED;
use crate::proxy::json_edit::JsonEdits;
use crate::proxy::session::ProxiedSession;
use crate::wire::Message;

impl Proxy {
    /// Takes what the client says. Never waits for anything but the inner agent's pipe.
    pub(in crate::proxy) async fn take_client(self: &Arc<Self>, message: Message, line: Vec<u8>) {
        match &message {
            Message::Response { id, outcome } => {
                if self.client.answered(id, outcome.clone()) {
                    return;
                }
                let Some((session, method)) = self.take_asked(id) else { return self.to_agent(line).await };
                let (id, answer) = (id.clone(), outcome.as_ref().ok().cloned());
                let (tell, noted) = oneshot::channel();
                session.log.run(move |log| {
                    log.answered(&id, answer.as_ref());
                    tell.send(()).ok();
                });
                let proxy = Arc::clone(self);
                // What may run now runs only when that is noted, and nothing else waits for it.
                tokio::spawn(async move {
                    noted.await.ok();
                    if method != CLOSED {
                        proxy.to_agent(line).await;
                    }
                });
            }
            Message::Request { id, method, params } => match (method.as_str(), params["sessionId"].as_str()) {
                ("initialize" | "proxy/initialize", _) => self.initialize(id, method, params, &line).await,
                ("session/new", None) => self.ask(id, PendingKind::New { params: params.clone() }, line).await,
                ("session/list", None) => self.ask(id, PendingKind::List { params: params.clone() }, line).await,
                (_, Some(outer)) => {
                    let outer = outer.to_owned();
                    self.route(&outer, message, line).await;
                }
                (method, None) if Method::parse(method).is_some() => {
                    let error = self.no_session("");
                    self.client.answer(id.clone(), Err(error)).await.ok();
                }
                (_, None) => self.ask(id, PendingKind::Other, line).await,
            },
            Message::Notification { method, params } => match (method.as_str(), params["sessionId"].as_str()) {
                ("$/cancel_request", _) if self.stops_asking(&params["requestId"]) => {}
                ("$/cancel_request", _) => match self.queue_of(&params["requestId"]) {
                    Some(session) => self.put(&session, message, line).await,
                    None => self.to_agent(line).await,
                },
                (_, Some(outer)) => {
                    let outer = outer.to_owned();
                    self.route(&outer, message, line).await;
                }
                (_, None) => self.to_agent(line).await,
            },
        }
    }

    /// Stops what a command asks in the chat; whether the request was one.
    fn stops_asking(&self, request: &Value) -> bool {
        let sessions: Vec<_> = self.state().sessions.values().cloned().collect();
        sessions.iter().any(|session| session.chat.stop_request(request))
    }

    /// The session in which a request of the client waits for its turn.
    fn queue_of(&self, request: &Value) -> Option<Arc<ProxiedSession>> {
        self.state().sessions.values().find(|session| session.is_queued(request)).cloned()
    }

    /// Takes what the client says in a session, one after the other.
    pub(in crate::proxy) async fn take_in_session(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        message: Message,
        line: Vec<u8>,
    ) {
        match message {
            Message::Request { id, method, params } => match method.as_str() {
                "session/prompt" => self.prompt(session, id, &params, &line).await,
                "session/load" | "session/resume" => self.load(id, &method, params, line).await,
                "session/fork" => {
                    if !session.is_running() {
                        match self.align(session).await {
                            Ok(None) => {}
                            Ok(Some(note)) => self.tell_user(session, &note).await,
                            Err(error) => return drop(self.client.answer(id, Err(error)).await),
                        }
                    }
                    let what = PendingKind::Fork { session: Arc::clone(session), params };
                    self.pass_to_agent(session, &line, Some((id, what))).await;
                }
                "session/close" | "session/delete" => {
                    session.chat.stop_asking();
                    let (over, is_over) = oneshot::channel();
                    let of = Arc::clone(session);
                    let what = match method.as_str() {
                        "session/close" => PendingKind::Close { session: of, over },
                        _ => PendingKind::Delete { session: of, over },
                    };
                    self.pass_to_agent(session, &line, Some((id, what))).await;
                    // What is said behind it is said in a session that is not open, unless the agent does not close it.
                    tokio::time::timeout(self.setup.patience.answer, is_over).await.ok();
                }
                method => {
                    if let Some(method) = Method::parse(method) {
                        return self.extension(session, id, method, params).await;
                    }
                    if method.starts_with("session/set_") {
                        note_setting(session, method, &params);
                    }
                    self.pass_to_agent(session, &line, Some((id, PendingKind::Other))).await;
                }
            },
            Message::Notification { method, .. } => {
                if method == "session/cancel" {
                    session.chat.stop_asking();
                }
                self.pass_to_agent(session, &line, None).await;
            }
            Message::Response { .. } => {}
        }
    }

    /// Passes a line of a session on to the inner agent, which may call that another name.
    pub(in crate::proxy) async fn pass_to_agent(
        &self,
        session: &Arc<ProxiedSession>,
        line: &[u8],
        asked: Option<(Value, PendingKind)>,
    ) {
        let mut edits = JsonEdits::new(line);
        let inner = session.live().inner.clone();
        if inner != session.outer {
            edits.replace(&["params", "sessionId"], &Value::from(inner));
        }
        if let Some((id, what)) = asked {
            self.note_request(&id, what);
        }
        self.to_agent(edits.make()).await;
    }

    pub(in crate::proxy) async fn ask(&self, id: &Value, what: PendingKind, line: Vec<u8>) {
        self.note_request(id, what);
        self.to_agent(line).await;
    }

    pub(in crate::proxy) fn note_request(&self, id: &Value, what: PendingKind) {
        let mut state = self.state();
        // Nobody would answer it, and the session would be held open by it.
        if !state.is_gone {
            state.requests.insert(id.to_string(), PendingRequest { id: id.clone(), what });
        }
    }

    async fn initialize(&self, id: &Value, method: &str, params: &Value, line: &[u8]) {
        let mut edits = JsonEdits::new(line);
        if method != "initialize" {
            edits.replace(&["method"], &Value::from("initialize"));
        }
        self.ask(id, PendingKind::Initialize { params: params.clone() }, edits.make()).await;
    }

    /// The session in which the inner agent has asked this, and what; it waits no more if its turn was stopped.
    fn take_asked(&self, id: &Value) -> Option<(Arc<ProxiedSession>, String)> {
        let sessions: Vec<Arc<ProxiedSession>> = self.state().sessions.values().cloned().collect();
        sessions.into_iter().find_map(|session| {
            let mut live = session.live();
            let at = live.asked.iter().position(|(asked, _)| asked == id)?;
            let (_, method) = live.asked.remove(at);
            drop(live);
            Some((session, method))
        })
    }
}

/// Remembers what the client sets, for the inner session that may take this one's place.
fn note_setting(session: &ProxiedSession, method: &str, params: &Value) {
    let about = format!("{method} {}", params["configId"]);
    let mut live = session.live();
    live.settings.retain(|(known, ..)| *known != about);
    live.settings.push((about, method.to_owned(), params.clone()));
}
