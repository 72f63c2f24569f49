//! `retake resume`: where a session stands, and going on with it.

use std::io::Write;
use std::process::ExitCode;

use retake_agent::ids;
use retake_agent::live::LiveError;
use retake_engine::checkpoint::CheckpointError;
use retake_engine::id::SessionId;
use retake_engine::session::entry::{Body, EndReason, Part, TodoState};
use retake_engine::session::{Conversation, first_line, last_words};
use retake_engine::session::{Session, SessionError};
use retake_engine::{StoreError, Workspace};
use serde::Serialize;

use super::run::{self, Allow, RunArgs};
use crate::agent::model::ModelArgs;
use crate::agent::terminal;
use crate::agent::{self, AgentError, session};
use crate::failure::{Failure, Result};
use crate::output::json;
use crate::output::quote;
use crate::output::ui::{BOLD, DIM, Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// Lines of a draft that are shown.
const MAX_DRAFT_LINES: usize = 20;

/// Go on with a session: say where it stands, or prompt it
///
/// On a terminal it opens; without one, or with `--status`: what was said last, what is still to be done, and what you were about to say. A
/// turn that was cut off is put in order first, so that it can go on.
#[derive(clap::Args, Debug)]
pub struct ResumeArgs {
    /// Session: a unique beginning of its id [default: the newest]
    session: Option<String>,
    /// What to do next; `-` reads it from stdin
    #[arg(short = 'p', long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Only say where it stands
    #[arg(long, conflicts_with = "prompt")]
    status: bool,
    /// What runs without anybody to ask: `all`, `edits` (reading and edit tools, no shell), `none` (reading only) [default: edits]
    #[arg(long, value_name = "WHAT", default_value = "edits", hide_default_value = true, hide_possible_values = true)]
    allow: Allow,
    /// Let tools change files even if no snapshot can be taken before
    #[arg(long)]
    unprotected: bool,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct ResumeDocument<'a> {
    version: u32,
    session: String,
    title: &'a str,
    live: bool,
    head: Option<String>,
    prompts: usize,
    /// The last prompt's first line.
    prompt: Option<String>,
    /// The model's last words.
    text: String,
    /// How the last turn ended.
    ended: Option<&'a EndReason>,
    todos: &'a [retake_engine::session::entry::Todo],
    draft: &'a [Part],
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &ResumeArgs) -> Result<ExitCode> {
    let mut workspace = Workspace::open(here.environment.clone())?;
    // What failed before anything was said is nothing to go on with.
    let found = match ui.is_interactive() {
        true => session::to_continue(&workspace, args.session.as_deref())?,
        false => session::find(&workspace, args.session.as_deref())?,
    };
    if let Some(prompt) = &args.prompt {
        drop(workspace);
        let args = RunArgs {
            prompt: prompt.clone(),
            attach: Vec::new(),
            session: Some(found.id.to_string()),
            continue_newest: false,
            clear: false,
            allow: args.allow,
            unprotected: args.unprotected,
            model: args.model.clone(),
        };
        return run::run(ui, here, &args);
    }
    if ui.is_interactive() && !args.status {
        drop(workspace);
        return terminal::run(ui, here, &args.model, terminal::Start::Session(found.id));
    }
    let live = match agent::is_served(here, found.id) {
        // It is open all the same, and what is stored can be read.
        Err(error) if is_unreachable(&error) => {
            ui.warn(&error.to_string())?;
            true
        }
        served => served?,
    };
    if !live {
        match put_in_order(ui, &mut workspace, found.id) {
            // What can be read still can be.
            Err(error) if cannot_write(&error) => {
                ui.warn(&format!("a turn that was cut off cannot be put in order now: {error:#}"))?;
            }
            other => other?,
        }
    }
    // Its title may have changed by that.
    let found = workspace.sessions().resolve(&found.id.to_string())?;
    let conversation = workspace.sessions().conversation(found.id)?;
    let draft = workspace.sessions().draft(found.id)?;
    tell(ui, &found, &conversation, &draft, live)?;
    Ok(ExitCode::SUCCESS)
}

/// Puts in order what a process that died has left.
fn put_in_order(ui: &mut Ui, workspace: &mut Workspace, session: SessionId) -> Result<()> {
    interrupted_rewind::first(ui, workspace)?;
    drop(workspace.sessions().open(session, ids::now(), &mut ids::random)?);
    // What a command of it had changed when it died is its own; what is changed from now on is not.
    let progress = ui.progress();
    workspace.windows().settle(retake_agent::ids::checkpoint(), &progress)?;
    Ok(())
}

fn is_unreachable(error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(AgentError::Live(LiveError::Unreachable { .. })))
}

