//! What `rewind`, `undo` and `redo` share: from a request to a result, with a plan shown and questions asked in between where that
//! is wanted.
//!
//! Questions are asked only on a terminal. Elsewhere everything is done in one go, and what would need a decision is refused with the
//! list of what has to be decided.

mod choose;
mod forward;
mod outcome;
mod preview;
mod refusal;

use std::collections::HashSet;
use std::io::{self, IsTerminal};

use retake_agent::ids;
use retake_agent::rewind_document::RewindDocument;
use retake_engine::checkpoint::CheckpointError;
use retake_engine::id::SessionId;
use retake_engine::operation::OperationKind;
use retake_engine::progress::Progress;
use retake_engine::rewind::{LedgerItem, Means, OnConflict, Plan, RewindError, RewindRequest};
use retake_engine::session::{Scope, SessionKind, SessionWriter};
use retake_engine::{ScanError, StoreError, Workspace};

use crate::agent;
use crate::commands::CommandError;
use crate::failure::{Failure, Result};
use crate::output::ui::{Format, Ui};
use crate::process::leftovers::{self, Survivor};
use crate::workspace::context::CommandContext;
pub use outcome::tell_displaced;
pub use refusal::why_refused;

/// Options that `rewind`, `undo` and `redo` take.
#[derive(clap::Args, Debug)]
pub struct RewindOptions {
    /// What to do with paths that somebody else changed too: `stop`, and change nothing; `keep` them as they are; `overwrite` them;
    /// or `merge`, which takes only these changes out of them
    #[arg(long, value_name = "CHOICE", default_value = "stop", hide_default_value = true, hide_possible_values = true)]
    on_conflict: ConflictChoice,
    /// Show what would be done, and do nothing, whatever else is given
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, and let an exact rewind replace what you changed yourself
    #[arg(short = 'y', long)]
    yes: bool,
    /// Wait until commands that are at work here have ended, rather than being refused
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// Apply only the plan with this fingerprint, which `--dry-run --json` prints; refused if the plan is another by now
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "dry_run")]
    plan: Option<String>,
    /// Go ahead although another branch is checked out than then
    #[arg(long)]
    across_branches: bool,
    /// Stop the turn first that is running in the session
    #[arg(long, conflicts_with = "dry_run")]
    interrupt: bool,
}

/// What to do with a conflict, as typed.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ConflictChoice {
    Stop,
    Keep,
    Overwrite,
    Merge,
}

impl From<ConflictChoice> for OnConflict {
    fn from(choice: ConflictChoice) -> Self {
        match choice {
            ConflictChoice::Stop => Self::Stop,
            ConflictChoice::Keep => Self::Keep,
            ConflictChoice::Overwrite => Self::Overwrite,
            ConflictChoice::Merge => Self::Merge,
        }
    }
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApplyMode {
    Show,
    Ask,
    Apply,
}

impl RewindOptions {
    /// Whether to wait for commands that are at work.
    pub fn waits(&self) -> bool {
        self.wait
    }

    /// Whether a turn that is running is stopped first.
    pub fn interrupts(&self) -> bool {
        self.interrupt
    }

    /// Whether nothing is to be written.
    pub fn only_shows(&self) -> bool {
        self.dry_run
    }

    fn manner(&self, ui: &Ui) -> ApplyMode {
        if self.dry_run {
            ApplyMode::Show
        } else if self.yes || self.plan.is_some() || ui.format == Format::Json || !io::stdin().is_terminal() {
            ApplyMode::Apply
        } else {
            ApplyMode::Ask
        }
    }
}

/// Who makes a change.
enum Maker {
    /// This process, with the writer of the conversation that it is about, if it is about one.
    Here(Option<Box<SessionWriter>>),
    /// The process that has the session open.
    Elsewhere(SessionId),
}

/// What a change needs to know of its surroundings.
pub struct ChangeContext<'a> {
    pub here: &'a CommandContext,
    pub workspace: &'a mut Workspace,
    /// The session that the change is about.
    pub session: Option<SessionId>,
}

/// Carries out `request` as the options say; `kind` is what it is called.
pub fn run(
    ui: &mut Ui,
    place: ChangeContext<'_>,
    kind: OperationKind,
    mut request: RewindRequest,
    options: &RewindOptions,
) -> Result<()> {
    let ChangeContext { here, workspace, session } = place;
    request.on_conflict = options.on_conflict.into();
    request.on_yours = if options.yes { OnConflict::Overwrite } else { OnConflict::Stop };
    request.across_branches = options.across_branches;
    let seen = match options.manner(ui) {
        ApplyMode::Show => return show(ui, workspace, kind, &request),
        ApplyMode::Apply => options.plan.clone(),
        ApplyMode::Ask => match choose::agree(ui, workspace, kind, &mut request)? {
            Some(plan) => Some(plan.fingerprint()),
            None => return Err(CommandError::Declined.into()),
        },
    };
    match maker(here, workspace, session)? {
        Maker::Here(writer) => apply(ui, workspace, writer, kind, &request, seen.as_deref()),
        Maker::Elsewhere(session) => forward::apply(ui, here, session, kind, &request, seen.as_deref(), options),
    }
}

