//! What a rewind would do, path by path, and what stays and why.

use super::fingerprint;
use super::{LedgerItem, Merged, OnConflict, PlannedFork};
use crate::base::id::SessionId;
use crate::base::path::WorkspacePath;
use crate::history::owner::Certainty;
use crate::session::{PlannedConversation, Scope};
use crate::snapshot::gaps::Gap;
use crate::snapshot::uncaptured::UncapturedChange;
use crate::store::tree::{Node, NodeKind, same};

/// What would be done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Its content, or what kind of thing it is, goes back.
    Restore,
    /// It goes.
    Delete,
    /// It comes back.
    Recreate,
    /// Its permissions go back.
    Mode,
    /// It is there already.
    Unchanged,
}

impl Action {
    /// The action as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Delete => "delete",
            Self::Recreate => "recreate",
            Self::Mode => "mode",
            Self::Unchanged => "unchanged",
        }
    }

    pub(crate) fn between(now: Option<&Node>, target: Option<&Node>) -> Self {
        match (now, target) {
            _ if same(now, target) => Self::Unchanged,
            (_, None) => Self::Delete,
            (None, Some(_)) => Self::Recreate,
            (Some(now), Some(target)) => {
                let content = now.kind == NodeKind::Directory || now.content == target.content;
                if now.kind == target.kind && content { Self::Mode } else { Self::Restore }
            }
        }
    }
}

/// Why a path cannot simply go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// Somebody else changed it between our changes.
    ChangedByOthers,
    /// Another operation of the same session changed it after the one that is taken back.
    ChangedLater,
    /// Somebody else changed it after our last change.
    ChangedSince,
    /// No checkpoint captured it for a time, since our last change or while a rule left it out: who changed it then is not known.
    UncapturedSince,
    /// More than one may have changed it: two sessions, or a tool that was killed and whoever came after it.
    Contested,
    /// What is there now cannot be saved, so it is not touched.
    NotCaptured,
    /// The target does not tell what was there.
    UnknownThen,
    /// Something that stays is where a directory would have to be, or in the directory that would have to go.
    InTheWay,
    /// The content of the target is damaged in the store.
    Damaged,
    /// The rewind is exact, and a change that no agent and no command made would be lost.
    Yours,
}

impl Conflict {
    /// The conflict as a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChangedByOthers => "changed_by_others",
            Self::ChangedLater => "changed_later",
            Self::ChangedSince => "changed_since",
            Self::UncapturedSince => "uncaptured_since",
            Self::Contested => "contested",
            Self::NotCaptured => "not_captured",
            Self::UnknownThen => "unknown_then",
            Self::InTheWay => "in_the_way",
            Self::Damaged => "damaged",
            Self::Yours => "yours",
        }
    }

    /// The conflict in words that follow a path.
    pub fn describe(self) -> &'static str {
        match self {
            Self::ChangedByOthers => "somebody else changed it too",
            Self::ChangedLater => "a later operation of the same session changed it too",
            Self::ChangedSince => "changed since by you or another program",
            Self::UncapturedSince => "not captured for a time: who changed it then is not known",
            Self::Contested => "more than one may have changed it",
            Self::NotCaptured => "what is there now cannot be saved, so it is not touched",
            Self::UnknownThen => "what was there then was not captured",
            Self::InTheWay => "something that stays is in the way",
            Self::Damaged => "its content is damaged in the store",
            Self::Yours => "changed by you: by no agent and no command",
        }
    }

    /// Whether the target's state can be had at the price of the present one.
    pub fn can_overwrite(self) -> bool {
        matches!(
            self,
            Self::ChangedByOthers
                | Self::ChangedLater
                | Self::ChangedSince
                | Self::UncapturedSince
                | Self::Contested
                | Self::Yours
        )
    }
}

/// One path of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPath {
    /// The path.
    pub path: WorkspacePath,
    /// What would be done if there is no conflict.
    pub action: Action,
    /// Why it cannot be done just so.
    pub conflict: Option<Conflict>,
    /// What was chosen to do with the conflict.
    pub choice: OnConflict,
    /// How sure it is that the changes taken back are ours; `None` where that does not matter.
    pub certainty: Option<Certainty>,
    /// In an exact rewind: whether a person made what is there, or a part of it.
    pub yours: bool,
    /// Its state now.
    pub now: Option<Node>,
    /// Its state at the target.
    pub target: Option<Node>,
    /// What a merge would make of it, if it merges cleanly.
    pub merged: Option<Merged>,
    /// Whether the path can be left as it is: not where a file takes the place of a directory above it.
    pub can_keep: bool,
    /// The tool whose change was the last before the path was not captured any more, if that is the conflict.
    pub changed_by: Option<String>,
}

impl PlannedPath {
    /// Why it cannot simply go back, in words that follow the path; the command is named where one is known to be the cause.
    pub fn why(&self) -> Option<String> {
        let conflict = self.conflict?;
        Some(match &self.changed_by {
            Some(tool) => {
                format!("changed by `{tool}`, and not captured since: what is there now may be more than that")
            }
            None => conflict.describe().to_owned(),
        })
    }

    /// Whether it is a directory, now and at the target as far as it is there.
    pub fn is_directory(&self) -> bool {
        let mut there = self.now.iter().chain(&self.target);
        there.clone().next().is_some() && there.all(|node| node.kind == NodeKind::Directory)
    }

    /// Whether this path keeps everything from being done.
    pub fn stops(&self) -> bool {
        let Some(conflict) = self.conflict else { return false };
        match self.choice {
            OnConflict::Stop => true,
            OnConflict::Keep => false,
            OnConflict::Overwrite => !conflict.can_overwrite(),
            OnConflict::Merge => self.merged.is_none(),
        }
    }

