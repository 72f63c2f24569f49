//! `retake run`: one turn of the agent, without a terminal.

mod prompt_input;

use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use retake_agent::contract::{
    self, Action, Command, Event, EventKind, Mentions, Reason, Refusal, Reply, State, TurnEnd,
};
use retake_agent::controller::{Closing, Handle, OpenError as OpenSessionError, Unprotected, Which};
use retake_agent::live::{Asker, Listener, LiveError, LiveSession, Notification};
use retake_agent::socket::{self, Client};
use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::session::SessionError;
use retake_engine::session::entry::{Body, EndReason, Part};
use retake_engine::session::{Conversation, last_words};
use retake_engine::{OpenError, Workspace};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::{self, AgentError, Printer, SessionOptions, session};
use crate::failure::{Failure, Result};
use crate::output::ui::{DIM, Format, Ui};
use crate::workspace::context::CommandContext;

/// How often, and with what pause, a session is tried that another process has open.
const CONNECT_ATTEMPTS: u32 = 50;
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Have the agent do something: one prompt, everything up to its stop
///
/// The model's words go to stdout, what it does to stderr. Every prompt is a point to go back to: `retake rewind PROMPT` takes back
/// files, conversation or both, and `retake undo` the whole turn. Ctrl-C stops it in good order.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake run -p \"make the tests pass\" --allow all
  retake run --continue -p \"now the documentation\"
  git diff | retake run -p \"review this\" --attach -
  retake run --json -p \"list the todos\" | jq -r 'select(.type == \"delta\").text'")]
pub struct RunArgs {
    /// What to do; `-` reads it from stdin
    #[arg(short = 'p', long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: String,
    /// A file to show to the model, text or image; `-` is stdin; can be given more than once
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<String>,
    /// Go on with this session
    #[arg(long, value_name = "SESSION", conflicts_with = "continue_newest")]
    pub session: Option<String>,
    /// Go on with the newest session in which something was said
    #[arg(long = "continue")]
    pub continue_newest: bool,
    /// Cut what the model sees of the session first; a second `retake undo`, after the one for the turn, takes that back
    #[arg(long)]
    pub clear: bool,
    /// What runs without anybody to ask: `all`, `edits` (reading and edit tools, no shell), `none` (reading only) [default: edits]
    #[arg(long, value_name = "WHAT", default_value = "edits", hide_default_value = true, hide_possible_values = true)]
    pub allow: Allow,
    /// Let tools change files even if no snapshot can be taken before
    #[arg(long)]
    pub unprotected: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// `--allow`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Allow {
    All,
    Edits,
    None,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &RunArgs) -> Result<ExitCode> {
    let parts = prompt_input::parts(&args.prompt, &args.attach)?;
    let existing = existing(here, args)?;
    let runtime = agent::runtime()?;
    let (mut stops, mut prompt) = (
        runtime.block_on(async { StopSignals::listen() })?,
        Prompt { parts, manner: manner(args), allow: allowed(args.allow), is_clear_due: args.clear },
    );
    loop {
        if let Some(session) = existing
            && let Some(client) = connect(&runtime, here, session, &mut stops)?
        {
            if args.model.model.is_some() || args.model.base_url.is_some() {
                ui.warn("the session is open in another process, and its own model is asked")?;
            }
            match runtime.block_on(say_elsewhere(ui, client, session, &mut prompt, &mut stops)) {
                // It closed before it was said; now it can be opened here.
                Err(error) if has_ended(&error) => continue,
                other => return other,
            }
        }
        let model = model::find(runtime.handle(), &args.model, &here.agent, ModelUse::Ask, None)?;
        let tools = runtime.block_on(async {
            tokio::select! {
                tools = agent::tools(ui, here) => tools,
                // Servers that are starting end with this.
                () = stops.next() => Err(AgentError::Withdrawn.into()),
            }
        })?;
        let which = existing.map_or(Which::New, Which::Existing);
        match agent::open(ui, runtime.handle(), here, tools, model, which, prompt.manner) {
            // Another process was quicker, and takes the prompt.
            Err(error) if is_live(&error) => {}
            other => return say_here(ui, &runtime, other?, &mut prompt, &mut stops),
        }
    }
}

/// What is to be said.
struct Prompt {
    parts: Vec<Part>,
    manner: SessionOptions,
    allow: contract::Allow,
    /// Whether what the model sees is still to be cut first.
    is_clear_due: bool,
}

