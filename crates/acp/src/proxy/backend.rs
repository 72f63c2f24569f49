//! The [`SessionBackend`] of a session behind the proxy, for the extension and for the chat commands.

use std::sync::Arc;

use retake_agent::contract::{Action, Command, Query, Reason, Refusal, Reply};
use retake_agent::query;
use retake_engine::id::EntryId;
use retake_engine::session::entry::Part;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Proxy;
use super::change::note_late;
use super::relay::PendingKind;
use super::session::ProxiedSession;
use super::shape::{self, Version};
use crate::extension::answer::Snapshot;
use crate::extension::backend::{self, ChangeRequest, Fork, SessionBackend, SessionContents};
use crate::extension::methods::{self, Method, Name};
use crate::extension::params::Params;
use crate::rpc_peer::Peer;
use crate::slash::{self, Chat, Slash};
use crate::wire::{Message, RpcError};

/// A session, and the proxy that it is in.
struct ProxyBackend {
    proxy: Arc<Proxy>,
    session: Arc<ProxiedSession>,
}

impl SessionBackend for ProxyBackend {
    fn version(&self) -> Version {
        self.proxy.state().version
    }

    fn session(&self) -> &str {
        &self.session.outer
    }

    fn client(&self) -> &Peer {
        &self.proxy.client
    }

    fn chat(&self) -> &Chat {
        &self.session.chat
    }

    fn is_busy(&self) -> bool {
        self.session.is_running()
    }

    async fn standing(&self) -> SessionContents {
        let standing = |log: &mut super::log_writer::LogWriter| SessionContents {
            entries: log.entries().to_vec(),
            root: log.root().to_owned(),
        };
        self.session.log.ask(standing).await.unwrap_or_default()
    }

    async fn ask(&self, command: Command) -> Result<Reply, Refusal> {
        match command {
            Command::Query(query) => self.proxy.question(&self.session, query).await,
            Command::Action(Action::Label { prompt, label }) => self.proxy.label(&self.session, prompt, label).await,
            Command::Action(_) => Err(foreign()),
        }
    }

    async fn apply(&self, wanted: ChangeRequest) -> Result<backend::AppliedChange, Refusal> {
        self.proxy.change(&self.session, wanted).await
    }

    async fn fork(&self, entry: EntryId) -> Result<Fork, Refusal> {
        let name = self.proxy.fork(&self.session, entry).await?;
        Ok(Fork { name, command: None })
    }

    fn name_of(&self, entry: EntryId) -> String {
        self.session.session_map().known.outer(entry)
    }

    fn entries(&self, name: &str) -> Vec<EntryId> {
        self.session.session_map().known.entries(name)
    }

    fn snapshot_of(&self, prompt: EntryId) -> Snapshot {
        match self.session.session_map().known.late.contains(&prompt) {
            true => Snapshot::Late,
            false => Snapshot::Complete,
        }
    }

    async fn content(&self, prompt: Option<EntryId>, parts: &[Part]) -> Vec<Value> {
        shape::content(&self.session.session_map().known, prompt, parts)
    }
}

impl Proxy {
    /// Answers a request of the extension.
    pub(super) async fn extension(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        id: Value,
        method: Method,
        params: Value,
    ) {
        let (here, params) = (self.backend(session), Params(params));
        let answer = match method {
            Method::Points => methods::points(&here, &params).await,
            Method::Rewind(by) => methods::rewind(&here, &params, by).await,
            Method::Undo => methods::undo(&here, &params).await,
            Method::Redo => methods::redo(&here, &params).await,
            Method::Label => methods::label(&here, &params).await,
            Method::EditPrompt(by) => match self.edit_prompt(&here, &id, &params, by).await {
                // The inner agent answers.
                Ok(()) => return,
                Err(error) => Err(error),
            },
        };
        self.client.answer(id, answer).await.ok();
    }

    /// Carries a command of the chat out. What is said next waits for it, but not for what it may ask.
    pub(super) async fn slash(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        id: Value,
        blocks: Vec<Value>,
        slash: Slash,
    ) {
        let (here, (tell, asking)) = (self.backend(session), oneshot::channel());
        tokio::spawn(async move { slash::run(&here, id, &blocks, &slash, tell).await });
        // It says nothing if it has come to its end.
        asking.await.ok();
    }

    fn backend(self: &Arc<Self>, session: &Arc<ProxiedSession>) -> ProxyBackend {
        ProxyBackend { proxy: Arc::clone(self), session: Arc::clone(session) }
    }

    /// Sets or removes the label of the point before a prompt.
    pub(super) async fn label(
        &self,
        session: &ProxiedSession,
        prompt: EntryId,
        label: Option<String>,
    ) -> Result<Reply, Refusal> {
        let done = session.log.ask(move |log| {
            let id = log.id();
            log.workspace_thread().ask(move |workspace| query::set_label(workspace, id, prompt, label.as_deref()))
        });
        done.await.unwrap_or_else(|| Err(retake_agent::socket::ended()))
    }

    /// Has the workspace thread answer a question.
    pub(super) async fn question(&self, session: &ProxiedSession, query: Query) -> Result<Reply, Refusal> {
        if matches!(query, Query::Attach { .. } | Query::Context) {
            return Err(foreign());
        }
        let goal = match &query {
            Query::Plan { change } => Some(change.goal.clone()),
            _ => None,
        };
        let answered = session.log.ask(move |log| {
            let id = log.id();
            log.workspace_thread().ask(move |workspace| query::answer(workspace, id, &Default::default(), query))
        });
        let mut answered = answered.await.unwrap_or_else(|| Err(retake_agent::socket::ended()));
        if let (Some(goal), Ok(Reply::Change { document })) = (goal, &mut answered) {
            note_late(&session.known(), &goal, document);
        }
        answered
    }

    /// Goes back to before a prompt and says another one in its place.
    async fn edit_prompt(
        self: &Arc<Self>,
        here: &ProxyBackend,
        id: &Value,
        params: &Params,
        by: Name,
    ) -> Result<(), RpcError> {
        let session = &here.session;
        let edit = methods::edit(here, params, by).await?;
        for warning in edit.go_back(here).await?.warnings {
            self.tell_user(session, &warning).await;
        }
        let preface = self.say(session, &edit.blocks).await?;
        let mut prompt = preface.unwrap_or_default();
        prompt.extend(edit.blocks.iter().cloned());
        let inner = session.live().inner.clone();
        let request = Message::request(id.clone(), "session/prompt", json!({ "sessionId": inner, "prompt": prompt }));
        self.tell_edited(session, &edit.blocks).await;
        self.note_request(id, PendingKind::Prompt { session: Arc::clone(session) });
        self.to_agent(request.into_line()).await;
        Ok(())
    }

    /// Tells the client the new prompt; in version 2 the inner agent does.
    async fn tell_edited(&self, session: &ProxiedSession, blocks: &[Value]) {
        let (prompt, version) = (session.live().prompt, self.state().version);
        if let (Version::V1, Some(prompt)) = (version, prompt) {
            let id = session.known().outer(prompt);
            session.live().prompt_name = Some(id.clone());
            for block in blocks {
                let update = json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": block });
                self.update(session, update).await;
            }
        }
    }
}

/// Refuses what only the agent that speaks in the session could do.
pub(super) fn foreign() -> Refusal {
    let text = "this session belongs to another agent that an editor talks to";
    Refusal { hint: Some("do it there".to_owned()), ..query::refusal(Reason::Invalid, text) }
}
