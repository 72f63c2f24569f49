//! `bash`: shell commands.
//!
//! A command is run in the workspace, without a terminal and without the keys of models. A call ends when its shell does, when its time
//! is over or when it is interrupted; in the last two cases with everything that the command started. What a command leaves running on
//! purpose becomes a job, so that nothing runs unseen.

mod bounded_output;
mod clean;
mod process;
mod running;
mod watchdog;

use std::time::Duration;

use retake_engine::session::entry::Outcome;
use tokio::sync::mpsc;

use self::bounded_output::BoundedOutput;
use self::clean::{Escapes, Lines, Utf8};
use super::arguments::{ArgumentKind, Arguments, optional, required};
use super::run::interruption;
use super::toolbox::{Tool, ToolContext};
use super::{Access, CallContext, JobId, Output, Prepared};

pub(crate) use self::bounded_output::Unread;
pub use self::process::{CALL_MARK, TURN_MARK};
pub(crate) use self::process::{ProcessGroup, new_mark, prepare as prepare_process};
pub use self::running::Exit;
pub(crate) use self::running::RunningShell;

const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 600;
/// Between asking processes to end and killing them.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// The same when the user waits.
const SHORT_GRACE: Duration = Duration::from_millis(25);
/// An interrupted call has ended by then; what is left to kill is killed after it.
const INTERRUPTED_WITHIN: Duration = Duration::from_millis(70);
/// What a command left is given this time to end by itself before it counts as left.
const SETTLE: Duration = Duration::from_millis(50);

pub(crate) const BASH: Tool = Tool {
    name: "bash",
    description: "Runs a command with `bash -c` in the workspace's root, for builds, tests, git and whatever has no tool of its own. Each \
call is a new shell: `cd` and variables do not last, so chain with `&&`. There is no terminal and no input; commands that ask or page must \
be given their answers (`-y`, `--no-pager`).\n\nStandard output and error come together; of long output the first 10 KB and last 20 KB are \
returned, so filter with `grep` or `tail` where you can. After `timeout_seconds` (default 120, at most 600) the command is ended with all it \
started. For a server, a watcher or anything that goes on, set `background`: the call returns at once with a job, to be read with \
`job_output` and ended with `job_end`; do not use `&` or `nohup`.\n\nTo read, find, edit, move or delete files use the other tools.",
    arguments: &[
        required("command", ArgumentKind::Text, "The command line."),
        optional(
            "timeout_seconds",
            ArgumentKind::Integer(1),
            "End the command after this time. Default: 120, maximum: 600.",
        ),
        optional(
            "background",
            ArgumentKind::Flag,
            "Run it as a job and return at once; there is no timeout then. Default: false.",
        ),
    ],
    prepare,
};

/// How commands are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// Variables that commands do not get: the keys of models, and where they are.
    pub hidden: Vec<String>,
}

impl Default for Shell {
    fn default() -> Self {
        // A base URL may have a password or a key in it.
        Self { hidden: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "RETAKE_BASE_URL"].map(String::from).to_vec() }
    }
}

