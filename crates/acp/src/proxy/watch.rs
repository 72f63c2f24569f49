//! The window through which a turn of the inner agent is watched: whose are the files that change?
//!
//! The inner agent says which tools it runs, but nobody can make it wait, and what it says may come after the first write. So there is
//! always a window open while a turn runs, and only later is it known what for:
//!
//! ```text
//! opened ── a tool is announced ──> claimed ── all tools have ended ──> ended: what changed is the tools'
//!    └───── none is, for a while ──> withdrawn: what changed is somebody else's ── opened again
//! ```
//!
//! Everything here runs on the keeper's thread. What fails is told to people once, and the turn goes on: a snapshot that could not be taken
//! is a gap, not a reason to stop somebody else's agent.

use std::time::{Duration, Instant};

use retake_agent::fresh;
use retake_agent::question::in_words;
use retake_engine::session::Moment;
use retake_engine::session::entry::EntryId;
use retake_engine::{
    Durability, NewWindow, NoProgress, OperationId, Origin, PartOf, Reach, SessionId, Window, Workspace, WorkspacePath,
};

/// How long a window stays open for nothing before what has changed is somebody else's.
const IDLE: Duration = Duration::from_millis(400);
/// How long after a word of the agent no tool must be announced for that: it may be about to run.
pub(super) const PAUSE: Duration = Duration::from_millis(60);

/// The turn that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    session: SessionId,
    turn: Option<(OperationId, EntryId)>,
    window: Option<Window>,
    is_claimed: bool,
    /// Whether the agent has said in this turn that it runs a tool.
    has_tools: bool,
    opened: Instant,
    /// Why the last snapshot could not be taken.
    pub(super) failure: Option<String>,
}

impl Watch {
    /// Of a session in which nothing goes on.
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            turn: None,
            window: None,
            is_claimed: false,
            has_tools: false,
            opened: Instant::now(),
            failure: None,
        }
    }

    /// Takes the snapshot of a prompt and begins to watch its turn. An error if the point to go back to could not be taken.
    pub(super) fn begin(
        &mut self,
        workspace: &mut Workspace,
        operation: OperationId,
        prompt: EntryId,
    ) -> Result<(), String> {
        self.end(workspace);
        self.turn = Some((operation, prompt));
        self.has_tools = false;
        let moment = Moment { session: self.session, entry: Some(prompt), origin: Origin::Prompt };
        let taken = workspace.checkpoint_at(moment, fresh::checkpoint(), Durability::Soon, &NoProgress);
        let taken = taken.map(drop).map_err(|error| in_words(&error));
        self.open(workspace);
        taken
    }

    /// A tool runs, or is about to; `paths` are those that it says it writes.
    pub(super) fn claim(&mut self, workspace: &mut Workspace, tool: &str, paths: &[WorkspacePath]) {
        self.has_tools = true;
        self.is_claimed = true;
        let Some(window) = &mut self.window else { return };
        let claimed = workspace.claim(window, tool, paths);
        self.note(claimed.map_err(|error| in_words(&error)));
    }

    /// All tools have ended. The next one may be at work already: what comes next is watched before this is over.
    pub(super) fn settle(&mut self, workspace: &mut Workspace) {
        let ended = self.window.take();
        let is_claimed = self.is_claimed;
        self.open(workspace);
        if let Some(ended) = ended {
            let closed = close(workspace, ended, is_claimed);
            self.note(closed);
        }
    }

    /// The agent talks and runs no tool.
    pub(super) fn idle(&mut self, workspace: &mut Workspace) {
        if self.window.is_some() && !self.is_claimed && self.opened.elapsed() > IDLE {
            self.close(workspace);
            self.open(workspace);
        }
    }

    /// The turn has ended.
    pub(super) fn end(&mut self, workspace: &mut Workspace) {
        // An agent that never says what it runs has changed what changed.
        self.is_claimed |= !self.has_tools;
        self.close(workspace);
        if self.turn.take().is_some() {
            let moment = Moment { session: self.session, entry: None, origin: Origin::Turn };
            let taken = workspace.checkpoint_at(moment, fresh::checkpoint(), Durability::Soon, &NoProgress);
            self.note(taken.map(drop).map_err(|error| in_words(&error)));
        }
    }

    fn open(&mut self, workspace: &mut Workspace) {
        let Some((operation, prompt)) = self.turn else { return };
        let window = NewWindow {
            session: self.session,
            turn: Some(prompt.to_string()),
            tool: "agent".to_owned(),
            reach: Reach::Everything,
            declared: Vec::new(),
            operation: PartOf::Turn(operation),
        };
        self.opened = Instant::now();
        self.is_claimed = false;
        match workspace.begin(window, fresh::checkpoint(), &NoProgress) {
            Ok(began) => self.window = Some(began.window),
            Err(error) => self.note(Err(in_words(&error))),
        }
    }

    fn close(&mut self, workspace: &mut Workspace) {
        let Some(window) = self.window.take() else { return };
        let closed = close(workspace, window, self.is_claimed);
        self.note(closed);
    }

    fn note(&mut self, result: Result<(), String>) {
        if let Err(why) = result {
            self.failure = Some(why);
        }
    }
}

/// Ends a window that was open for something; takes one back that was not.
fn close(workspace: &mut Workspace, window: Window, is_claimed: bool) -> Result<(), String> {
    match is_claimed {
        true => workspace
            .end(window, fresh::checkpoint(), Durability::Soon, &NoProgress)
            .map(drop)
            .map_err(|error| in_words(&error)),
        false => workspace.withdraw(window).map_err(|error| in_words(&error)),
    }
}
