//! `retake diff`: what changed between two points, or since one.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;

use retake_engine::checkpoint::{Checkpoint, ResolveError};
use retake_engine::id::SessionId;
use retake_engine::snapshot::{Change, Gap};
use retake_engine::view::Beside;
use retake_engine::view::{ContentError, Current, Side};
use retake_engine::{ScanError, StoreError, Workspace, WorkspacePath};

use super::CommandError;
use crate::agent::session;
use crate::failure::{Failure, Result};
use crate::output::diff::authors::{Author, Authors};
use crate::output::diff::patch::{self, Binary, Written};
use crate::output::diff::{Comparison, ContentSource, MAX_COMPARED, Uncaptured, Unheld, Why, document, stat};
use crate::output::gaps::{self, Detail};
use crate::output::messages;
use crate::output::quote;
use crate::output::size;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::paths::{self, PathInWorkspace};
use crate::workspace::point::{self, SessionArgs};

/// Show what changed between two checkpoints, or since one
///
/// Prints a unified diff that `git apply` understands, and for text files `patch` too. On a terminal, binary files are only named; files
/// over 8 MiB are everywhere. Exits with 0 whether or not there are differences.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake diff                        since the newest checkpoint
  retake diff 3fa2 --stat            since 3fa2, as a table
  retake diff 3fa2 9bc1 -- src       from 3fa2 to 9bc1, below src only
  retake diff 3fa2 --by outside      what you, or any other program, changed meanwhile
  retake diff --turn 3fa2            what happened in the turn of the prompt 3fa2
  retake diff 9bc1 3fa2 | git apply  from 9bc1 back to 3fa2")]
pub struct DiffArgs {
    /// Prompt (which means before it) or checkpoint to start from: a unique beginning of its id, its label, or the number of a prompt [default: the newest
    /// checkpoint]
    #[arg(value_name = "A")]
    from: Option<String>,
    /// Prompt or checkpoint to compare with [default: the workspace as it is now]
    #[arg(value_name = "B")]
    to: Option<String>,
    /// What changed from before this prompt to the end of its turn
    #[arg(long, value_name = "PROMPT", conflicts_with = "from")]
    turn: Option<String>,
    /// Print changed lines per file instead
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,
    /// Print only the names of what changed
    #[arg(long)]
    name_only: bool,
    /// End names with NUL and do not quote them
    #[arg(short = 'z', requires = "name_only")]
    nul: bool,
    /// Only paths that were changed by a session (`agent`), by nobody who works through Retake (`outside`), or by one session, named by
    /// its id
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
    /// Only these files or directories, relative to the current directory
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<OsString>,
}

/// Paths named in the warning about what was not captured.
const MAX_DOUBTFUL: usize = 5;

/// How names are written.
#[derive(Clone, Copy)]
enum NameFormat {
    Lines,
    NulTerminated,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &DiffArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    interrupted_rewind::mention(ui, &workspace)?;
    let base = paths::base(workspace.root(), &here.current_dir);
    let places = args.paths.iter().map(|path| paths::resolve(workspace.root(), base, path));
    let places = places.collect::<Result<Vec<PathInWorkspace>, _>>()?;
    let session = args.session.resolve(&workspace)?;
    let (from, to) = points(&workspace, args, session)?;
    let author = args.by.as_deref().map(|who| author(&workspace, who)).transpose()?;
    let current;
    let (to_side, mut gaps, after, beside) = match &to {
        Some(checkpoint) => {
            let gaps = workspace.checkpoints().gaps(checkpoint)?;
            let unheld = Unheld::by_checkpoint(&gaps);
            (Side::Stored(checkpoint.snapshot), gaps, unheld, Beside::Checkpoint(checkpoint))
        }
        None => {
            current = scan(ui, &mut workspace)?;
            let unheld = Unheld::now(current.gaps(), workspace.root());
            (Side::Now(&current), current.gaps().to_vec(), unheld, Beside::Now(&current))
        }
    };
    let uncaptured = Uncaptured { before: Unheld::by_checkpoint(&workspace.checkpoints().gaps(&from)?), after };
    let from_side = Side::Stored(from.snapshot);
    let (mut changes, mut left_out) =
        workspace.checkpoints().split_left_out(workspace.diff(&from_side, &to_side)?, &beside)?;
    let authors = match (author, to_side) {
        (None, _) => None,
        (Some(author), Side::Now(current)) => Some((author, Authors::between(&workspace, &from, None, Some(current))?)),
        (Some(author), Side::Stored(_)) => Some((author, Authors::between(&workspace, &from, to.as_ref(), None)?)),
    };
    if let Some((author, authors)) = &authors {
        changes.retain(|change| authors.has(*author, &change.path));
    }
    let (source, destination) = (ContentSource::Side(from_side), ContentSource::Side(to_side));
    let comparison = Comparison { workspace: &workspace, from: source, to: destination, uncaptured };
    changes.retain(|change| places.is_empty() || places.iter().any(|place| place.holds(&change.path)));
    left_out.retain(|change| places.is_empty() || places.iter().any(|place| place.holds(&change.path)));
    let left_out: Vec<WorkspacePath> = left_out.into_iter().map(|change| change.path).collect();
    gaps.retain(|gap| places.is_empty() || places.iter().any(|place| place.meets(&gap.path)));

