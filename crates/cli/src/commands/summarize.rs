//! `retake summarize`: a summary in the place of a part of what the model sees.

use std::io::Write;

use retake_agent::contract::{Action, Allow, Command, Extent, Refusal, Reply, Summarised};
use retake_agent::controller::{Unprotected, Which};
use retake_agent::live::LiveSession;
use retake_agent::socket::Client;
use retake_engine::Workspace;
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::session::Point;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::CommandError;
use super::run::{self, StopSignals};
use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::{self, AgentError, SessionOptions, session};
use crate::failure::{Failure, Result};
use crate::output::json;
use crate::output::size;
use crate::output::ui::{DIM, Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::point::SessionArgs;

/// Have the model summarise a part of a conversation, and see the summary in its place
///
/// Nothing is deleted: the conversation stays as it was, every prompt in it can still be gone back to, and `retake undo` takes the summary
/// away again. Ctrl-C leaves everything as it was.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("part").required(true).args(["from", "up_to", "all"])))]
#[command(after_help = "Examples:
  retake summarize --up-to 3fa2          what came before that prompt becomes one summary
  retake summarize --from 3fa2           that prompt and all after it become one summary
  retake summarize --all --instructions \"keep every decision about the schema\"")]
pub struct SummarizeArgs {
    /// Summarise from this prompt on, or what comes after any other entry
    #[arg(long, value_name = "POINT")]
    from: Option<String>,
    /// Summarise what is before this prompt, or everything up to any other entry
    #[arg(long, value_name = "POINT")]
    up_to: Option<String>,
    /// Summarise everything
    #[arg(long)]
    all: bool,
    /// What the summary is to heed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    instructions: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct SummarizeDocument<'a> {
    version: u32,
    session: String,
    /// Null if there was nothing to summarise.
    summary: Option<&'a Summarised>,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &SummarizeArgs) -> Result<()> {
    let workspace = Workspace::open(here.environment.clone())?;
    let (session, extent) = which(&workspace, args)?;
    drop(workspace);
    let runtime = agent::runtime()?;
    let command = Action::Summarise { extent, instructions: args.instructions.clone() };
    let mut stops = {
        let _inside = runtime.enter();
        StopSignals::listen()?
    };
    let reply = match runtime.block_on(agent::connect(here, session))? {
        Some(client) => runtime.block_on(ask_there(client, session, command, &mut stops))?,
        None => ask_here(ui, &runtime, here, args, session, command, &mut stops)?,
    };
    let Reply::Summarised { summary } = reply.map_err(AgentError::from)? else { return Err(AgentError::Ended.into()) };
    if ui.format == Format::Json {
        let session = session.to_string();
        return Ok(ui.json(&SummarizeDocument { version: json::VERSION, session, summary: summary.as_deref() })?);
    }
    let Some(summary) = summary else {
        return Ok(writeln!(ui.talk()?, "There is nothing to summarise there; nothing was changed")?);
    };
    writeln!(ui.out, "{}", summary.text)?;
    let (before, after) = summary.bytes;
    let (before, after) = (size::human(before as u64), size::human(after as u64));
    let cost = summary.usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    writeln!(
        ui.talk()?,
        "{DIM}The model is sent {after} instead of {before} from now on{cost} · `retake undo` takes this back{DIM:#}"
    )?;
    Ok(())
}

/// The session and the part that are meant.
fn which(workspace: &Workspace, args: &SummarizeArgs) -> Result<(SessionId, Extent)> {
    let named = args.session.resolve(workspace)?;
    let entry = |text: &str| -> Result<(SessionId, EntryId)> {
        match workspace.sessions().resolve_point(text, named)? {
            Point::Entry { session, entry, .. } => Ok((session, entry.id)),
            Point::Checkpoint(checkpoint) => Err(CommandError::NotAPrompt { point: checkpoint.id.short() }.into()),
        }
    };
    match (&args.from, &args.up_to) {
        (Some(point), _) => entry(point).map(|(session, entry)| (session, Extent::From { entry })),
        (None, Some(point)) => entry(point).map(|(session, entry)| (session, Extent::UpTo { entry })),
        (None, None) => Ok((session::find(workspace, args.session.session.as_deref())?.id, Extent::All)),
    }
}

/// Has the process that has the session open do it.
async fn ask_there(
    client: Client,
    session: SessionId,
    command: impl Into<Command>,
    stops: &mut StopSignals,
) -> Result<Result<Reply, Refusal>> {
    let live = LiveSession::elsewhere(client, session);
    tokio::select! {
        reply = live.asker.ask(command) => Ok(reply.map_err(AgentError::from)?),
        // A summary that nobody waits for any more is not made.
        () = stops.next() => Err(AgentError::SummaryStopped.into()),
    }
}

fn ask_here(
    ui: &mut Ui,
    runtime: &Runtime,
    here: &CommandContext,
    args: &SummarizeArgs,
    session: SessionId,
    command: impl Into<Command>,
    stops: &mut StopSignals,
) -> Result<Result<Reply, Refusal>> {
    let model = model::find(runtime.handle(), &args.model, &here.agent, ModelUse::Ask, None)?;
    let manner = SessionOptions::headless(Allow::None, Unprotected::Ask);
    let tools = runtime.block_on(async {
        tokio::select! {
            tools = agent::tools(ui, here) => tools,
            () = stops.next() => Err(AgentError::SummaryStopped.into()),
        }
    })?;
    let serving = agent::open(ui, runtime.handle(), here, tools, model, Which::Existing(session), manner)?;
    let handle = serving.opened.handle.clone();
    let reply = runtime.block_on(async {
        let (_, mut live) = LiveSession::here(handle.clone()).await.map_err(AgentError::from)?;
        let asked = handle.request(command);
        tokio::pin!(asked);
        let reply = tokio::select! {
            reply = &mut asked => Ok(reply),
            () = stops.next() => {
                handle.request(Action::Interrupt { turn: None }).await.ok();
                asked.await.ok();
                Err(AgentError::SummaryStopped)
            }
        };
        // Others may have said something here meanwhile.
        run::wait_for_others(&handle, &mut live.told, ui, stops).await?;
        Ok::<_, Failure>(reply)
    });
    drop(handle);
    serving.finish(runtime.handle());
    Ok(reply??)
}
