//! Advice on checkpoints, points, paths and the store.

use retake_agent::ids;
use retake_engine::checkpoint::{Checkpoint, CheckpointError, InvalidLabel, ResolveError};
use retake_engine::maintenance::{PurgeError, SelfTestError};
use retake_engine::view::ContentError;
use retake_engine::{InvalidPath, OpenError, ScanError, StoreError};

use super::change::for_rewind;
use super::{Advice, MAX_CANDIDATES, USAGE, cancelled, failed, refused};
use crate::output::quote;
use crate::output::size;
use crate::output::time;

pub(super) fn for_open(error: &OpenError) -> Advice {
    match error {
        OpenError::NotAWorkspace { .. } => failed(Some("make the first checkpoint with `retake checkpoint`")),
        OpenError::Moved { from, .. } => refused(&format!(
            "if it was moved here, keep its history with `retake relink {}`",
            quote::shell_word(&from.to_string_lossy())
        )),
        OpenError::Broad { .. } => {
            refused("name a narrower directory with `-C DIR`, or pass `--allow-broad` if you mean it")
        }
        OpenError::InsideStore { .. } => refused("run it in your own files, or move the store with `RETAKE_DATA_DIR`"),
        OpenError::Root { .. } => failed(None),
        OpenError::DataDir { .. } => {
            failed(Some("nothing was changed; make it a directory that you may enter, or set `RETAKE_DATA_DIR` to one"))
        }
        OpenError::StillThere { .. } => refused("a copy starts its own history with `retake checkpoint`"),
        OpenError::Occupied { .. } => refused("nothing was changed; both histories stay where they are"),
        OpenError::Store(error) => for_store(error),
        OpenError::Scan(error) => for_scan(error),
    }
}

pub(super) fn for_checkpoint(error: &CheckpointError) -> Advice {
    match error {
        CheckpointError::Budget { needed, budget } => refused(&format!(
            "no checkpoint was removed; raise `store.budget` in `config.toml` to {} or more, or lower `capture.max_file`",
            size::human(budget.saturating_add(*needed))
        )),
        CheckpointError::RoomMade { source, .. } => Advice {
            hint: Some(
                "all other checkpoints are as they were; once the cause is mended, run the command again".to_owned(),
            ),
            ..for_checkpoint(source)
        },
        CheckpointError::Label(error) => for_label(error),
        CheckpointError::LabelTaken { label, holder } if holder.label.as_ref() == Some(label) => refused(&format!(
            "nothing was changed; choose another label, or take this one away with `retake label {} --remove`",
            holder.id.short()
        )),
        CheckpointError::LabelTaken { .. } => refused("nothing was changed; choose another label, for this is its id"),
        CheckpointError::Pending { .. } => {
            refused("nothing was changed; `retake recover` finishes it or takes it back")
        }
        CheckpointError::UnknownSession => failed(Some("`retake ops` lists the sessions")),
        CheckpointError::Scan(error) => for_scan(error),
        CheckpointError::Store(error) => for_store(error),
    }
}

pub(super) fn for_purge(error: &PurgeError) -> Advice {
    match error {
        PurgeError::Pending { .. } => refused("nothing was changed; `retake recover` finishes it or takes it back"),
        PurgeError::Unfinished { .. } => failed(Some("once the cause is mended, `retake gc` removes the rest")),
        PurgeError::Store(error) => for_store(error),
    }
}

pub(super) fn for_label(_: &InvalidLabel) -> Advice {
    let hint = "give it another one, or none; `retake label POINT --remove` takes one away";
    Advice { code: USAGE, hint: Some(hint.to_owned()) }
}

pub(super) fn for_path(_: &InvalidPath) -> Advice {
    failed(None)
}

pub(super) fn for_resolve(error: &ResolveError) -> Advice {
    match error {
        ResolveError::Unknown { .. } => failed(Some("`retake log` lists the points")),
        ResolveError::Ambiguous { candidates, .. } => refused(&one_of(candidates)),
        ResolveError::AmbiguousPoint { .. } => refused("give more digits of its id, or `--session SESSION`"),
        ResolveError::AmbiguousNumber { sessions, .. } => {
            let sessions: Vec<String> = sessions.iter().map(|id| format!("`--session {}`", id.short())).collect();
            refused(&format!("say which one is meant, by its id or with {}", sessions.join(", ")))
        }
        ResolveError::UnknownSession { .. } => {
            failed(Some("`retake sessions` lists the conversations, `retake ops` the sessions of commands"))
        }
        ResolveError::AmbiguousSession { .. } => refused("give more digits of its id"),
        ResolveError::Store(error) => for_store(error),
    }
}

pub(super) fn for_content(error: &ContentError) -> Advice {
    match error {
        ContentError::Read { .. } => failed(Some("if it just changed, run the command again")),
        ContentError::Write(_) => failed(None),
        ContentError::Store(error) => for_store(error),
    }
}

pub(super) fn for_scan(error: &ScanError) -> Advice {
    match error {
        ScanError::Root { .. } => failed(None),
        ScanError::Cancelled => cancelled(Some("run the command again to go on from there")),
        ScanError::Store(error) => for_store(error),
    }
}

pub(super) fn for_store(error: &StoreError) -> Advice {
    failed(match error {
        StoreError::Io { .. } => Some("nothing was changed, and all checkpoints are as they were"),
        StoreError::WrongKind { .. } => Some(
            "nothing was changed, and all checkpoints are as they were; put the file back from a backup if there is one, else \
             remove what is there, then run `retake doctor`",
        ),
        StoreError::DiskFull { .. } => {
            Some("free some space and run the command again; all checkpoints are as they were")
        }
        StoreError::MalformedIntent => Some("no file was touched because of it; `retake doctor` tells more"),
        StoreError::ReadOnly { .. } => Some("make it writable, or set `RETAKE_DATA_DIR`; reading still works"),
        StoreError::Newer { .. } => Some("update Retake; the store was not touched"),
        StoreError::Orphaned { .. } => {
            Some("put `retake.db` back from a backup, or move the folder away to start anew; nothing was touched")
        }
        StoreError::Network { .. } => Some("set `RETAKE_DATA_DIR` to a directory on a local disk"),
        StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Malformed { .. } => {
            Some("only what needs this object is affected; everything else can still be shown and compared")
        }
        StoreError::Collected => Some("run the command again"),
        StoreError::DatabaseDamaged { .. } => Some(
            "nothing was changed, and stored contents are as they were; put `retake.db` back from a backup, or move its \
             folder away to start anew",
        ),
        StoreError::Busy { .. } => Some("nothing was changed; run the command again when the other one has finished"),
        StoreError::Database { .. } => Some("nothing was changed; if it happens again, check the disk"),
    })
}

pub(super) fn for_self_test(error: &SelfTestError) -> Advice {
    match error {
        SelfTestError::Git { .. } => failed(None),
        SelfTestError::Checkpoint(error) => for_checkpoint(error),
        SelfTestError::Plan(error) => for_rewind(error),
    }
}

fn one_of(candidates: &[Checkpoint]) -> String {
    let now = ids::now();
    let mut text = String::from("it could be one of these; name it by more digits of its id");
    for checkpoint in candidates.iter().take(MAX_CANDIDATES) {
        let label = checkpoint.label.as_deref().map(quote::one_line).unwrap_or_default();
        let line = format!("\n  {}  {}  {label}", checkpoint.id, time::age(checkpoint.at, now));
        text.push_str(line.trim_end());
    }
    if MAX_CANDIDATES < candidates.len() {
        text.push_str(&format!("\n  … and {} more", candidates.len() - MAX_CANDIDATES));
    }
    text
}
