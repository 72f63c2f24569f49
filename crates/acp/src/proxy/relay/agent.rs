//! What the inner agent says: updates, questions and answers, on their way to the client.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{PendingKind, reason};
use crate::proxy::change::{PERMISSION, cancelled};
use crate::proxy::json_edit::{JsonEdits, put};
use crate::proxy::log_writer::Voice;
use crate::proxy::message_ids::Named;
use crate::proxy::session::ProxiedSession;
use crate::proxy::session_map::MapRecord;
use crate::proxy::shape::{self, Version};
use crate::proxy::{Early, Proxy};
use crate::wire::{Message, RpcError};

/// What becomes of an update.
enum UpdateFate {
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
    /// Passes on what the inner agent says. Whoever calls this holds `order`.
    pub(in crate::proxy) async fn pass_to_client(self: &Arc<Self>, message: Message, line: Vec<u8>) {
        match &message {
            Message::Response { id, outcome } => {
                if !self.agent.answered(id, outcome.clone()) {
                    self.pass_answer(id, outcome, line).await;
                }
            }
            Message::Request { method, params, .. } | Message::Notification { method, params } => {
                let Some(inner) = params["sessionId"].as_str() else { return self.to_client(line).await };
                let (session, early) = {
                    let mut state = self.state();
                    let waits = |stray: &(Message, Vec<u8>)| named(&stray.0) == Some(inner);
                    let (session, early) = (state.inners.get(inner).cloned(), state.asked_early(&message, inner));
                    let is_late = session.is_some() && state.strays.iter().any(waits);
                    if is_late || state.is_stray(&message) {
                        state.hold_back(message, line);
                        return;
                    }
                    (session, early)
                };
                let (session, is_early) = match (session, early) {
                    (_, Early::In(session)) => (Some(session), true),
                    (_, Early::InNone) => {
                        // A point asks nothing of the client, and what there are more of cannot be told apart.
                        return self.refuse_question(&message).await;
                    }
                    (session, Early::No) => (session, false),
                };
                let Some(session) = session else {
                    self.state().note_early(inner, &params["update"]);
                    return self.to_client(line).await;
                };
                if session.live().inner != inner && method != "session/update" && !is_early {
                    // One that only keeps a point asks nothing of the client.
                    return self.refuse_question(&message).await;
                }
                let mut edits = JsonEdits::new(&line);
                if session.outer != inner {
                    edits.replace(&["params", "sessionId"], &Value::from(session.outer.as_str()));
                }
                if method == "session/update" {
                    match self.note_update(&session, inner, &params["update"]) {
                        UpdateFate::Drop => return,
                        UpdateFate::Pass => {}
                        UpdateFate::Ended(settled) => self.settle(settled).await,
                        UpdateFate::Named(id) if params["update"]["messageId"] == id => {}
                        UpdateFate::Named(id) => edits.set(&["params", "update"], "messageId", &Value::from(id)),
                        UpdateFate::Commands => {
                            let ours = session.chat.commands(self.state().version);
                            let ours: Vec<String> = ours.iter().map(Value::to_string).collect();
                            edits.append(&["params", "update", "availableCommands"], &ours.join(","));
                        }
                    }
                } else if let Message::Request { id, method, .. } = &message
                    && method == PERMISSION
                    && session.live().is_stopping
                {
                    self.agent.answer(id.clone(), cancelled(method)).await.ok();
                    return;
                } else if let Some(captured) = note_request(&session, &message) {
                    self.settle(captured).await;
                }
                self.to_client(edits.make()).await;
                session.log.keep_up().await;
            }
        }
    }

    /// Answers what the inner agent asks and the client is not to be asked.
    async fn refuse_question(&self, message: &Message) {
        if let Message::Request { id, method, .. } = message {
            self.agent.answer(id.clone(), Err(RpcError::method_not_found(method))).await.ok();
        }
    }

