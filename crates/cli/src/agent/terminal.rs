//! The terminal client on a session of this workspace: opened here, or joined if another process has it open.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use retake_agent::controller::Which;
use retake_agent::live::{LiveError, LiveSession};
use retake_agent::view::View;
use retake_engine::Workspace;
use retake_engine::id::SessionId;
use retake_tui::{ClientOptions, Colours, NextSession, TerminalError, Web};
use tokio::runtime::Runtime;

use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::web::TerminalWeb;
use crate::agent::{self, AgentError, SessionOptions};
use crate::failure::{Failure, Result};
use crate::output::ui::{DIM, Paint, Ui};
use crate::workspace::context::{CommandContext, variable};

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
pub fn run(ui: &mut Ui, here: &CommandContext, args: &ModelArgs, start: Start) -> Result<ExitCode> {
    let runtime = agent::runtime()?;
    let web = Arc::new(TerminalWeb::new(runtime.handle(), here, args));
    let left = go_on(ui, &runtime, here, args, &web, start);
    web.stop();
    farewell(ui, here, args, left?)
}

/// Shows one session after another; gives the last one.
fn go_on(
    ui: &mut Ui,
    runtime: &Runtime,
    here: &CommandContext,
    args: &ModelArgs,
    web: &Arc<TerminalWeb>,
    mut start: Start,
) -> Result<SessionId> {
    let find =
        |session: &str| Ok::<_, Failure>(Workspace::open(here.environment.clone())?.sessions().resolve(session)?.id);
    let mut greeting = None;
    loop {
        let stage = TerminalContext { runtime, here, web, greeting: greeting.take() };
        let (next, session) = match start {
            Start::Session(session) | Start::Elsewhere(session) => match join(runtime, here, session)? {
                Some((view, live)) => (stage.show(ui, view, live)?, session),
                None if matches!(start, Start::Elsewhere(_)) => return Err(AgentError::Ended.into()),
                None => stage.serve(ui, args, Which::Existing(session))?,
            },
            Start::New => stage.serve(ui, args, Which::New)?,
        };
        start = match next {
            NextSession::New => Start::New,
            NextSession::Open(session) => Start::Session(find(&session)?),
            NextSession::Forked(fork) => {
                greeting =
                    Some(format!("This is a fork of session {}, which stays as it is: /sessions", session.short()));
                Start::Session(find(&fork)?)
            }
            NextSession::Quit => return Ok(session),
        };
    }
}

/// Where a session is shown.
struct TerminalContext<'a> {
    runtime: &'a Runtime,
    here: &'a CommandContext,
    web: &'a Arc<TerminalWeb>,
    /// What is said to begin with.
    greeting: Option<String>,
}

impl TerminalContext<'_> {
    /// Opens a session in this process and shows it.
    fn serve(self, ui: &mut Ui, args: &ModelArgs, which: Which) -> Result<(NextSession, SessionId)> {
        let (runtime, here) = (self.runtime.handle(), self.here);
        let model = model::find(runtime, args, &here.agent, ModelUse::Ask, None)?;
        let tools = runtime.block_on(agent::tools(ui, here))?;
        let serving = agent::open(ui, runtime, here, tools, model, which, SessionOptions::interactive())?;
        let session = serving.opened.handle.session();
        let live = runtime.block_on(LiveSession::here(serving.opened.handle.clone())).map_err(AgentError::from);
        let shown = live.map_err(Into::into).and_then(|(view, live)| self.show(ui, view, live));
        serving.finish(runtime);
        Ok((shown?, session))
    }

    fn show(self, ui: &mut Ui, view: Box<View>, live: LiveSession) -> Result<NextSession> {
        let web = Arc::clone(self.web);
        let web: Option<Web> = Some(Arc::new(move || web.url()));
        let options = ClientOptions { greeting: self.greeting, web, ..options(ui, &self.here.current_dir) };
        show(ui, self.runtime, view, live, options)
    }
}

/// Joins a session that another process has open; `None` if none has.
fn join(runtime: &Runtime, here: &CommandContext, session: SessionId) -> Result<Option<(Box<View>, LiveSession)>> {
    runtime.block_on(agent::join(here, session))
}

/// What the client is told, without a guide.
pub fn options(ui: &Ui, current_dir: &Path) -> ClientOptions {
    let current_dir = current_dir.to_owned();
    ClientOptions { colours: colours(ui), editor: editor(), current_dir, guide: None, greeting: None, web: None }
}

/// Shows a session until the user leaves it.
pub fn show(
    ui: &mut Ui,
    runtime: &Runtime,
    view: Box<View>,
    live: LiveSession,
    options: ClientOptions,
) -> Result<NextSession> {
    let error = match runtime.block_on(retake_tui::run(*view, live, options)) {
        Ok(next) => return Ok(next),
        Err(TerminalError::Over { error, unsent }) => {
            if !unsent.is_empty() {
                ui.warn(&format!("this was not said:\n{unsent}"))?;
            }
            match error {
                LiveError::Ended => AgentError::ClosedElsewhere.into(),
                error => AgentError::from(error).into(),
            }
        }
        Err(error @ TerminalError::Io(_)) => error.into(),
    };
    Err(error)
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
fn farewell(ui: &mut Ui, here: &CommandContext, args: &ModelArgs, session: SessionId) -> Result<ExitCode> {
    use std::io::Write;
    let workspace = Workspace::open(here.environment.clone())?;
    if workspace.sessions().resolve(&session.to_string()).is_ok() {
        let short = session.short();
        // The same model, if it was named only here.
        let model = [("--model", &args.model), ("--base-url", &args.base_url)];
        let model = model.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", value.as_ref()?)));
        let model: String = model.collect();
        writeln!(
            ui.talk()?,
            "{DIM}`retake resume {short}{model}` goes on; `retake log --session {short}` lists the points{DIM:#}"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
