//! The JSON of a rewind, an undo or a redo: the plan and its outcome. The same for the command line, the socket and every other client.
//!
//! Fields may be added to a version; none is ever renamed or removed in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_engine::WorkspacePath;
use retake_engine::rewind::{
    Applied, Conflict, Kept, LedgerItem, Means, NotRestored, OnConflict, PathStatus, Plan, PlannedPath, RewindError,
};
use retake_engine::session::PlannedConversation;
use retake_engine::session::Scope;
use retake_engine::snapshot::Gap;
use serde::{Deserialize, Serialize};

use crate::contract::{CheckpointRef, OperationRef, SessionRef};

/// The version of every document.
pub const VERSION: u32 = 1;

/// Gaps listed in one document; `gaps_total` has the true count.
const MAX_GAPS: usize = 1_000;

/// Any bytes: text when they are UTF-8, else `{"bytes": "<base64>"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(untagged)]
pub enum Bytes {
    /// Text.
    Text(String),
    /// Anything else.
    Base64 {
        /// In base64.
        bytes: String,
    },
}

impl Bytes {
    /// The best form for `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64 { bytes: STANDARD.encode(bytes) },
        }
    }

    /// The bytes themselves; `None` if they are not what they should be.
    pub fn decode(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Base64 { bytes } => STANDARD.decode(bytes).ok(),
        }
    }
}

/// Gaps, the first of them by name and all of them counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GapList {
    /// The first of them.
    pub gaps: Vec<GapFacts>,
    /// How many there are.
    pub gaps_total: u64,
}

impl GapList {
    /// Lists `gaps`.
    pub fn new(gaps: &[Gap]) -> Self {
        Self { gaps: gaps.iter().take(MAX_GAPS).map(GapFacts::new).collect(), gaps_total: gaps.len() as u64 }
    }
}

/// Something that could not be captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GapFacts {
    /// The path.
    pub path: Bytes,
    /// Why, for programs.
    pub kind: String,
    /// Why, in words.
    pub text: String,
}

impl GapFacts {
    fn new(gap: &Gap) -> Self {
        let (kind, text) = (gap.kind.name().to_owned(), gap.kind.describe().to_owned());
        Self { path: Bytes::new(gap.path.as_bytes()), kind, text }
    }
}

/// A rewind, an undo or a redo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RewindDocument {
    /// [`VERSION`].
    pub version: u32,
    /// Null if nothing had to be done, or nothing was.
    pub operation: Option<OperationRef>,
    /// Whether it was done.
    pub applied: bool,
    /// The point or operation that it is about.
    pub what: String,
    /// The session whose it is.
    pub session: Option<SessionRef>,
    /// What the point means for files: the changes of one session or the whole workspace. An undo or a redo has no point; the command
    /// line says `operation` there. Left out where files stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Means>,
    /// What goes back: `code`, `conversation` or `both`.
    pub scope: Option<Scope>,
    /// What becomes of the conversation.
    pub conversation: Option<PlannedConversation>,
    /// Whether the conversation is where it was to go; null if that was not asked for.
    pub conversation_moved: Option<bool>,
    /// The checkpoint that was taken before anything was touched.
    pub safety: Option<CheckpointRef>,
    /// The plan in short: an apply that names it is refused if the plan is another by then. It ends in `-open` as long as something is
    /// undecided; then only what the plan saw is compared, and the choices are those of the apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What becomes of each path.
    pub files: Vec<File>,
    /// Paths that need a decision, or needed one.
    pub conflicts: Vec<ConflictFacts>,
    /// What stays although it was not there.
    pub kept: Vec<KeptFacts>,
    /// What changed since the target and did not go back, or would not.
    #[serde(default)]
    pub not_restored: Vec<NotRestoredFacts>,
    /// Of an undo: paths that were as before the operation already, although it changed them.
    #[serde(default)]
    pub already: Vec<Bytes>,
    /// Directories that a file cannot take the place of.
    pub blocked: Vec<Bytes>,
    /// Set if another branch is checked out.
    pub branch: Option<Branch>,
    /// What the target could not capture.
    #[serde(flatten)]
    pub gaps: GapList,
    /// What cannot be undone.
    pub ledger: Vec<LedgerItem>,
    /// Tool calls that are undone too.
    pub undoes: Vec<String>,
    /// Paths that the session never wrote.
    pub foreign: u64,
    /// Files that a program still has open for writing: what it writes from now on is lost.
    pub still_open: Vec<Bytes>,
    /// Temporary names under which something had to stay.
    pub left_over: Vec<Bytes>,
}

