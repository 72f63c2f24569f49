//! The [`SessionBackend`] of Retake's own agent: commands go to the live session, answers wait until the pump has sent the cut.

use retake_agent::contract::{Action, Command, Reason, Refusal, Reply};
use retake_agent::query::refusal;
use retake_engine::id::EntryId;
use retake_engine::session::entry::Part;
use serde_json::Value;

use super::Version;
use super::prompt;
use super::session::Session;
use super::shape::content;
use super::shape::update::THOUGHT;
use crate::extension::answer::Snapshot;
use crate::extension::backend::{AppliedChange, ChangeRequest, Fork, SessionBackend, SessionContents};
use crate::extension::methods::{self, Name};
use crate::extension::params::Params;
use crate::rpc_peer::Peer;
use crate::slash::{Chat, short};
use crate::wire::RpcError;

impl SessionBackend for Session {
    fn version(&self) -> Version {
        self.client.version
    }

    fn session(&self) -> &str {
        &self.id
    }

    fn client(&self) -> &Peer {
        &self.peer
    }

    fn chat(&self) -> &Chat {
        &self.chat
    }

    fn is_busy(&self) -> bool {
        self.known().running.is_some()
    }

    async fn standing(&self) -> SessionContents {
        SessionContents { entries: self.known().view.entries.clone(), root: self.updates.root.clone() }
    }

    async fn ask(&self, command: Command) -> Result<Reply, Refusal> {
        let answer = self.asker.ask(command).await;
        answer.unwrap_or_else(|error| Err(refusal(Reason::Ended, format!("{error}; load it again"))))
    }

    async fn apply(&self, wanted: ChangeRequest) -> Result<AppliedChange, Refusal> {
        let ChangeRequest { change, head_seen, plan_seen, running } = wanted;
        let command = Action::Apply { change, head_seen, plan_seen, running };
        let Reply::Change { document } = SessionBackend::ask(self, command.into()).await? else {
            return Err(refusal(Reason::Failed, "the session's answer was not understood"));
        };
        if let (Some(operation), Some(conversation)) = (&document.operation, &document.conversation) {
            self.until_told(operation, conversation.to).await;
        }
        Ok(AppliedChange { document, strategy: None, warnings: Vec::new() })
    }

    async fn fork(&self, entry: EntryId) -> Result<Fork, Refusal> {
        match SessionBackend::ask(self, Action::Fork { entry }.into()).await? {
            Reply::Forked { session, .. } => {
                let command = format!("retake resume {}", short(&session));
                Ok(Fork { name: session.into(), command: Some(command) })
            }
            _ => Err(refusal(Reason::Failed, "the session's answer was not understood")),
        }
    }

    fn name_of(&self, entry: EntryId) -> String {
        entry.to_string()
    }

    fn entries(&self, name: &str) -> Vec<EntryId> {
        // What the model thought belongs to what it then said.
        name.strip_suffix(THOUGHT).unwrap_or(name).parse().ok().into_iter().collect()
    }

    fn snapshot_of(&self, _: EntryId) -> Snapshot {
        // A tool waits for it.
        Snapshot::Complete
    }

    async fn content(&self, prompt: Option<EntryId>, parts: &[Part]) -> Vec<Value> {
        let given = prompt.and_then(|prompt| self.known().given.get(&prompt).cloned());
        match given {
            Some((blocks, given)) if given == parts => blocks,
            _ => content::blocks(&self.updates.root, parts),
        }
    }
}

/// `_session/edit_prompt`: goes back to before a prompt and says another one. If that is said, the pump answers.
pub(super) async fn edit_prompt(session: &Session, params: &Params, by: Name, id: Value) -> Result<(), RpcError> {
    let edit = methods::edit(session, params, by).await?;
    let parts = content::parts(&edit.blocks)?;
    edit.go_back(session).await?;
    let asked = prompt::hand_in(session, id, edit.blocks, parts).await;
    prompt::taken(session, asked).await;
    Ok(())
}
