//! `retake sessions`: the conversations of a workspace.

use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use retake_acp::proxy;
use retake_agent::{ids, listing};
use retake_engine::session::Session;
use retake_engine::session::{Conversation, first_line};
use retake_engine::{OpenError, Workspace};
use serde::Serialize;

use super::CommandError;
use crate::agent::session;
use crate::failure::Result;
use crate::output::fork_links::{self, ElsewhereFacts, FromFacts};
use crate::output::json;
use crate::output::messages;
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{DIM, Format, GREEN, Ui, YELLOW};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// List the conversations of this workspace, newest first
///
/// A session of another agent (`retake acp -- AGENT`) has the id that the editor shows for it beside its own; every command takes either.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  retake sessions\n  retake sessions rm 3fa2",
    args_conflicts_with_subcommands = true
)]
pub struct SessionsArgs {
    #[command(subcommand)]
    action: Option<SessionsAction>,
}

#[derive(clap::Subcommand, Debug)]
enum SessionsAction {
    /// Delete a session with everything that only it needs; files stay as they are
    Rm {
        /// Session: a unique beginning of its id
        session: String,
        /// Do not ask
        #[arg(short = 'y', long)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct SessionsDocument {
    version: u32,
    sessions: Vec<SessionFacts>,
}

#[derive(Serialize)]
struct SessionFacts {
    id: String,
    at: String,
    title: String,
    prompts: usize,
    /// Whether a process has it open.
    live: bool,
    /// When something was last said.
    last: Option<String>,
    usage: retake_engine::session::entry::Usage,
    /// Null if it is no fork, or what it was forked from is deleted.
    forked_from: Option<FromFacts>,
    /// Its forks in workspaces of their own.
    forks_elsewhere: Vec<ElsewhereFacts>,
    /// The first line of what waits to be said.
    draft: Option<String>,
    /// What the editor calls it, if it is another agent's; null for others.
    editor_id: Option<String>,
}

/// A conversation that is listed.
struct ListedConversation {
    session: Session,
    conversation: Conversation,
    draft: Option<String>,
    live: bool,
    editor_id: Option<String>,
}

#[derive(Serialize)]
struct DeletedDocument {
    version: u32,
    deleted: String,
    entries: u64,
    checkpoints: u64,
    /// Forks of it that were undone, which went with it.
    undone_forks: Vec<String>,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &SessionsArgs) -> Result<()> {
    match &args.action {
        None => list(ui, here),
        Some(SessionsAction::Rm { session, yes }) => remove(ui, here, session, *yes),
    }
}

fn list(ui: &mut Ui, here: CommandContext) -> Result<()> {
    let workspace = match Workspace::open(here.environment) {
        Ok(workspace) => Some(workspace),
        Err(OpenError::NotAWorkspace { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut found: Vec<ListedConversation> = Vec::new();
    if let Some(workspace) = &workspace {
        interrupted_rewind::mention(ui, workspace)?;
        let names = proxy::names(workspace.store_dir());
        for session in listing::conversations(workspace)? {
            let id = session.id.to_string();
            let editor_id = names.iter().find(|(_, of)| *of == id).map(|(name, _)| name.clone());
            let conversation = workspace.sessions().conversation(session.id)?;
            let live = workspace.sessions().is_live(session.id);
            let draft = Some(first_line(&workspace.sessions().draft(session.id)?)).filter(|line| !line.is_empty());
            found.push(ListedConversation { session, conversation, draft, live, editor_id });
        }
    }
    let last = |conversation: &Conversation| conversation.entries().last().map(|entry| entry.at);
    if ui.format == Format::Json {
        let facts =
            |ListedConversation { session, conversation, draft, live, editor_id }: &ListedConversation| SessionFacts {
                id: session.id.to_string(),
                at: time::rfc3339(session.at),
                title: session.title.clone(),
                prompts: conversation.prompts().count(),
                live: *live,
                last: last(conversation).map(time::rfc3339),
                usage: conversation.usage(),
                forked_from: session.forked_from.as_ref().map(FromFacts::new),
                forks_elsewhere: session.forks_elsewhere.iter().map(ElsewhereFacts::new).collect(),
                draft: draft.clone(),
                editor_id: editor_id.clone(),
            };
        let sessions = found.iter().map(facts).collect();
        return Ok(ui.json(&SessionsDocument { version: json::VERSION, sessions })?);
    }
    if found.is_empty() {
        writeln!(ui.talk()?, "No conversations here yet. `retake run -p TEXT` begins one.")?;
        return Ok(());
    }
    ui.start_pager()?;
    let now = ids::now();
    let (yellow, dim, green) = (ui.paint.with(YELLOW), ui.paint.with(DIM), ui.paint.with(GREEN));
    for ListedConversation { session, conversation, draft, live, editor_id } in &found {
        let prompts = messages::count(conversation.prompts().count() as u64, "prompt", "prompts");
        let live = if *live { format!("  {green}open{green:#}") } else { String::new() };
        let age = time::age(last(conversation).unwrap_or(session.at), now);
        let (id, title) = (session.id.short(), quote::one_line(&session.title));
        let title = match draft {
            Some(draft) if title.is_empty() => format!("{dim}to be said:{dim:#} {}", quote::one_line(draft)),
            _ => title.into_owned(),
        };
        let from = session.forked_from.as_ref().map(|from| format!("  {dim}{}{dim:#}", fork_links::origin(from)));
        let from = from.unwrap_or_default();
        writeln!(ui.out, "{yellow}{id}{yellow:#}  {dim}{age:<14}  {prompts:<11}{dim:#}  {title}{from}{live}")?;
        if let Some(name) = editor_id {
            writeln!(ui.out, "          {dim}in the editor: {}{dim:#}", quote::one_line(name))?;
        }
        for fork in &session.forks_elsewhere {
            let root = quote::name(fork.root.as_os_str().as_bytes());
            writeln!(ui.out, "          {dim}forked to {} in {root}{dim:#}", fork.session.short())?;
        }
    }
    Ok(())
}

fn remove(ui: &mut Ui, here: CommandContext, text: &str, yes: bool) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    interrupted_rewind::first(ui, &mut workspace)?;
    let session = session::named(&workspace, text)?;
    let writer = workspace.sessions().open(session.id, ids::now(), &mut ids::random)?;
    if !yes {
        if !std::io::stdin().is_terminal() || ui.format == Format::Json {
            return Err(CommandError::DeletionNotConfirmed.into());
        }
        let with_it = with_undone(workspace.sessions().undone_forks(session.id)?.len());
        let title = quote::one_line(&session.title);
        let question = format!("Delete session {} \"{title}\"{with_it} for good? [y/N]", session.id.short());
        if !matches!(ui.question(&question)?.trim(), "y" | "Y" | "yes" | "Yes") {
            return Err(CommandError::Declined.into());
        }
    }
    let deleted = workspace.sessions_mut().delete(writer)?;
    if ui.format == Format::Json {
        let (entries, checkpoints) = (deleted.entries, deleted.checkpoints);
        let undone_forks = deleted.undone_forks.iter().map(ToString::to_string).collect();
        return Ok(ui.json(&DeletedDocument {
            version: json::VERSION,
            deleted: session.id.to_string(),
            entries,
            checkpoints,
            undone_forks,
        })?);
    }
    let entries = messages::count(deleted.entries, "entry", "entries");
    let checkpoints = messages::count(deleted.checkpoints, "checkpoint", "checkpoints");
    writeln!(
        ui.talk()?,
        "Deleted session {}{}: {entries}, {checkpoints}; `retake gc` frees the space",
        session.id.short(),
        with_undone(deleted.undone_forks.len())
    )?;
    Ok(())
}

/// ` with 2 undone forks of it`, or nothing: `retake redo` would have brought them back.
fn with_undone(forks: usize) -> String {
    match forks {
        0 => String::new(),
        _ => format!(" with {} of it", messages::count(forks as u64, "undone fork", "undone forks")),
    }
}