/// What becomes of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "PlannedFile"))]
pub struct File {
    /// The path.
    pub path: Bytes,
    /// `merge` if only some changes go out of it. Null if a failure left only the outcome known.
    pub action: Option<String>,
    /// What became of it.
    pub status: String,
    /// Null where it does not matter who changed it.
    pub certainty: Option<String>,
    /// In an exact rewind: whether a person made what is there, or a part of it.
    #[serde(default)]
    pub yours: bool,
    /// Whether it is a directory, now and at the target as far as it is there.
    #[serde(default)]
    pub directory: bool,
}

/// A path that needs a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ConflictFacts {
    /// The path.
    pub path: Bytes,
    /// Why.
    pub why: Conflict,
    /// Why, in words.
    pub text: String,
    /// What can be decided.
    pub choices: Vec<OnConflict>,
    /// What was decided.
    pub choice: OnConflict,
}

/// Something that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct KeptFacts {
    /// The path.
    pub path: Bytes,
    /// Why, for programs.
    pub why: String,
    /// Why, in words.
    pub text: String,
}

/// Something that changed since the target and did not go back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NotRestoredFacts {
    /// The path.
    pub path: Bytes,
    /// How it differs: `new`, `gone`, `changed` or, if that is all that is known, `possible`.
    pub change: String,
    /// Why it did not go back, for programs.
    pub why: String,
    /// The same in words that follow the path.
    pub text: String,
}

/// Another branch is checked out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Branch {
    then: String,
    now: String,
}

impl Branch {
    /// For people, and for models.
    pub fn in_words(&self) -> String {
        format!("the branch `{}` is checked out, and it was `{}` then", self.now, self.then)
    }
}

impl RewindDocument {
    /// Of what would be done, or was refused.
    pub fn planned(plan: &Plan) -> Self {
        let status = |path: &PlannedPath| if path.stops() { "conflict" } else { "planned" };
        let files = plan.paths.iter().map(|path| File::new(path, status(path))).collect();
        let not_restored = plan.not_restored().iter().map(NotRestoredFacts::new).collect();
        Self { fingerprint: Some(plan.fingerprint()), not_restored, ..Self::new(plan, files) }
    }

    /// Of what was done.
    pub fn applied(applied: &Applied) -> Self {
        let paths = applied.plan.paths.iter().zip(&applied.statuses);
        let files = paths.map(|(path, (_, status))| File::new(path, name(*status))).collect();
        Self {
            operation: applied.operation.map(OperationRef::from),
            applied: true,
            conversation_moved: applied.conversation_moved,
            safety: applied.safety.map(CheckpointRef::from),
            still_open: applied.still_open.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            left_over: applied.left_over.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            not_restored: applied.not_restored().iter().map(NotRestoredFacts::new).collect(),
            ..Self::new(&applied.plan, files)
        }
    }

    /// Of what was not done, if that is known.
    pub fn failed(error: &RewindError) -> Option<Self> {
        match error {
            RewindError::Refused { plan } | RewindError::Stale { plan } => Some(Self::planned(plan)),
            RewindError::Partial { statuses, safety, .. } => {
                let files = statuses.iter().map(|(path, status)| File::without_plan(path, *status)).collect();
                Some(Self { safety: Some(CheckpointRef::from(*safety)), ..Self::empty(files) })
            }
            _ => None,
        }
    }