/// What runs without anybody to ask.
fn manner(args: &RunArgs) -> SessionOptions {
    let unprotected = if args.unprotected { Unprotected::Allow } else { Unprotected::Ask };
    SessionOptions::headless(allowed(args.allow), unprotected)
}

fn allowed(allow: Allow) -> contract::Allow {
    match allow {
        Allow::All => contract::Allow::All,
        Allow::Edits => contract::Allow::Edits,
        Allow::None => contract::Allow::None,
    }
}

/// Has another process, which has the session open, take the prompt.
async fn say_elsewhere(
    ui: &mut Ui,
    client: Client,
    session: SessionId,
    prompt: &mut Prompt,
    stops: &mut StopSignals,
) -> Result<ExitCode> {
    let (_, mut live) = LiveSession::attach(client, session).await.map_err(|error| match error {
        // Nothing was said yet, and whoever was there is not any more.
        LiveError::Ended | LiveError::Died => AgentError::from(socket::ended()),
        other => other.into(),
    })?;
    turn(&mut live, prompt, &mut Printer::new(ui), stops).await
}

/// Takes the prompt in this process, and serves others until all is done.
fn say_here(
    ui: &mut Ui,
    runtime: &Runtime,
    serving: agent::Serving,
    prompt: &mut Prompt,
    stops: &mut StopSignals,
) -> Result<ExitCode> {
    let handle = serving.opened.handle.clone();
    let mut printer = Printer::new(ui);
    let code = runtime.block_on(async {
        let (_, mut live) = LiveSession::here(handle.clone()).await.map_err(AgentError::from)?;
        let code = turn(&mut live, prompt, &mut printer, stops).await;
        wait_for_others(&handle, &mut live.told, printer.ui(), stops).await?;
        // What ends with the session is told too; to a program the end of the turn is the last word.
        while let Notification::Event(event) = live.told.next().await {
            if matches!(event.kind, EventKind::Warning { .. }) && printer.ui().format == Format::Text {
                printer.take(&event)?;
            }
        }
        code
    });
    drop(handle);
    serving.finish(runtime.handle());
    code
}

/// Closes the session once nothing goes on in it: others may have said something here meanwhile, and their turns are not ours to stop.
pub(super) async fn wait_for_others(
    handle: &Handle,
    told: &mut Listener,
    ui: &mut Ui,
    stops: &mut StopSignals,
) -> Result<()> {
    // Whoever was impatient with their own turn is so with those of others.
    let is_impatient = stops.count() > 1;
    let (mut is_told, mut asked) = (false, 0);
    while !is_impatient && asked < 2 && handle.close_if_idle().await == Closing::Busy {
        if !std::mem::replace(&mut is_told, true) {
            writeln!(ui.talk()?, "{DIM}The session stays open here until the turns of others have ended{DIM:#}")?;
        }
        tokio::select! {
            idle = until_idle(told) => if idle.is_break() { break },
            () = stops.next() => {
                asked += 1;
                if asked == 1 {
                    writeln!(ui.talk()?, "{DIM}Once more, and the turns of others that run here are stopped{DIM:#}")?;
                }
            }
        }
    }
    handle.request(Action::Close).await.ok();
    Ok(())
}

/// Signals that ask to stop: Ctrl-C, SIGTERM, and that the terminal was closed.
pub(super) struct StopSignals {
    signals: [Signal; 3],
    count: u32,
}

impl StopSignals {
    pub(super) fn listen() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self { signals: [interrupt?, terminate?, hangup?], count: 0 })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        self.count += 1;
    }

    /// Whether there was one that nobody has waited for.
    async fn is_due(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.next() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// How many there were.
    fn count(&self) -> u32 {
        self.count
    }
}

/// Waits until the session may have nothing more to do; breaks if it has ended.
async fn until_idle(told: &mut Listener) -> ControlFlow<()> {
    loop {
        match told.next().await {
            Notification::Event(event)
                if !matches!(event.kind, EventKind::TurnEnded { .. } | EventKind::Held { .. }) => {}
            Notification::Event(_) | Notification::Missed(_) => return ControlFlow::Continue(()),
            Notification::Over(_) => return ControlFlow::Break(()),
        }
    }
}

