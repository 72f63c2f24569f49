//! Serves a proxied session on its local socket, so that `retake rewind`, `undo`, `label` and `attach` reach the process that writes its log.
//!
//! Commands that need the model are rejected: the conversation belongs to the editor. If the socket cannot be opened, the session works
//! without it, and the user is told on stderr.

use std::sync::Arc;

use retake_agent::contract::{Action, Command, Query, Refusal, Reply, RequestOutcome};
use retake_agent::controller::{self, Closing, ControllerMessage};
use retake_agent::socket;

use super::backend::foreign;
use super::session::ProxiedSession;
use super::{Proxy, complain};
use crate::extension::backend::ChangeRequest;

impl Proxy {
    /// Listens on the socket of a session.
    pub(super) fn serve(self: &Arc<Self>, session: &Arc<ProxiedSession>) {
        let (handle, mut inbox) = controller::channel(session.id);
        match socket::serve(&self.setup.sockets, handle) {
            Ok(served) => drop(self.state().served.insert(session.outer.clone(), served)),
            // It works all the same, but no other command can reach it.
            Err(error) => {
                complain(&format!("no other command can reach this session: {error}"));
                return;
            }
        }
        let (proxy, weak) = (Arc::clone(self), Arc::downgrade(session));
        tokio::spawn(async move {
            while let Some(message) = inbox.recv().await {
                let Some(session) = weak.upgrade() else { return };
                let proxy = Arc::clone(&proxy);
                // One that takes long must not hold up the others.
                tokio::spawn(async move { proxy.take_message(&session, message).await });
            }
        });
    }

    async fn take_message(self: &Arc<Self>, session: &Arc<ProxiedSession>, message: ControllerMessage) {
        match message {
            ControllerMessage::Request { answer, .. } if answer.is_closed() => {}
            ControllerMessage::Request { request, answer } => {
                let outcome = self.take_command(session, request.command).await;
                answer.send(outcome.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok)).ok();
            }
            ControllerMessage::Attach { from, answer } => {
                if let Some(attached) = session.log.ask(move |log| log.attach(from)).await {
                    answer.send(attached).ok();
                }
            }
            ControllerMessage::CloseIfIdle { answer } => drop(answer.send(Closing::Busy)),
        }
    }

    async fn take_command(self: &Arc<Self>, session: &Arc<ProxiedSession>, command: Command) -> Result<Reply, Refusal> {
        match command {
            Command::Action(Action::Apply { change, head_seen, plan_seen, running }) => {
                let made = self.change(session, ChangeRequest { change, head_seen, plan_seen, running }).await?;
                for warning in &made.warnings {
                    self.tell_user(session, warning).await;
                }
                Ok(Reply::Change { document: made.document })
            }
            Command::Query(Query::Ping) => Ok(Reply::Done),
            Command::Action(Action::Interrupt { .. }) if session.is_running() => {
                let inner = session.live().inner.clone();
                self.agent.notify("session/cancel", serde_json::json!({ "sessionId": inner })).await.ok();
                Ok(Reply::Done)
            }
            Command::Query(query) => self.question(session, query).await,
            Command::Action(Action::Label { prompt, label }) => self.label(session, prompt, label).await,
            Command::Action(_) => Err(foreign()),
        }
    }
}
