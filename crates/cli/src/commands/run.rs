//! `retake run`: one turn of the agent, without a terminal.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_agent::contract::{Command, Event, EventKind, Reply, State};
use retake_agent::controller::{Handle, OpenError as OpenSessionError, Unprotected, Which};
use retake_agent::permission::Allowed;
use retake_agent::socket::Client;
use retake_engine::session::entry::Part;
use retake_engine::{OpenError, SessionError, SessionId, Workspace};
use tokio::signal::unix::{Signal, SignalKind, signal};

use tokio::runtime::Runtime;

use crate::agent::model::{self, ModelArgs, Need};
use crate::agent::{self, AgentError, Manner, Printer, Session, Stopped, session};
use crate::surroundings::Surroundings;
use crate::ui::{DIM, Format, Ui};

/// How often, and with what pause, a session is tried that another process has open.
const CONNECT_ATTEMPTS: u32 = 50;
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Largest file that can be attached.
const MAX_ATTACHMENT: u64 = 5 << 20;

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
    #[arg(short = 'p', long, value_name = "TEXT")]
    pub prompt: String,
    /// A file to show to the model, text or image; `-` is stdin; can be given more than once
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<String>,
    /// Go on with this session
    #[arg(long, value_name = "SESSION", conflicts_with = "continue_newest")]
    pub session: Option<String>,
    /// Go on with the newest session
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

pub fn run(ui: &mut Ui, here: &Surroundings, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let parts = parts(args)?;
    let existing = existing(here, args)?;
    let runtime = agent::runtime()?;
    let manner = manner(args);
    loop {
        if let Some(client) = existing.map_or(Ok(None), |session| connect(&runtime, here, session))? {
            return say_elsewhere(ui, &runtime, args, client, parts, manner);
        }
        let model = model::find(&runtime, &args.model, &here.agent, Need::Ask, None)?;
        let which = existing.map_or(Which::New, Which::Existing);
        match agent::open(ui, &runtime, here, model, which, manner) {
            // Another process was quicker, and takes the prompt.
            Err(error) if is_live(&error) => {}
            other => return say_here(ui, &runtime, args, other?, parts, manner),
        }
    }
}

/// What runs without anybody to ask.
fn manner(args: &RunArgs) -> Manner {
    let allowed = match args.allow {
        Allow::All => Allowed::All,
        Allow::Edits => Allowed::Edits,
        Allow::None => Allowed::None,
    };
    let unprotected = if args.unprotected { Unprotected::Allow } else { Unprotected::Ask };
    Manner { allowed, unprotected }
}

/// Has another process, which has the session open, take the prompt.
fn say_elsewhere(
    ui: &mut Ui,
    runtime: &Runtime,
    args: &RunArgs,
    client: Client,
    parts: Vec<Part>,
    manner: Manner,
) -> anyhow::Result<ExitCode> {
    if args.model.model.is_some() || args.model.base_url.is_some() {
        ui.warn("the session is open in another process, and its own model is asked")?;
    }
    let mut printer = Printer::new(ui);
    runtime.block_on(async {
        let mut session = Session::elsewhere(client).await?;
        if args.clear {
            session.clear().await?;
        }
        turn(&mut session, parts, manner, &mut printer, &mut Stops::listen()?).await
    })
}

/// Takes the prompt in this process, and serves others until all is done.
fn say_here(
    ui: &mut Ui,
    runtime: &Runtime,
    args: &RunArgs,
    serving: agent::Serving,
    parts: Vec<Part>,
    manner: Manner,
) -> anyhow::Result<ExitCode> {
    let handle = serving.opened.handle.clone();
    let mut printer = Printer::new(ui);
    let code = runtime.block_on(async {
        let mut session = Session::here(handle.clone()).await?;
        if args.clear {
            session.clear().await?;
        }
        let mut signals = Stops::listen()?;
        let code = turn(&mut session, parts, manner, &mut printer, &mut signals).await;
        // Others may have said something here meanwhile.
        while is_busy(&handle).await {
            tokio::select! {
                event = session.next() => if event.is_err() { break },
                () = signals.next() => break,
            }
        }
        handle.request(Command::Close).await.ok();
        // What ends with the session is told too; to a program the end of the turn is the last word.
        while let Ok(event) = session.next().await {
            if matches!(event.kind, EventKind::Warning { .. }) && printer.ui().format == Format::Text {
                printer.take(&event)?;
            }
        }
        code
    });
    // Whoever looks next finds everything stored.
    drop(handle);
    let agent::Serving { opened, socket } = serving;
    drop(opened.handle);
    opened.served.join().ok();
    if let Some(socket) = socket {
        runtime.block_on(socket.finish());
    }
    code
}

/// Signals that ask to stop: Ctrl-C, SIGTERM, and that the terminal was closed.
struct Stops {
    signals: [Signal; 3],
    count: u32,
}

impl Stops {
    fn listen() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self { signals: [interrupt?, terminate?, hangup?], count: 0 })
    }

    /// Waits for the next one.
    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        self.count += 1;
    }

    /// How many there were.
    fn count(&self) -> u32 {
        self.count
    }
}

/// Whether a turn is running, or one is about to.
async fn is_busy(handle: &Handle) -> bool {
    let reply = handle.request(Command::Attach { from: None }).await;
    matches!(reply, Ok(Reply::View { view }) if view.state == State::Running || view.held > 0)
}

fn is_live(error: &anyhow::Error) -> bool {
    let opening = error.downcast_ref::<AgentError>();
    matches!(opening, Some(AgentError::Open(OpenSessionError::Session(SessionError::Live { .. }))))
}