impl Shell {
    /// Variables that keep programs from paging, drawing and asking.
    fn variables(&self) -> [(&'static str, &'static str); 7] {
        [
            ("TERM", "dumb"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("MANPAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("PIP_NO_INPUT", "1"),
        ]
    }
}

fn prepare(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let command = arguments.text("command").to_owned();
    if command.trim().is_empty() || command.contains('\0') {
        return Err(Output::failed("`command` is empty or contains a NUL character; nothing was run."));
    }
    let limit = Duration::from_secs(arguments.integer("timeout_seconds").unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT));
    let in_background = arguments.is_set("background");
    let title = format!("bash: {}", in_one_line(&command));
    let access = Access::Runs { command: command.clone() };
    let bench = bench.clone();
    Ok(Prepared {
        title,
        access,
        preview: None,
        run: Box::new(move |surroundings| {
            Box::pin(async move {
                match in_background {
                    true => start_job(&bench, &command, surroundings),
                    false => run(&bench, &command, limit, surroundings).await,
                }
            })
        }),
    })
}

/// A command in one line, which tells if there is more of it.
pub(crate) fn in_one_line(command: &str) -> String {
    let mut lines = command.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() {
        0 => first.to_owned(),
        1 => format!("{first} … (+1 line)"),
        more => format!("{first} … (+{more} lines)"),
    }
}

fn start_job(bench: &ToolContext, command: &str, surroundings: CallContext) -> Output {
    if bench.jobs.is_full() {
        return Output::failed("Too many jobs are running; nothing was started. End some with `job_end` first.");
    }
    let started = RunningShell::start(&bench.shell, &surroundings, command);
    match started.map(|live| bench.jobs.follow(live, command, surroundings.tag, None)) {
        Ok(id) => Output {
            job: Some(id),
            ..Output::done(format!("Started as job {id}. Read its output with `job_output`, end it with `job_end`."))
        },
        Err(error) => Output::failed(format!("The shell cannot be started: {error}.")),
    }
}

/// How the wait for a command ended.
enum CommandEnd {
    Shell(Exit),
    TimedOut,
    Interrupted,
}

async fn run(bench: &ToolContext, command: &str, limit: Duration, surroundings: CallContext) -> Output {
    let mut live = match RunningShell::start(&bench.shell, &surroundings, command) {
        Ok(live) => live,
        Err(error) => return Output::failed(format!("The shell cannot be started: {error}.")),
    };
    let guard = EndOnDrop::new(live.group.clone());
    let mut record = Record::new(surroundings.output);
    let mut sink = |bytes: &[u8]| record.push(bytes);
    let ended = tokio::select! {
        biased;
        () = interruption(surroundings.interrupted.clone()) => CommandEnd::Interrupted,
        () = tokio::time::sleep(limit) => CommandEnd::TimedOut,
        exit = live.until_shell_ends(&mut sink) => CommandEnd::Shell(exit),
    };
    match ended {
        CommandEnd::Shell(exit) => {
            let left = left_running(&mut live, &mut record).await;
            guard.disarm();
            if left.is_empty() {
                live.group.release();
                return finished(record, exit);
            }
            let job = bench.jobs.follow(live, command, surroundings.tag, Some(exit));
            let output = finished(record, exit);
            with_job(output, job, &left)
        }
        CommandEnd::TimedOut => {
            let ending = end(live.group.clone(), GRACE);
            tokio::select! {
                () = ending => {}
                () = interruption(surroundings.interrupted) => end_at_once(&live.group).await,
            }
            settle(live, &mut record, guard).await;
            let told = format!(
                "Timed out after {} s and was ended. Give a longer `timeout_seconds`, or run it in the `background`.",
                limit.as_secs()
            );
            Output::failed(record.tell(&told))
        }
        CommandEnd::Interrupted => {
            end_at_once(&live.group).await;
            settle(live, &mut record, guard).await;
            Output::interrupted(record.tell("Interrupted by the user; the command and all it started were ended."))
        }
    }
}

/// Waits until all that a command started is ended.
async fn end(group: ProcessGroup, grace: Duration) {
    // Fails only if that panicked, and then nothing is to be waited for.
    drop(tokio::task::spawn_blocking(move || group.end(grace)).await);
}

/// The same, in the time that an interrupted call has. The killing goes on if it takes longer.
async fn end_at_once(group: &ProcessGroup) {
    let ended = tokio::time::timeout(INTERRUPTED_WITHIN, end(group.clone(), SHORT_GRACE)).await;
    if ended.is_err() {
        // On a busy machine the thread may not have come to it; most of what there is can be killed from here.
        group.kill_group();
    }
}

/// Takes the last output of a command that was ended.
async fn settle(mut live: RunningShell, record: &mut Record, guard: EndOnDrop) {
    live.reap().await;
    live.drain(&mut |bytes: &[u8]| record.push(bytes));
    guard.disarm();
}

/// What is still running after the shell has ended.
async fn left_running(live: &mut RunningShell, record: &mut Record) -> Vec<process::Member> {
    let look =
        |group: ProcessGroup| async { tokio::task::spawn_blocking(move || group.members()).await.unwrap_or_default() };
    if look(live.group.clone()).await.is_empty() {
        return Vec::new();
    }
    live.read_for(SETTLE, &mut |bytes: &[u8]| record.push(bytes)).await;
    look(live.group.clone()).await
}

fn finished(record: Record, exit: Exit) -> Output {
    let outcome = if exit == Exit::Code(0) { Outcome::Done } else { Outcome::Failed };
    let exit = exit.to_string();
    let (first, rest) = exit.split_at(1);
    Output::new(outcome, record.tell(&format!("{}{rest}.", first.to_uppercase())))
}

fn with_job(mut output: Output, job: JobId, left: &[process::Member]) -> Output {
    let names: Vec<String> = left.iter().take(5).map(|member| format!("`{}` ({})", member.name, member.id)).collect();
    let told = format!(
        "[Still running, as job {job}: {}. Read its output with `job_output`, end it with `job_end`.]",
        names.join(", ")
    );
    output.parts.push(retake_engine::session::entry::Part::text(told));
    Output { job: Some(job), ..output }
}

/// Output on its way to people and to the model.
struct Record {
    screen: OutputFilter,
    utf8: Utf8,
    kept: BoundedOutput,
    people: mpsc::Sender<String>,
}

impl Record {
    fn new(people: mpsc::Sender<String>) -> Self {
        Self { screen: OutputFilter::default(), utf8: Utf8::default(), kept: BoundedOutput::default(), people }
    }

    fn push(&mut self, bytes: &[u8]) {
        let stripped = self.screen.escapes.strip(bytes);
        self.kept.push(&self.screen.lines.feed(&stripped));
        let text = self.utf8.feed(&stripped);
        if !text.is_empty() {
            // Whoever does not keep up sees less; the model is told from what is kept.
            drop(self.people.try_send(text));
        }
    }

    fn tell(mut self, remark: &str) -> String {
        self.kept.push(&self.screen.lines.flush());
        let text = self.kept.text();
        match text.trim_end_matches('\n') {
            "" => format!("[No output. {remark}]"),
            text => format!("{text}\n[{remark}]"),
        }
    }
}

/// Output as a terminal would show it, without a terminal.
#[derive(Debug, Default)]
pub(crate) struct OutputFilter {
    escapes: Escapes,
    lines: Lines,
}

impl OutputFilter {
    /// The lines that the next piece completes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let stripped = self.escapes.strip(bytes);
        self.lines.feed(&stripped)
    }

    /// The line that has not ended yet.
    pub(crate) fn flush(&mut self) -> Vec<u8> {
        self.lines.flush()
    }
}

/// Ends everything that a call started if the call's future is dropped.
struct EndOnDrop(Option<ProcessGroup>);

impl EndOnDrop {
    fn new(group: ProcessGroup) -> Self {
        Self(Some(group))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            group.end(Duration::ZERO);
        }
    }
}
