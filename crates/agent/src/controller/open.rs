//! Opening a session: everything is set up here, once, and whatever fails leaves nothing behind.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread;

use retake_engine::checkpoint::CheckpointError;
use retake_engine::id::SessionId;
use retake_engine::operation::MadeBy;
use retake_engine::rewind::{RecoveryChoice, RewindError};
use retake_engine::session::SessionError;
use retake_engine::session::{NewSession, SessionKind};
use retake_engine::{Environment, OpenError as WorkspaceError, StoreError, Workspace};
use thiserror::Error;
use tokio::sync::mpsc;

use super::{Controller, Handle, Unprotected, WorkerFact, explore};
use crate::model::{Model, Models};
use crate::permission::Policy;
use crate::publisher::Publisher;
use crate::tool::{JobEnded, Toolbox};
use crate::turn::Turn;
use crate::view::View;
use crate::workspace_thread::WorkspaceThread;
use crate::{ids, limits};

/// All that a session needs.
pub struct SessionSetup {
    /// The workspace.
    pub environment: Environment,
    /// Which session.
    pub which: Which,
    /// The model.
    pub model: Model,
    /// The others that can be asked for.
    pub models: Models,
    /// What may run.
    pub policy: Policy,
    /// Whether tools may change something that no snapshot protects.
    pub unprotected: Unprotected,
    /// Who makes its operations.
    pub made_by: MadeBy,
    /// The tools, and the channel on which they tell that a job has ended.
    pub tools: (Toolbox, mpsc::Receiver<JobEnded>),
}

/// Which session to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// A new one.
    New,
    /// This one.
    Existing(SessionId),
}

/// A session could not be opened; nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The session cannot be opened: another process may have it.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A rewind was interrupted, and has to be finished by somebody who decides how.
    #[error(transparent)]
    Recovery(#[from] RewindError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The first checkpoint failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// A session that is open, and the thread that serves it.
pub struct Opened {
    /// The way to it.
    pub handle: Handle,
    /// Ends when the session is closed and everything is stored.
    pub served: thread::JoinHandle<()>,
}

/// Opens a session and begins to serve it. Must be called from within a Tokio runtime, on a thread that may wait.
pub fn open(setup: SessionSetup) -> Result<Opened, OpenError> {
    let mut workspace = Workspace::open_or_create(setup.environment)?;
    let new = ids::rewind();
    workspace.rewinds_mut().recover(RecoveryChoice::Ask, new.after, new.at)?;
    workspace.watch();
    let session = match setup.which {
        Which::Existing(session) => session,
        Which::New => {
            let (id, at) = (ids::session(), ids::now());
            workspace
                .sessions_mut()
                .create(NewSession { id, at, title: String::new(), kind: SessionKind::Conversation })?
                .id
        }
    };
    let mut writer = workspace.sessions().open(session, ids::now(), &mut ids::random)?;
    explore::finish_left(&mut workspace, &mut writer)?;
    let root = workspace.root().to_owned();
    let (workspace_thread, keeping) = WorkspaceThread::start(workspace).map_err(OpenError::Thread)?;
    let (messages, inbox) = mpsc::channel(limits::INBOX);
    let (facts, reported) = mpsc::unbounded_channel();
    let (toolbox, jobs) = setup.tools;
    toolbox.recall(writer.conversation());
    let draft = writer.draft().to_vec();
    let view = View {
        session: session.into(),
        workspace: root.display().to_string(),
        model: setup.model.full_name(),
        window: setup.model.settings().context_window(),
        draft: draft.clone(),
        ..View::default()
    };
    let publisher = Publisher::new(view, writer.conversation().entries());
    let handle = Handle { session, messages, published: publisher.last() };
    let runtime = tokio::runtime::Handle::current();
    runtime.spawn(report_jobs(jobs, facts.clone()));
    let controller = Controller {
        runtime,
        workspace_thread,
        writer: Some(writer),
        root,
        model: setup.model,
        models: setup.models,
        toolbox: Arc::new(toolbox),
        policy: setup.policy,
        unprotected: setup.unprotected,
        made_by: setup.made_by,
        turn: Turn::default(),
        number: 0,
        current: None,
        summarising: None,
        held: VecDeque::new(),
        draft,
        waiting: None,
        stopped: false,
        last_turn: None,
        job_windows: HashMap::new(),
        job_entries: HashMap::new(),
        files: Arc::default(),
        publisher,
        facts,
        is_closing: false,
    };
    controller.take_baseline();
    let served = thread::Builder::new().name("controller".to_owned());
    let served = served.spawn(move || {
        controller.serve(inbox, reported);
        // The last handle to the workspace thread is gone: it does what is left, and ends.
        keeping.join().ok();
    });
    Ok(Opened { handle, served: served.map_err(OpenError::Thread)? })
}

async fn report_jobs(mut jobs: mpsc::Receiver<JobEnded>, facts: mpsc::UnboundedSender<WorkerFact>) {
    while let Some(ended) = jobs.recv().await {
        if facts.send(WorkerFact::JobEnded(ended)).is_err() {
            return;
        }
    }
}
