//! When tools of the inner agent were running, by its own updates. This decides who owns the files that change in its turns.
//!
//! The engine compares this with the times that the kernel gave to files. A person's work must never be taken for the agent's; so, for
//! each change:
//!
//! | when | declared path | any other path |
//! |---|---|---|
//! | a tool is at work (announced, not ended, and nobody is being asked whether it may run) that may do anything | the agent's, certain | the agent's, presumed |
//! | only tools are at work that edit, and have declared where | the agent's, certain | outside |
//! | a tool is at work that edits, and has not declared (all of) where, or that says where and not what it does | the agent's, certain | contested |
//! | after the agent's last word, shortly (`doubt`) before a tool is announced that has not ended | contested | contested, or outside if it only edits and declares where |
//! | after the agent's last word, earlier than that | contested | outside |
//! | after the agent's last word, before a tool is announced that has ended already | the agent's, certain | outside if it declares paths, else contested |
//! | after the agent's last word, if Retake is then killed: a tool may have been at work that nobody read of | contested | contested |
//! | in a turn without any tool, of an agent that has not announced one in this session | contested | contested |
//! | at all other times: it thinks, it talks, it asks, between two tools | outside | outside |
//!
//! - A tool that says it only reads, searches, fetches or thinks is never at work.
//! - A `pending` tool is at work, since agents exist that never say more before it has ended; not so while anything is asked about
//!   (other than tools that are `in_progress`), and not if it was refused.
//! - What is said of a tool later counts from its beginning: one that turns out to edit, or declares where, never did anything else.
//! - An agent's line takes a moment to be read. What changes that shortly (`notice`) before a tool's beginning is read, or after its end
//!   is, counts as if it was at work. Words that are read within such a moment of each other may have been said before any of them was
//!   read; so the agent's last word is one after which nothing was read for that long.
//! - An agent may be busy, and announce a tool when that has done its work. What changed `doubt` before the announcement, and more than
//!   `notice`, is contested: to pass it over would leave the agent's work where it is without a word.
//! - An agent that has never announced a tool may be one that never does. What changes in its turns may be anybody's: it is contested
//!   until the first tool is announced, and from then on silence means that nothing runs.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use retake_engine::WorkspacePath;
use retake_engine::window::{Claim, Counts, FileTime, Span, Spans};

/// A moment, as files know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventTime {
    floor: FileTime,
    /// Not earlier than the time of what changed before.
    now: FileTime,
}

impl EventTime {
    pub(super) fn now() -> Self {
        Self { floor: FileTime::floor(), now: FileTime::now() }
    }

    /// Not later than the time of what changes from then on.
    pub(super) fn floor(self) -> FileTime {
        self.floor
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

/// What a tool may change beside the paths that it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndeclaredPaths {
    /// Anything: a command.
    Anything,
    /// Nothing, once it has declared them all: it edits.
    NotYetDeclared,
    /// Nothing: it edits, and has declared them.
    Nothing,
}

impl UndeclaredPaths {
    fn claim(self) -> Claim {
        match self {
            Self::Anything => Claim::Yes,
            Self::NotYetDeclared => Claim::Doubtful,
            Self::Nothing => Claim::No,
        }
    }
}

/// A time of one tool.
#[derive(Debug)]
struct Worked {
    tool: String,
    span: Span,
    /// The most that it can claim of paths that are not declared.
    ceiling: Claim,
    /// How many were told before.
    number: u64,
    /// It was over when the window that is open now was opened, and all that was to be done about it had been.
    is_old: bool,
}

/// When tools of the agent were at work, as far as it has said so.
#[derive(Debug)]
pub(super) struct ToolTimeline {
    notice: Duration,
    doubt: Duration,
    /// Those that matter for the window that is open.
    worked: Vec<Worked>,
    /// How many there were.
    told: u64,
    /// Those before this one have been seen to by whoever takes snapshots.
    seen_to: u64,
    window: Option<Spans>,
    /// When the agent last said anything.
    heard: FileTime,
    /// When it last had, before it went on to say what was read in the same moment.
    paused: FileTime,
    /// Whether it is known to announce tools.
    announces: bool,
    /// Whether a turn runs.
    is_running: bool,
    /// The last word that is written down.
    written: Option<FileTime>,
}

/// What stands for a tool in a turn of an agent that may never announce one.
const UNANNOUNCED: &str = "";

impl ToolTimeline {
    /// Of an agent that is known to announce its tools, or not known to.
    pub(super) fn new(notice: Duration, doubt: Duration, announces: bool) -> Self {
        let now = FileTime::floor();
        Self {
            notice,
            doubt,
            worked: Vec::new(),
            told: 0,
            seen_to: 0,
            window: None,
            heard: now,
            paused: now,
            announces,
            is_running: false,
            written: None,
        }
    }

    /// Whether the agent is known to announce tools.
    pub(super) fn announces(&self) -> bool {
        self.announces
    }

    /// A turn begins.
    pub(super) fn begin(&mut self, at: EventTime) {
        self.answered(at);
        self.is_running = true;
        if !self.announces {
            self.add(UNANNOUNCED, at.floor, None, (Claim::Doubtful, Claim::Doubtful), &[]);
        }
        self.write();
    }

    /// The agent has said something: no tool that is announced later was at work before, unless the two were read at once.
    pub(super) fn hear(&mut self, at: EventTime) {
        self.paused = self.last_word(at);
        self.heard = at.floor;
    }

    /// The agent was told something for which it waited: no tool that is announced later was at work before.
    pub(super) fn answered(&mut self, at: EventTime) {
        (self.heard, self.paused) = (at.floor, at.floor);
    }

