//! A workspace with a toolbox, and ways to call its tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use retake_agent::tool::{Access, CallContext, JobEnded, Jobs, Output, Prepared, Shell, Toolbox};
use retake_engine::session::entry::Outcome;
use retake_testkit::Scratch;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

pub(crate) struct Bench {
    pub(crate) scratch: Scratch,
    pub(crate) toolbox: Toolbox,
    pub(crate) ended: mpsc::Receiver<JobEnded>,
    pub(crate) interrupt: watch::Sender<bool>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let root = scratch.dir("work");
        Self::with(scratch, &root)
    }

    /// With another directory as the workspace.
    pub(crate) fn at(root: &Path) -> Self {
        Self::with(Scratch::new(), root)
    }

    fn with(scratch: Scratch, root: &Path) -> Self {
        let (jobs, ended) = Jobs::new();
        let toolbox = Toolbox::new(root, Shell::default(), jobs);
        Self { scratch, toolbox, ended, interrupt: watch::Sender::new(false) }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root().join(name)).unwrap()
    }

    pub(crate) fn surroundings(&self) -> (CallContext, mpsc::Receiver<String>) {
        let (output, receiver) = mpsc::channel(10_000);
        let interrupted = self.interrupt.subscribe();
        (CallContext { root: self.root(), output, interrupted, tag: "prompt".to_owned() }, receiver)
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<Prepared, Output> {
        self.toolbox.prepare(tool, &arguments.to_string())
    }

    /// Prepares and runs a call.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Output {
        match self.prepare(tool, &arguments) {
            Ok(prepared) => within((prepared.run)(self.surroundings().0)).await,
            Err(output) => output,
        }
    }

    /// What a call that works tells.
    pub(crate) async fn done(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert_eq!(output.outcome, Outcome::Done, "{output:?}");
        output.text()
    }

    /// What a call that fails tells.
    pub(crate) async fn failed(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert_eq!(output.outcome, Outcome::Failed, "{output:?}");
        output.text()
    }

    /// The paths that a call declares.
    pub(crate) fn declared(&self, tool: &str, arguments: &Value) -> Vec<String> {
        match self.prepare(tool, arguments).map(|prepared| prepared.access) {
            Ok(Access::Writes { paths }) => paths.iter().map(|path| path.display().to_string()).collect(),
            other => panic!("{other:?}"),
        }
    }
}

/// Waits for something that must come, but not forever.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes a minute")
}

/// Waits until something holds that no event tells.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The processes whose environment has `NAME=VALUE`.
pub(crate) fn processes_with(variable: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |path: &Path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|text| text == variable.as_bytes())
    };
    entries.filter(|entry| has(&entry.path())).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process is alive and no zombie.
pub(crate) fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