/// The way to a session that another process has open; `None` if no process has. One that has just been opened is not served yet.
fn connect(runtime: &Runtime, here: &Surroundings, session: SessionId) -> anyhow::Result<Option<Client>> {
    for _ in 0..CONNECT_ATTEMPTS {
        if let Some(client) = runtime.block_on(Client::connect(&here.sockets, session))? {
            return Ok(Some(client));
        }
        let is_open = match Workspace::open(here.environment.clone()) {
            Ok(workspace) => workspace.is_live(session),
            Err(_) => false,
        };
        if !is_open {
            return Ok(None);
        }
        std::thread::sleep(CONNECT_PAUSE);
    }
    Err(AgentError::Unreachable { session: session.short() }.into())
}

/// Says the prompt, and prints what comes of it until the end of the turn.
async fn turn(
    session: &mut Session,
    parts: Vec<Part>,
    manner: Manner,
    printer: &mut Printer<'_>,
    signals: &mut Stops,
) -> anyhow::Result<ExitCode> {
    let request = session.prompt(parts, manner).await?;
    loop {
        let event = tokio::select! {
            event = session.next() => event?,
            () = signals.next() => {
                if signals.count() > 1 {
                    return Err(AgentError::Interrupted.into());
                }
                if session.stop(&request).await? == Stopped::Withdrawn {
                    return Err(AgentError::Withdrawn.into());
                }
                continue;
            }
        };
        let is_ours = event.request.as_deref() == Some(&request);
        if is_ours || !session.is_elsewhere() {
            printer.take(&event)?;
        }
        if is_ours && matches!(event.kind, EventKind::TurnEnded { .. }) {
            printer.finish()?;
            let way_back = if printer.is_unprotected() { WayBack::Doubtful } else { WayBack::Open };
            return conclude(printer.ui(), &event, way_back);
        }
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
fn conclude(ui: &mut Ui, event: &Event, way_back: WayBack) -> anyhow::Result<ExitCode> {
    let EventKind::TurnEnded { session, prompt, reason, message, usage, taken_back, .. } = &event.kind else {
        return Ok(ExitCode::SUCCESS);
    };
    match reason.as_str() {
        "failed" => return Err(AgentError::TurnFailed { message: message.clone().unwrap_or_default() }.into()),
        "interrupted" if *taken_back => return Err(AgentError::TakenBack.into()),
        "interrupted" => return Err(AgentError::Interrupted.into()),
        "round_limit" => return Err(AgentError::RoundLimit { message: message.clone().unwrap_or_default() }.into()),
        _ => {}
    }
    if ui.format == Format::Text {
        let cost = usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        let (session, prompt) = (&session[..8], prompt.short());
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
fn existing(here: &Surroundings, args: &RunArgs) -> anyhow::Result<Option<SessionId>> {
    if args.session.is_none() && !args.continue_newest {
        return Ok(None);
    }
    let workspace = match Workspace::open(here.environment.clone()) {
        Ok(workspace) => workspace,
        Err(OpenError::NotAWorkspace { .. }) => return Err(AgentError::NoSession.into()),
        Err(err) => return Err(err.into()),
    };
    Ok(Some(session::find(&workspace, args.session.as_deref())?.id))
}

fn parts(args: &RunArgs) -> anyhow::Result<Vec<Part>> {
    let mut stdin = None;
    let mut read_stdin = || -> std::io::Result<Vec<u8>> {
        if stdin.is_none() {
            let mut bytes = Vec::new();
            if !std::io::stdin().is_terminal() {
                std::io::stdin().take(MAX_ATTACHMENT + 1).read_to_end(&mut bytes)?;
            }
            stdin = Some(bytes);
        }
        Ok(stdin.clone().unwrap_or_default())
    };
    let text = match args.prompt.as_str() {
        "-" => prompt_text(read_stdin()?)?,
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(AgentError::NoPrompt.into());
    }
    let mut parts = vec![Part::text(text)];
    for path in &args.attach {
        let bytes = if path == "-" { read_stdin() } else { read(Path::new(path)) };
        let bytes = bytes.map_err(|err| AgentError::Attachment { path: path.clone(), why: err.to_string() })?;
        parts.push(attachment(path, bytes)?);
    }
    Ok(parts)
}

/// What was read as a prompt; all of it, or nothing.
fn prompt_text(bytes: Vec<u8>) -> Result<String, AgentError> {
    let refuse = |why: &str| AgentError::Attachment { path: "-".to_owned(), why: why.to_owned() };
    if bytes.len() as u64 > MAX_ATTACHMENT {
        return Err(refuse("it is larger than 5 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is no text"))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_ATTACHMENT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file as a part of a prompt.
fn attachment(path: &str, bytes: Vec<u8>) -> Result<Part, AgentError> {
    let refuse = |why: &str| AgentError::Attachment { path: path.to_owned(), why: why.to_owned() };
    if bytes.len() as u64 > MAX_ATTACHMENT {
        return Err(refuse("it is larger than 5 MiB"));
    }
    let image = [
        (0, &b"\x89PNG"[..], "image/png"),
        (0, &b"\xff\xd8\xff"[..], "image/jpeg"),
        (0, &b"GIF8"[..], "image/gif"),
        (8, &b"WEBPVP8"[..], "image/webp"),
    ];
    let is_at = |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(magic));
    if let Some((_, _, media_type)) = image.iter().find(|(at, magic, _)| is_at(*at, magic)) {
        return Ok(Part::Image { media_type: (*media_type).to_owned(), data: STANDARD.encode(bytes) });
    }
    let name = if path == "-" { "stdin" } else { path };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Part::File { path: name.to_owned(), text }),
        Err(_) => Err(refuse("it is neither text nor an image")),
    }
}
