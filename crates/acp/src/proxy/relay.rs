//! Lines of both sides, in order: what is of interest is noted, what has to be another is changed, everything else passes as it came.
//!
//! `client` takes what the client says, `agent` what the inner agent says.

mod agent;
mod client;

use std::sync::Arc;
use std::time::Duration;

use retake_engine::session::entry::EndReason;
use serde_json::Value;
use tokio::sync::oneshot;

use super::Proxy;
use super::session::ProxiedSession;
pub(super) use agent::named;

/// How long the end of a turn is held back at most.
const MAX_SETTLING: Duration = Duration::from_secs(1);

/// A request of the client that the inner agent is to answer.
pub(super) struct PendingRequest {
    pub(super) id: Value,
    pub(super) what: PendingKind,
}

/// What was asked for, as far as the answer is of interest.
pub(super) enum PendingKind {
    Initialize {
        params: Value,
    },
    New {
        params: Value,
    },
    Fork {
        session: Arc<ProxiedSession>,
        params: Value,
    },
    Import {
        session: Arc<ProxiedSession>,
        /// Goes when it is over.
        over: oneshot::Sender<()>,
    },
    Prompt {
        session: Arc<ProxiedSession>,
    },
    List {
        params: Value,
    },
    Close {
        session: Arc<ProxiedSession>,
        /// Goes when it is over, also if it is refused.
        over: oneshot::Sender<()>,
    },
    Delete {
        session: Arc<ProxiedSession>,
        over: oneshot::Sender<()>,
    },
    Other,
}

impl Proxy {
    pub(super) async fn to_agent(&self, line: Vec<u8>) {
        // If it is gone, everybody will be told.
        self.agent.writer().send_line(line).await.ok();
    }

    pub(super) async fn to_client(&self, line: Vec<u8>) {
        self.client.writer().send_line(line).await.ok();
    }

    /// Waits for a snapshot, but not for long: whoever is told that a turn has ended, or asked to write, may change files.
    pub(super) async fn settle(&self, settled: oneshot::Receiver<()>) {
        let patience = self.setup.patience.snapshot.min(MAX_SETTLING);
        tokio::time::timeout(patience, settled).await.ok();
    }

    /// Forgets a session that was closed.
    pub(super) fn forget(&self, session: &Arc<ProxiedSession>) {
        session.leave_turn();
        let mut state = self.state();
        state.sessions.remove(&session.outer);
        state.served.remove(&session.outer);
        state.inners.retain(|_, one| !Arc::ptr_eq(one, session));
    }
}

/// Why a turn ended.
pub(super) fn reason(stop: Option<&str>) -> EndReason {
    match stop {
        Some("cancelled") => EndReason::Interrupted,
        _ => EndReason::Done,
    }
}
