//! Lines of both sides, in order: what is of interest is noted, what has to be another is changed, everything else passes as it came.

use std::sync::Arc;
use std::time::Duration;

use retake_engine::session::entry::EndReason;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::change::{CLOSED, PERMISSION, cancelled};
use super::edit::{Edits, put};
use super::scribe::Voice;
use super::session::Session;
use super::shape::{self, Version};
use super::{Proxy, extension, slash};
use crate::wire::{Message, RpcError};

/// How long the end of a turn is held back at most.
const MAX_SETTLING: Duration = Duration::from_secs(1);

/// A request of the client that the inner agent is to answer.
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) what: What,
}

/// What was asked for, as far as the answer is of interest.
pub(super) enum What {
    Initialize,
    New {
        params: Value,
    },
    Fork {
        session: Arc<Session>,
        params: Value,
    },
    Import {
        session: Arc<Session>,
        /// Goes when it is over.
        over: oneshot::Sender<()>,
    },
    Prompt {
        session: Arc<Session>,
    },
    /// A prompt in another one's place.
    Edited {
        session: Arc<Session>,
    },
    List {
        params: Value,
    },
    Close {
        session: Arc<Session>,
    },
    Delete {
        session: Arc<Session>,
    },
    Other,
}

/// What becomes of an update.
enum Verdict {
    Pass,
    /// With the message's id, which is new if there was none.
    Named(String),
    /// With our commands beside the agent's.
    Commands,
    /// Once the last snapshot of the turn is taken.
    Ended(oneshot::Receiver<()>),
    Drop,
}