    /// Notes what the inner agent says in a session.
    fn note_update(&self, session: &Arc<ProxiedSession>, inner: &str, update: &Value) -> UpdateFate {
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
            if voice.is_some() || is_call {
                replay.take(voice, update);
            }
            if voice.is_some() || is_call || kind == "state_update" {
                return UpdateFate::Drop;
            }
        }
        if live.inner != inner || live.is_muted && (voice.is_some() || is_call) {
            return UpdateFate::Drop;
        }
        match (voice, kind) {
            (Some(voice), _) => {
                let id = update["messageId"].as_str();
                let is_echo = voice == Voice::User && !live.is_importing && *session.running.borrow();
                let named = if is_echo { live.name_prompt(id) } else { Some(live.name(voice, id)) };
                let Some(mut named) = named else { return UpdateFate::Pass };
                drop(live);
                session.tie_soon(named.record.take());
                if !is_echo {
                    note_said(session, inner, voice, &named, update);
                }
                UpdateFate::Named(named.outer)
            }
            (None, _) if is_call => {
                live.names.interrupt();
                drop(live);
                let update = update.clone();
                session.log.run(move |log| log.call(&update));
                UpdateFate::Pass
            }
            (None, "available_commands_update") => {
                drop(live);
                session.note_commands(&update["availableCommands"]);
                UpdateFate::Commands
            }
            (None, "state_update") => {
                let is_idle = update["state"] == "idle";
                drop(live);
                match is_idle {
                    true => {
                        session.rests(reason(update["stopReason"].as_str())).map_or(UpdateFate::Pass, UpdateFate::Ended)
                    }
                    false => UpdateFate::Pass,
                }
            }
            (None, _) => UpdateFate::Pass,
        }
    }

    /// Passes an answer to a request of the client's on.
    async fn pass_answer(self: &Arc<Self>, id: &Value, outcome: &Result<Value, RpcError>, line: Vec<u8>) {
        let asked = self.state().requests.remove(&id.to_string());
        let Some(asked) = asked else { return self.to_client(line).await };
        match (asked.what, outcome) {
            (PendingKind::Initialize { params }, Ok(result)) => match self.initialized(&params, result, &line) {
                Ok(line) => self.to_client(line).await,
                Err(error) => drop(self.client.answer(asked.id, Err(error)).await),
            },
            (PendingKind::New { params }, Ok(result)) => self.begun(params, result.clone(), line).await,
            (PendingKind::Fork { session, params }, Ok(result)) => {
                self.forked(&session, params, result.clone(), line).await;
            }
            (PendingKind::Import { session, over }, outcome) => {
                self.imported(&session, outcome.as_ref().ok());
                self.to_client(line).await;
                drop(over);
            }
            (PendingKind::Prompt { session }, outcome) => {
                let line = self.prompt_answered(&session, outcome, line).await;
                self.to_client(line).await;
            }
            (PendingKind::List { params }, Ok(result)) => {
                // Many files may have to be read for it.
                let (proxy, result) = (Arc::clone(self), result.clone());
                tokio::spawn(async move {
                    let reader = Arc::clone(&proxy);
                    let listed = tokio::task::spawn_blocking(move || reader.listed(&params, &result, line)).await;
                    proxy.to_client(listed.unwrap_or_default()).await;
                });
            }
            (PendingKind::Close { over, .. } | PendingKind::Delete { over, .. }, Err(_)) => {
                self.to_client(line).await;
                drop(over);
            }
            (PendingKind::Close { session, over }, Ok(_)) => {
                self.forget(&session);
                let (proxy, closed) = (Arc::clone(self), session.close());
                tokio::spawn(async move {
                    // Whoever is told that it is closed can load it.
                    closed.await.ok();
                    proxy.to_client(line).await;
                    drop(over);
                });
            }
            (PendingKind::Delete { session, over }, Ok(_)) => {
                self.forget(&session);
                self.delete_points(&session);
                let (proxy, erased) = (Arc::clone(self), self.erase(&session));
                tokio::spawn(async move {
                    // Whoever is told that it is deleted does not find it any more.
                    erased.await.ok();
                    proxy.to_client(line).await;
                    drop(over);
                });
            }
            (_, _) => self.to_client(line).await,
        }
    }

    /// The inner agent has said what it can do: we can do more. A client that has not greeted in the agent's version as well would not
    /// understand the answer, and is told why.
    fn initialized(&self, asked: &Value, result: &Value, line: &[u8]) -> Result<Vec<u8>, RpcError> {
        let version = if result["protocolVersion"] == 2 { Version::V2 } else { Version::V1 };
        let client = match version {
            Version::V1 => &asked["clientCapabilities"],
            Version::V2 => &asked["capabilities"],
        };
        {
            let mut state = self.state();
            state.version = version;
            state.is_greeted = true;
            state.wants = client["_meta"]["retake"].is_object();
            state.shows_notices = version == Version::V2 || client["session"]["notices"].is_object();
        }
        let requested = asked["protocolVersion"].as_u64().unwrap_or(1);
        if version == Version::V1 && requested > 1 && asked["info"].is_object() && client.is_null() {
            return Err(one_version(&self.name, requested));
        }
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
            offer.close = capabilities["close"].is_object();
            offer.fork = capabilities["fork"].is_object();
            offer.images = match version {
                Version::V1 => result["agentCapabilities"]["promptCapabilities"]["image"] == true,
                Version::V2 => capabilities["prompt"]["image"].is_object(),
            };
        }
        let place: &[&str] = match version {
            Version::V1 => &["result", "agentCapabilities", "_meta", "retake"],
            Version::V2 => &["result", "capabilities", "session", "_meta", "retake"],
        };
        let line = put(line, place, &shape::capability());
        // A session is loaded from our log, whatever the inner agent can.
        Ok(match version {
            Version::V1 if !loads => put(&line, &["result", "agentCapabilities", "loadSession"], &true.into()),
            _ => line,
        })
    }
}

