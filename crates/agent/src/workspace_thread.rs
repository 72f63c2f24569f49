//! The workspace thread: owns the [`Workspace`] and runs its tasks one after another.
//!
//! Snapshots run here, so that a prompt goes to the model without waiting for them. A tool that changes files runs its own task here first,
//! and so starts only when the snapshot before it is complete. The thread decides nothing and reports nothing: each task sends its own
//! result. It ends when the last handle is dropped, and then flushes what no task has waited for.

use std::sync::mpsc;
use std::thread;

use retake_engine::Workspace;

type WorkspaceTask = Box<dyn FnOnce(&mut Workspace) + Send>;

/// A handle to the thread; it ends when the last handle goes.
#[derive(Clone, Debug)]
pub struct WorkspaceThread {
    // Not bounded: the controller must never wait here, and it has only a few things going on at a time.
    tasks: mpsc::Sender<WorkspaceTask>,
}

impl WorkspaceThread {
    /// Starts the thread.
    pub fn start(mut workspace: Workspace) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (tasks, inbox) = mpsc::channel::<WorkspaceTask>();
        let thread = thread::Builder::new().name("workspace".to_owned()).spawn(move || {
            for task in inbox {
                task(&mut workspace);
            }
            // Unflushed writes survive the process in any case; a failure here concerns only a crash of the machine.
            workspace.sync().ok();
        })?;
        Ok((Self { tasks }, thread))
    }

    /// Queues a task.
    pub fn run(&self, task: impl FnOnce(&mut Workspace) + Send + 'static) {
        self.tasks.send(Box::new(task)).expect("the thread lives as long as a handle to it");
    }

    /// Runs a task and waits for its result.
    pub fn ask<T: Send + 'static>(&self, task: impl FnOnce(&mut Workspace) -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::sync_channel(1);
        self.run(move |workspace| {
            answer.send(task(workspace)).ok();
        });
        answered.recv().expect("the thread runs every task")
    }
}
