//! The keeper: a thread that owns the workspace and does one thing after another to it.
//!
//! Snapshots are taken here, off the way from a prompt to the model; a tool that changes something waits its turn, and so begins only
//! when the snapshot before it is complete.

use std::sync::mpsc;
use std::thread;

use retake_engine::Workspace;

type Task = Box<dyn FnOnce(&mut Workspace) + Send>;

/// A handle to the thread; it ends when the last handle goes.
#[derive(Clone, Debug)]
pub struct Keeper {
    // Not bounded: the controller must never wait here, and it has only a few things going on at a time.
    tasks: mpsc::Sender<Task>,
}

impl Keeper {
    /// Starts the thread.
    pub fn start(mut workspace: Workspace) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (tasks, inbox) = mpsc::channel::<Task>();
        let thread = thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            for task in inbox {
                task(&mut workspace);
            }
            // What nobody waited for is on its way to the disk; if it does not get there, it has survived the process all the same.
            workspace.sync().ok();
        })?;
        Ok((Self { tasks }, thread))
    }

    /// Has something done when everything before it is.
    pub fn run(&self, task: impl FnOnce(&mut Workspace) + Send + 'static) {
        self.tasks.send(Box::new(task)).expect("the keeper lives as long as somebody can ask it");
    }

    /// Has something done and waits for what comes of it.
    pub fn ask<T: Send + 'static>(&self, task: impl FnOnce(&mut Workspace) -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::sync_channel(1);
        self.run(move |workspace| {
            answer.send(task(workspace)).ok();
        });
        answered.recv().expect("the keeper does everything it is told to")
    }
}
