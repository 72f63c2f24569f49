//! The window through which a turn of the inner agent is watched: whose are the files that change?
//!
//! Nobody can make the inner agent wait for a snapshot, and what it says may come after the first write. So a window is open all through
//! a turn, and what counts in it is decided by time: the [`Timeline`] says when tools were at work, and the engine compares that with the
//! times that the kernel gave to files. A person's work must never be taken for the agent's; so, for each change:
//!
//! | when | declared path | any other path |
//! |---|---|---|
//! | a tool is at work: announced, not ended, and nobody is being asked whether it may run | the agent's, certain | the agent's, presumed |
//! | after the agent's last word, shortly (`doubt`) before a tool is announced that has not ended | contested | contested |
//! | after the agent's last word, earlier than that | contested | outside |
//! | after the agent's last word, before a tool is announced that has ended already | the agent's, certain | outside if it declares paths, else contested |
//! | in a turn without any tool, of an agent that has not announced one in this session | contested | contested |
//! | at all other times: it thinks, it talks, it asks, between two tools | outside | outside |
//!
//! - A tool that says it only reads, searches, fetches or thinks is never at work.
//! - A `pending` tool is at work, since agents exist that never say more before it has ended; not so while anything is asked about
//!   (other than tools that are `in_progress`), and not if it was refused.
//! - An agent's line takes a moment to be read. What changes that shortly (`notice`) before a tool's beginning is read, though not
//!   before the agent's last word, or after its end is read, counts as if a tool was at work.
//! - An agent may be busy, and announce a tool when that has done its work. What changed `doubt` before the announcement, and more than
//!   `notice`, is contested: to pass it over would leave the agent's work where it is without a word.
//! - An agent that has never announced a tool may be one that never does. What changes in its turns may be anybody's: it is contested
//!   until the first tool is announced, and from then on silence means that nothing runs.
//!
//! A snapshot when a tool begins and one when it ends keep apart what different people did to the same file. Snapshots and windows are
//! the keeper's, on its thread; the timeline is kept up by the scribe, as soon as something is said. What fails is told to people once,
//! and the turn goes on: a snapshot that could not be taken is a gap, not a reason to stop somebody else's agent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use retake_agent::fresh;
use retake_agent::question::in_words;
use retake_engine::session::Moment;
use retake_engine::session::entry::EntryId;
use retake_engine::{
    Claim, Durability, FileTime, NewWindow, NoProgress, OperationId, Origin, PartOf, Reach, SessionId, Span, Spans,
    Window, Workspace, WorkspacePath,
};

/// How long a window stays open for nothing before what has changed is kept apart from what comes.
const IDLE: Duration = Duration::from_millis(400);
/// How long after a word of the agent no tool must be announced for that: it may be about to run.
pub(super) const PAUSE: Duration = Duration::from_millis(60);

/// A moment, as files know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    /// Not later than the time of what changes from then on.
    floor: FileTime,
    /// Not earlier than the time of what changed before.
    now: FileTime,
}

impl Stamp {
    pub(super) fn now() -> Self {
        Self { floor: FileTime::floor(), now: FileTime::now() }
    }
}

/// How a tool comes to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It has ended.
    Ended,
    /// It waits for an answer.
    Waits,
}

/// When tools of the agent were at work, as far as it has said so.
#[derive(Debug)]
pub(super) struct Timeline {
    notice: Duration,
    doubt: Duration,
    /// Those that matter for the window that is open.
    spans: Vec<Span>,
    window: Option<Spans>,
    /// When the agent last said anything.
    heard: Stamp,
    /// Whether it is known to announce tools.
    announces: bool,
}

/// The turn that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    session: SessionId,
    turn: Option<(OperationId, EntryId)>,
    window: Option<Window>,
    timeline: Arc<Mutex<Timeline>>,
    is_claimed: bool,
    opened: Instant,
    /// Why the last snapshot could not be taken.
    pub(super) failure: Option<String>,
}

impl Timeline {
    /// Of an agent that is known to announce its tools, or not known to.
    pub(super) fn new(notice: Duration, doubt: Duration, announces: bool) -> Self {
        Self { notice, doubt, spans: Vec::new(), window: None, heard: Stamp::now(), announces }
    }

    /// Whether the agent is known to announce tools.
    pub(super) fn announces(&self) -> bool {
        self.announces
    }

    /// A turn begins.
    pub(super) fn begin(&mut self, at: Stamp) {
        self.heard = at;
        if !self.announces {
            let doubt = Claim::Doubtful;
            self.spans.push(Span { since: at.floor, until: None, declared: doubt, others: doubt });
        }
        self.write();
    }

    /// The agent has said something, or was answered: no tool that is announced later was at work before.
    pub(super) fn hear(&mut self, at: Stamp) {
        self.heard = at;
    }

    /// The agent does announce tools: what it has not announced it has not done.
    pub(super) fn announced(&mut self) {
        if !std::mem::replace(&mut self.announces, true) {
            self.spans.clear();
            self.write();
        }
    }

