//! One workspace: its directory, its store and its scanner.
//!
//! Every layer above adds to [`Workspace`] what it can do: history takes checkpoints, sessions converse, and so on. This one only opens it
//! and looks at snapshots and at what is on disk.

pub(crate) mod export_tree;
pub(crate) mod guard;
pub(crate) mod location;
pub(crate) mod view;

use std::io::Write;
use std::path::Path;

use crate::base::path::WorkspacePath;
use crate::base::settings::Environment;
use crate::scan::{Counters, ScanError, Scanner, WatchState};
use crate::snapshot::diff::{self, Change};
use crate::store::tree::{Node, NodeKind};
use crate::store::{Store, StoreError};
use location::OpenError;
use view::{ContentError, Side};

/// A directory whose states are kept.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) env: Environment,
    pub(crate) store: Store,
    pub(crate) scanner: Scanner,
}

impl Workspace {
    /// The roots of all workspaces whose store is in a data directory; some may not be there any more.
    pub fn roots(data_dir: &Path) -> Vec<std::path::PathBuf> {
        location::roots(data_dir)
    }

    /// Whether `root` already is a workspace; an error if that cannot be found out.
    pub fn exists(data_dir: &Path, root: &Path) -> Result<bool, OpenError> {
        location::exists(data_dir, root)
    }

    /// The folder of the store of `root`, if that is a workspace; reads nothing else.
    pub fn store_of(data_dir: &Path, root: &Path) -> Option<std::path::PathBuf> {
        let is_one = location::exists(data_dir, root).unwrap_or(false);
        is_one.then(|| location::store_dir(data_dir, root))
    }

    /// Opens a workspace that has checkpoints already.
    pub fn open(mut env: Environment) -> Result<Self, OpenError> {
        if !location::prepare(&mut env)? {
            return Err(match location::moved_from(&env) {
                Some(from) => OpenError::Moved { root: env.root, from },
                None => OpenError::NotAWorkspace { root: env.root },
            });
        }
        let dir = location::store_dir(&env.data_dir, &env.root);
        Self::open_in(env, &dir)
    }

    /// Opens a workspace, making the directory one if it is none yet.
    pub fn open_or_create(mut env: Environment) -> Result<Self, OpenError> {
        let dir = match location::prepare(&mut env)? {
            true => location::store_dir(&env.data_dir, &env.root),
            false => location::create(&env)?,
        };
        Self::open_in(env, &dir)
    }

    /// Takes over the checkpoints of the workspace that was at `from` before it was moved here.
    pub fn relink(mut env: Environment, from: &Path) -> Result<Self, OpenError> {
        location::prepare(&mut env)?;
        let dir = location::relink(&env, from)?;
        Self::open_in(env, &dir)
    }

    fn open_in(env: Environment, dir: &Path) -> Result<Self, OpenError> {
        let store = Store::open(dir, env.settings.budget)?;
        let scanner = Scanner::open(&env.root, dir, env.threads)?;
        Ok(Self { env, store, scanner })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.env.root
    }

    /// The folder of the store.
    pub fn store_dir(&self) -> &Path {
        self.store.dir()
    }

    /// Gives back memory that is only there to be quick: for a process that stays, when there may be nothing to do for long.
    pub fn rest(&self) {
        self.store.db().rest();
    }

    pub(crate) fn reopen_scanner(&mut self) -> Result<(), ScanError> {
        let watched = matches!(self.scanner.watch_state(), WatchState::Watching { .. });
        self.scanner = Scanner::open(&self.env.root, self.store.dir(), self.env.threads)?;
        if watched {
            self.scanner.start_watch();
        }
        Ok(())
    }

    /// Starts watching the workspace, so that checkpoints of this process take time only for what changed.
    pub fn watch(&mut self) -> WatchState {
        self.scanner.start_watch()
    }

    /// Makes checkpoints taken with [`Durability::Soon`](crate::Durability::Soon) survive power loss; meant for a moment when nobody waits.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }

    /// What differs between two sides, by path.
    pub fn diff(&self, from: &Side<'_>, to: &Side<'_>) -> Result<Vec<Change>, StoreError> {
        diff::diff(
            Some((view::root_tree(from), &|id| view::load_tree(&self.store, from, id))),
            Some((view::root_tree(to), &|id| view::load_tree(&self.store, to, id))),
        )
    }

    /// Everything that is on one side, by path.
    pub fn everything(&self, side: &Side<'_>) -> Result<Vec<(WorkspacePath, Node)>, StoreError> {
        let all = diff::diff(None, Some((view::root_tree(side), &|id| view::load_tree(&self.store, side, id))))?;
        Ok(all.into_iter().filter_map(|change| Some((change.path, change.after?))).collect())
    }

    /// What is at `path`.
    pub fn entry(&self, side: &Side<'_>, path: &WorkspacePath) -> Result<Option<Node>, StoreError> {
        view::entry(&self.store, side, path)
    }

    /// The children of a directory by name; of the root for `None`. Empty if it is no directory.
    pub fn list(&self, side: &Side<'_>, dir: Option<&WorkspacePath>) -> Result<Vec<(Vec<u8>, Node)>, StoreError> {
        let tree = match dir {
            None => view::root_tree(side),
            Some(path) => match self.entry(side, path)? {
                Some(node) if node.kind == NodeKind::Directory => node.content,
                _ => return Ok(Vec::new()),
            },
        };
        view::load_tree(&self.store, side, tree)
    }

    /// Writes a file's content, or a link's target, to `out`, byte for byte.
    pub fn content(
        &self,
        side: &Side<'_>,
        path: &WorkspacePath,
        node: &Node,
        out: &mut dyn Write,
    ) -> Result<(), ContentError> {
        view::content(&self.store, side, path, node, out)
    }

    /// Writes the content of the file or link that is at `path` on disk now, and was `node` when it was last looked at.
    pub fn content_on_disk(&self, path: &WorkspacePath, node: &Node, out: &mut dyn Write) -> Result<(), ContentError> {
        view::copy_from_disk(&self.env.root, path, node, out)
    }
}

/// The store's counters as they are now.
pub(crate) fn counters(store: &Store) -> Result<Counters, StoreError> {
    let db = store.db();
    Ok(Counters { collections: db.counter("collections")?, commits: db.counter("commits")? })
}
