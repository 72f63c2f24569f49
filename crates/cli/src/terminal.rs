//! The terminal client on a session of this workspace: opened here, or joined if another process has it open.

use std::path::Path;
use std::process::ExitCode;

use retake_agent::controller::Which;
use retake_agent::live::{Live, LiveError};
use retake_agent::view::View;
use retake_engine::{SessionId, Workspace};
use retake_tui::{Colours, Guide, Next, Options, TerminalError};
use tokio::runtime::Runtime;

use crate::agent::model::{self, ModelArgs, Need};
use crate::agent::{self, AgentError, Manner, Serving};
use crate::surroundings::{Surroundings, variable};
use crate::ui::{DIM, Paint, Ui};

/// What to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A new session.
    New,
    /// This one.
    Session(SessionId),
    /// This one, which another process has open.
    Elsewhere(SessionId),
}

/// Shows sessions until the user leaves.
pub fn run(ui: &mut Ui, here: &Surroundings, args: &ModelArgs, mut start: Start) -> anyhow::Result<ExitCode> {
    let runtime = agent::runtime()?;
    loop {
        let (next, session) = match start {
            Start::Session(session) | Start::Elsewhere(session) => match join(&runtime, here, session)? {
                Some((view, live)) => (show(&runtime, ui, here, view, live)?, session),
                None if matches!(start, Start::Elsewhere(_)) => return Err(AgentError::Ended.into()),
                None => serve(ui, &runtime, here, args, Which::Existing(session))?,
            },
            Start::New => serve(ui, &runtime, here, args, Which::New)?,
        };
        start = match next {
            Next::New => Start::New,
            Next::Open(session) => {
                Start::Session(Workspace::open(here.environment.clone())?.resolve_session(&session)?.id)
            }
            Next::Quit => return farewell(ui, here, session),
        };
    }
}

/// Opens a session in this process and shows it.
fn serve(
    ui: &mut Ui,
    runtime: &Runtime,
    here: &Surroundings,
    args: &ModelArgs,
    which: Which,
) -> anyhow::Result<(Next, SessionId)> {
    let model = model::find(runtime, args, &here.agent, Need::Ask, None)?;
    let tools = runtime.block_on(agent::tools(ui, here))?;
    let serving = agent::open(ui, runtime.handle(), here, tools, model, which, Manner::interactive())?;
    let session = serving.opened.handle.session();
    let shown = show_served(ui, runtime, here, &serving);
    serving.finish(runtime.handle());
    Ok((shown?, session))
}

fn show_served(ui: &Ui, runtime: &Runtime, here: &Surroundings, serving: &Serving) -> anyhow::Result<Next> {
    let (view, live) = runtime.block_on(Live::here(serving.opened.handle.clone())).map_err(AgentError::from)?;
    show(runtime, ui, here, view, live)
}

/// Joins a session that another process has open; `None` if none has.
fn join(runtime: &Runtime, here: &Surroundings, session: SessionId) -> anyhow::Result<Option<(Box<View>, Live)>> {
    runtime.block_on(async {
        let Some(client) = agent::connect(here, session).await? else { return Ok(None) };
        match Live::attach(client, session).await {
            // Whoever was there is not any more.
            Err(LiveError::Died | LiveError::Ended) => Ok(None),
            attached => Ok(Some(attached.map_err(AgentError::from)?)),
        }
    })
}

fn show(runtime: &Runtime, ui: &Ui, here: &Surroundings, view: Box<View>, live: Live) -> anyhow::Result<Next> {
    show_with(runtime, ui, &here.current_dir, view, live, None)
}

/// Shows a session until the user leaves it.
pub fn show_with(
    runtime: &Runtime,
    ui: &Ui,
    current_dir: &Path,
    view: Box<View>,
    live: Live,
    guide: Option<Guide>,
) -> anyhow::Result<Next> {
    let options = Options { colours: colours(ui), editor: editor(), current_dir: current_dir.to_owned(), guide };
    runtime.block_on(retake_tui::run(*view, live, options)).map_err(|error| match error {
        TerminalError::Live(error) => AgentError::from(error).into(),
        error @ TerminalError::Io(_) => error.into(),
    })
}

/// Whether the terminal is drawn in colours.
fn colours(ui: &Ui) -> Colours {
    match ui.paint {
        Paint::Colour => Colours::Terminal,
        Paint::Plain => Colours::None,
    }
}

/// The user's editor.
fn editor() -> String {
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| variable(name)?.into_string().ok());
    named.unwrap_or_else(|| "vi".to_owned())
}

/// Says how to come back.
fn farewell(ui: &mut Ui, here: &Surroundings, session: SessionId) -> anyhow::Result<ExitCode> {
    use std::io::Write;
    let workspace = Workspace::open(here.environment.clone())?;
    if workspace.resolve_session(&session.to_string()).is_ok() {
        let short = session.short();
        writeln!(
            ui.talk()?,
            "{DIM}`retake resume {short}` goes on; `retake log --session {short}` lists the points{DIM:#}"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