    if ui.format == Format::Json {
        let document = document::DiffDocument::new(&comparison, &changes, &gaps, &from, to.as_ref())?;
        return Ok(ui.json(&document.with_left_out(&left_out))?);
    }
    print(ui, &comparison, &changes, args)?;
    // A pager would hide what is said while it is open.
    ui.finish()?;
    warn_of_uncaptured(ui, &comparison, &changes)?;
    ui.warn_of(
        "is not captured any more and not deleted: an ignore rule leaves it out",
        "are not captured any more and not deleted: an ignore rule leaves them out",
        &quote::names(&left_out),
    )?;
    if let Some((author, authors)) = &authors {
        warn_of_shared(ui, &authors.shared(*author), &changes)?;
    }
    match to {
        // What a checkpoint could not capture was told when it was made.
        Some(_) => Ok(()),
        None => warn_of_gaps(ui, &gaps, &changes),
    }
}

/// The points to compare; the second one is `None` for what is there now.
fn points(
    workspace: &Workspace,
    args: &DiffArgs,
    session: Option<SessionId>,
) -> Result<(Checkpoint, Option<Checkpoint>)> {
    if let Some(prompt) = &args.turn {
        return point::turn(workspace, prompt, session);
    }
    let from = match &args.from {
        Some(point) => point::checkpoint(workspace, point, session)?,
        None => workspace.checkpoints().all()?.into_iter().next().ok_or(CommandError::NothingToCompare)?,
    };
    let to = args.to.as_deref().map(|point| point::checkpoint(workspace, point, session)).transpose()?;
    Ok((from, to))
}

fn print(ui: &mut Ui, comparison: &Comparison<'_>, changes: &[Change], args: &DiffArgs) -> Result<()> {
    if args.name_only {
        return print_names(ui, changes, if args.nul { NameFormat::NulTerminated } else { NameFormat::Lines });
    }
    if changes.is_empty() {
        writeln!(ui.talk()?, "No differences")?;
        return Ok(());
    }
    ui.start_pager()?;
    let mut damaged = Damaged::default();
    if args.stat {
        let mut rows = Vec::new();
        for change in changes {
            rows.extend(damaged.pass_over(change, stat::StatRow::new(comparison, change).map_err(Failure::from))?);
        }
        let columns = ui.columns();
        stat::write(&mut ui.out, ui.paint, &rows, columns)?;
        return damaged.report();
    }
    let binary = if ui.on_terminal { Binary::Named } else { Binary::Contained };
    let style = patch::Style { paint: ui.paint, binary };
    let mut left_out: u64 = 0;
    for change in patch::in_order(changes) {
        let written = damaged.pass_over(change, patch::write(&mut ui.out, style, comparison, change))?;
        left_out += u64::from(written == Some(Written::LeftOut));
    }
    // On a terminal the line that names it can be seen; a program that applies the patch passes over it.
    if 0 < left_out && !ui.on_terminal {
        let limit = size::human(MAX_COMPARED);
        let files = match left_out {
            1 => format!("1 file over {limit} is"),
            many => format!("{many} files over {limit} are"),
        };
        ui.warn(&format!("{files} named but not contained in this patch"))?;
    }
    damaged.report()
}

/// Paths whose stored content is damaged: everything else is compared before they are told.
#[derive(Default)]
struct Damaged {
    first: Option<(String, Failure)>,
    others: u64,
}

