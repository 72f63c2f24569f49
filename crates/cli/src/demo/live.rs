//! The demo on a terminal: the same project and the same model, in the terminal client, with a guide.

use std::time::Duration;

use retake_agent::contract::Command;
use retake_agent::controller::Opened;
use retake_agent::live::Live;
use retake_agent::permission::Mode;
use retake_tui::{Guide, GuideStep, Options, Until};

use super::scratch::Scratch;
use super::tour::{self, DemoError};
use super::{model, story};
use crate::agent::{self, AgentError};
use crate::terminal;
use crate::ui::Ui;

/// How long the model takes for a word.
const PACE: Duration = Duration::from_millis(25);

/// Shows the demo until the user leaves.
pub fn run(ui: &mut Ui, keep: bool) -> anyhow::Result<()> {
    let runtime = agent::runtime()?;
    let scratch = Scratch::new(keep).map_err(DemoError::Scratch)?;
    let url = runtime.block_on(model::start(PACE))?;
    let Opened { handle, served } = tour::open(&runtime, &scratch, &url, Mode::Interactive)?;
    let shown = runtime.block_on(Live::here(handle.clone())).map_err(AgentError::from).map_err(Into::into).and_then(
        |(view, live)| {
            let options = Options { guide: Some(guide(&scratch)), ..terminal::options(ui, &scratch.root()) };
            terminal::show(ui, &runtime, view, live, options)
        },
    );
    runtime.block_on(handle.request(Command::Close)).ok();
    drop(handle);
    served.join().ok();
    shown.map(drop)
}

fn step(hint: impl Into<String>, until: Until) -> GuideStep {
    GuideStep { hint: hint.into(), prompt: None, until }
}

/// What a newcomer does, one thing at a time.
fn guide(scratch: &Scratch) -> Guide {
    let says = |hint: String, prompt: &str| GuideStep { hint, prompt: Some(prompt.to_owned()), until: Until::Said };
    let root = scratch.root().display().to_string();
    let steps = vec![
        says(
            format!(
                "the agent is the real one, the model is scripted, and the project in {root} is yours to break. Enter sends the prompt below."
            ),
            story::FIRST,
        ),
        step(
            "it asks before it runs or changes something: y allows it, n does not. Above is what would be written.",
            Until::TurnEnded,
        ),
        says("that was one turn. Now ask for something that will go wrong: Enter.".to_owned(), story::SECOND),
        step("allow it (y), although it looks careless: rm is in it.", Until::TurnEnded),
        step("it removed notes.txt, a file of yours that is nowhere else. Ctrl+R opens the picker.", Until::PickerOpen),
        step(
            "on each row a prompt, beside it exactly what going back would change. Enter, then Enter again: code and conversation.",
            Until::WentBack,
        ),
        step(
            "the files are back, and your prompt is in the composer. Add \"Leave my text files alone!\" and press Enter.",
            Until::Said,
        ),
        step(
            "it goes another way now. The first try has left the conversation; Tab in the picker still shows it.",
            Until::TurnEnded,
        ),
        step(
            "a whole turn can be taken back, too: type /undo and press Enter. /redo would repeat it.",
            Until::WentBack,
        ),
        step(
            "that is it. Ctrl+R, /undo, /redo, ? for the rest; /quit leaves, then run `retake` in a project of yours.",
            Until::Left,
        ),
    ];
    Guide { steps, at: 0 }
}
