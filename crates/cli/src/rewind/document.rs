//! The JSON of `rewind`, `undo` and `redo`: the plan, and what became of it.

use retake_engine::{
    Applied, BranchMoved, Kept, LedgerItem, PathStatus, Plan, PlannedPath, RewindError, WorkspacePath,
};
use serde::Serialize;

use super::preview;
use crate::json::{Bytes, GapList, VERSION};

#[derive(Serialize, Debug)]
pub struct RewindDocument {
    version: u32,
    /// Null if nothing had to be done, or nothing was.
    operation: Option<String>,
    applied: bool,
    /// The point or operation that it is about.
    what: String,
    session: Option<String>,
    /// The checkpoint that was taken before anything was touched.
    safety: Option<String>,
    files: Vec<File>,
    conflicts: Vec<ConflictFacts>,
    kept: Vec<KeptFacts>,
    /// Directories that a file cannot take the place of.
    blocked: Vec<Bytes>,
    branch: Option<BranchMoved>,
    #[serde(flatten)]
    gaps: GapList,
    ledger: Vec<LedgerItem>,
    undoes: Vec<String>,
    /// Paths that the session never wrote.
    foreign: u64,
    /// Files that a program still has open for writing: what it writes from now on is lost.
    still_open: Vec<Bytes>,
    /// Temporary names under which something had to stay.
    left_over: Vec<Bytes>,
}

#[derive(Serialize, Debug)]
struct File {
    path: Bytes,
    /// Null if a failure left only the outcome known.
    action: Option<&'static str>,
    status: &'static str,
    /// Null where it does not matter who changed it.
    certainty: Option<retake_engine::Certainty>,
}

#[derive(Serialize, Debug)]
struct ConflictFacts {
    path: Bytes,
    why: retake_engine::Conflict,
    text: &'static str,
    choices: Vec<&'static str>,
    choice: retake_engine::OnConflict,
}

#[derive(Serialize, Debug)]
struct KeptFacts {
    path: Bytes,
    why: retake_engine::KeptBecause,
    text: &'static str,
}

impl RewindDocument {
    /// Of what would be done, or was refused.
    pub fn planned(plan: &Plan) -> Self {
        let status = |path: &PlannedPath| if path.stops() { "conflict" } else { "planned" };
        Self::new(plan, plan.paths.iter().map(|path| File::new(path, status(path))).collect())
    }

    /// Of what was done.
    pub fn applied(applied: &Applied) -> Self {
        let paths = applied.plan.paths.iter().zip(&applied.statuses);
        let files = paths.map(|(path, (_, status))| File::new(path, name(*status))).collect();
        Self {
            operation: applied.operation.map(|id| id.to_string()),
            applied: true,
            safety: applied.safety.map(|id| id.to_string()),
            still_open: applied.still_open.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            left_over: applied.left_over.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            ..Self::new(&applied.plan, files)
        }
    }

    /// Of what was not done, if that is known.
    pub fn failed(error: &RewindError) -> Option<Self> {
        match error {
            RewindError::Refused { plan } | RewindError::Stale { plan } => Some(Self::planned(plan)),
            RewindError::Partial { statuses, safety, .. } => {
                let files = statuses.iter().map(|(path, status)| File::without_plan(path, *status)).collect();
                Some(Self { safety: Some(safety.to_string()), ..Self::empty(files) })
            }
            RewindError::Gone
            | RewindError::StaleHead
            | RewindError::UnknownEntry { .. }
            | RewindError::NotATarget { .. }
            | RewindError::FilesGone { .. }
            | RewindError::SessionNotOpen { .. }
            | RewindError::Pending { .. }
            | RewindError::RolledBack { .. }
            | RewindError::NotRecorded { .. }
            | RewindError::InUse { .. }
            | RewindError::DamagedTarget { .. }
            | RewindError::LeftOver { .. }
            | RewindError::Unfinished { .. }
            | RewindError::ChangedSinceCrash { .. }
            | RewindError::Operation(_)
            | RewindError::Safety(_)
            | RewindError::Store(_) => None,
        }
    }

    fn new(plan: &Plan, files: Vec<File>) -> Self {
        Self {
            what: plan.what.clone(),
            session: plan.session.map(|id| id.to_string()),
            conflicts: plan.conflicts().filter_map(ConflictFacts::new).collect(),
            kept: plan.kept.iter().map(KeptFacts::new).collect(),
            blocked: plan.blocked.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            branch: plan.branch.clone(),
            gaps: GapList::new(&plan.gaps),
            ledger: plan.ledger.clone(),
            undoes: plan.undoes.clone(),
            foreign: plan.foreign,
            ..Self::empty(files)
        }
    }

    fn empty(files: Vec<File>) -> Self {
        Self {
            version: VERSION,
            operation: None,
            applied: false,
            what: String::new(),
            session: None,
            safety: None,
            files,
            conflicts: Vec::new(),
            kept: Vec::new(),
            blocked: Vec::new(),
            branch: None,
            gaps: GapList::new(&[]),
            ledger: Vec::new(),
            undoes: Vec::new(),
            foreign: 0,
            still_open: Vec::new(),
            left_over: Vec::new(),
        }
    }
}

impl File {
    fn new(path: &PlannedPath, status: &'static str) -> Self {
        Self {
            path: Bytes::new(path.path.as_bytes()),
            action: Some(path.action.name()),
            status,
            certainty: path.certainty,
        }
    }

    fn without_plan(path: &WorkspacePath, status: PathStatus) -> Self {
        Self { path: Bytes::new(path.as_bytes()), action: None, status: name(status), certainty: None }
    }
}

impl ConflictFacts {
    fn new(path: &PlannedPath) -> Option<Self> {
        let why = path.conflict?;
        let choices = preview::choices(path).into_iter().map(preview::choice_name).collect();
        let path_name = Bytes::new(path.path.as_bytes());
        Some(Self { path: path_name, why, text: why.describe(), choices, choice: path.choice })
    }
}

impl KeptFacts {
    fn new(kept: &Kept) -> Self {
        Self { path: Bytes::new(kept.path.as_bytes()), why: kept.why, text: kept.why.describe() }
    }
}

fn name(status: PathStatus) -> &'static str {
    match status {
        PathStatus::Done => "done",
        PathStatus::Kept => "kept",
        PathStatus::Failed => "failed",
        PathStatus::Displaced => "displaced",
        PathStatus::Overtaken => "overtaken",
    }
}