    /// A tool is at work.
    pub(super) fn work(&mut self, at: Stamp) {
        let since = at.floor.minus(self.notice).max(self.heard.floor);
        let near = at.floor.minus(self.doubt).clamp(self.heard.floor, since);
        for (since, until, others) in [(self.heard.floor, near, Claim::No), (near, since, Claim::Doubtful)] {
            if since < until {
                let until = Some(FileTime(until.0 - 1));
                self.spans.push(Span { since, until, declared: Claim::Doubtful, others });
            }
        }
        self.spans.push(Span { since, until: None, declared: Claim::Yes, others: Claim::Yes });
        self.write();
    }

    /// No tool is at work any more.
    pub(super) fn rest(&mut self, at: Stamp, rest: Rest) {
        let until = match rest {
            Rest::Ended => at.now.plus(self.notice),
            Rest::Waits => at.now,
        };
        self.close(until, Claim::Yes);
    }

    /// A tool has been at work, and nothing was said of it before it had ended.
    pub(super) fn late(&mut self, at: Stamp, declares: bool) {
        let others = if declares { Claim::No } else { Claim::Doubtful };
        let until = Some(at.now.plus(self.notice));
        self.spans.push(Span { since: self.heard.floor, until, declared: Claim::Yes, others });
        self.write();
    }

    /// The client is asked to write declared paths.
    pub(super) fn write_begins(&mut self, at: Stamp) {
        self.spans.push(Span { since: at.floor, until: None, declared: Claim::Yes, others: Claim::No });
        self.write();
    }

    /// The client has written them.
    pub(super) fn write_ends(&mut self, at: Stamp) {
        self.close(at.now, Claim::No);
    }

    /// The turn is over: what changes from now on is nobody's of it.
    pub(super) fn end(&mut self, at: Stamp) {
        for span in &mut self.spans {
            span.until = Some(span.until.map_or(at.now, |until| until.min(at.now)));
        }
        self.write();
    }

    fn close(&mut self, until: FileTime, others: Claim) {
        for span in self.spans.iter_mut().filter(|span| span.until.is_none() && span.others == others) {
            span.until = Some(until);
        }
        self.write();
    }

    /// Another window is open now: what is over does not matter for it.
    fn attach(&mut self, window: Option<Spans>) {
        self.spans.retain(|span| span.until.is_none());
        self.window = window;
        self.write();
    }

    fn write(&self) {
        let Some(window) = &self.window else { return };
        if let Err(error) = window.set(&self.spans) {
            super::complain(&format!("Retake's store cannot be written: {error}"));
        }
    }
}

/// The timeline; whoever panicked with it has not left it in pieces.
pub(super) fn timing(timeline: &Mutex<Timeline>) -> MutexGuard<'_, Timeline> {
    timeline.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Of a session in which nothing goes on.
    pub(super) fn new(session: SessionId, timeline: Arc<Mutex<Timeline>>) -> Self {
        Self { session, turn: None, window: None, timeline, is_claimed: false, opened: Instant::now(), failure: None }
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
        let moment = Moment { session: self.session, entry: Some(prompt), origin: Origin::Prompt };
        let taken = workspace.checkpoint_at(moment, fresh::checkpoint(), Durability::Soon, &NoProgress);
        let taken = taken.map(drop).map_err(|error| in_words(&error));
        self.open(workspace);
        taken
    }

    /// A tool runs, or has; `paths` are those that it says it writes.
    pub(super) fn claim(&mut self, workspace: &mut Workspace, tool: &str, is_command: bool, paths: &[WorkspacePath]) {
        let Some(window) = &mut self.window else { return };
        self.is_claimed = true;
        let claimed = workspace.claim(window, tool, is_command, paths);
        self.note(claimed.map_err(|error| in_words(&error)));
    }

    /// A tool begins: what changed before is kept apart from what it will do.
    pub(super) fn mark(&mut self, workspace: &mut Workspace) {
        if self.window.is_some() {
            self.checkpoint(workspace, Origin::Before);
        }
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
        // Nobody can say what an agent has done that may never announce anything: the window stays, for that to be contested.
        self.is_claimed |= !timing(&self.timeline).announces();
        self.close(workspace);
        timing(&self.timeline).attach(None);
        if self.turn.take().is_some() {
            self.checkpoint(workspace, Origin::Turn);
        }
    }

    fn checkpoint(&mut self, workspace: &mut Workspace, origin: Origin) {
        let moment = Moment { session: self.session, entry: None, origin };
        let taken = workspace.checkpoint_at(moment, fresh::checkpoint(), Durability::Soon, &NoProgress);
        self.note(taken.map(drop).map_err(|error| in_words(&error)));
    }

    fn open(&mut self, workspace: &mut Workspace) {
        let Some((operation, prompt)) = self.turn else { return };
        let window = NewWindow {
            session: self.session,
            turn: Some(prompt.to_string()),
            tool: "agent".to_owned(),
            reach: Reach::Spans,
            declared: Vec::new(),
            operation: PartOf::Turn(operation),
        };
        self.opened = Instant::now();
        self.is_claimed = false;
        match workspace.begin(window, fresh::checkpoint(), &NoProgress) {
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
            .end(window, fresh::checkpoint(), Durability::Soon, &NoProgress)
            .map(drop)
            .map_err(|error| in_words(&error)),
        false => workspace.withdraw(window).map_err(|error| in_words(&error)),
    }
}
