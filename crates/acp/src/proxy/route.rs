//! Which session a message of the client's is about. One that is open takes what is said in it one after the other; what is said in one
//! that is being opened waits for that. One that is in a log and not open here is never spoken to under the name that the client has for
//! it: the inner agent may call something by it that was cut off. It is opened first, where that is what the request amounts to, or the
//! client is told to load it. What no log knows passes as it came.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_engine::Workspace;

use super::relay::PendingKind;
use super::session::ProxiedSession;
use super::{Proxy, ProxyState, session_map};
use crate::extension::methods::Method;
use crate::extension::params::unknown_session;
use crate::slash::{self, Chat, ChatExchange, SlashKind};
use crate::wire::{Message, RpcError};

/// What is said in a session that is being opened.
pub(super) type WaitingMessages = VecDeque<(Message, Vec<u8>)>;

/// A session that no log here knows.
#[derive(Clone, Debug)]
pub(super) enum Unkept {
    /// Its log cannot be kept; why.
    Refused(String),
    /// It was never begun or loaded here.
    Foreign,
}

/// Where a session is that the client names.
enum Destination {
    Open(Arc<ProxiedSession>),
    /// Somebody opens it, and too much waits for that.
    Full,
    Closed,
    /// In no log.
    Unkept,
}

impl Proxy {
    /// Takes a message about the session that the client calls `outer`.
    pub(super) async fn route(self: &Arc<Self>, outer: &str, message: Message, line: Vec<u8>) {
        let Some((place, message, line)) = self.place(outer, message, line) else { return };
        match place {
            Destination::Open(session) => self.put(&session, message, line).await,
            Destination::Unkept => self.take_unkept(outer, &message, line).await,
            Destination::Full => self.refuse(message).await,
            Destination::Closed => {
                let (proxy, outer) = (Arc::clone(self), outer.to_owned());
                tokio::spawn(async move { proxy.open_and_take(&outer, message, line).await });
            }
        }
    }

    /// Where a session is; what is said in one that is being opened is kept for it. One that is closed is opened by whoever asks.
    fn place(&self, outer: &str, message: Message, line: Vec<u8>) -> Option<(Destination, Message, Vec<u8>)> {
        let mut state = self.state();
        let state = &mut *state;
        let place = match (state.opening.get_mut(outer), state.sessions.get(outer)) {
            (Some(waiting), _) if waiting.len() < MAX_WAITING => {
                waiting.push_back((message, line));
                return None;
            }
            (Some(_), _) => Destination::Full,
            (None, Some(session)) => Destination::Open(Arc::clone(session)),
            (None, None) if state.unkept.contains_key(outer) && !is_load(&message) => Destination::Unkept,
            (None, None) => {
                state.opening.insert(outer.to_owned(), WaitingMessages::new());
                Destination::Closed
            }
        };
        Some((place, message, line))
    }

    /// Puts a message into the queue of its session. One that is full does not make the client wait, whose answer may be what the first in
    /// it waits for.
    pub(super) async fn put(&self, session: &Arc<ProxiedSession>, message: Message, line: Vec<u8>) {
        match session.queue(message, line) {
            Ok(()) => {}
            // It may be to cancel what all the others wait for.
            Err((Message::Notification { .. }, line)) => self.pass_to_agent(session, &line, None).await,
            Err((message, _)) => self.refuse(message).await,
        }
    }

    /// Too much waits already.
    async fn refuse(&self, message: Message) {
        if let Message::Request { id, .. } = message {
            let error = RpcError::new(RpcError::INTERNAL, "too many requests wait in this session").with_reason("busy");
            self.client.answer(id, Err(error)).await.ok();
        }
    }

    /// Takes a message about a session that is not open, then what was said in it meanwhile.
    async fn open_and_take(self: &Arc<Self>, outer: &str, message: Message, line: Vec<u8>) {
        let mut next = Some((message, line));
        while let Some((message, line)) = next {
            let (session, is_unkept) = {
                let state = self.state();
                (state.sessions.get(outer).cloned(), state.unkept.contains_key(outer))
            };
            match session {
                Some(session) => self.put(&session, message, line).await,
                None if is_unkept && !is_load(&message) => self.take_unkept(outer, &message, line).await,
                None => self.take_unopened(outer, message, line).await,
            }
            next = {
                let mut state = self.state();
                let next = state.opening.get_mut(outer).and_then(VecDeque::pop_front);
                if next.is_none() {
                    state.opening.remove(outer);
                }
                next
            };
        }
    }

