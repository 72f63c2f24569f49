//! Jobs: commands that go on after the call that started them.
//!
//! The registry is the one place that knows what is running. A job has ended when nothing of what it started is alive, and only then
//! is that told, since what it changes until then is its own. Nothing outlives the registry: when its last handle goes, all jobs are
//! killed.

mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use retake_engine::Timestamp;
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use super::shell::{Exit, GRACE, OutputFilter, ProcessGroup, RunningShell, Unread};

pub(crate) use tools::{END, OUTPUT};

/// Ends that nobody took yet; more than that waits.
const ENDED: usize = 256;
/// More jobs than this are a mistake.
const MAX_RUNNING: usize = 32;
/// Jobs that have ended and can still be read.
const MAX_ENDED: usize = 50;

/// A job's identity: unique in its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// Something that it started is alive.
    Running,
    /// Nothing is.
    Ended {
        /// How its shell ended.
        exit: Exit,
    },
}

/// What can be told of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// Its identity.
    pub id: JobId,
    /// The command line.
    pub command: String,
    /// What the controller tagged it with.
    pub tag: String,
    /// When it was started.
    pub started: Timestamp,
    /// How far it is.
    pub state: JobState,
    /// Bytes of output so far.
    pub output: u64,
}

/// Output of a job that was not read before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutput {
    /// The job, as it was then.
    pub job: Job,
    /// The text, bounded.
    pub text: String,
}

/// A job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnded {
    /// The job.
    pub id: JobId,
    /// What the controller tagged it with.
    pub tag: String,
    /// How its shell ended.
    pub exit: Exit,
}

/// All jobs of a session; a handle to be cloned.
#[derive(Clone, Debug)]
pub struct Jobs(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    jobs: Mutex<BTreeMap<JobId, Arc<JobRecord>>>,
    next: AtomicU64,
    ended: mpsc::Sender<JobEnded>,
}

/// A job as the registry holds it.
#[derive(Debug)]
struct JobRecord {
    id: JobId,
    command: String,
    tag: String,
    started: Timestamp,
    group: ProcessGroup,
    state: watch::Sender<JobState>,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    screen: OutputFilter,
    unread: Unread,
}

impl Jobs {
    /// An empty registry, and where it tells that jobs have ended.
    pub fn new() -> (Self, mpsc::Receiver<JobEnded>) {
        let (ended, receiver) = mpsc::channel(ENDED);
        (Self(Arc::new(Registry { jobs: Mutex::default(), next: AtomicU64::new(1), ended })), receiver)
    }

    /// All jobs, oldest first; those that have ended too, as long as they can be read.
    pub fn list(&self) -> Vec<Job> {
        self.0.jobs().values().map(|held| held.job()).collect()
    }

    /// Whether no more jobs should be started.
    pub(crate) fn is_full(&self) -> bool {
        self.0.jobs().values().filter(|held| held.is_running()).count() >= MAX_RUNNING
    }

    /// What a job wrote since this was last asked.
    pub fn read(&self, id: JobId) -> Option<JobOutput> {
        let held = self.0.jobs().get(&id).cloned()?;
        let text = {
            let mut log = held.log();
            let open = log.screen.flush();
            log.unread.push(&open);
            log.unread.take()
        };
        Some(JobOutput { job: held.job(), text })
    }

    /// Ends a job with everything that it started, and waits until it has ended.
    pub async fn end(&self, id: JobId) -> Option<Job> {
        let held = self.0.jobs().get(&id).cloned()?;
        held.end().await;
        Some(held.job())
    }

    /// Ends all running jobs that match: those of later prompts, those started since a moment. Returns them.
    pub async fn end_if(&self, matches: impl Fn(&Job) -> bool) -> Vec<Job> {
        let running = |held: &Arc<JobRecord>| {
            let job = held.job();
            job.state == JobState::Running && matches(&job)
        };
        let ending: Vec<Arc<JobRecord>> = self.0.jobs().values().filter(|held| running(held)).cloned().collect();
        join_all(ending.iter().map(|held| held.end())).await;
        ending.iter().map(|held| held.job()).collect()
    }

    /// Ends all jobs.
    pub async fn end_all(&self) {
        self.end_if(|_| true).await;
    }

    /// Takes a shell as a job; `exit` if only what it left is still running.
    pub(crate) fn follow(&self, live: RunningShell, command: &str, tag: String, exit: Option<Exit>) -> JobId {
        let id = JobId(self.0.next.fetch_add(1, Ordering::Relaxed));
        let held = Arc::new(JobRecord {
            id,
            command: command.to_owned(),
            tag,
            started: timestamp(live.started),
            group: live.group.clone(),
            state: watch::Sender::new(JobState::Running),
            log: Mutex::default(),
        });
        self.0.add(Arc::clone(&held));
        // The task must not hold the registry, or it would never go.
        tokio::spawn(follow(held, live, exit, self.0.ended.clone()));
        id
    }
}

impl Registry {
    // A panic cannot leave the map half changed.
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<JobRecord>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, held: Arc<JobRecord>) {
        let mut jobs = self.jobs();
        jobs.insert(held.id, held);
        let ended: Vec<JobId> = jobs.values().filter(|held| !held.is_running()).map(|held| held.id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            jobs.remove(id);
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        for held in self.jobs().values().filter(|held| held.is_running()) {
            held.group.end(Duration::ZERO);
        }
    }
}

impl JobRecord {
    fn job(&self) -> Job {
        Job {
            id: self.id,
            command: self.command.clone(),
            tag: self.tag.clone(),
            started: self.started,
            state: *self.state.borrow(),
            output: self.log().unread.total,
        }
    }

    fn is_running(&self) -> bool {
        *self.state.borrow() == JobState::Running
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn end(&self) {
        if !self.is_running() {
            return;
        }
        let group = self.group.clone();
        // Fails only if that panicked; whether the job has ended is seen below.
        drop(tokio::task::spawn_blocking(move || group.end(GRACE)).await);
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| *state != JobState::Running);
        // A process that not even the system can kill is not waited for.
        drop(tokio::time::timeout(GRACE, ended).await);
    }
}

/// Follows a job to its end.
async fn follow(held: Arc<JobRecord>, mut live: RunningShell, exit: Option<Exit>, ended: mpsc::Sender<JobEnded>) {
    let mut sink = |bytes: &[u8]| {
        let mut log = held.log();
        let lines = log.screen.feed(bytes);
        log.unread.push(&lines);
    };
    let exit = match exit {
        Some(exit) => exit,
        None => live.until_shell_ends(&mut sink).await,
    };
    live.until_all_ended(&mut sink).await;
    held.state.send_replace(JobState::Ended { exit });
    // If nobody listens the session is over.
    drop(ended.send(JobEnded { id: held.id, tag: held.tag.clone(), exit }).await);
}

fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