/// The client asks for a version that the agent does not speak.
fn one_version(agent: &str, requested: u64) -> RpcError {
    let text = format!(
        "the agent `{agent}` speaks only version 1 of the protocol, and this client asked for version {requested}; have the client \
         greet it in version 1"
    );
    let error = RpcError::new(RpcError::UNSUPPORTED_VERSION, text).with("requested", requested);
    error.with("supported", json!([1]))
}

/// The session that a message is about.
pub(in crate::proxy) fn named(message: &Message) -> Option<&str> {
    match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params["sessionId"].as_str(),
        Message::Response { .. } => None,
    }
}

/// Has what is said of a message written down.
fn note_said(session: &Arc<ProxiedSession>, inner: &str, voice: Voice, named: &Named, update: &Value) {
    let content = match &update["content"] {
        Value::Array(blocks) => shape::parts(blocks),
        // What is not told stays as it is.
        Value::Null => return,
        block => shape::parts(std::slice::from_ref(block)),
    };
    let is_whole = update["sessionUpdate"].as_str().is_some_and(|kind| !kind.ends_with("_chunk"));
    let (entry, outer, inner) = (named.entry, named.outer.clone(), inner.to_owned());
    let (kept, id) = (Arc::clone(session), update["messageId"].as_str().map(str::to_owned));
    session.log.run(move |log| {
        let piece = match is_whole {
            true => log.say_whole(entry, voice, content),
            false => log.say(entry, voice, content),
        };
        if let Some((entry, how)) = piece {
            kept.record([MapRecord::Message { entry, outer, inner, id }, MapRecord::Piece { entry, how }]);
        }
    });
}

/// Notes what the inner agent asks the client. Tells when what it is about to write is captured: whoever is asked may have it written at
/// once.
fn note_request(session: &Arc<ProxiedSession>, message: &Message) -> Option<oneshot::Receiver<()>> {
    let Message::Request { id, method, params } = message else { return None };
    session.live().asked.push((id.clone(), method.clone()));
    let (id, method, params) = (id.clone(), method.clone(), params.clone());
    let (tell, told) = match method.as_str() {
        PERMISSION | "fs/write_text_file" => Some(oneshot::channel()).unzip(),
        _ => (None, None),
    };
    session.log.run(move |log| log.asked(&id, &method, &params, tell));
    told
}