impl Damaged {
    /// Keeps an error that concerns `change` alone for later.
    fn pass_over<T>(&mut self, change: &Change, compared: Result<T>) -> Result<Option<T>> {
        let error = match compared {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        match error.downcast_ref::<ContentError>() {
            Some(ContentError::Store(
                StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Malformed { .. },
            )) => {}
            _ => return Err(error),
        }
        match self.first {
            Some(_) => self.others += 1,
            None => self.first = Some((change.path.display().to_string(), error)),
        }
        Ok(None)
    }

    fn report(self) -> Result<()> {
        let Some((path, error)) = self.first else { return Ok(()) };
        Err(error.context(match self.others {
            0 => format!("cannot compare `{path}`"),
            others => format!("cannot compare `{path}` and {}", messages::count(others, "other path", "other paths")),
        }))
    }
}

fn print_names(ui: &mut Ui, changes: &[Change], names: NameFormat) -> Result<()> {
    if let NameFormat::Lines = names {
        ui.start_pager()?;
    }
    for change in changes {
        match names {
            NameFormat::Lines => writeln!(ui.out, "{}", quote::name(change.path.as_bytes()))?,
            NameFormat::NulTerminated => {
                ui.out.write_all(change.path.as_bytes())?;
                ui.out.write_all(b"\0")?;
            }
        }
    }
    Ok(())
}

/// Tells which additions and deletions may be none.
fn warn_of_uncaptured(ui: &mut Ui, comparison: &Comparison<'_>, changes: &[Change]) -> Result<()> {
    let why = |change: &Change| comparison.uncaptured.why(change).map(|why| (change.path.clone(), why));
    let doubtful: Vec<(WorkspacePath, Why)> = changes.iter().filter_map(why).collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let paths = messages::count(doubtful.len() as u64, "path that looks", "paths that look");
    ui.warn(&format!("{paths} added or deleted may be neither, for a side did not capture it:"))?;
    for (path, why) in doubtful.iter().take(MAX_DOUBTFUL) {
        writeln!(ui.talk()?, "  {}: {}", path.display(), why.describe())?;
    }
    if MAX_DOUBTFUL < doubtful.len() {
        writeln!(ui.talk()?, "  … and {} more", doubtful.len() - MAX_DOUBTFUL)?;
    }
    Ok(())
}

/// Tells which paths hold changes of others as well: a file's lines are not told apart.
fn warn_of_shared(ui: &mut Ui, shared: &HashSet<&WorkspacePath>, changes: &[Change]) -> Result<()> {
    let shared: Vec<&Change> = changes.iter().filter(|change| shared.contains(&change.path)).collect();
    if shared.is_empty() {
        return Ok(());
    }
    let paths = messages::count(shared.len() as u64, "path was", "paths were");
    ui.warn(&format!("{paths} changed by others too, whose changes are shown with it:"))?;
    for change in shared.iter().take(MAX_DOUBTFUL) {
        writeln!(ui.talk()?, "  {}", change.path.display())?;
    }
    if MAX_DOUBTFUL < shared.len() {
        writeln!(ui.talk()?, "  … and {} more", shared.len() - MAX_DOUBTFUL)?;
    }
    Ok(())
}

fn author(workspace: &Workspace, who: &str) -> Result<Author, ResolveError> {
    match who {
        "agent" => Ok(Author::Agent),
        "outside" => Ok(Author::Outside),
        session => session::named(workspace, session).map(|session| Author::Session(session.id)),
    }
}

/// Tells what is on disk now and can be neither captured nor compared, unless it was told as a change already.
fn warn_of_gaps(ui: &mut Ui, gaps: &[Gap], changes: &[Change]) -> Result<()> {
    let changed: HashSet<&WorkspacePath> = changes.iter().map(|change| &change.path).collect();
    let untold = gaps.iter().filter(|gap| gap.kind.is_uncaptured() && !changed.contains(&gap.path));
    let untold: Vec<Gap> = untold.cloned().collect();
    if untold.is_empty() {
        return Ok(());
    }
    let count = gaps::count(untold.len() as u64);
    ui.warn(&format!("the workspace has {count} now, whose content is not compared:"))?;
    for line in gaps::lines(&untold, Detail::Few) {
        writeln!(ui.talk()?, "{line}")?;
    }
    Ok(())
}

fn scan(ui: &Ui, workspace: &mut Workspace) -> Result<Current> {
    let progress = ui.progress();
    // What is read only for comparing is not kept, as the engine's own words have it.
    workspace.current(&progress).map_err(|error| match error {
        ScanError::Cancelled => CommandError::Cancelled.into(),
        other => other.into(),
    })
}
