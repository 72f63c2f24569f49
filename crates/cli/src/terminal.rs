//! The terminal client on a session of this workspace: opened here, or joined if another process has it open.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use retake_agent::controller::Which;
use retake_agent::live::{Live, LiveError};
use retake_agent::view::View;
use retake_engine::{SessionId, Workspace};
use retake_tui::{Colours, Next, Options, TerminalError, Web};
use tokio::runtime::Runtime;

use crate::agent::model::{self, ModelArgs, Need};
use crate::agent::{self, AgentError, Manner};
use crate::surroundings::{Surroundings, variable};
use crate::ui::{DIM, Paint, Ui};
use crate::web::Beside;

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
pub fn run(ui: &mut Ui, here: &Surroundings, args: &ModelArgs, start: Start) -> anyhow::Result<ExitCode> {
    let runtime = agent::runtime()?;
    let web = Arc::new(Beside::new(runtime.handle(), here, args));
    let left = Place { runtime: &runtime, here, args, web: &web }.go_on(ui, start);
    web.stop();
    farewell(ui, here, left?)
}

/// Where sessions are shown.
struct Place<'a> {
    runtime: &'a Runtime,
    here: &'a Surroundings,
    args: &'a ModelArgs,
    web: &'a Arc<Beside>,
}

impl Place<'_> {
    /// Shows one session after another; gives the last one.
    fn go_on(&self, ui: &mut Ui, mut start: Start) -> anyhow::Result<SessionId> {
        loop {
            let (next, session) = match start {
                Start::Session(session) | Start::Elsewhere(session) => match self.join(session)? {
                    Some((view, live)) => (self.show(ui, view, live)?, session),
                    None if matches!(start, Start::Elsewhere(_)) => return Err(AgentError::Ended.into()),
                    None => self.serve(ui, Which::Existing(session))?,
                },
                Start::New => self.serve(ui, Which::New)?,
            };
            start = match next {
                Next::New => Start::New,
                Next::Open(session) => {
                    Start::Session(Workspace::open(self.here.environment.clone())?.resolve_session(&session)?.id)
                }
                Next::Quit => return Ok(session),
            };
        }
    }

    /// Opens a session in this process and shows it.
    fn serve(&self, ui: &mut Ui, which: Which) -> anyhow::Result<(Next, SessionId)> {
        let (runtime, here) = (self.runtime.handle(), self.here);
        let model = model::find(runtime, self.args, &here.agent, Need::Ask, None)?;
        let tools = runtime.block_on(agent::tools(ui, here))?;
        let serving = agent::open(ui, runtime, here, tools, model, which, Manner::interactive())?;
        let session = serving.opened.handle.session();
        let live = runtime.block_on(Live::here(serving.opened.handle.clone())).map_err(AgentError::from);
        let shown = live.map_err(Into::into).and_then(|(view, live)| self.show(ui, view, live));
        serving.finish(runtime);
        Ok((shown?, session))
    }

    /// Joins a session that another process has open; `None` if none has.
    fn join(&self, session: SessionId) -> anyhow::Result<Option<(Box<View>, Live)>> {
        self.runtime.block_on(async {
            let Some(client) = agent::connect(self.here, session).await? else { return Ok(None) };
            match Live::attach(client, session).await {
                // Whoever was there is not any more.
                Err(LiveError::Died | LiveError::Ended) => Ok(None),
                attached => Ok(Some(attached.map_err(AgentError::from)?)),
            }
        })
    }

    fn show(&self, ui: &Ui, view: Box<View>, live: Live) -> anyhow::Result<Next> {
        let web = Arc::clone(self.web);
        let options = options(ui, &self.here.current_dir, Arc::new(move || web.url()));
        show_with(self.runtime, view, live, options)
    }
}

/// What the terminal client is told.
pub fn options(ui: &Ui, current_dir: &Path, web: Web) -> Options {
    Options { colours: colours(ui), editor: editor(), current_dir: current_dir.to_owned(), guide: None, web }
}

/// Shows a session until the user leaves it.
pub fn show_with(runtime: &Runtime, view: Box<View>, live: Live, options: Options) -> anyhow::Result<Next> {
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
