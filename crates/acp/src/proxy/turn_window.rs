//! The window of a turn of the inner agent: records which files change, and who owns the changes.
//!
//! The inner agent does not wait for snapshots, and may announce a tool after its first write. So a window is open all through a turn, and
//! time decides which changes are the agent's: the [`ToolTimeline`] knows when tools were running.
//!
//! A snapshot when a tool begins and one when it ends keep apart what different people did to the same file. A path that a tool declares
//! and that is not captured otherwise (it is ignored, or too large) is captured then, and another window begins there: what the tool
//! found is what was there before. If the path may have changed since the agent's last word before the tool, that is not known any more,
//! and whoever goes back is told so.
//!
//! Snapshots and windows run on the workspace thread; the log writer updates the timeline. A failure is reported once, and the turn goes
//! on: a snapshot that could not be taken is a gap, not a reason to stop another agent.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use retake_agent::ids;
use retake_agent::query::in_words;
use retake_engine::checkpoint::Origin;
use retake_engine::id::EntryId;
use retake_engine::id::{OperationId, SessionId};
use retake_engine::progress::NoProgress;
use retake_engine::session::Moment;
use retake_engine::window::{FileTime, NewWindow, PartOf, Reach, Runs, Window};
use retake_engine::{Durability, Workspace, WorkspacePath};

use super::tool_timeline::{ToolTimeline, timing};

/// How long a window stays open for nothing before what has changed is kept apart from what comes.
const IDLE: Duration = Duration::from_millis(400);
/// How long after a word of the agent no tool must be announced for that: it may be about to run.
pub(super) const PAUSE: Duration = Duration::from_millis(60);

/// What a window is open for before a tool is announced.
const AGENT: &str = "agent";

/// A tool runs, or will, or has.
#[derive(Debug)]
pub(super) struct ToolWork {
    /// By which the agent tells it from others.
    pub(super) id: String,
    /// What it is called.
    pub(super) tool: String,
    /// Whether it may do more than change files.
    pub(super) runs: Runs,
    /// The paths that it says it writes.
    pub(super) paths: Vec<WorkspacePath>,
    /// It has not been at work before.
    pub(super) since: FileTime,
}

/// A tool of a window.
#[derive(Debug)]
struct Described {
    id: String,
    tool: String,
    runs: Runs,
}

/// The turn that is watched.
#[derive(Debug)]
pub(super) struct TurnWindow {
    session: SessionId,
    turn: Option<(OperationId, EntryId)>,
    window: Option<Window>,
    timeline: Arc<Mutex<ToolTimeline>>,
    is_claimed: bool,
    opened: Instant,
    /// The tools of the window that is open, each once.
    works: Vec<Described>,
    /// Commands that are told of with a window that has ended.
    told: HashSet<String>,
    /// Why the last snapshot could not be taken.
    pub(super) failure: Option<String>,
}