/// Whether a session refused because it is about to end: then nothing was done.
fn has_ended(error: &Failure) -> bool {
    let refused = error.downcast_ref::<AgentError>();
    matches!(refused, Some(AgentError::Refused { refusal, .. }) if refusal.reason == Reason::Ended)
}

fn is_live(error: &Failure) -> bool {
    let opening = error.downcast_ref::<AgentError>();
    matches!(opening, Some(AgentError::Open(OpenSessionError::Session(SessionError::Live { .. }))))
}

/// The way to a session that another process has open; `None` if no process has. One that has just been opened is not served yet.
fn connect(
    runtime: &Runtime,
    here: &CommandContext,
    session: SessionId,
    stops: &mut StopSignals,
) -> Result<Option<Client>> {
    for _ in 0..CONNECT_ATTEMPTS {
        if let Some(client) = runtime.block_on(agent::connect(here, session))? {
            return Ok(Some(client));
        }
        let is_open = match Workspace::open(here.environment.clone()) {
            Ok(workspace) => workspace.sessions().is_live(session),
            Err(_) => false,
        };
        if !is_open {
            return Ok(None);
        }
        runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(CONNECT_PAUSE) => Ok(()),
                () = stops.next() => Err(AgentError::Withdrawn),
            }
        })?;
    }
    Err(AgentError::unreachable(session).into())
}

/// Says the prompt, and prints what comes of it until the end of the turn.
async fn turn(
    LiveSession { asker, told }: &mut LiveSession,
    prompt: &mut Prompt,
    printer: &mut Printer<'_>,
    stops: &mut StopSignals,
) -> Result<ExitCode> {
    if stops.is_due().await {
        return Err(AgentError::Withdrawn.into());
    }
    if prompt.is_clear_due {
        ask(asker, Action::Clear).await?.map_err(AgentError::from)?;
        prompt.is_clear_due = false;
    }
    let mut own = say(asker, prompt, printer.ui()).await?;
    loop {
        let next = tokio::select! {
            next = told.next() => next,
            () = stops.next() => {
                if stops.count() > 1 {
                    return Err(AgentError::Interrupted.into());
                }
                tokio::select! {
                    stopped = own.stop(asker) => stopped?,
                    () = stops.next() => return Err(AgentError::Interrupted.into()),
                }
                continue;
            }
        };
        let event = match next {
            Notification::Event(event) => event,
            Notification::Over(error) => return Err(AgentError::from(error).into()),
            Notification::Missed(view) => {
                printer.ui().warn("this was read too slowly: some events were missed")?;
                match own.ended_in(&view)? {
                    Some(ended) => Arc::new(ended),
                    None => continue,
                }
            }
        };
        let is_ours = event.request.as_deref() == Some(&own.request);
        if is_ours || !asker.is_elsewhere() {
            printer.take(&event)?;
        }
        match &event.kind {
            EventKind::Appended { entry } if is_ours && matches!(entry.body, Body::Prompt { .. }) => {
                own.turn = Some(entry.id);
                if own.is_unwanted {
                    own.stop(asker).await?;
                }
            }
            EventKind::Returned if is_ours => return Err(AgentError::Returned.into()),
            EventKind::TurnEnded { .. } if is_ours => {
                printer.finish()?;
                let way_back = if printer.is_unprotected() { WayBack::Doubtful } else { WayBack::Open };
                return conclude(printer.ui(), &event, way_back);
            }
            _ => {}
        }
    }
}

/// Says the prompt; while another turn runs it is held.
async fn say(asker: &Asker, prompt: &Prompt, ui: &mut Ui) -> Result<OwnTurn> {
    let unprotected = prompt.manner.unprotected == Unprotected::Allow;
    let (parts, allow) = (prompt.parts.clone(), Some(prompt.allow));
    let command = Action::Prompt { parts, allow, unprotected, draft: None, mentions: Mentions::Leave };
    let asked = asker.hand_in(command).await;
    let request = asked.id.clone();
    let reply = asked.answer().await.map_err(AgentError::from)?;
    let turn = match reply.map_err(AgentError::from)? {
        Reply::Said { prompt } => Some(prompt),
        _ => None,
    };
    if turn.is_none() && ui.format == Format::Text {
        writeln!(ui.talk()?, "{DIM}A turn is running; this is said when it has ended{DIM:#}")?;
    }
    Ok(OwnTurn { request, turn, is_unwanted: false })
}

