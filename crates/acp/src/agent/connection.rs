//! One connection: every message is handed to whom it concerns.
//!
//! Prompts and cancellations are handed in while nothing else is read, so that their order holds; whatever takes longer runs beside the
//! reading. When the client is gone, all sessions that are served here are closed in good order.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_agent::contract::{Action, Reply};
use retake_engine::session::entry::Part;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Version;
use super::backend;
use super::host::{Host, ListedSession, Parting, WantedSession, Wish};
use super::initialize::{self, Initialized};
use super::options::{self, Permissions};
use super::params::Params;
use super::prompt::{self, Taken};
use super::session::{ReplayExtent, Session};
use super::shape::content;
use crate::extension::answer::date;
use crate::extension::backend::SessionBackend;
use crate::extension::last_target;
use crate::extension::methods::{self, Method};
use crate::extension::params::{unknown_session, wrong};
use crate::rpc_peer::Peer;
use crate::slash;
use crate::wire::{Incoming, Message, Reader, RpcError, Writer};

/// Sessions in one answer to `session/list`.
const PAGE: usize = 100;

/// Speaks with one client until it is gone, or `until` comes true.
pub async fn serve<H: Host>(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    host: H,
    until: impl Future<Output = ()>,
) -> io::Result<()> {
    let (mut reader, writer) = (Reader::new(input), Writer::new(output));
    let connection = Arc::new(Connection {
        host: Arc::new(host),
        peer: Peer::new(writer.clone()),
        greeted: Mutex::default(),
        sessions: Mutex::default(),
        opening: tokio::sync::Mutex::default(),
    });
    tokio::pin!(until);
    let outcome = loop {
        let incoming = tokio::select! {
            incoming = reader.next() => incoming,
            () = writer.closed() => break Ok(()),
            () = &mut until => break Ok(()),
        };
        match incoming {
            Ok(Some(incoming)) => connection.take(incoming).await,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    connection.close().await;
    connection.host.end().await;
    outcome
}

struct Connection<H> {
    host: Arc<H>,
    peer: Peer,
    greeted: Mutex<Option<Initialized>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// Whoever opens a session that may be open: two who ask at once get the same one.
    opening: tokio::sync::Mutex<()>,
}

impl<H: Host> Connection<H> {
    async fn take(self: &Arc<Self>, incoming: Incoming) {
        match incoming {
            Incoming::Message { message: Message::Request { id, method, params }, .. } => {
                self.request(id, method, Params(params)).await;
            }
            Incoming::Message { message: Message::Notification { method, params }, .. } => {
                self.notification(&method, &Params(params)).await;
            }
            Incoming::Message { message: Message::Response { id, outcome }, .. } => {
                // One to a request that was cancelled, or never made, means nothing.
                self.peer.answered(&id, outcome);
            }
            // A client that is gone needs no answer.
            Incoming::Garbage { error, .. } => drop(self.peer.writer().send(error.answer()).await),
            Incoming::TooLong { bytes, seen } => {
                let text = format!("a message of {bytes} bytes is too long to be read");
                let error = RpcError::new(RpcError::INVALID_REQUEST, text);
                self.peer.answer(seen.id.unwrap_or_default(), Err(error)).await.ok();
            }
            Incoming::Half { .. } => self.host.warn("the client left in the middle of a message"),
        }
    }

    async fn notification(&self, method: &str, params: &Params) {
        match method {
            "session/cancel" => {
                let Some(session) = params.text("sessionId").ok().and_then(|id| self.open(id)) else { return };
                session.chat.stop_asking();
                let asked = prompt::cancel(&session).await;
                // Its answer says nothing; a request that nobody waits for might not be carried out.
                tokio::spawn(async move { drop(asked.answer().await) });
            }
            "$/cancel_request" => {
                let Some(id) = params.given("requestId").cloned() else { return };
                let sessions: Vec<_> = self.sessions().values().cloned().collect();
                for session in sessions {
                    session.chat.stop_request(&id);
                    prompt::cancel_request(&session, &id).await;
                }
            }
            _ => {}
        }
    }

    async fn request(self: &Arc<Self>, id: Value, method: String, params: Params) {
        if method == "session/prompt" {
            return self.prompt(id, &params).await;
        }
        if method == "initialize" {
            self.peer.answer(id, self.greet(&params)).await.ok();
            return;
        }
        let connection = Arc::clone(self);
        tokio::spawn(async move { connection.long_request(id, &method, &params).await });
    }

    /// Agrees on a version, once: what is open speaks it, and what is under way may be half said.
    fn greet(&self, params: &Params) -> Result<Value, RpcError> {
        let mut known = self.greeted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(greeted) = *known {
            let version = greeted.version.number();
            let text = format!("this connection is initialized already, and speaks version {version} of the protocol");
            let error = RpcError::new(RpcError::INVALID_REQUEST, text).with_reason("already_initialized");
            return Err(error.with("protocolVersion", version));
        }
        let (greeted, answer) = initialize::greet(params)?;
        *known = Some(greeted);
        Ok(answer)
    }

    /// Answers what may take its time.
    async fn long_request(&self, id: Value, method: &str, params: &Params) {
        let answer = match method {
            "authenticate" => Ok(json!({})),
            "session/new" => self.new_session(params).await,
            "session/load" | "session/resume" => self.load(method, params).await,
            "session/fork" => self.fork(params).await,
            "session/list" => self.list(params).await,
            "session/close" => self.close_session(params).await,
            "session/delete" => self.delete(params).await,
            "session/set_mode" => self.set_mode(params).await,
            "session/set_config_option" => self.set_option(params).await,
            other => match Method::parse(other) {
                None => Err(RpcError::method_not_found(other)),
                Some(extension) => match self.extension(&id, extension, params).await {
                    Ok(None) => return,
                    Ok(Some(answer)) => Ok(answer),
                    Err(error) => Err(error),
                },
            },
        };
        let session = answer.as_ref().ok().and_then(|answer| answer.get("sessionId")).cloned();
        let named = session.as_ref().and_then(Value::as_str).or_else(|| params.text("sessionId").ok());
        let is_introduced =
            answer.is_ok() && matches!(method, "session/new" | "session/load" | "session/resume" | "session/fork");
        self.peer.answer(id, answer).await.ok();
        if let Some(session) = named.filter(|_| is_introduced).and_then(|id| self.open(id)) {
            let commands = session.chat.commands(session.client.version);
            let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
            session.update(update).await;
        }
    }

    /// Answers a request of the extension; `None` if the pump does.
    async fn extension(&self, id: &Value, method: Method, params: &Params) -> Result<Option<Value>, RpcError> {
        let session = self.session(params.text("sessionId")?).await?;
        match method {
            Method::Points => methods::points(&*session, params).await.map(Some),
            Method::Rewind(by) => methods::rewind(&*session, params, by).await.map(Some),
            Method::Undo => methods::undo(&*session, params).await.map(Some),
            Method::Redo => methods::redo(&*session, params).await.map(Some),
            Method::Label => methods::label(&*session, params).await.map(Some),
            Method::EditPrompt(by) => backend::edit_prompt(&session, params, by, id.clone()).await.map(|()| None),
        }
    }

    async fn prompt(self: &Arc<Self>, id: Value, params: &Params) {
        let said = async {
            let session = self.session(params.text("sessionId")?).await?;
            let blocks = params.blocks("prompt")?;
            Ok((session, blocks.to_vec(), content::parts(blocks)?))
        };
        match said.await {
            Err(error) => drop(self.peer.answer(id, Err(error)).await),
            Ok((session, blocks, parts)) => {
                match slash::plain_text(&blocks).and_then(|text| session.chat.parse(text)) {
                    Some(slash) => {
                        // Nobody waits for it here.
                        let (asking, _) = oneshot::channel();
                        tokio::spawn(async move { slash::run(&*session, id, &blocks, &slash, asking).await });
                    }
                    None => {
                        let asked = prompt::hand_in(&session, id.clone(), blocks.clone(), parts.clone()).await;
                        let connection = Arc::clone(self);
                        tokio::spawn(async move {
                            if let Taken::TooLate(error) = prompt::taken(&session, asked).await {
                                connection.say_again(&session, id, blocks, parts, error).await;
                            }
                        });
                    }
                }
            }
        }
    }

    /// Says what came too late for the process that had the session open, once more and no oftener.
    async fn say_again(&self, over: &Session, id: Value, blocks: Vec<Value>, parts: Vec<Part>, error: RpcError) {
        over.until_over().await;
        let error = match self.session(&over.id).await {
            Err(_) => error,
            Ok(session) => {
                let asked = prompt::hand_in(&session, id.clone(), blocks, parts).await;
                match prompt::taken(&session, asked).await {
                    Taken::Done => return,
                    Taken::TooLate(error) => error,
                }
            }
        };
        self.peer.answer(id, Err(error)).await.ok();
    }

    async fn new_session(&self, params: &Params) -> Result<Value, RpcError> {
        let wish = Wish { cwd: params.cwd()?, which: WantedSession::New, servers: params.servers()? };
        self.introduce(wish).await.map(|(_, answer)| answer)
    }

    /// Opens a session; the answer that introduces it, with its id.
    async fn introduce(&self, wish: Wish) -> Result<(Arc<Session>, Value), RpcError> {
        let greeted = self.greeted()?;
        let birth = (wish.cwd.clone(), wish.servers.clone());
        let named = match &wish.which {
            WantedSession::Existing(named) => Some(named.clone()),
            WantedSession::New => None,
        };
        let open = self.host.open(wish).await?;
        // The beginning of an id is none here: all that follows would be said of a session that the client does not know.
        if let Some(named) = named.as_ref().filter(|named| named.as_str() != &*open.view.session) {
            (open.close)(Parting::Closed).await;
            return Err(unknown_session(named, &format!("there is no session `{named}` in this directory")));
        }
        let host = Arc::clone(&self.host);
        let before = named.as_deref().and_then(|named| self.known(named));
        let session =
            Session::begin(open, birth, greeted, self.peer.clone(), before.as_deref(), move |text| host.warn(text));
        self.sessions().insert(session.id.clone(), Arc::clone(&session));
        let mut answer = session.introduction();
        answer.insert("sessionId".into(), session.id.clone().into());
        Ok((session, Value::Object(answer)))
    }

    async fn load(&self, method: &str, params: &Params) -> Result<Value, RpcError> {
        let extent = match (method, self.greeted()?.version) {
            ("session/load", Version::V1) => ReplayExtent::Everything,
            ("session/load", Version::V2) => return Err(RpcError::method_not_found(method)),
            (_, Version::V1) => ReplayExtent::State,
            (_, Version::V2) => match params.given("replayFrom") {
                None => ReplayExtent::State,
                Some(from) if from.get("type").and_then(Value::as_str) == Some("start") => ReplayExtent::Everything,
                Some(_) => return Err(wrong("replayFrom", "`{\"type\": \"start\"}`")),
            },
        };
        let (named, cwd) = (params.text("sessionId")?, params.cwd()?);
        let session = {
            let _alone = self.opening.lock().await;
            match self.open(named) {
                Some(session) => session,
                None => {
                    // All of it is told anew.
                    self.sessions().remove(named);
                    let which = WantedSession::Existing(named.to_owned());
                    self.introduce(Wish { cwd, which, servers: params.servers()? }).await?.0
                }
            }
        };
        session.replay(extent).await?;
        Ok(Value::Object(session.introduction()))
    }

    async fn fork(&self, params: &Params) -> Result<Value, RpcError> {
        let (named, cwd, servers) = (params.text("sessionId")?, params.cwd()?, params.servers()?);
        let open = self.open(named);
        let is_open = open.is_some();
        let session = match open {
            Some(session) => session,
            None => {
                let which = WantedSession::Existing(named.to_owned());
                self.introduce(Wish { cwd: cwd.clone(), which, servers: Vec::new() }).await?.0
            }
        };
        let last = last_target(&session.known().view.entries);
        let which = match last {
            None => WantedSession::New,
            Some(entry) => match session.ask(Action::Fork { entry }).await? {
                Reply::Forked { session, .. } => WantedSession::Existing(session.into()),
                _ => return Err(RpcError::new(RpcError::INTERNAL, "the session was not forked")),
            },
        };
        if !is_open {
            self.sessions().remove(&session.id);
            session.close(Parting::Closed).await;
        }
        self.introduce(Wish { cwd, which, servers }).await.map(|(_, answer)| answer)
    }

    async fn list(&self, params: &Params) -> Result<Value, RpcError> {
        let cwd = params.text_if_given("cwd")?.map(Into::into);
        let all = self.host.list(cwd).await?;
        let start = match params.text_if_given("cursor")? {
            None => 0,
            Some(cursor) => {
                let at = all.iter().position(|one| one.session == cursor);
                at.map(|at| at + 1).ok_or_else(|| wrong("cursor", "one that was given"))?
            }
        };
        let page: Vec<&ListedSession> = all.iter().skip(start).take(PAGE).collect();
        let next = page.last().filter(|_| all.len() > start + PAGE).map(|one| one.session.clone());
        let sessions: Vec<Value> = page
            .iter()
            .map(|one| {
                json!({
                    "sessionId": one.session,
                    "cwd": one.cwd.to_string_lossy(),
                    "title": one.title,
                    "updatedAt": date(one.at),
                })
            })
            .collect();
        let mut answer = json!({ "sessions": sessions });
        if let Some(next) = next {
            answer["nextCursor"] = next.into();
        }
        Ok(answer)
    }

    async fn close_session(&self, params: &Params) -> Result<Value, RpcError> {
        let named = params.text("sessionId")?;
        self.greeted()?;
        let session = self.sessions().remove(named).ok_or_else(|| not_open(named))?;
        prompt::cancel_all(&session).await;
        session.close(Parting::Closed).await;
        Ok(json!({}))
    }

    async fn delete(&self, params: &Params) -> Result<Value, RpcError> {
        let named = params.text("sessionId")?;
        let open = self.sessions().remove(named);
        if let Some(session) = open {
            session.close(Parting::Closed).await;
        }
        self.host.delete(named.to_owned()).await?;
        Ok(json!({}))
    }

    async fn set_mode(&self, params: &Params) -> Result<Value, RpcError> {
        let session = self.session(params.text("sessionId")?).await?;
        self.set_permissions(&session, params.text("modeId")?).await?;
        let update = json!({ "sessionUpdate": "config_option_update", "configOptions": session.options() });
        session.update(update).await;
        Ok(json!({}))
    }

    async fn set_permissions(&self, session: &Session, name: &str) -> Result<(), RpcError> {
        let permissions = Permissions::parse(name).ok_or_else(|| wrong("value", "one of the options"))?;
        session.known().permissions = permissions;
        if session.client.version == Version::V1 {
            let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": permissions.id() });
            session.update(update).await;
        }
        Ok(())
    }

    async fn set_option(&self, params: &Params) -> Result<Value, RpcError> {
        let session = self.session(params.text("sessionId")?).await?;
        let value = params.text("value")?;
        match params.text("configId")? {
            options::MODEL => {
                session.ask(Action::Model { model: value.to_owned() }).await?;
                // It is told of too, but the answer may be first.
                session.learn_model(value);
            }
            options::PERMISSIONS => self.set_permissions(&session, value).await?,
            other => return Err(RpcError::invalid_params(format!("there is no option `{other}`"))),
        }
        Ok(json!({ "configOptions": session.options() }))
    }

    fn greeted(&self) -> Result<Initialized, RpcError> {
        let greeted = *self.greeted.lock().unwrap_or_else(PoisonError::into_inner);
        greeted.ok_or_else(|| RpcError::new(RpcError::INVALID_REQUEST, "`initialize` comes first"))
    }

    /// The session with this id that is open on this connection. One that another process had open is opened again if it has ended there.
    async fn session(&self, id: &str) -> Result<Arc<Session>, RpcError> {
        self.greeted()?;
        if let Some(session) = self.open(id) {
            return Ok(session);
        }
        let _alone = self.opening.lock().await;
        match (self.open(id), self.known(id)) {
            (Some(session), _) => Ok(session),
            (None, Some(over)) => {
                over.close(Parting::Final).await;
                self.introduce(over.again()).await.map(|(session, _)| session)
            }
            (None, None) => Err(not_open(id)),
        }
    }

    /// The session with this id that is open on this connection, if it is not over.
    fn open(&self, id: &str) -> Option<Arc<Session>> {
        self.known(id).filter(|session| !session.is_over())
    }

    /// The session with this id that is open on this connection, or was until it ended elsewhere.
    fn known(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions().get(id).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client is gone.
    async fn close(&self) {
        self.peer.hang_up();
        let sessions = std::mem::take(&mut *self.sessions());
        let mut closing = JoinSet::new();
        for session in sessions.into_values() {
            closing.spawn(async move { session.close(Parting::Final).await });
        }
        closing.join_all().await;
    }
}

fn not_open(id: &str) -> RpcError {
    unknown_session(id, &format!("no session `{id}` is open here; load it first"))
}