    /// Takes a message about a session that is not open here.
    async fn take_unopened(self: &Arc<Self>, outer: &str, message: Message, line: Vec<u8>) {
        if let Message::Request { id, method, params } = &message
            && is_load(&message)
        {
            return self.load(id.clone(), method, params.clone(), line).await;
        }
        let params = match &message {
            Message::Request { params, .. } | Message::Notification { params, .. } => params,
            Message::Response { .. } => return,
        };
        let home = self.home(outer, params["cwd"].as_str()).await;
        let Some(root) = home else {
            self.state().note_unkept(outer, Unkept::Foreign);
            return self.take_unkept(outer, &message, line).await;
        };
        // What is not open has nothing that could be cancelled.
        let Message::Request { id, method, params } = &message else { return };
        if !matches!(method.as_str(), "session/fork" | "session/delete") {
            let error = not_open(outer);
            return drop(self.client.answer(id.clone(), Err(error)).await);
        }
        let mut birth = params.clone();
        birth["cwd"] = root.to_string_lossy().into();
        match self.open_log(outer, birth).await {
            Ok(Some(session)) => self.put(&session, message, line).await,
            // What there was of it is gone, and the inner agent knows better.
            Ok(None) => {
                self.state().note_unkept(outer, Unkept::Foreign);
                self.take_unkept(outer, &message, line).await;
            }
            Err(why) => drop(self.client.answer(id.clone(), Err(cannot_open(outer, &why))).await),
        }
    }

    /// Passes on what is said in a session that has no log.
    async fn take_unkept(self: &Arc<Self>, outer: &str, message: &Message, line: Vec<u8>) {
        let Message::Request { id, method, params } = message else { return self.to_agent(line).await };
        let why = self.state().unkept.get(outer).cloned();
        let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
        let typed = slash::plain_text(blocks).and_then(|text| Chat::new(SlashKind::ANY).parse(text));
        match (method.as_str(), why) {
            (method, _) if Method::parse(method).is_some() => {
                let error = self.no_session(outer);
                self.client.answer(id.clone(), Err(error)).await.ok();
            }
            ("session/prompt", Some(Unkept::Refused(why))) if typed.is_some() => {
                let (client, version) = (&self.client, self.state().version);
                slash::refuse(&ChatExchange { client, version, session: outer, request: id.clone() }, blocks, &why)
                    .await;
            }
            _ => {
                if matches!(method.as_str(), "session/close" | "session/delete") {
                    self.state().unkept.remove(outer);
                }
                self.ask(id, PendingKind::Other, line).await;
            }
        }
    }

    /// The root of the workspace in whose store there is a session that the client calls `outer`: that of `cwd` if it is there.
    pub(super) async fn home(self: &Arc<Self>, outer: &str, cwd: Option<&str>) -> Option<PathBuf> {
        let (proxy, outer, cwd) = (Arc::clone(self), outer.to_owned(), cwd.unwrap_or(".").to_owned());
        let found = tokio::task::spawn_blocking(move || {
            let known: Vec<PathBuf> = proxy.state().keepers.keys().cloned().collect();
            let environment = (proxy.setup.environments)(Path::new(&cwd)).ok()?;
            let is_home = |root: &PathBuf| {
                let store = Workspace::store_of(&environment.data_dir, root);
                store.is_some_and(|store| session_map::exists(&store, &outer))
            };
            let all = std::iter::once(environment.root.clone()).chain(known);
            all.chain(Workspace::roots(&environment.data_dir)).find(is_home)
        });
        found.await.ok().flatten()
    }

    pub(super) fn no_session(&self, outer: &str) -> RpcError {
        let why = self.state().unkept.get(outer).cloned();
        match why {
            Some(Unkept::Refused(why)) => unknown_session(outer, &format!("this session cannot be rewound: {why}")),
            Some(Unkept::Foreign) | None => not_open(outer),
        }
    }
}

impl ProxyState {
    /// Notes that a session has no log.
    pub(super) fn note_unkept(&mut self, outer: &str, why: Unkept) {
        // What the client makes up is not kept for ever.
        if self.unkept.len() >= MAX_UNKEPT {
            self.unkept.retain(|_, why| matches!(why, Unkept::Refused(_)));
        }
        self.unkept.insert(outer.to_owned(), why);
    }
}

/// Messages of the client's that wait in a session.
pub(super) const MAX_WAITING: usize = 1_024;
/// Sessions without a log that are remembered.
const MAX_UNKEPT: usize = 1_000;

fn is_load(message: &Message) -> bool {
    matches!(message, Message::Request { method, .. } if matches!(method.as_str(), "session/load" | "session/resume"))
}

/// The client names a session that is not open.
fn not_open(outer: &str) -> RpcError {
    unknown_session(outer, &format!("the session `{outer}` is not open here; load it first"))
}

/// A session is there and cannot be opened.
pub(super) fn cannot_open(outer: &str, why: &str) -> RpcError {
    RpcError::new(RpcError::INTERNAL, format!("Retake cannot open this session: {why}")).with("sessionId", outer)
}

/// Whether a directory is in a workspace, by whatever name.
pub(super) fn is_within(cwd: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(cwd).starts_with(real(root))
}
