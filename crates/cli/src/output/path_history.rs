//! The history of a path: when it changed, how, and who did it.

use std::io::Write;

use retake_agent::ids;
use retake_engine::changes::{Certainty, Owner, PathChange};
use retake_engine::snapshot::Change;
use retake_engine::{StoreError, Timestamp, Workspace};
use serde::Serialize;

use crate::failure::Result;
use crate::output::diff::Status;
use crate::output::json::{Bytes, NodeFacts, VERSION};
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{DIM, Format, GREEN, Paint, RED, Ui, YELLOW};
use crate::workspace::paths::PathInWorkspace;

#[derive(Serialize)]
struct HistoryDocument {
    version: u32,
    changes: Vec<ChangeFacts>,
}

#[derive(Serialize)]
struct ChangeFacts {
    path: Bytes,
    /// The checkpoint that found it.
    checkpoint: String,
    at: String,
    before: Option<NodeFacts>,
    after: Option<NodeFacts>,
    owner: OwnerFacts,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum OwnerFacts {
    Outside,
    Contested,
    Session { session: String, turn: Option<String>, tool: String, certainty: Certainty },
    Retake { operation: String, session: Option<String> },
}

impl OwnerFacts {
    fn new(owner: &Owner) -> Self {
        match owner {
            Owner::Outside => Self::Outside,
            Owner::Contested => Self::Contested,
            Owner::Session { session, turn, tool, certainty } => Self::Session {
                session: session.to_string(),
                turn: turn.clone(),
                tool: tool.clone(),
                certainty: *certainty,
            },
            Owner::Retake { operation, session } => {
                Self::Retake { operation: operation.to_string(), session: session.map(|session| session.to_string()) }
            }
        }
    }
}

/// Prints what happened at `places`, newest first, and at most `max_count` changes of it.
pub fn print(ui: &mut Ui, workspace: &Workspace, places: &[PathInWorkspace], max_count: usize) -> Result<()> {
    let mut changes = Vec::new();
    for place in places {
        match place {
            PathInWorkspace::Root => changes.extend(everything(workspace)?),
            PathInWorkspace::Below(path) => changes.extend(workspace.changes().of_path(path)?),
        }
    }
    if let [_, _, ..] = places {
        // Ids are in the order in which they were made; a path that two places hold is there twice.
        changes
            .sort_by(|one, other| (other.at, other.checkpoint, &one.path).cmp(&(one.at, one.checkpoint, &other.path)));
        changes.dedup();
    }
    changes.truncate(max_count);
    if ui.format == Format::Json {
        let facts = |change: &PathChange| ChangeFacts {
            path: Bytes::new(change.path.as_bytes()),
            checkpoint: change.checkpoint.to_string(),
            at: time::rfc3339(change.at),
            before: change.before.as_ref().map(NodeFacts::new),
            after: change.after.as_ref().map(NodeFacts::new),
            owner: OwnerFacts::new(&change.owner),
        };
        return Ok(ui.json(&HistoryDocument { version: VERSION, changes: changes.iter().map(facts).collect() })?);
    }
    if changes.is_empty() {
        writeln!(ui.talk()?, "No change was found there since the first checkpoint.")?;
        return Ok(());
    }
    ui.start_pager()?;
    let now = ids::now();
    for change in &changes {
        writeln!(ui.out, "{}", line(ui.paint, change, now))?;
    }
    Ok(())
}

/// The history of all paths, newest first.
fn everything(workspace: &Workspace) -> Result<Vec<PathChange>, StoreError> {
    let Some(oldest) = workspace.checkpoints().all()?.pop() else { return Ok(Vec::new()) };
    let mut changes = workspace.changes().between(&oldest, None)?;
    changes.reverse();
    Ok(changes)
}

fn line(paint: Paint, change: &PathChange, now: Timestamp) -> String {
    let (yellow, dim) = (paint.with(YELLOW), paint.with(DIM));
    let (sign, style) =
        match Status::of(&Change { path: change.path.clone(), before: change.before, after: change.after }) {
            Status::Added => ('+', GREEN),
            Status::Deleted => ('-', RED),
            Status::Modified | Status::Type => ('~', YELLOW),
            Status::Mode => ('m', YELLOW),
        };
    let style = paint.with(style);
    format!(
        "{yellow}{}{yellow:#}  {dim}{:<14}{dim:#}  {style}{sign}{style:#} {}  {dim}{}{dim:#}",
        change.checkpoint.short(),
        time::age(change.at, now),
        quote::name(change.path.as_bytes()),
        describe(&change.owner),
    )
}

/// `sh -c 'make fmt' (presumed)`, `outside`, `contested`, `retake 5c0e1d2f`
fn describe(owner: &Owner) -> String {
    match owner {
        Owner::Outside => "outside".to_owned(),
        Owner::Contested => "contested".to_owned(),
        Owner::Session { tool, certainty: Certainty::Certain, .. } => quote::one_line(tool).into_owned(),
        Owner::Session { tool, certainty: Certainty::Presumed, .. } => {
            format!("{} (presumed)", quote::one_line(tool))
        }
        Owner::Retake { operation, .. } => format!("retake {}", operation.short()),
    }
}