impl Proxy {
    /// Takes what the client says. Never waits for anything but the inner agent's pipe.
    pub(super) async fn take_client(self: &Arc<Self>, message: Message, line: Vec<u8>) {
        match &message {
            Message::Response { id, outcome } => {
                if self.client.answered(id, outcome.clone()) {
                    return;
                }
                let Some((session, method)) = self.take_asked(id) else { return self.to_agent(line).await };
                let (id, answer) = (id.clone(), outcome.as_ref().ok().cloned());
                let (tell, noted) = oneshot::channel();
                session.desk.run(move |scribe| {
                    scribe.answered(&id, answer.as_ref());
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
                ("session/new", None) => self.ask(id, What::New { params: params.clone() }, line).await,
                ("session/list", None) => self.ask(id, What::List { params: params.clone() }, line).await,
                (_, Some(outer)) => {
                    let outer = outer.to_owned();
                    self.route(&outer, message, line).await;
                }
                (method, None) if extension::is_one(method) => {
                    let error = self.no_session("");
                    self.client.answer(id.clone(), Err(error)).await.ok();
                }
                (_, None) => self.ask(id, What::Other, line).await,
            },
            Message::Notification { method, params } => match (method.as_str(), params["sessionId"].as_str()) {
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

    /// The session in which a request of the client waits for its turn.
    fn queue_of(&self, request: &Value) -> Option<Arc<Session>> {
        self.state().sessions.values().find(|session| session.is_queued(request)).cloned()
    }

    /// Takes what the client says in a session, one after the other.
    pub(super) async fn take_in_session(self: &Arc<Self>, session: &Arc<Session>, message: Message, line: Vec<u8>) {
        match message {
            Message::Request { id, method, params } => match method.as_str() {
                "session/prompt" => self.prompt(session, id, &params, &line).await,
                "session/load" | "session/resume" => self.load(id, &method, params, line).await,
                "session/fork" => {
                    if !session.is_running()
                        && let Err(error) = self.align(session).await
                    {
                        return drop(self.client.answer(id, Err(error)).await);
                    }
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
    pub(super) async fn pass_to_agent(&self, session: &Arc<Session>, line: &[u8], asked: Option<(Value, What)>) {
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

    pub(super) async fn ask(&self, id: &Value, what: What, line: Vec<u8>) {
        self.note_request(id, what);
        self.to_agent(line).await;
    }

    pub(super) fn note_request(&self, id: &Value, what: What) {
        let mut state = self.state();
        // Nobody would answer it, and the session would be held open by it.
        if !state.is_gone {
            state.requests.insert(id.to_string(), Asked { id: id.clone(), what });
        }
    }

    pub(super) async fn to_agent(&self, line: Vec<u8>) {
        // If it is gone, everybody will be told.
        self.agent.writer().send_line(line).await.ok();
    }

    pub(super) async fn to_client(&self, line: Vec<u8>) {
        self.client.writer().send_line(line).await.ok();
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

    /// The session in which the inner agent has asked this, and what; it waits no more if its turn was stopped.
    fn take_asked(&self, id: &Value) -> Option<(Arc<Session>, String)> {
        let sessions: Vec<Arc<Session>> = self.state().sessions.values().cloned().collect();
        sessions.into_iter().find_map(|session| {
            let mut live = session.live();
            let at = live.asked.iter().position(|(asked, _)| asked == id)?;
            let (_, method) = live.asked.remove(at);
            drop(live);
            Some((session, method))
        })
    }

    /// Passes on what the inner agent says. Whoever calls this holds `order`.
    pub(super) async fn pass_to_client(self: &Arc<Self>, message: Message, line: Vec<u8>) {
        match &message {
            Message::Response { id, outcome } => {
                if !self.agent.answered(id, outcome.clone()) {
                    self.pass_answer(id, outcome, line).await;
                }
            }
            Message::Request { method, params, .. } | Message::Notification { method, params } => {
                let Some(inner) = params["sessionId"].as_str() else { return self.to_client(line).await };
                let session = {
                    let mut state = self.state();
                    let session = state.inners.get(inner).cloned();
                    let waits = |stray: &(Message, Vec<u8>)| named(&stray.0) == Some(inner);
                    // One without a log is known as well as it will ever be.
                    let is_unknown = session.is_none() && !state.unkept.contains_key(inner);
                    if state.expected > 0 && (is_unknown || state.strays.iter().any(waits)) {
                        state.hold_back(message, line);
                        return;
                    }
                    session
                };
                let Some(session) = session else { return self.to_client(line).await };
                if session.live().inner != inner && method != "session/update" {
                    // One that only keeps a point asks nothing of the client.
                    if let Message::Request { id, .. } = &message {
                        self.agent.answer(id.clone(), Err(RpcError::method_not_found(method))).await.ok();
                    }
                    return;
                }
                let mut edits = Edits::new(&line);
                if session.outer != inner {
                    edits.replace(&["params", "sessionId"], &Value::from(session.outer.as_str()));
                }
                if method == "session/update" {
                    match self.note_update(&session, inner, &params["update"]) {
                        Verdict::Drop => return,
                        Verdict::Pass => {}
                        Verdict::Ended(settled) => self.settle(settled).await,
                        Verdict::Named(id) if params["update"]["messageId"] == id => {}
                        Verdict::Named(id) => edits.set(&["params", "update"], "messageId", &Value::from(id)),
                        Verdict::Commands => {
                            let ours: Vec<String> =
                                slash::commands(self.state().version).iter().map(Value::to_string).collect();
                            edits.append(&["params", "update", "availableCommands"], &ours.join(","));
                        }
                    }
                } else if let Message::Request { id, method, .. } = &message
                    && method == PERMISSION
                    && session.live().is_stopping
                {
                    self.agent.answer(id.clone(), cancelled(method)).await.ok();
                    return;
                } else {
                    note_request(&session, &message);
                }
                self.to_client(edits.make()).await;
                session.desk.keep_up().await;
            }
        }
    }

    /// Notes what the inner agent says in a session.
    fn note_update(&self, session: &Arc<Session>, inner: &str, update: &Value) -> Verdict {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let voice = match kind {
            "user_message_chunk" | "user_message" => Some(Voice::User),
            "agent_message_chunk" | "agent_message" => Some(Voice::Agent),
            "agent_thought_chunk" | "agent_thought" => Some(Voice::Thought),
            _ => None,
        };
        let is_call = matches!(kind, "tool_call" | "tool_call_update" | "tool_call_content_chunk");
        let mut live = session.live();
        if let Some(replay) = &mut live.replay {
            if let (Some(voice), Some(id)) = (voice, update["messageId"].as_str()) {
                replay.push((voice, id.to_owned()));
            }
            if voice.is_some() || is_call || kind == "state_update" {
                return Verdict::Drop;
            }
        }
        if live.inner != inner || live.is_muted && (voice.is_some() || is_call) {
            return Verdict::Drop;
        }
        match (voice, kind) {
            (Some(voice), _) => {
                let id = update["messageId"].as_str();
                let is_echo = voice == Voice::User && !live.is_importing && *session.running.borrow();
                let named = if is_echo { live.name_prompt(id) } else { Some(live.name(voice, id)) };
                let Some(named) = named else { return Verdict::Pass };
                drop(live);
                session.tie_soon(named.tie);
                if !is_echo {
                    let (entry, whole) = (named.entry, !kind.ends_with("_chunk"));
                    let content = match &update["content"] {
                        Value::Array(blocks) => shape::parts(blocks),
                        Value::Null => Vec::new(),
                        block => shape::parts(std::slice::from_ref(block)),
                    };
                    session.desk.run(move |scribe| match whole {
                        true => scribe.say_whole(entry, voice, content),
                        false => scribe.say(entry, voice, content),
                    });
                }
                Verdict::Named(named.outer)
            }
            (None, _) if is_call => {
                live.interrupt_message();
                drop(live);
                let update = update.clone();
                session.desk.run(move |scribe| scribe.call(&update));
                Verdict::Pass
            }
            (None, "available_commands_update") => Verdict::Commands,
            (None, "state_update") => {
                let is_idle = update["state"] == "idle";
                drop(live);
                match is_idle {
                    true => session.rests(reason(update["stopReason"].as_str())).map_or(Verdict::Pass, Verdict::Ended),
                    false => Verdict::Pass,
                }
            }
            (None, _) => Verdict::Pass,
        }
    }

    /// Passes an answer to a request of the client's on.
    async fn pass_answer(self: &Arc<Self>, id: &Value, outcome: &Result<Value, RpcError>, line: Vec<u8>) {
        let asked = self.state().requests.remove(&id.to_string());
        let Some(asked) = asked else { return self.to_client(line).await };
        match (asked.what, outcome) {
            (What::Initialize, Ok(result)) => self.to_client(self.initialized(result, &line)).await,
            (What::New { params }, Ok(result)) => self.begun(params, result.clone(), line).await,
            (What::Fork { session, params }, Ok(result)) => {
                self.forked(&session, params, result.clone(), line).await;
            }
            (What::Import { session, over }, outcome) => {
                self.imported(&session, outcome.as_ref().ok());
                self.to_client(line).await;
                drop(over);
            }
            (What::Prompt { session }, outcome) => {
                let line = self.prompt_answered(&session, outcome, line).await;
                self.to_client(line).await;
            }
            (What::Edited { session }, outcome) => {
                let line = self.prompt_answered(&session, outcome, line).await;
                let (prompt, version) = (session.live().prompt, self.state().version);
                let line = match (version, prompt, outcome) {
                    (Version::V1, Some(prompt), Ok(_)) => {
                        let id = json!({ "messageId": session.known().outer(prompt) });
                        put(&line, &["result", "_meta", "retake"], &id)
                    }
                    _ => line,
                };
                self.to_client(line).await;
            }
            (What::List { params }, Ok(result)) => {
                // Many files may have to be read for it.
                let (proxy, result) = (Arc::clone(self), result.clone());
                tokio::spawn(async move {
                    let reader = Arc::clone(&proxy);
                    let listed = tokio::task::spawn_blocking(move || reader.listed(&params, &result, line)).await;
                    proxy.to_client(listed.unwrap_or_default()).await;
                });
            }
            (What::Close { session } | What::Delete { session }, Err(_)) => {
                drop(session);
                self.to_client(line).await;
            }
            (What::Close { session }, Ok(_)) => {
                self.forget(&session);
                self.to_client(line).await;
            }
            (What::Delete { session }, Ok(_)) => {
                self.forget(&session);
                self.delete_points(&session);
                let (proxy, erased) = (Arc::clone(self), self.erase(&session));
                tokio::spawn(async move {
                    // Whoever is told that it is deleted does not find it any more.
                    erased.await.ok();
                    proxy.to_client(line).await;
                });
            }
            (_, _) => self.to_client(line).await,
        }
    }

    /// Waits for the last snapshot of a turn, but not for long: whoever is told that it has ended may change files.
    pub(super) async fn settle(&self, settled: oneshot::Receiver<()>) {
        let patience = self.setup.patience.snapshot.min(MAX_SETTLING);
        tokio::time::timeout(patience, settled).await.ok();
    }

    /// The inner agent has said what it can do: we can do more.
    fn initialized(&self, result: &Value, line: &[u8]) -> Vec<u8> {
        let version = if result["protocolVersion"] == 2 { Version::V2 } else { Version::V1 };
        self.state().version = version;
        let capabilities = match version {
            Version::V1 => &result["agentCapabilities"]["sessionCapabilities"],
            Version::V2 => &result["capabilities"]["session"],
        };
        let loads = result["agentCapabilities"]["loadSession"] == true;
        let resumes = version == Version::V2 || capabilities["resume"].is_object();
        self.state().resumes_only = !loads && resumes;
        {
            let mut offer = self.offers();
            offer.load = loads || resumes;
            offer.fork = capabilities["fork"].is_object();
        }
        let place: &[&str] = match version {
            Version::V1 => &["result", "agentCapabilities", "_meta", "retake"],
            Version::V2 => &["result", "capabilities", "session", "_meta", "retake"],
        };
        let line = put(line, place, &shape::capability());
        // A session is loaded from our log, whatever the inner agent can.
        match version {
            Version::V1 if !loads => put(&line, &["result", "agentCapabilities", "loadSession"], &true.into()),
            _ => line,
        }
    }

    /// Forgets a session that was closed.
    pub(super) fn forget(&self, session: &Arc<Session>) {
        session.leave_turn();
        let mut state = self.state();
        state.sessions.remove(&session.outer);
        state.served.remove(&session.outer);
        state.inners.retain(|_, one| !Arc::ptr_eq(one, session));
    }
}

/// The session that a message is about.
fn named(message: &Message) -> Option<&str> {
    match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params["sessionId"].as_str(),
        Message::Response { .. } => None,
    }
}

/// Remembers what the client sets, for the inner session that may take this one's place.
fn note_setting(session: &Session, method: &str, params: &Value) {
    let about = format!("{method} {}", params["configId"]);
    let mut live = session.live();
    live.settings.retain(|(known, ..)| *known != about);
    live.settings.push((about, method.to_owned(), params.clone()));
}

/// Notes what the inner agent asks the client.
fn note_request(session: &Arc<Session>, message: &Message) {
    let Message::Request { id, method, params } = message else { return };
    session.live().asked.push((id.clone(), method.clone()));
    let (id, method, params) = (id.clone(), method.clone(), params.clone());
    session.desk.run(move |scribe| scribe.asked(&id, &method, &params));
}

/// Why a turn ended.
pub(super) fn reason(stop: Option<&str>) -> EndReason {
    match stop {
        Some("cancelled") => EndReason::Interrupted,
        _ => EndReason::Done,
    }
}