    /// The fingerprint of this plan for choices that were made after it was shown.
    pub fn fingerprint_before_choices(&self) -> Option<String> {
        let (sight, _) = self.fingerprint.as_ref()?.split_once('-')?;
        Some(format!("{sight}-{}", retake_engine::rewind::OPEN))
    }

    /// Of a turn that came to nothing and was taken back.
    pub fn taken_back(what: &str) -> Self {
        Self { applied: true, what: what.to_owned(), conversation_moved: Some(true), ..Self::empty(Vec::new()) }
    }

    fn new(plan: &Plan, files: Vec<File>) -> Self {
        let branch = plan.branch.as_ref().map(|moved| Branch { then: moved.then.clone(), now: moved.now.clone() });
        Self {
            what: plan.what.clone(),
            session: plan.session.map(SessionRef::from),
            means: plan.means,
            scope: Some(plan.scope),
            conversation: plan.conversation.clone(),
            conflicts: plan.conflicts().filter_map(ConflictFacts::new).collect(),
            kept: plan.kept.iter().map(KeptFacts::new).collect(),
            already: plan.already.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            blocked: plan.blocked.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
            branch,
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
            means: None,
            scope: None,
            conversation: None,
            conversation_moved: None,
            safety: None,
            fingerprint: None,
            files,
            conflicts: Vec::new(),
            kept: Vec::new(),
            not_restored: Vec::new(),
            already: Vec::new(),
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
    fn new(path: &PlannedPath, status: &str) -> Self {
        Self {
            path: Bytes::new(path.path.as_bytes()),
            action: Some(if path.is_merged() { "merge" } else { path.action.name() }.to_owned()),
            status: status.to_owned(),
            certainty: path.certainty.map(|certainty| certainty.name().to_owned()),
            yours: path.yours,
            directory: path.is_directory(),
        }
    }

    fn without_plan(path: &WorkspacePath, status: PathStatus) -> Self {
        let status = name(status).to_owned();
        Self {
            path: Bytes::new(path.as_bytes()),
            action: None,
            status,
            certainty: None,
            yours: false,
            directory: false,
        }
    }
}

/// What can be decided about a path with a conflict; the safe choice comes first.
pub fn choices(path: &PlannedPath) -> Vec<OnConflict> {
    let overwrite = path.conflict.is_some_and(Conflict::can_overwrite).then_some(OnConflict::Overwrite);
    let merge = path.merged.as_ref().map(|_| OnConflict::Merge);
    let (keep, stop) = (path.can_keep.then_some(OnConflict::Keep), Some(OnConflict::Stop));
    let choices = match path.now {
        Some(_) => [keep, overwrite, merge, stop],
        // To keep what is not there would leave the user without the file.
        None => [merge, overwrite, keep, stop],
    };
    choices.into_iter().flatten().collect()
}

impl ConflictFacts {
    fn new(path: &PlannedPath) -> Option<Self> {
        let why = path.conflict?;
        let (text, choices) = (path.why().unwrap_or_default(), choices(path));
        Some(Self { path: Bytes::new(path.path.as_bytes()), why, text, choices, choice: path.choice })
    }
}

impl KeptFacts {
    fn new(kept: &Kept) -> Self {
        let (why, text) = (kept.why.name().to_owned(), kept.why.describe().to_owned());
        Self { path: Bytes::new(kept.path.as_bytes()), why, text }
    }
}

impl NotRestoredFacts {
    fn new(not_restored: &NotRestored) -> Self {
        let NotRestored { path, difference, why, text } = not_restored;
        let (change, why, text) = (difference.name().to_owned(), (*why).to_owned(), text.clone());
        Self { path: Bytes::new(path.as_bytes()), change, why, text }
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