    /// Whether only our changes go out of it, and what others changed in it stays.
    pub fn is_merged(&self) -> bool {
        let is_chosen = self.conflict.is_some() && self.choice == OnConflict::Merge && self.merged.is_some();
        is_chosen && !same(self.result().as_ref(), self.target.as_ref())
    }

    /// The state that the plan would bring if what is not decided yet is decided for it.
    pub(crate) fn aim(&self) -> Option<Node> {
        match (self.conflict, self.choice) {
            (Some(conflict), OnConflict::Stop) if conflict.can_overwrite() => self.target,
            _ => self.result(),
        }
    }

    /// The state that applying the plan brings; the present one where it is left alone.
    pub fn result(&self) -> Option<Node> {
        match (self.conflict, self.choice) {
            (None, _) | (Some(_), OnConflict::Overwrite) => self.target,
            (Some(_), OnConflict::Merge) => self.merged.as_ref().map(|merged| merged.node),
            (Some(_), OnConflict::Stop | OnConflict::Keep) => self.now,
        }
    }
}

/// Something that stays although it was not there at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The path.
    pub path: WorkspacePath,
    /// Why it stays.
    pub why: KeptBecause,
}

/// Why something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptBecause {
    /// The target does not prove that it was not there.
    NotProven,
    /// The directory holds something that is not captured, a repository, or somebody else's file.
    HoldsOthers,
    /// The rules of the target ignored its name, and such names are left alone.
    IgnoredThen,
    /// It is not captured, so it could not be brought back.
    NotCaptured,
    /// An ignore rule that is newer than the target hides it, and no tool whose changes are taken back made it as it is.
    Hidden,
    /// An ignore rule hides it, and it is too large to be saved before it would be deleted.
    SaveLimit,
}

impl KeptBecause {
    /// The reason as a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotProven => "not_proven",
            Self::HoldsOthers => "holds_others",
            Self::IgnoredThen => "ignored_then",
            Self::NotCaptured => "not_captured",
            Self::Hidden => "hidden",
            Self::SaveLimit => "save_limit",
        }
    }

    /// The reason in words that follow a path.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NotProven => "may have been there then: it was not captured",
            Self::HoldsOthers => "holds files that are not captured or not ours",
            Self::IgnoredThen => "its name was ignored then, and ignored files are left alone",
            Self::NotCaptured => "is new since then, but not captured: it could not be brought back",
            Self::Hidden => "is new since then and was hidden by an ignore rule: who made it as it is now is not known",
            Self::SaveLimit => {
                "hidden by an ignore rule, and larger than `rewind.save_hidden`: not saved, so not deleted"
            }
        }
    }
}

/// What the point of a rewind means for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// The changes of one session since then go back.
    Session,
    /// Every captured file becomes as it was then.
    Workspace,
    /// The changes of one operation go back, or come back: an undo or a redo.
    Operation,
}

impl Means {
    /// The meaning in words, for the first line of a plan.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Session => "this session's changes",
            Self::Workspace => "the whole workspace",
            Self::Operation => "this operation's changes",
        }
    }
}

/// Another branch is checked out than at the target.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BranchMoved {
    /// The branch, or the commit of a detached HEAD, at the target.
    pub then: String,
    /// The one now.
    pub now: String,
}

/// What a rewind would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The point or operation it is about, in words.
    pub what: String,
    /// The session whose changes are taken back; `None` for all.
    pub session: Option<SessionId>,
    /// What the point means for files; `None` for an undo or a redo, and where files stay.
    pub means: Option<Means>,
    /// Paths that would change, and conflicts, by path.
    pub paths: Vec<PlannedPath>,
    /// What stays although it was not there.
    pub kept: Vec<Kept>,
    /// What changed since and is not captured, so that it does not go back.
    pub uncaptured: Vec<UncapturedChange>,
    /// Of an undo: paths that are already as they were before the operation, although the operation changed them.
    pub already: Vec<WorkspacePath>,
    /// Directories that would have to give way to a file and cannot: everything is refused.
    pub blocked: Vec<WorkspacePath>,
    /// Set if another branch is checked out, which has to be confirmed.
    pub branch: Option<BranchMoved>,
    /// The branch that is checked out, or the commit of a detached HEAD; `None` without a repository, and where files stay.
    pub checked_out: Option<String>,
    /// What cannot be undone. Callers may add to it.
    pub ledger: Vec<LedgerItem>,
    /// What the target could not capture.
    pub gaps: Vec<Gap>,
    /// Paths that this session never wrote.
    pub foreign: u64,
    /// Tool calls whose changes of files are taken back, oldest first.
    pub undoes: Vec<String>,
    /// What goes back.
    pub scope: Scope,
    /// What would be done to the conversation, if anything.
    pub conversation: Option<PlannedConversation>,
    /// What would become of a forked session.
    pub fork: Option<PlannedFork>,
    /// Directories that are not as they were, before choices decide which of them go.
    pub(crate) directories: Vec<fingerprint::ChangingDirectory>,
    /// The newest checkpoint that the plan knew of, by row number; 0 where files stay.
    pub(crate) newest: i64,
}

impl Plan {
    /// Paths with a conflict.
    pub fn conflicts(&self) -> impl Iterator<Item = &PlannedPath> {
        self.paths.iter().filter(|path| path.conflict.is_some())
    }

    /// Whether there is anything to do.
    pub fn is_empty(&self) -> bool {
        self.paths.iter().all(|path| same(path.now.as_ref(), path.result().as_ref()))
    }

    /// Whether the plan can be applied as it is.
    pub fn is_applicable(&self) -> bool {
        self.blocked.is_empty() && self.branch.is_none() && !self.paths.iter().any(PlannedPath::stops)
    }
}
