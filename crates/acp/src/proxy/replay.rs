//! A session that is loaded again: the client is told what is retained, with the ids that it knows, and the inner agent's conversation is
//! made to be that, should it be another. What the inner agent tells of its own accord is passed over.

use std::sync::Arc;

use serde_json::{Value, json};

use super::route::cannot_open;
use super::session::ProxiedSession;
use super::shape::{self, Version};
use super::{Proxy, complain};
use crate::wire::RpcError;

impl Proxy {
    /// Loads or resumes a session.
    pub(super) async fn load(self: &Arc<Self>, id: Value, method: &str, params: Value, line: Vec<u8>) {
        let outer = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let live = self.state().sessions.get(&outer).cloned();
        let session = match live {
            Some(session) => {
                session.live().birth = params.clone();
                Ok(Some(session))
            }
            None => self.open_log(&outer, params.clone()).await,
        };
        match session {
            Ok(Some(session)) => {
                let answer = self.reload(&session, method, &params).await;
                let is_loaded = answer.is_ok();
                self.client.answer(id, answer).await.ok();
                if is_loaded {
                    self.tell_commands(&session).await;
                }
            }
            Ok(None) => self.import(id, params, line).await,
            Err(why) => {
                complain(&format!("session {outer} cannot be opened: {why}"));
                self.client.answer(id, Err(cannot_open(&outer, &why))).await.ok();
            }
        }
    }

    /// Has the inner agent take the session up, and tells the client what is retained of it.
    async fn reload(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        method: &str,
        params: &Value,
    ) -> Result<Value, RpcError> {
        let mut note = None;
        {
            let _alone = session.changing.lock().await;
            if !session.is_running() {
                note = self.align(session).await?;
                let mut live = session.live();
                live.is_muted = false;
                // What comes late is of no message that the client was told before this.
                live.names.begin();
            }
        }
        let version = self.state().version;
        let tells = match version {
            Version::V1 => method == "session/load",
            Version::V2 => params["replayFrom"].is_object(),
        };
        if tells {
            let entries = session.log.ask(|log| log.entries().to_vec()).await.unwrap_or_default();
            for update in shape::replay(version, &session.known(), &entries) {
                self.update(session, update).await;
            }
        }
        if let Some(note) = &note {
            self.tell_user(session, note).await;
        }
        if version == Version::V2 {
            let state = if session.is_running() { "running" } else { "idle" };
            self.update(session, json!({ "sessionUpdate": "state_update", "state": state })).await;
        }
        let mut facts = session.live().facts.clone();
        match &mut facts {
            Value::Object(fields) => drop(fields.remove("sessionId")),
            other => *other = json!({}),
        }
        // What the agent says there is its own.
        let has_room = facts["_meta"].is_null() || facts["_meta"].is_object();
        if session.live().due == Some(None) && has_room {
            facts["_meta"]["retake"] = json!({ "strategy": "transcript" });
        }
        Ok(facts)
    }
}
