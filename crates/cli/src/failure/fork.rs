//! Advice on forks that were not made.

use retake_engine::ForkError;

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