/// Has a command carried out.
async fn ask(asker: &Asker, command: impl Into<Command>) -> Result<Result<Reply, Refusal>, AgentError> {
    Ok(asker.ask(command).await?)
}

/// The turn that this process was started for.
struct OwnTurn {
    /// What all its events carry.
    request: String,
    /// Its prompt, once that is said.
    turn: Option<EntryId>,
    /// Whether it is to be stopped as soon as it begins.
    is_unwanted: bool,
}

impl OwnTurn {
    /// Stops it; a prompt that has not been said yet is withdrawn. Other people's turns go on.
    async fn stop(&mut self, asker: &Asker) -> Result<()> {
        if self.turn.is_some() {
            // Refused if it has just ended, which is told next.
            ask(asker, Action::Interrupt { turn: self.turn }).await?.ok();
            return Ok(());
        }
        match ask(asker, Action::Withdraw { request: self.request.clone() }).await? {
            Ok(_) => Err(AgentError::Withdrawn.into()),
            // It has just been said.
            Err(_) => {
                self.is_unwanted = true;
                Ok(())
            }
        }
    }

    /// How it ended, from how the session stands now; `None` if it goes on.
    fn ended_in(&self, view: &View) -> Result<Option<Event>> {
        let first = view.entries.iter().position(|entry| Some(entry.id) == self.turn);
        let entries = match first {
            Some(first) => &view.entries[first..],
            None if view.state == State::Running || view.held > 0 => return Ok(None),
            None => return Err(AgentError::Ended.into()),
        };
        let ended = entries.iter().find_map(|entry| match &entry.body {
            Body::Ended { reason } => Some(reason),
            _ => None,
        });
        let Some(ended) = ended else { return Ok(None) };
        let message = match ended {
            EndReason::Done | EndReason::Interrupted => None,
            EndReason::Failed { message } => Some(message.clone()),
            EndReason::RoundLimit => Some("the turn took too many rounds".to_owned()),
        };
        let kind = EventKind::TurnEnded {
            session: view.session.clone(),
            prompt: entries[0].id,
            reason: TurnEnd::from(ended),
            message,
            text: last_words(entries),
            usage: Conversation::new(entries.to_vec()).usage(),
            taken_back: false,
            operation: None,
        };
        Ok(Some(Event { seq: view.seq, request: Some(self.request.clone()), kind }))
    }
}

/// Whether a turn can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WayBack {
    Open,
    /// Some snapshot of it is missing.
    Doubtful,
}

/// Says how the turn ended and how to take it back.
fn conclude(ui: &mut Ui, event: &Event, way_back: WayBack) -> Result<ExitCode> {
    let EventKind::TurnEnded { session, prompt, reason, message, usage, taken_back, .. } = &event.kind else {
        return Ok(ExitCode::SUCCESS);
    };
    match reason {
        TurnEnd::Failed => return Err(AgentError::TurnFailed { message: message.clone().unwrap_or_default() }.into()),
        TurnEnd::Interrupted if *taken_back => return Err(AgentError::TakenBack.into()),
        TurnEnd::Interrupted => return Err(AgentError::Interrupted.into()),
        TurnEnd::RoundLimit => {
            return Err(AgentError::RoundLimit { message: message.clone().unwrap_or_default() }.into());
        }
        TurnEnd::Done => {}
    }
    if ui.format == Format::Text {
        let cost = usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        let (session, prompt) = (session.short(), prompt.short());
        let back = match way_back {
            WayBack::Open => format!("`retake undo` or `retake rewind {prompt}` takes this back"),
            WayBack::Doubtful => "not everything of this can be taken back".to_owned(),
        };
        let (read, written) = (usage.input, usage.output);
        writeln!(ui.talk()?, "{DIM}{read} tokens in, {written} out{cost} · session {session} · {back}{DIM:#}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The session that is to go on; `None` for a new one.
fn existing(here: &CommandContext, args: &RunArgs) -> Result<Option<SessionId>> {
    if args.session.is_none() && !args.continue_newest {
        return Ok(None);
    }
    let workspace = match Workspace::open(here.environment.clone()) {
        Ok(workspace) => workspace,
        Err(OpenError::NotAWorkspace { .. }) => return Err(AgentError::NoSession.into()),
        Err(err) => return Err(err.into()),
    };
    Ok(Some(session::to_continue(&workspace, args.session.as_deref())?.id))
}
