//! The client's MCP servers in sessions that the inner agent forked: some agents drop them in a fork without an error.
//!
//! The proxy cannot see whether a fork has them. So a fork that will be prompted is closed and loaded again with the servers, if the client
//! named any; a load connects them as a new session does. If the fork cannot be loaded, because it is in memory only, the agent forks again,
//! the proxy uses that fork as it is, and the user is told. A kept point is never closed: only a fork of it is.

use std::sync::Arc;

use retake_engine::id::EntryId;
use serde_json::{Value, json};

use super::{NewInner, Purpose};
use crate::proxy::Proxy;
use crate::proxy::session::ProxiedSession;
use crate::proxy::session_map::MapRecord;
use crate::proxy::shape::Version;
use crate::wire::RpcError;

impl Proxy {
    /// Makes a fork that is to speak, and has the client's MCP servers in it.
    pub(super) async fn make_with_tools(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        order: NewInner<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<String, RpcError> {
        let servers = servers(&order.params);
        let made = self.make(session, order.clone()).await?;
        if servers.is_empty() {
            return Ok(made);
        }
        if !self.offer().load {
            warnings.push(warning(&servers, "the agent loads no sessions"));
            return Ok(made);
        }
        match self.open_again(session, &made).await {
            Reopened::Yes => Ok(made),
            Reopened::Unclosed => {
                warnings
                    .push(warning(&servers, "the agent closes no sessions, and may have loaded this one from memory"));
                Ok(made)
            }
            Reopened::AsItWas(error) => {
                warnings.push(warning(&servers, &error.message));
                Ok(made)
            }
            Reopened::Lost(error) => {
                session.record([MapRecord::Doubt { id: made }]);
                warnings.push(warning(&servers, &error.message));
                self.make(session, order).await
            }
        }
    }

    /// A session that holds what a kept one does, up to `head`, and has the client's MCP servers.
    pub(super) async fn speak_from_kept(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        kept: &str,
        head: Option<EntryId>,
        warnings: &mut Vec<String>,
    ) -> String {
        let (servers, is_fork) = (servers(&self.birth(session)), session.live().forked.contains(kept));
        // One that was begun or loaded with them has them, and so has the one that speaks: it was seen to when it began to.
        if servers.is_empty() || !is_fork || session.known().current == kept {
            return kept.to_owned();
        }
        let (mut params, purpose) = (self.birth(session), Purpose::Speak);
        params["sessionId"] = kept.into();
        let order = NewInner { method: "session/fork", params, from: Some(kept), holds: Some(head), purpose };
        let mut told = Vec::new();
        match self.make_with_tools(session, order, &mut told).await {
            Ok(made) => {
                warnings.append(&mut told);
                made
            }
            Err(error) => {
                warnings.push(warning(&servers, &error.message));
                kept.to_owned()
            }
        }
    }

    /// Closes a session of the inner agent's, if it closes sessions, and loads it with the client's MCP servers.
    async fn open_again(&self, session: &Arc<ProxiedSession>, inner: &str) -> Reopened {
        let closes = self.state().version == Version::V2 || self.offer().close;
        if closes {
            if let Err(error) = self.ask_agent("session/close", json!({ "sessionId": inner })).await {
                return Reopened::AsItWas(error);
            }
            session.live().loaded.remove(inner);
        }
        match self.replay_inner(session, inner).await {
            Ok(_) => {
                self.set_again(session, inner).await;
                if closes { Reopened::Yes } else { Reopened::Unclosed }
            }
            Err(error) if closes => Reopened::Lost(error),
            Err(error) => Reopened::AsItWas(error),
        }
    }
}

/// What became of a session that was to be closed and loaded again.
enum Reopened {
    Yes,
    /// It was loaded while it was open.
    Unclosed,
    /// It is open, and was not loaded.
    AsItWas(RpcError),
    /// It is closed.
    Lost(RpcError),
}

/// The names of the MCP servers that a session is begun with.
fn servers(params: &Value) -> Vec<String> {
    let servers = params["mcpServers"].as_array().into_iter().flatten();
    servers.map(|server| server["name"].as_str().unwrap_or("without a name").to_owned()).collect()
}

fn warning(servers: &[String], why: &str) -> String {
    let names: Vec<String> = servers.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "the agent may have lost its MCP servers ({}): it forked its session for this, and Retake could not make sure \
         that they are connected again ({why}); if a tool is missing, start the agent again and load this session",
        names.join(", ")
    )
}
