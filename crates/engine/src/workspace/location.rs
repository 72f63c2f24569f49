//! Where a workspace's store is, and whose it is.
//!
//! A store's folder is named after the workspace's path. A small file in it tells which directory it belongs to, by path
//! and by identity on disk, so that a workspace that was moved is recognised instead of silently starting anew.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::guard;
use crate::base::id::ObjectId;
use crate::base::plain_file;
use crate::base::settings::Environment;
use crate::scan::ScanError;
use crate::store::pack::replace_file;
use crate::store::{self, StoreError};

const HEADER: &str = "retake workspace 1";
const FILE: &str = "workspace";

/// A workspace could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The directory has no store; a first checkpoint makes it a workspace.
    #[error("`{}` has no checkpoints yet", .root.display())]
    NotAWorkspace {
        /// The directory.
        root: PathBuf,
    },
    /// The directory is a known workspace that was moved; its store has to be linked to the new place.
    #[error("`{}` was the workspace `{}` before it was moved", .root.display(), .from.display())]
    Moved {
        /// Where it is now.
        root: PathBuf,
        /// Where it was.
        from: PathBuf,
    },
    /// The directory is too broad to be a workspace.
    #[error("`{}` is refused as a workspace: {why}", .root.display())]
    Broad {
        /// The directory.
        root: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The directory is a part of Retake's own data.
    #[error("`{}` is inside Retake's own data directory", .root.display())]
    InsideStore {
        /// The directory.
        root: PathBuf,
    },
    /// The directory cannot be used.
    #[error("cannot open the workspace `{}`", .root.display())]
    Root {
        /// The directory.
        root: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The data directory, or the store in it, cannot even be looked at: whether there are checkpoints is not known.
    #[error("cannot use the data directory `{}`", .path.display())]
    DataDir {
        /// The data directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The workspace to be linked from was not moved.
    #[error("`{}` is still there; its checkpoints stay with it", .from.display())]
    StillThere {
        /// The directory.
        from: PathBuf,
    },
    /// There is a store already where one was to be linked to.
    #[error("`{}` already has checkpoints of its own", .root.display())]
    Occupied {
        /// The directory.
        root: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workspace cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
}

/// The folder of the store for `root`.
pub(crate) fn store_dir(data_dir: &Path, root: &Path) -> PathBuf {
    let hash = ObjectId::of(root.as_os_str().as_bytes()).to_string();
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let slug: String = name.chars().map(|c| if plain(c) { c } else { '_' }).take(40).collect();
    data_dir.join("workspaces").join(format!("{slug}-{}", &hash[..16]))
}

/// Checks that `env` names a directory that may be a workspace, and gives the data directory its one true name: by another
/// one the scan would not recognise it inside the workspace. Returns whether it has a store already.
pub(crate) fn prepare(env: &mut Environment) -> Result<bool, OpenError> {
    env.data_dir = resolved(&env.data_dir);
    check_root(env)?;
    exists(&env.data_dir, &env.root)
}

/// `path` with everything that exists of it resolved.
fn resolved(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|place| Some((place, place.canonicalize().ok()?)));
    match there {
        Some((place, real)) => match path.strip_prefix(place) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => path.to_owned(),
    }
}

fn check_root(env: &Environment) -> Result<(), OpenError> {
    let root = &env.root;
    let meta = fs::metadata(root).map_err(|source| OpenError::Root { root: root.clone(), source })?;
    if !meta.is_dir() {
        let source = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(OpenError::Root { root: root.clone(), source });
    }
    if let Some(why) = guard::too_broad(root, &env.homes, env.breadth) {
        return Err(OpenError::Broad { root: root.clone(), why });
    }
    if root.starts_with(&env.data_dir) {
        return Err(OpenError::InsideStore { root: root.clone() });
    }
    Ok(())
}

/// Makes the folder for a new store, unless the workspace turns out to be one that was moved.
pub(crate) fn create(env: &Environment) -> Result<PathBuf, OpenError> {
    if let Some(from) = moved_from(env) {
        return Err(OpenError::Moved { root: env.root.clone(), from });
    }
    let dir = store_dir(&env.data_dir, &env.root);
    store::create_private_dirs(&dir)?;
    store::make_private(&env.data_dir)?;
    write_identity(&dir, &env.root)?;
    Ok(dir)
}

/// Gives the store of `from` to `env.root`.
pub(crate) fn relink(env: &Environment, from: &Path) -> Result<PathBuf, OpenError> {
    let old = store_dir(&env.data_dir, from);
    let new = store_dir(&env.data_dir, &env.root);
    if !old.is_dir() {
        return Err(OpenError::NotAWorkspace { root: from.to_owned() });
    }
    if from.is_dir() {
        return Err(OpenError::StillThere { from: from.to_owned() });
    }
    if new.exists() {
        return Err(OpenError::Occupied { root: env.root.clone() });
    }
    fs::rename(&old, &new).map_err(StoreError::io("rename", &old))?;
    write_identity(&new, &env.root)?;
    Ok(new)
}

/// What stays the same when a directory is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    ino: u64,
    /// Zero where the file system does not tell.
    born_ns: i128,
}

fn identity(root: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(root).ok()?;
    let born = meta.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let born_ns = born.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    Some(Identity { ino: meta.ino(), born_ns })
}

/// Writes in the store `dir` which directory it belongs to.
pub(crate) fn write_identity(dir: &Path, root: &Path) -> Result<(), StoreError> {
    let identity = identity(root).unwrap_or(Identity { ino: 0, born_ns: 0 });
    let mut bytes = format!("{HEADER}\n{} {}\n", identity.ino, identity.born_ns).into_bytes();
    bytes.extend_from_slice(root.as_os_str().as_bytes());
    // Two processes may make one directory a workspace at once, and replacing a file takes turns.
    let _turn = store::take_turn(dir)?;
    replace_file(&dir.join(FILE), &bytes)
}

fn read_identity(dir: &Path) -> Option<(Identity, PathBuf)> {
    let bytes = plain_file::read(&dir.join(FILE)).ok()?;
    let rest = bytes.strip_prefix(HEADER.as_bytes())?.strip_prefix(b"\n")?;
    let end = rest.iter().position(|&b| b == b'\n')?;
    let (ino, born_ns) = str::from_utf8(&rest[..end]).ok()?.split_once(' ')?;
    let identity = Identity { ino: ino.parse().ok()?, born_ns: born_ns.parse().ok()? };
    Some((identity, PathBuf::from(std::ffi::OsString::from_vec(rest[end + 1..].to_vec()))))
}

/// The path of the workspace that `env.root` was before it was moved, if it was.
pub(crate) fn moved_from(env: &Environment) -> Option<PathBuf> {
    let here = identity(&env.root)?;
    let stores = fs::read_dir(env.data_dir.join("workspaces")).ok()?;
    stores.flatten().find_map(|store| {
        let (there, path) = read_identity(&store.path())?;
        // The number of a deleted directory may be given to a new one, but not its time of birth.
        let same = there == here && here.born_ns != 0 && path != env.root;
        (same && identity(&path) != Some(here)).then_some(path)
    })
}

/// The roots of all workspaces that have a store, as they were when that was last written to.
pub(crate) fn roots(data_dir: &Path) -> Vec<PathBuf> {
    let stores = fs::read_dir(data_dir.join("workspaces")).into_iter().flatten().flatten();
    stores.filter_map(|store| read_identity(&store.path()).map(|(_, path)| path)).collect()
}

/// Reading commands must work without writing: whether a store is there at all.
pub(crate) fn exists(data_dir: &Path, root: &Path) -> Result<bool, OpenError> {
    let file = store_dir(data_dir, root).join(FILE);
    file.try_exists().map_err(|source| OpenError::DataDir { path: data_dir.to_owned(), source })
}
