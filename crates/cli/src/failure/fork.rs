//! Advice on forks that were not made, or not taken back.

use retake_engine::id::SessionId;
use retake_engine::rewind::ForkUse;
use retake_engine::session::ForkError;

use super::{Advice, USAGE, cancelled, failed, for_checkpoint, for_open, for_store, refused};

pub(super) fn for_fork(error: &ForkError) -> Advice {
    match error {
        ForkError::NotAConversation { .. } => failed(Some("`retake sessions` lists the conversations")),
        ForkError::UnknownEntry { .. } | ForkError::NotATarget { .. } => {
            failed(Some("`retake log --session SESSION` lists the prompts that one can fork from"))
        }
        ForkError::NotSettled { .. } => {
            refused("nothing was changed; fork from the prompt or an earlier entry, or wait until it is done")
        }
        ForkError::FilesGone { .. } => {
            failed(Some("without `--worktree` the conversation is forked, and files stay as they are now"))
        }
        ForkError::BadDirectory { .. } => {
            Advice { code: USAGE, hint: Some("name a new directory outside of the workspace".to_owned()) }
        }
        ForkError::Write { .. } => failed(Some("nothing was changed, and what had been written is removed")),
        ForkError::Cancelled => cancelled(None),
        ForkError::Pending { .. } => refused("nothing was changed; `retake recover` finishes it or takes it back"),
        ForkError::Open(error) => for_open(error),
        ForkError::Checkpoint(error) => for_checkpoint(error),
        ForkError::Store(error) => for_store(error),
    }
}

/// What to do about a fork that cannot be taken back.
pub(super) fn in_use(session: SessionId, why: ForkUse) -> String {
    let first = match why {
        ForkUse::Open => "close it first",
        ForkUse::WentOn => "undo what was said in it first",
        ForkUse::Forked => "undo its own forks first",
    };
    format!(
        "both sessions are as they were; {first}, or delete it for good with `retake sessions rm {}`; \
         `retake undo OP` undoes another operation",
        session.short()
    )
}
