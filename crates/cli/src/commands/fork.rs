//! `retake fork`: a new session that starts from an entry of another.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use retake_agent::ids;
use retake_agent::rewind_document::{Bytes, GapList};
use retake_engine::Workspace;
use retake_engine::id::SessionId;
use retake_engine::operation::MadeBy;
use retake_engine::session::entry::{Entry, Part};
use retake_engine::session::{Forked, Point};
use retake_engine::session::{ForkedElsewhere, first_line};
use serde::Serialize;

use super::CommandError;
use crate::failure::Result;
use crate::output::fork_links::{self, FromFacts};
use crate::output::gaps::{self, Detail};
use crate::output::json;
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::{Format, Ui, YELLOW};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::point::SessionArgs;

/// Start a new session from a prompt or another entry of a conversation
///
/// From a prompt, the new session begins before it, and what you had said waits to be said again; from any other entry, after it. The
/// session that it is forked from is not touched, and may be open. Files stay as they are, and the model is told which of them differ
/// from what it last saw there; with `--worktree` the files of that point are laid out in a new directory, which becomes a workspace
/// of its own. No git command is run and no repository is made there; ignored files, and what was not captured, do not come along.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake fork 3fa2
  retake fork 3fa2 --worktree ../another-way
  retake fork 3fa2 --session 0fe5     in a session that was itself forked: its own past")]
pub struct ForkArgs {
    /// Prompt or other entry: a unique beginning of its id, or the label or number of a prompt
    point: String,
    /// Lay the files of that point out in this directory, which must not exist or be empty
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    #[command(flatten)]
    session: SessionArgs,
}

#[derive(Serialize)]
struct ForkDocument {
    version: u32,
    session: String,
    title: String,
    forked_from: FromFacts,
    /// The entry: before it if it is a prompt, else after it.
    entry: String,
    draft: Vec<Part>,
    /// The new workspace; null if it is this one.
    worktree: Option<Bytes>,
    /// What `retake undo` takes back; null for a new workspace, for which nothing changed here.
    operation: Option<String>,
    /// Files that differ from what the model last saw there.
    differing: Vec<Bytes>,
    /// What the point could not capture, so that it is not in the new workspace.
    #[serde(flatten)]
    gaps: GapList,
}

/// What is forked.
struct ForkSource {
    session: SessionId,
    entry: Box<Entry>,
}

impl ForkSource {
    /// `3fa29c41, before "mend add"`
    fn describe(&self) -> String {
        format!("{}, {}", self.session.short(), fork_links::place(&self.entry))
    }
}

impl ForkDocument {
    /// Of a session that was forked from `source`.
    fn new(source: &ForkSource, session: SessionId, title: String, draft: Vec<Part>) -> Self {
        Self {
            version: json::VERSION,
            session: session.to_string(),
            title,
            forked_from: FromFacts::here(source.session, source.entry.id),
            entry: source.entry.id.to_string(),
            draft,
            worktree: None,
            operation: None,
            differing: Vec::new(),
            gaps: GapList::new(&[]),
        }
    }
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &ForkArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment.clone())?;
    interrupted_rewind::first(ui, &mut workspace)?;
    let named = args.session.resolve(&workspace)?;
    let source = match workspace.sessions().resolve_point(&args.point, named)? {
        Point::Entry { session, entry, .. } => ForkSource { session, entry },
        Point::Checkpoint(checkpoint) => {
            return Err(CommandError::NothingToFork { point: checkpoint.id.short() }.into());
        }
    };
    // One that died within an answer has it put in order first.
    interrupted_rewind::end_cut_turns(&workspace)?;
    let new = ids::fork(MadeBy::Command);
    match &args.worktree {
        None => {
            let forked = {
                let progress = ui.progress();
                workspace.sessions_mut().fork(source.session, source.entry.id, &new, &progress)?
            };
            tell(ui, &source, forked)
        }
        Some(directory) => {
            let directory = here.current_dir.join(directory);
            let forked = {
                let progress = ui.progress();
                workspace.sessions_mut().fork_to_directory(
                    source.session,
                    source.entry.id,
                    &directory,
                    &new,
                    &progress,
                )?
            };
            tell_elsewhere(ui, &source, forked)
        }
    }
}

fn tell(ui: &mut Ui, source: &ForkSource, forked: Forked) -> Result<()> {
    if ui.format == Format::Json {
        return Ok(ui.json(&ForkDocument {
            operation: Some(forked.operation.to_string()),
            differing: forked.differing.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            ..ForkDocument::new(source, forked.session, forked.title, forked.draft)
        })?);
    }
    let (yellow, id) = (ui.paint.with(YELLOW), forked.session.short());
    writeln!(ui.out, "Forked session {yellow}{id}{yellow:#} from {}", source.describe())?;
    tell_draft(ui, &forked.draft)?;
    if !forked.differing.is_empty() {
        let files = messages::count(forked.differing.len() as u64, "file differs", "files differ");
        writeln!(ui.out, "{files} from what the model last saw there, and it is told which")?;
    }
    writeln!(
        ui.talk()?,
        "`retake run --session {id} -p TEXT` goes on in it, `retake resume {id}` says where it stands, `retake undo` takes this back"
    )?;
    Ok(())
}

fn tell_elsewhere(ui: &mut Ui, source: &ForkSource, forked: ForkedElsewhere) -> Result<()> {
    if ui.format == Format::Json {
        return Ok(ui.json(&ForkDocument {
            worktree: Some(Bytes::new(forked.root.as_os_str().as_bytes())),
            gaps: GapList::new(&forked.gaps),
            ..ForkDocument::new(source, forked.session, forked.title, forked.draft)
        })?);
    }
    let (yellow, id) = (ui.paint.with(YELLOW), forked.session.short());
    let place = quote::name(forked.root.as_os_str().as_bytes());
    writeln!(ui.out, "Forked session {yellow}{id}{yellow:#} from {} into {place}", source.describe())?;
    tell_draft(ui, &forked.draft)?;
    writeln!(ui.out, "Ignored files and version control did not come along")?;
    let gaps: Vec<_> = forked.gaps.into_iter().filter(|gap| gap.kind.is_uncaptured()).collect();
    if !gaps.is_empty() {
        ui.warn(&format!("not captured then, and so not there: {}", gaps::count(gaps.len() as u64)))?;
        for line in gaps::lines(&gaps, Detail::Few) {
            writeln!(ui.talk()?, "{line}")?;
        }
    }
    let directory = directory_word(&forked.root);
    writeln!(
        ui.talk()?,
        "`retake -C {directory} run --session {id} -p TEXT` goes on in it. To get rid of it: `retake -C {directory} sessions rm {id}`, \
         then delete the directory; here nothing has changed"
    )?;
    Ok(())
}

fn directory_word(path: &Path) -> String {
    quote::shell_word(&path.to_string_lossy())
}

fn tell_draft(ui: &mut Ui, draft: &[Part]) -> std::io::Result<()> {
    match draft {
        [] => Ok(()),
        draft => writeln!(ui.out, "To be said again: {}", quote::one_line(&first_line(draft))),
    }
}
