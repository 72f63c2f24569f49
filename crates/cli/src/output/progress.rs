//! A progress bar that stays away from quick work: it appears only after half a second, on stderr, and leaves nothing behind. While it
//! lives, a first Ctrl-C asks the work to stop.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use retake_engine::progress::{Phase, Progress, Step};

use crate::process::interrupt::Listening;

const PATIENCE: Duration = Duration::from_millis(500);

pub struct Bar {
    /// When the work started; `None` where nobody watches.
    started: Option<Instant>,
    drawn: Mutex<Option<Drawn>>,
    listening: Listening,
}

/// A bar on the screen, and what it was last told to look like.
struct Drawn {
    bar: ProgressBar,
    phase: Phase,
    total: Option<u64>,
}

impl Bar {
    pub fn on_stderr() -> Self {
        Self { started: Some(Instant::now()), drawn: Mutex::new(None), listening: Listening::begin() }
    }

    pub fn silent() -> Self {
        Self { started: None, drawn: Mutex::new(None), listening: Listening::begin() }
    }
}

impl Progress for Bar {
    fn report(&self, step: Step) {
        if self.started.is_none_or(|started| started.elapsed() < PATIENCE) {
            return;
        }
        // When another thread is drawing, the next step will do as well.
        let Ok(mut drawn) = self.drawn.try_lock() else { return };
        match drawn.as_mut() {
            Some(now) if now.phase == step.phase && now.total == step.total => now.bar.set_position(step.done),
            _ => *drawn = Some(Drawn::new(&step, drawn.take())),
        }
    }

    fn cancelled(&self) -> bool {
        self.listening.is_asked_to_stop()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(drawn) = self.drawn.lock().ok().and_then(|mut drawn| drawn.take()) {
            drawn.bar.finish_and_clear();
        }
    }
}

impl Drawn {
    fn new(step: &Step, earlier: Option<Self>) -> Self {
        let bar = earlier.map_or_else(ProgressBar::no_length, |earlier| earlier.bar);
        let (doing, what) = match step.phase {
            Phase::Listing => ("Listing", "files"),
            Phase::Reading => ("Reading", "files"),
            Phase::Marking => ("Looking through", "checkpoints"),
            Phase::Packing => ("Rewriting", "objects"),
            Phase::Checking => ("Checking", "objects"),
            Phase::Writing => ("Writing", "files"),
        };
        match step.total {
            Some(total) => {
                bar.set_style(style(&format!("{{msg}} [{{bar:30}}] {{human_pos}} of {{human_len}} {what}")));
                bar.set_length(total);
            }
            None => bar.set_style(style(&format!("{{msg}} {{human_pos}} {what}"))),
        }
        bar.set_message(doing);
        bar.set_position(step.done);
        Self { bar, phase: step.phase, total: step.total }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates above are well formed").progress_chars("=> ")
}
