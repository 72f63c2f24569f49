//! The demo on a terminal: the same project and the same model, in the terminal client, with a guide.

use std::time::Duration;

use retake_agent::contract::Action;
use retake_agent::controller::Opened;
use retake_agent::live::LiveSession;
use retake_agent::permission::Mode;
use retake_tui::ClientOptions;

use super::guide::Hints;
use super::model;
use super::scratch::{Afterwards, Scratch};
use super::tour::{self, DemoError};
use crate::agent::terminal;
use crate::agent::{self, AgentError};
use crate::failure::Result;
use crate::output::ui::Ui;

/// How long the model takes for a word.
const PACE: Duration = Duration::from_millis(25);

/// Shows the demo until the user leaves.
pub fn run(ui: &mut Ui, afterwards: Afterwards) -> Result<()> {
    let runtime = agent::runtime()?;
    let scratch = Scratch::new(afterwards).map_err(DemoError::Scratch)?;
    let url = runtime.block_on(model::start(PACE))?;
    let Opened { handle, served } = tour::open(&runtime, &scratch, &url, Mode::Interactive)?;
    let shown =
        runtime.block_on(LiveSession::here(handle.clone())).map_err(AgentError::from).map_err(Into::into).and_then(
            |(view, live)| {
                let guide = Box::new(Hints::new(scratch.root()));
                let options = ClientOptions { guide: Some(guide), ..terminal::options(ui, &scratch.root()) };
                terminal::show(ui, &runtime, view, live, options)
            },
        );
    runtime.block_on(handle.request(Action::Close)).ok();
    drop(handle);
    served.join().ok();
    shown.map(drop)
}
