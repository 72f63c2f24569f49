//! Processes of a call: starting a shell, finding everything that it started, and ending all of it.
//!
//! A shell gets a process group, a mark in its environment and a pipe for its output. Whatever has one of the three belongs to the call:
//! a grandchild that began a session of its own still has the mark, one that cleared its environment still has the group or the pipe.
//! Only a process that shed all three is not found. Without `/proc` only the group is known.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::watchdog;
use crate::ids;

/// The variable that marks the processes of a call.
pub const CALL_MARK: &str = "RETAKE_CALL";
/// The variable that tells a command in which turn it runs, so that a `retake exec` inside it belongs to that.
pub const TURN_MARK: &str = "RETAKE_TURN";

/// How long processes that were asked to end are waited for between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// A process that cannot be killed, for it waits on a disk say, is given up after this.
const GIVE_UP: Duration = Duration::from_secs(2);

/// Everything that a call started.
#[derive(Clone, Debug)]
pub(crate) struct ProcessGroup {
    id: Pid,
    mark: String,
    pipe: Option<String>,
    /// Nothing has the group's id any more, so that it may be given to somebody else.
    is_free: Arc<AtomicBool>,
    is_leader_gone: Arc<AtomicBool>,
}

/// A process that belongs to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: i32,
    /// Its command line.
    pub(crate) name: String,
}

impl ProcessGroup {
    /// The group that a command will have when it is started with [`prepare`].
    pub(crate) fn of(leader: u32, mark: String, pipe: Option<u64>) -> Option<Self> {
        let id = Pid::from_raw(i32::try_from(leader).ok()?)?;
        watchdog::watch(id.as_raw_nonzero().get(), instance());
        let pipe = pipe.map(|inode| format!("pipe:[{inode}]"));
        Some(Self { id, mark, pipe, is_free: Arc::default(), is_leader_gone: Arc::default() })
    }

    /// Tells that the shell has ended and was waited for.
    pub(crate) fn leader_ended(&self) {
        self.is_leader_gone.store(true, Ordering::Relaxed);
    }

    /// All processes of the call that are alive.
    pub(crate) fn members(&self) -> Vec<Member> {
        if !Path::new("/proc/self/environ").exists() {
            let is_alive = !self.is_free() && test_kill_process_group(self.id).is_ok();
            self.note_group(is_alive);
            let id = self.id.as_raw_nonzero().get();
            return if is_alive { vec![Member { id, name: format!("process group {id}") }] } else { Vec::new() };
        }
        let own = std::process::id();
        let (mut members, mut in_group) = (Vec::new(), false);
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            let Some(id) = id.filter(|id| u32::try_from(*id) != Ok(own)) else { continue };
            if let Some(tie) = self.tie(&entry.path()) {
                in_group |= tie == GroupLink::Group;
                members.push(Member { id, name: command_line(&entry.path()) });
            }
        }
        self.note_group(in_group);
        members
    }

    fn is_free(&self) -> bool {
        self.is_free.load(Ordering::Relaxed)
    }

    fn note_group(&self, is_alive: bool) {
        if !is_alive && self.is_leader_gone.load(Ordering::Relaxed) {
            self.is_free.store(true, Ordering::Relaxed);
        }
    }

    /// How the process in `directory` of `/proc` belongs to the call, if it does and is alive.
    fn tie(&self, directory: &Path) -> Option<GroupLink> {
        let stat = fs::read_to_string(directory.join("stat")).ok()?;
        // `id (name) state parent group …`, where the name may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        if matches!(state, "Z" | "X") {
            return None;
        }
        let group: i32 = fields.nth(1)?.parse().ok()?;
        if self.id.as_raw_nonzero().get() == group && !self.is_free() {
            return Some(GroupLink::Group);
        }
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        let mark = format!("{CALL_MARK}={}", self.mark);
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            return Some(GroupLink::Mark);
        }
        let pipe = self.pipe.as_ref()?;
        let holds = |fd: &str| fs::read_link(directory.join(fd)).is_ok_and(|link| link == Path::new(pipe));
        (holds("fd/1") || holds("fd/2")).then_some(GroupLink::Pipe)
    }

    fn signal(&self, members: &[Member], signal: Signal) {
        // Whoever has ended meanwhile needs no signal. The group gets it at once, so that none of it can start another in between.
        if !self.is_free() {
            kill_process_group(self.id, signal).ok();
        }
        for id in members.iter().filter_map(|member| Pid::from_raw(member.id)) {
            kill_process(id, signal).ok();
        }
    }

    /// Kills what is in the group without looking for the rest; does not block.
    pub(crate) fn kill_group(&self) {
        self.signal(&[], Signal::KILL);
    }

    /// Ends all of it: asks, waits for at most `grace`, kills. Blocks until nothing is left. For threads that may.
    pub(crate) fn end(&self, grace: Duration) {
        let begun = Instant::now();
        let mut members = self.members();
        if !members.is_empty() && grace > Duration::ZERO {
            self.signal(&members, Signal::TERM);
            // One that is stopped would not hear it.
            self.signal(&members, Signal::CONT);
        }
        while !members.is_empty() && begun.elapsed() < grace {
            std::thread::sleep(LOOK);
            members = self.members();
        }
        // A process that is being started may be missed by one look.
        let (mut looks_without, killing) = (0, Instant::now());
        while looks_without < 2 && killing.elapsed() < GIVE_UP {
            if members.is_empty() {
                looks_without += 1;
            } else {
                looks_without = 0;
                self.signal(&members, Signal::KILL);
                std::thread::sleep(Duration::from_millis(1));
            }
            members = self.members();
        }
        self.release();
    }

    /// Tells the watchdog that nothing is left.
    pub(crate) fn release(&self) {
        watchdog::release(self.id.as_raw_nonzero().get(), instance());
    }
}

/// How a process belongs to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupLink {
    Group,
    Mark,
    Pipe,
}

fn command_line(directory: &Path) -> String {
    let command = fs::read(directory.join("cmdline")).unwrap_or_default();
    let words: Vec<_> =
        command.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    words.join(" ").chars().take(200).collect()
}

/// What all marks of this Retake begin with.
pub(crate) fn instance() -> &'static str {
    static INSTANCE: OnceLock<String> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let mut random = [0; 8];
        ids::fill(&mut random);
        random.iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// A mark that no other call has. From now on the watchdog ends what has it, should Retake be killed.
pub(crate) fn new_mark() -> String {
    watchdog::begin(instance());
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{}-{}", instance(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Prepares a command to be found again, and not to have the keys of models. That it leads a process group is the caller's to see to.
pub(crate) fn prepare(command: &mut Command, mark: &str, hidden: &[String]) {
    command.env(CALL_MARK, mark).stdin(Stdio::null());
    hidden.iter().for_each(|name| {
        command.env_remove(name);
    });
}

/// A shell that leads a process group: `bash`, or `sh` where there is none.
///
/// With `setsid` it leads a session too and has no terminal, so that nothing can ask for a password on the user's screen, or be
/// stopped for trying to. `setsid` becomes the shell without starting another process, as it leads no group itself.
pub(crate) fn shell() -> Command {
    static HAS: OnceLock<(bool, bool)> = OnceLock::new();
    let (has_bash, has_setsid) = *HAS.get_or_init(|| (is_on_path("bash"), is_on_path("setsid")));
    let shell = if has_bash { "bash" } else { "sh" };
    if has_setsid {
        let mut command = Command::new("setsid");
        command.arg(shell);
        return command;
    }
    let mut command = Command::new(shell);
    command.process_group(0);
    command
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
