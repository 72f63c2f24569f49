//! From paths as typed to paths inside the workspace.
//!
//! Nothing here needs to exist: a path may name what was deleted long ago. `..` is taken by name, as `cd` in a shell does.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use retake_engine::WorkspacePath;
use thiserror::Error;

/// A path on the command line that is not in the workspace.
#[derive(Debug, Error)]
#[error("{} outside the workspace `{}`", if .path.as_os_str().is_empty() { "an empty path is".to_owned() } else { format!("`{}` is", .path.display()) }, .root.display())]
pub struct OutsideWorkspace {
    path: PathBuf,
    root: PathBuf,
}

/// A place in the workspace: its root, or something below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathInWorkspace {
    Root,
    Below(WorkspacePath),
}

impl PathInWorkspace {
    /// Whether `path` is this place or below it.
    pub fn holds(&self, path: &WorkspacePath) -> bool {
        match self {
            Self::Root => true,
            Self::Below(dir) => path.starts_with(dir),
        }
    }

    /// Whether `path` is this place, below it or above it.
    pub fn meets(&self, path: &WorkspacePath) -> bool {
        match self {
            Self::Root => true,
            Self::Below(dir) => path.starts_with(dir) || dir.starts_with(path),
        }
    }
}

/// Resolves `typed` against `base`, an absolute directory; `root` is canonical.
pub fn resolve(root: &Path, base: &Path, typed: &OsStr) -> Result<PathInWorkspace, OutsideWorkspace> {
    let outside = || OutsideWorkspace { path: typed.into(), root: root.to_owned() };
    // Most likely a variable that is not set: it must not stand for everything.
    if typed.is_empty() {
        return Err(outside());
    }
    let plain = normal(&base.join(typed));
    if let Ok(below) = plain.strip_prefix(root) {
        return place(below).ok_or_else(outside);
    }
    // Another spelling of the root (`/tmp` for `/private/tmp`); the last name is left alone, for it may be a symlink in the workspace.
    let (Some(parent), Some(name)) = (plain.parent(), plain.file_name()) else { return Err(outside()) };
    let canonical = canonical_as_far_as_it_exists(parent).join(name);
    canonical.strip_prefix(root).ok().and_then(place).ok_or_else(outside)
}

/// Where relative paths start: the current directory if it is in the workspace, else the root, as with `git -C`.
pub fn base<'a>(root: &'a Path, current_dir: &'a Path) -> &'a Path {
    if current_dir.starts_with(root) { current_dir } else { root }
}

/// `path` with the part that exists made canonical and the rest appended: the canonical name of a directory that is gone.
pub fn canonical_as_far_as_it_exists(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(canonical), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            // Joining an empty path would append a slash.
            return if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) };
        }
    }
    path.to_owned()
}

/// `path`, which is absolute, without `.`, `..` and doubled slashes.
pub fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn place(below: &Path) -> Option<PathInWorkspace> {
    if below.as_os_str().is_empty() {
        return Some(PathInWorkspace::Root);
    }
    WorkspacePath::parse(below.as_os_str().as_bytes()).ok().map(PathInWorkspace::Below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(base: &str, typed: &str) -> Option<String> {
        match resolve(Path::new("/ws"), Path::new(base), OsStr::new(typed)).ok()? {
            PathInWorkspace::Root => Some("<root>".to_owned()),
            PathInWorkspace::Below(path) => Some(path.display().to_string()),
        }
    }

    #[test]
    fn relative_paths_start_at_the_base() {
        assert_eq!(resolved("/ws/src", "a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(resolved("/ws/src", "../doc/./x").as_deref(), Some("doc/x"));
        assert_eq!(resolved("/ws/src", "..").as_deref(), Some("<root>"));
    }

    #[test]
    fn absolute_paths_and_trailing_slashes_are_understood() {
        assert_eq!(resolved("/ws", "/ws/a//b/").as_deref(), Some("a/b"));
    }

    #[test]
    fn paths_outside_are_refused() {
        for typed in ["../x", "/etc/passwd", "a/../../x", "/wsx/a"] {
            assert_eq!(resolved("/ws", typed), None, "{typed}");
        }
    }

    #[test]
    fn another_spelling_of_the_root_is_followed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let real = dir.path().canonicalize().expect("it exists").join("real");
        std::fs::create_dir(&real).expect("it is new");
        let alias = dir.path().join("alias");
        std::os::unix::fs::symlink(&real, &alias).expect("it is new");
        let place = resolve(&real, &real, alias.join("gone.txt").as_os_str()).expect("it is inside");
        assert_eq!(place, PathInWorkspace::Below(WorkspacePath::parse(b"gone.txt").expect("it is plain")));
    }

    #[test]
    fn a_base_outside_the_workspace_is_replaced_by_the_root() {
        assert_eq!(base(Path::new("/ws"), Path::new("/ws/src")), Path::new("/ws/src"));
        assert_eq!(base(Path::new("/ws"), Path::new("/elsewhere")), Path::new("/ws"));
    }
}