impl TurnWindow {
    /// Of a session in which nothing goes on.
    pub(super) fn new(session: SessionId, timeline: Arc<Mutex<ToolTimeline>>) -> Self {
        Self {
            session,
            turn: None,
            window: None,
            timeline,
            is_claimed: false,
            opened: Instant::now(),
            works: Vec::new(),
            told: HashSet::new(),
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
        self.told.clear();
        self.turn = Some((operation, prompt));
        let moment = Moment { session: self.session, entry: Some(prompt), origin: Origin::Prompt };
        let taken = workspace.checkpoints_mut().take_at(moment, ids::checkpoint(), Durability::Soon, &NoProgress);
        let taken = taken.map(drop).map_err(|error| in_words(&error));
        self.open(workspace, Vec::new());
        taken
    }

    /// Notes what a tool does.
    pub(super) fn claim(&mut self, workspace: &mut Workspace, work: &ToolWork) {
        if self.window.is_none() {
            return;
        }
        self.is_claimed = true;
        let unseen = workspace.changes().unseen(&work.paths).unwrap_or_else(|error| {
            self.note(Err(in_words(&error)));
            Vec::new()
        });
        self.describe(workspace, work);
        match unseen.is_empty() {
            true => self.declare(workspace, &work.paths),
            false => self.capture(workspace, work, unseen),
        }
    }

    /// Captures what is at `unseen` before the tool changes it, if that is still so, and watches what it does through another window: what
    /// is declared in this one was not seen when that began.
    fn capture(&mut self, workspace: &mut Workspace, work: &ToolWork, unseen: Vec<WorkspacePath>) {
        let changed = |workspace: &Workspace, path: &WorkspacePath| workspace.changes().last(path).ok().flatten();
        let timed = unseen.into_iter().map(|path| (changed(workspace, &path), path));
        // Nobody has captured what is in a directory that is left out.
        let is_file = |path: &WorkspacePath| !workspace.root().join(path.to_path()).is_dir();
        let is_in_time = |(time, path): &(Option<FileTime>, WorkspacePath)| {
            time.is_some_and(|time| time < work.since) && is_file(path)
        };
        let in_time: Vec<_> = timed.filter(is_in_time).collect();
        let captured: Vec<WorkspacePath> = in_time.iter().map(|(_, path)| path.clone()).collect();
        let (captured, others): (Vec<_>, Vec<_>) = work.paths.iter().cloned().partition(|path| captured.contains(path));
        self.declare(workspace, &others);
        let Some(ended) = self.window.take() else { return };
        self.open(workspace, captured);
        let overtaken = in_time.into_iter().filter(|(time, path)| changed(workspace, path) != *time);
        let overtaken: Vec<WorkspacePath> = overtaken.map(|(_, path)| path).collect();
        let claimed = workspace.windows().claim(&ended, &overtaken).map_err(|error| in_words(&error));
        self.note(claimed);
        let closed = close(workspace, ended, true);
        self.note(closed);
        self.is_claimed = true;
        self.describe(workspace, work);
    }

    /// Says what the window is open for. A command that goes on in another window is told of with the first.
    fn describe(&mut self, workspace: &mut Workspace, work: &ToolWork) {
        let runs = if self.told.contains(&work.id) { Runs::Edits } else { work.runs };
        self.works.retain(|known| known.id != work.id);
        self.works.push(Described { id: work.id.clone(), tool: work.tool.clone(), runs });
        self.describe_window(workspace);
    }

    /// A tool was announced and has not been at work: the user is asked about it first.
    pub(super) fn retract(&mut self, workspace: &mut Workspace, id: &str) {
        let known = self.works.len();
        self.works.retain(|work| work.id != id);
        if self.works.len() < known {
            self.describe_window(workspace);
        }
    }

    /// A tool has ended: if the agent calls another one so, that is another one.
    pub(super) fn forget(&mut self, id: &str) {
        self.told.remove(id);
    }

    /// A window is called after its newest command, or else its newest tool.
    fn describe_window(&mut self, workspace: &mut Workspace) {
        let Some(window) = &mut self.window else { return };
        let command = self.works.iter().rfind(|work| work.runs == Runs::Command);
        let (tool, runs) = match command.or(self.works.last()) {
            Some(work) => (work.tool.as_str(), work.runs),
            None => (AGENT, Runs::Edits),
        };
        let described = workspace.windows().describe(window, tool, runs);
        self.note(described.map_err(|error| in_words(&error)));
    }

    fn declare(&mut self, workspace: &mut Workspace, paths: &[WorkspacePath]) {
        let Some(window) = &self.window else { return };
        let claimed = workspace.windows().claim(window, paths);
        self.note(claimed.map_err(|error| in_words(&error)));
    }

    /// A tool begins: what changed before is kept apart from what it will do.
    pub(super) fn mark(&mut self, workspace: &mut Workspace) {
        if self.window.is_some() {
            self.checkpoint(workspace, Origin::Before);
        }
    }

    /// All tools have ended that were `told` of. The next one may be at work already: what comes next is watched before this is over.
    pub(super) fn settle(&mut self, workspace: &mut Workspace, told: u64) {
        timing(&self.timeline).see_to(told);
        self.rotate(workspace);
    }

    fn rotate(&mut self, workspace: &mut Workspace) {
        let ended = self.window.take();
        let is_claimed = self.is_claimed;
        self.open(workspace, Vec::new());
        if let Some(ended) = ended {
            let closed = close(workspace, ended, is_claimed);
            self.note(closed);
        }
    }

    /// The agent talks and runs no tool.
    pub(super) fn idle(&mut self, workspace: &mut Workspace) {
        if self.window.is_some() && !self.is_claimed && self.opened.elapsed() > IDLE {
            self.rotate(workspace);
        }
    }

    /// The turn has ended.
    pub(super) fn end(&mut self, workspace: &mut Workspace) {
        // Nobody can say what an agent has done that may never announce anything: the window stays, for that to be contested.
        self.is_claimed |= !timing(&self.timeline).announces();
        self.close(workspace);
        let mut timeline = timing(&self.timeline);
        let told = timeline.told();
        timeline.see_to(told);
        timeline.attach(None);
        drop(timeline);
        if self.turn.take().is_some() {
            self.checkpoint(workspace, Origin::Turn);
        }
    }

    fn checkpoint(&mut self, workspace: &mut Workspace, origin: Origin) {
        let moment = Moment { session: self.session, entry: None, origin };
        let taken = workspace.checkpoints_mut().take_at(moment, ids::checkpoint(), Durability::Soon, &NoProgress);
        self.note(taken.map(drop).map_err(|error| in_words(&error)));
    }

    fn open(&mut self, workspace: &mut Workspace, declared: Vec<WorkspacePath>) {
        let Some((operation, prompt)) = self.turn else { return };
        let window = NewWindow {
            session: self.session,
            turn: Some(prompt.to_string()),
            tool: AGENT.to_owned(),
            reach: Reach::Spans,
            declared,
            operation: PartOf::Turn(operation),
        };
        self.opened = Instant::now();
        self.is_claimed = false;
        let ended = std::mem::take(&mut self.works).into_iter().filter(|work| work.runs == Runs::Command);
        self.told.extend(ended.map(|work| work.id));
        match workspace.windows().begin(window, ids::checkpoint(), &NoProgress) {
            Ok(began) => {
                timing(&self.timeline).attach(Some(began.window.spans()));
                self.window = Some(began.window);
            }
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
            .windows()
            .end(window, ids::checkpoint(), Durability::Soon, &NoProgress)
            .map(drop)
            .map_err(|error| in_words(&error)),
        false => workspace.windows().withdraw(window).map_err(|error| in_words(&error)),
    }
}
