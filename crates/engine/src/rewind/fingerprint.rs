//! The fingerprint of a plan: what the user saw, in a few letters.
//!
//! `HEAD.WORLD-CHOICES`: the head of the conversation; the branch and each path with its states, directories included; the choices and
//! where they lead. The choices are [`OPEN`] as long as something is undecided, so that a user may see a plan, decide, and send the decisions with the
//! fingerprint of that plan. The ledger is in no part.

use super::{Conflict, Plan, PlannedPath};
use crate::base::path::WorkspacePath;
use crate::store::tree::{Node, NodeKind, comparable, same};

/// In the place of the head: a turn was stopped for the rewind, and its end has moved the head.
const ANY: &str = "any";

/// In the place of the choices of a plan that still needs some.
pub const OPEN: &str = "open";

/// `fingerprint` for a head that moves when the running turn ends. The caller has compared the head before that.
pub fn with_any_head(fingerprint: &str) -> String {
    let rest = fingerprint.split_once('.').map_or(fingerprint, |(_, rest)| rest);
    format!("{ANY}.{rest}")
}

/// A directory that is not as it was, whether or not it goes back: that depends on the choices for what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangingDirectory {
    path: WorkspacePath,
    states: [Option<Node>; 2],
}

impl ChangingDirectory {
    /// The directory at `path`, if it is one that changes.
    pub(super) fn of(path: &PlannedPath) -> Option<Self> {
        let changes = is_directory(path) && !same(path.now.as_ref(), path.target.as_ref());
        changes.then(|| Self { path: path.path.clone(), states: [path.now, path.target] })
    }
}

impl Plan {
    /// The plan in short. Equal ones saw the same and would do the same.
    pub fn fingerprint(&self) -> String {
        let choices = match self.paths.iter().any(PlannedPath::stops) {
            true => OPEN.to_owned(),
            false => self.outcome(),
        };
        format!("{}.{}-{choices}", self.head(), self.world())
    }

    /// Whether the user saw this plan: the same world, and the same choices unless they were open.
    pub fn is_as_seen(&self, fingerprint: &str) -> bool {
        let Some((head, rest)) = fingerprint.split_once('.') else { return false };
        let Some((world, choices)) = rest.split_once('-') else { return false };
        let is_decided = || !self.paths.iter().any(PlannedPath::stops) && choices == self.outcome();
        (head == ANY || head == self.head()) && world == self.world() && (choices == OPEN || is_decided())
    }

    fn head(&self) -> String {
        let head = self.conversation.as_ref().map(|planned| planned.from);
        blake3::hash(format!("{head:?}").as_bytes()).to_hex()[..8].to_owned()
    }

    /// The world as this plan found it. Choices do not change it, although directories come and go with what is in them, and what is in
    /// the way of a path depends on the choices for others.
    fn world(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let fork = self.fork.as_ref().map(|fork| (fork.session, fork.fate));
        hasher.update(format!("{fork:?} {:?}", self.checked_out).as_bytes());
        for path in self.paths.iter().filter(|path| !is_directory(path)) {
            let nodes = [path.now.as_ref(), path.target.as_ref()].map(comparable);
            let is_choice =
                |conflict| matches!(conflict, Conflict::InTheWay | Conflict::Yours | Conflict::UncapturedSince);
            let is_contested = path.conflict.is_some_and(|conflict| !is_choice(conflict));
            add(&mut hasher, &path.path, &format!("{is_contested} {} {nodes:?}", path.yours));
        }
        for directory in &self.directories {
            let [now, target] = &directory.states;
            add(&mut hasher, &directory.path, &format!("{:?}", [now.as_ref(), target.as_ref()].map(comparable)));
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Where the choices lead.
    fn outcome(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for path in &self.paths {
            add(&mut hasher, &path.path, &format!("{:?} {:?}", path.choice, comparable(path.result().as_ref())));
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

fn add(hasher: &mut blake3::Hasher, path: &WorkspacePath, facts: &str) {
    for bytes in [path.as_bytes(), facts.as_bytes()] {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
}

/// Whether the path is a directory or nothing, now and at the target.
fn is_directory(path: &PlannedPath) -> bool {
    [path.now, path.target].iter().flatten().all(|node| node.kind == NodeKind::Directory)
}
