//! Advice on rewinds, undos and redos that were not made, or not to their end.

use retake_agent::ids;
use retake_engine::WorkspacePath;
use retake_engine::operation::{Operation, OperationError};
use retake_engine::rewind::RewindError;

use super::{Advice, MAX_CANDIDATES, failed, for_checkpoint, for_store, fork, refused};
use crate::output::messages;
use crate::output::quote;
use crate::output::time;
use crate::rewind;

/// Most files named that were changed since a crash.
const MAX_CHANGED: usize = 20;

pub(super) fn for_rewind(error: &RewindError) -> Advice {
    match error {
        RewindError::Refused { plan } => refused(&rewind::why_refused(plan)),
        RewindError::Stale { .. } => refused("run the command again to see what it would do now"),
        RewindError::StaleHead => refused("look at it again with `retake log`, then run the command again"),
        RewindError::UnknownEntry { .. } | RewindError::NotATarget { .. } => {
            failed(Some("`retake log` lists the prompts that one can go back to"))
        }
        RewindError::FilesGone { .. } => failed(Some(
            "`--conversation` takes only the conversation back; `retake log` lists the points that are kept",
        )),
        RewindError::SessionNotOpen { .. } => failed(None),
        RewindError::ForkInUse { session, why } => refused(&fork::in_use(*session, *why)),
        RewindError::Discarded { .. } => {
            refused("nothing is marked undone; `retake undo OP` undoes an earlier operation, `retake ops` lists them")
        }
        RewindError::Gone => failed(Some("`retake log --all` lists the points that are there")),
        RewindError::Pending { .. } => refused("nothing was changed; `retake recover` finishes it or takes it back"),
        RewindError::RolledBack { .. } => failed(Some("once the cause is mended, run the command again")),
        RewindError::Partial { safety, .. } => failed(Some(&format!(
            "nothing is lost: all is as it was in checkpoint {}; once the cause is mended, `retake recover` goes on",
            safety.short()
        ))),
        RewindError::InUse { .. } => refused("`--wait` waits until that has ended"),
        RewindError::DamagedTarget { .. } => {
            failed(Some("nothing is lost; `retake recover --go-back` takes the rewind back"))
        }
        RewindError::LeftOver { paths } => {
            let paths: Vec<String> = paths.iter().map(|path| format!("\n  {}", quote::name(path.as_bytes()))).collect();
            failed(Some(&format!("{}{}", messages::LEFT_OVER, paths.concat())))
        }
        RewindError::NotRecorded { .. } | RewindError::Unfinished { .. } => {
            failed(Some("nothing is lost; once the cause is mended, `retake recover` goes on"))
        }
        RewindError::ChangedSinceCrash { paths, .. } => refused(&changed_since(paths)),
        RewindError::Operation(error) => for_operation(error),
        RewindError::Safety(error) => for_checkpoint(error),
        RewindError::Store(error) => for_store(error),
    }
}

pub(super) fn for_operation(error: &OperationError) -> Advice {
    match error {
        OperationError::Unknown { .. } | OperationError::AlreadyUndone { .. } => {
            failed(Some("`retake ops` lists the operations"))
        }
        OperationError::Ambiguous { candidates, .. } => refused(&one_of_operations(candidates)),
        OperationError::NothingToUndo | OperationError::NothingToRedo => failed(Some(
            "`retake ops` lists the operations; `--session S` undoes what was done in a terminal or an editor; `retake rewind POINT` goes back to any point",
        )),
        OperationError::NotFinished { .. } | OperationError::Running { .. } => {
            refused("`--wait` waits until it has ended; `retake ops` lists the operations")
        }
        OperationError::NewerInSession { operations } => refused(&one_of_newer(operations)),
        OperationError::NewestGone { operation } => {
            refused(&format!("`retake undo {}` undoes what came before that", operation.id.short()))
        }
        OperationError::NotReversible { .. } => failed(None),
        OperationError::WithinTurn { turn, .. } => {
            failed(Some(&format!("nothing was changed; `retake undo {}` takes the whole turn back", turn.short())))
        }
        OperationError::Store(error) => for_store(error),
    }
}

fn changed_since(paths: &[WorkspacePath]) -> String {
    let mut text = String::from(
        "these stay as they are; `retake recover --finish` finishes the rest, `retake recover --go-back` takes it back",
    );
    for path in paths.iter().take(MAX_CHANGED) {
        text.push_str(&format!("\n  {}", quote::name(path.as_bytes())));
    }
    if MAX_CHANGED < paths.len() {
        text.push_str(&format!("\n  … and {} more", paths.len() - MAX_CHANGED));
    }
    text
}

fn one_of_operations(candidates: &[Operation]) -> String {
    list_of("it could be one of these; name it by more digits of its id", candidates)
}

fn one_of_newer(operations: &[Operation]) -> String {
    list_of("say which with `retake undo OP`, or `--session SESSION`", operations)
}

fn list_of(hint: &str, candidates: &[Operation]) -> String {
    let now = ids::now();
    let mut text = hint.to_owned();
    for operation in candidates.iter().take(MAX_CANDIDATES) {
        let (kind, what) = (operation.kind.name(), quote::one_line(&operation.what));
        text.push_str(&format!("\n  {}  {}  {kind} {what}", operation.id, time::age(operation.at, now)));
    }
    text
}