/// Who has to make a change of `session`.
fn maker(here: &CommandContext, workspace: &Workspace, session: Option<SessionId>) -> Result<Maker> {
    let sessions = workspace.sessions().all()?;
    let is_conversation =
        |id: &SessionId| sessions.iter().any(|session| session.id == *id && session.kind == SessionKind::Conversation);
    let Some(session) = session.filter(is_conversation) else { return Ok(Maker::Here(None)) };
    if agent::is_served(here, session)? {
        return Ok(Maker::Elsewhere(session));
    }
    let writer = workspace.sessions().open(session, ids::now(), &mut ids::random)?;
    Ok(Maker::Here(Some(Box::new(writer))))
}

/// Works out what would be done.
fn plan(ui: &Ui, workspace: &Workspace, request: &RewindRequest) -> Result<Plan> {
    let progress = ui.progress();
    let mut plan = workspace.rewinds().plan(request, &progress).map_err(as_cancelled)?;
    add_running(workspace, &mut plan)?;
    Ok(plan)
}

/// Adds processes to the ledger that commands have left behind: going back does not end them.
fn add_running(workspace: &Workspace, plan: &mut Plan) -> Result<(), StoreError> {
    let survivors = leftovers::all();
    if survivors.is_empty() {
        return Ok(());
    }
    // Other workspaces have theirs.
    let ours: HashSet<String> =
        workspace.operations().all()?.iter().map(|operation| operation.id.to_string()).collect();
    let ours = survivors.into_iter().filter(|survivor| ours.contains(&survivor.operation));
    plan.ledger.extend(ours.map(|Survivor { name, .. }| LedgerItem {
        kind: "running".to_owned(),
        what: name,
        remedy: None,
    }));
    Ok(())
}

fn show(ui: &mut Ui, workspace: &Workspace, kind: OperationKind, request: &RewindRequest) -> Result<()> {
    let plan = plan(ui, workspace, request)?;
    match ui.format {
        Format::Json => print(ui, kind, RewindDocument::planned(&plan))?,
        Format::Text => {
            ui.start_pager()?;
            let paint = ui.paint;
            preview::write(&mut ui.out, paint, workspace, kind, &plan, &request.paths, preview::Length::Whole)?;
            // A pager would hide what is said while it is open.
            ui.finish()?;
        }
    }
    if plan.is_applicable() { Ok(()) } else { Err(RewindError::Refused { plan: Box::new(plan) }.into()) }
}

fn apply(
    ui: &mut Ui,
    workspace: &mut Workspace,
    writer: Option<Box<SessionWriter>>,
    kind: OperationKind,
    request: &RewindRequest,
    seen: Option<&str>,
) -> Result<()> {
    let new = ids::rewind();
    let applied = {
        let progress = ui.progress();
        let progress = &progress as &dyn Progress;
        match writer {
            Some(mut writer) => workspace.rewinds_mut().apply_in(&mut writer, request, seen, &new, progress),
            None => workspace.rewinds_mut().apply(request, seen, &new, progress),
        }
    };
    match (applied, ui.format) {
        (Ok(mut applied), format) => {
            add_running(workspace, &mut applied.plan)?;
            match format {
                Format::Json => print(ui, kind, RewindDocument::applied(&applied)),
                Format::Text => outcome::tell(ui, kind, &applied),
            }
        }
        (Err(error), format) => {
            if let (Format::Json, Some(document)) = (format, RewindDocument::failed(&error)) {
                print(ui, kind, document)?;
            }
            Err(as_cancelled(error))
        }
    }
}

/// Prints `rewind_document` for programs. An undo or a redo takes back the changes of one operation and no others.
fn print(ui: &mut Ui, kind: OperationKind, mut document: RewindDocument) -> Result<()> {
    let is_reversal = matches!(kind, OperationKind::Undo | OperationKind::Redo);
    if is_reversal && document.scope.is_some_and(|scope| scope != Scope::Conversation) {
        document.means = Some(Means::Operation);
    }
    Ok(ui.json(&document)?)
}

/// A rewind that was cancelled has read something and done nothing.
fn as_cancelled(error: RewindError) -> Failure {
    match error {
        RewindError::Safety(CheckpointError::Scan(ScanError::Cancelled)) => CommandError::Cancelled.into(),
        other => other.into(),
    }
}
