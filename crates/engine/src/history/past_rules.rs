//! The ignore rules of a checkpoint: whether they would have left out a path.
//!
//! Ignore files are read from the checkpoint, where they are always captured, and the rules from outside the workspace from what is kept
//! beside it. Whether a directory holds a repository of its own, and that one's `info/exclude`, are taken as they are now. Reads only.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkpoint::{self, Checkpoint};
use crate::base::limits;
use crate::base::path::WorkspacePath;
use crate::git;
use crate::scan::open;
use crate::scan::rules::{Chain, Outer, OwnRules, Verdict, is_rule_file};
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::tree::NodeKind;
use crate::store::{CopyError, Store, StoreError};

/// Answers for one checkpoint.
pub(crate) struct RulesThen<'a> {
    store: &'a Store,
    outer: Arc<Outer>,
    then: &'a Evidence<'a>,
    root: PathBuf,
    /// The rules in directories that were asked about, by path; empty for the root.
    chains: RefCell<HashMap<Vec<u8>, Chain>>,
}

impl<'a> RulesThen<'a> {
    /// Of `checkpoint`, which `then` answers for. `now` are the rules from outside the workspace as they are now: they stand for those of
    /// a checkpoint that does not tell.
    pub(crate) fn new(
        store: &'a Store,
        checkpoint: &Checkpoint,
        then: &'a Evidence<'a>,
        now: &Arc<Outer>,
        root: &Path,
    ) -> Result<Self, StoreError> {
        let described = match checkpoint::rules(store, checkpoint.id)?.map(|id| store.read(id)).transpose() {
            Err(StoreError::Missing { .. } | StoreError::Damaged { .. }) => None,
            described => described?,
        };
        let outer = described.and_then(|(_, described)| Outer::described(&described)).map(Arc::new);
        let outer = outer.unwrap_or_else(|| now.clone());
        Ok(Self { store, outer, then, root: root.to_owned(), chains: RefCell::default() })
    }

    /// Whether the rules would have left out `path` or a directory above it.
    pub(crate) fn leaves_out(&self, path: &WorkspacePath, is_directory: bool) -> Result<bool, StoreError> {
        let mut paths: Vec<WorkspacePath> = std::iter::successors(Some(path.clone()), WorkspacePath::parent).collect();
        paths.reverse();
        let mut chain = self.chain(None, None)?;
        for place in paths {
            let is_directory = is_directory || place != *path;
            // A file of rules is captured whatever it ignores.
            let is_rules = !is_directory && is_rule_file(place.file_name());
            if !is_rules && self.outer.verdict(&chain, place.as_bytes(), is_directory) == Verdict::LeftOut {
                return Ok(true);
            }
            if place != *path {
                chain = self.chain(Some(&chain), Some(&place))?;
            }
        }
        Ok(false)
    }

    /// The rules in `directory`, `None` for the root, given those of its parent.
    fn chain(&self, above: Option<&Chain>, directory: Option<&WorkspacePath>) -> Result<Chain, StoreError> {
        let key = directory.map_or_else(Vec::new, |directory| directory.as_bytes().to_vec());
        if let Some(chain) = self.chains.borrow().get(&key) {
            return Ok(chain.clone());
        }
        let place = directory.map_or_else(|| self.root.clone(), |directory| self.root.join(directory.to_path()));
        let repository = git::is_repository(&place);
        let exclude = if repository && directory.is_some() { git::exclude_file(&place) } else { None };
        let own = OwnRules {
            repository,
            exclude: exclude.and_then(|path| open::read_small(&path)),
            gitignore: self.read(directory, b".gitignore")?,
            retakeignore: self.read(directory, b".retakeignore")?,
        };
        let above = above.map_or_else(|| self.outer.top(), Chain::clone);
        let chain = self.outer.descend(&above, &key, &own);
        self.chains.borrow_mut().insert(key, chain.clone());
        Ok(chain)
    }

    fn read(&self, directory: Option<&WorkspacePath>, name: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let path = directory.map_or_else(|| WorkspacePath::parse(name), |directory| directory.join(name));
        let Ok(path) = path else { return Ok(None) };
        let Presence::There(node) = self.then.at(&path)? else { return Ok(None) };
        if node.kind != NodeKind::File || node.size > limits::MAX_RULE_FILE {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        match self.store.copy_content(node.content, &mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(CopyError::Store(err)) => Err(err),
            // A vector takes everything.
            Err(CopyError::Write(_)) => Ok(None),
        }
    }
}