    /// When the agent had last said something before what is said at `at`: what that tells of happened later.
    pub(super) fn last_word(&self, at: EventTime) -> FileTime {
        if at.floor.minus(self.notice) > self.heard { self.heard } else { self.paused }
    }

    /// The agent does announce tools: what it has not announced it has not done.
    pub(super) fn announced(&mut self) {
        if !std::mem::replace(&mut self.announces, true) {
            self.worked.clear();
            self.write();
        }
    }

    /// A tool is at work.
    pub(super) fn work(&mut self, tool: &str, at: EventTime, beside: UndeclaredPaths, paths: &[WorkspacePath]) {
        let last_word = self.last_word(at);
        let since = at.floor.minus(self.notice).max(last_word);
        let near = at.floor.minus(self.doubt).clamp(last_word, since);
        for (since, until, ceiling) in [(last_word, near, Claim::No), (near, since, Claim::Doubtful)] {
            if since < until {
                let until = Some(FileTime(until.0 - 1));
                self.add(tool, since, until, (Claim::Doubtful, ceiling), paths);
            }
        }
        self.add(tool, since, None, (Claim::Yes, Claim::Yes), paths);
        self.reach(tool, beside, paths);
        self.write();
    }

    /// More is known of what a tool changes.
    pub(super) fn reach(&mut self, tool: &str, beside: UndeclaredPaths, paths: &[WorkspacePath]) {
        let mut is_news = false;
        for Worked { span, ceiling, .. } in self.of(tool) {
            let others = beside.claim().min(*ceiling);
            is_news |= std::mem::replace(&mut span.others, others) != others;
            let known = span.paths.len();
            span.paths.extend(paths.iter().cloned());
            is_news |= span.paths.len() > known;
        }
        if is_news {
            self.write();
        }
    }

    /// A tool is not at work any more.
    pub(super) fn rest(&mut self, tool: &str, at: EventTime, rest: Rest) {
        let until = match rest {
            Rest::Ended => at.now.plus(self.notice),
            Rest::Waits => at.now,
        };
        for worked in self.of(tool).filter(|worked| worked.span.until.is_none()) {
            worked.span.until = Some(until);
        }
        self.write();
    }

    /// A tool has been at work, and nothing was said of it before it had ended.
    pub(super) fn late(&mut self, tool: &str, at: EventTime, beside: UndeclaredPaths, paths: &[WorkspacePath]) {
        let others = if beside == UndeclaredPaths::Nothing { Claim::No } else { Claim::Doubtful };
        self.add(tool, self.last_word(at), Some(at.now.plus(self.notice)), (Claim::Yes, others), paths);
        self.write();
    }

    /// The client is asked to write; `rest` tells when it has.
    pub(super) fn write_begins(&mut self, question: &str, at: EventTime, paths: &[WorkspacePath]) {
        self.add(question, at.floor, None, (Claim::Yes, Claim::No), paths);
        self.write();
    }

    /// The turn is over: what changes from now on is nobody's of it.
    pub(super) fn end(&mut self, at: EventTime) {
        for Worked { span, .. } in &mut self.worked {
            span.until = Some(span.until.map_or(at.now, |until| until.min(at.now)));
        }
        self.is_running = false;
        self.write();
    }

    /// Another window is open now. What was told to be over while the last one was open may have been found in that, or by the snapshot
    /// with which this one was opened: it matters for both, and until what it declares has been captured.
    pub(super) fn attach(&mut self, window: Option<Spans>) {
        self.worked.retain(|worked| !worked.is_old);
        for worked in &mut self.worked {
            worked.is_old = worked.span.until.is_some() && worked.number < self.seen_to;
        }
        self.window = window;
        self.write();
    }

    /// How many times of tools were told so far.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Whoever takes snapshots, and may be behind, has come to where so many were told.
    pub(super) fn see_to(&mut self, told: u64) {
        self.seen_to = told;
    }

    fn of(&mut self, tool: &str) -> impl Iterator<Item = &mut Worked> {
        self.worked.iter_mut().filter(move |worked| worked.tool == tool)
    }

    fn add(
        &mut self,
        tool: &str,
        since: FileTime,
        until: Option<FileTime>,
        (declared, ceiling): (Claim, Claim),
        paths: &[WorkspacePath],
    ) {
        let span = Span {
            since,
            until,
            paths: paths.iter().cloned().collect(),
            declared,
            others: ceiling,
            counts: Counts::Always,
        };
        self.worked.push(Worked { tool: tool.to_owned(), span, ceiling, number: self.told, is_old: false });
        self.told += 1;
    }

    /// Writes the agent's last word down, if it has said more since: whoever finds this after a kill need not doubt what changed before.
    pub(super) fn note_word(&mut self) {
        if self.is_running && self.written != Some(self.paused) {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some(window) = &self.window else { return };
        let mut spans: Vec<Span> = self.worked.iter().map(|worked| worked.span.clone()).collect();
        if self.is_running {
            let (declared, others) = (Claim::Doubtful, Claim::Doubtful);
            let (paths, counts) = (BTreeSet::new(), Counts::IfKilled);
            spans.push(Span { since: self.paused, until: None, paths, declared, others, counts });
            self.written = Some(self.paused);
        }
        if let Err(error) = window.set(&spans) {
            super::complain(&format!("Retake's store cannot be written: {error}"));
        }
    }
}

/// The timeline; whoever panicked with it has not left it in pieces.
pub(super) fn timing(timeline: &Mutex<ToolTimeline>) -> MutexGuard<'_, ToolTimeline> {
    timeline.lock().unwrap_or_else(PoisonError::into_inner)
}