/// Whether the store, as it is, takes nothing in.
fn cannot_write(error: &Failure) -> bool {
    error.chain().any(|cause| {
        let of_session = cause.downcast_ref::<SessionError>().and_then(|error| match error {
            SessionError::Store(error) => Some(error),
            _ => None,
        });
        let store = cause.downcast_ref::<StoreError>().or(of_session);
        let of_checkpoint = cause.downcast_ref::<CheckpointError>();
        matches!(store, Some(StoreError::DiskFull { .. } | StoreError::ReadOnly { .. } | StoreError::Io { .. }))
            || of_checkpoint.is_some_and(|error| matches!(error, CheckpointError::Store(_)))
    })
}

fn tell(ui: &mut Ui, session: &Session, conversation: &Conversation, draft: &[Part], live: bool) -> Result<()> {
    let prompt = conversation.prompts().next_back();
    let first = prompt.and_then(|(said, _)| conversation.entries().iter().position(|entry| entry.id == said.id));
    // What the turns before it came to is not what the last one did.
    let turn = &conversation.entries()[first.unwrap_or_default()..];
    let prompt = prompt.map(|(_, parts)| first_line(parts));
    let text = last_words(turn);
    let ended = turn.iter().rev().find_map(|entry| match &entry.body {
        Body::Ended { reason } => Some(reason),
        _ => None,
    });
    if ui.format == Format::Json {
        return Ok(ui.json(&ResumeDocument {
            version: json::VERSION,
            session: session.id.to_string(),
            title: &session.title,
            live,
            head: conversation.head().map(|id| id.to_string()),
            prompts: conversation.prompts().count(),
            prompt,
            text,
            ended,
            todos: conversation.todos(),
            draft,
        })?);
    }
    let (bold, dim) = (ui.paint.with(BOLD), ui.paint.with(DIM));
    let open = if live { ", open in another process" } else { "" };
    let title = quote::one_line(&session.title);
    writeln!(ui.out, "{bold}{title}{bold:#}  {dim}session {}{open}{dim:#}", session.id.short())?;
    if let Some(prompt) = prompt {
        writeln!(ui.out, "{dim}>{dim:#} {}", quote::one_line(&prompt))?;
    }
    if !text.is_empty() {
        let text = if ui.on_terminal { quote::harmless(&text) } else { text.into() };
        writeln!(ui.out, "{text}")?;
    }
    match ended {
        None if live && first.is_some() => writeln!(ui.out, "{dim}Its turn is running.{dim:#}")?,
        Some(EndReason::Interrupted) => writeln!(ui.out, "{dim}The last turn was interrupted.{dim:#}")?,
        Some(EndReason::Failed { message }) => {
            writeln!(ui.out, "{dim}The last turn failed: {}{dim:#}", quote::one_line(message))?;
        }
        Some(EndReason::RoundLimit) => writeln!(ui.out, "{dim}The last turn took too many rounds.{dim:#}")?,
        Some(EndReason::Done) | None => {}
    }
    for todo in conversation.todos() {
        let mark = match todo.state {
            TodoState::Pending => "[ ]",
            TodoState::Active => "[>]",
            TodoState::Done => "[x]",
        };
        writeln!(ui.out, "{mark} {}", quote::one_line(&todo.text))?;
    }
    match lines(draft).as_slice() {
        [] => {}
        [line] => writeln!(ui.out, "{dim}You were about to say:{dim:#} {}", quote::one_line(line))?,
        lines => {
            writeln!(ui.out, "{dim}You were about to say:{dim:#}")?;
            for line in lines.iter().take(MAX_DRAFT_LINES) {
                writeln!(ui.out, "  {}", quote::one_line(line))?;
            }
            match lines.len().saturating_sub(MAX_DRAFT_LINES) {
                0 => {}
                more => writeln!(ui.out, "{dim}  … and {more} more lines{dim:#}")?,
            }
        }
    }
    let id = session.id.short();
    writeln!(
        ui.talk()?,
        "`retake resume {id} -p TEXT` goes on; `retake log --session {id}` lists the points to go back to"
    )?;
    Ok(())
}

/// What waits to be said, line by line: it may be what several people said.
fn lines(draft: &[Part]) -> Vec<String> {
    let mut lines = Vec::new();
    for part in draft {
        match part {
            Part::Text { text } | Part::Paste { text } => {
                let said = text.lines().filter(|line| !line.trim().is_empty());
                lines.extend(said.map(|line| first_line(&[Part::text(line)])));
            }
            Part::File { .. } | Part::Image { .. } => lines.push(first_line(std::slice::from_ref(part))),
        }
    }
    lines
}
