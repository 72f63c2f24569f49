//! Resolves the paths that the model gives.
//!
//! A path is parsed by its spelling first, then followed through the links on the disk, and must stay inside the workspace both ways.
//! Version-control directories may be read, never written. Changes no file; a path that is not allowed is a failed result for the model.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use retake_engine::WorkspacePath;

use super::Output;

/// Names of directories that belong to version control.
pub(crate) const VERSION_CONTROL: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".sl"];

/// The workspace's root.
#[derive(Clone, Debug)]
pub(crate) struct PathResolver {
    /// By its real path.
    root: PathBuf,
    /// As the user spells it.
    spelled: PathBuf,
}

/// What happens to a link that is the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The file that it leads to is meant.
    Follow,
    /// The link itself is meant.
    Keep,
}

/// A place that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteTarget {
    /// Without links.
    pub(crate) real: PathBuf,
    /// The same, for the engine.
    pub(crate) path: WorkspacePath,
    /// Parents that do not exist yet, outermost first.
    pub(crate) new_parents: Vec<WorkspacePath>,
}

impl WriteTarget {
    /// The path for people and models.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }
}

impl PathResolver {
    /// `root` is made canonical if it can be.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.canonicalize().unwrap_or_else(|_| root.to_path_buf()), spelled: root.to_path_buf() }
    }

    /// The real path of the root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path below the root for people and models; `.` for the root.
    pub(crate) fn name(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }

    /// A place to read. It need not exist.
    pub(crate) fn to_read(&self, given: &str) -> Result<PathBuf, Output> {
        let spelled = self.by_spelling(given)?;
        match spelled.canonicalize() {
            Ok(real) if real.starts_with(&self.root) => Ok(real),
            Ok(real) => Err(Output::failed(format!(
                "`{given}` leads through a link to `{}`, outside the workspace. Only files below `{}` can be read with this tool.",
                real.display(),
                self.root.display()
            ))),
            // What does not exist, or is a loop of links, is told by whoever opens it.
            Err(_) => Ok(spelled),
        }
    }

    /// A place to write. Neither it nor its parents need exist.
    pub(crate) fn to_write(&self, given: &str, link: Link) -> Result<WriteTarget, Output> {
        let spelled = self.by_spelling(given)?;
        self.refuse_version_control(given, &spelled)?;
        let real = self.real(given, &spelled, link)?;
        self.refuse_version_control(given, &real)?;
        self.target(given, real)
    }

    fn target(&self, given: &str, real: PathBuf) -> Result<WriteTarget, Output> {
        let path = self.in_workspace(&real).ok_or_else(|| {
            Output::failed(format!("`{given}` is the workspace itself; give the path of something below it."))
        })?;
        let parents = real.ancestors().skip(1).take_while(|parent| fs::symlink_metadata(parent).is_err());
        let mut new_parents: Vec<WorkspacePath> = parents.filter_map(|parent| self.in_workspace(parent)).collect();
        new_parents.reverse();
        Ok(WriteTarget { real, path, new_parents })
    }

    /// The path below the root, for the engine.
    pub(crate) fn in_workspace(&self, real: &Path) -> Option<WorkspacePath> {
        WorkspacePath::parse(real.strip_prefix(&self.root).ok()?.as_os_str().as_bytes()).ok()
    }

    /// Takes a path apart by its spelling.
    fn by_spelling(&self, given: &str) -> Result<PathBuf, Output> {
        if given.contains('\0') {
            return Err(Output::failed("A path cannot contain a NUL character."));
        }
        if given == "~" || given.starts_with("~/") {
            return Err(Output::failed(format!(
                "`{given}` is no path of the workspace: `~` does not stand for a home directory here, and this tool reaches nothing \
                 outside `{}`. Give a path relative to it; `./~` is a file that is really called `~`.",
                self.root.display()
            )));
        }
        let mut path = self.root.clone();
        let mut rest = Path::new(given);
        if rest.is_absolute() {
            let below = rest.strip_prefix(&self.root).or_else(|_| rest.strip_prefix(&self.spelled));
            rest = below.map_err(|_| self.outside(given))?;
        }
        for component in rest.components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                Component::ParentDir if path != self.root => {
                    path.pop();
                }
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(self.outside(given)),
            }
        }
        Ok(path)
    }

    fn outside(&self, given: &str) -> Output {
        Output::failed(format!(
            "`{given}` is outside the workspace `{}`. Give a path relative to the workspace; this tool reaches nothing outside it.",
            self.root.display()
        ))
    }

    /// Follows the links of what exists of `spelled`.
    fn real(&self, given: &str, spelled: &Path, link: Link) -> Result<PathBuf, Output> {
        let (Some(parent), Some(name)) = (spelled.parent(), spelled.file_name()) else {
            return Err(self.outside(given));
        };
        if spelled == self.root {
            return Ok(spelled.to_path_buf());
        }
        let real = self.real_directory(given, parent)?.join(name);
        if link == Link::Keep || !fs::symlink_metadata(&real).is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(real);
        }
        match real.canonicalize() {
            Ok(target) if target.starts_with(&self.root) => Ok(target),
            Ok(target) => Err(Output::failed(format!(
                "`{given}` is a link to `{}`, outside the workspace; nothing outside it is written.",
                target.display()
            ))),
            Err(error) => Err(Output::failed(format!(
                "`{given}` is a link that leads nowhere ({error}). Delete the link first if you want a file in its place."
            ))),
        }
    }

    /// The real path of a directory, as far as it exists; the rest by its spelling.
    fn real_directory(&self, given: &str, directory: &Path) -> Result<PathBuf, Output> {
        let mut missing: Vec<&OsStr> = Vec::new();
        for ancestor in directory.ancestors() {
            match ancestor.canonicalize() {
                Ok(real) if !real.starts_with(&self.root) => {
                    return Err(Output::failed(format!(
                        "`{given}` leads through a link to `{}`, outside the workspace; nothing outside it is written.",
                        real.display()
                    )));
                }
                Ok(real) if !real.is_dir() => {
                    return Err(Output::failed(format!("`{given}`: `{}` is not a directory.", self.name(&real))));
                }
                Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
                Err(_) if fs::symlink_metadata(ancestor).is_ok() => {
                    return Err(Output::failed(format!("`{given}`: `{}` cannot be entered.", self.name(ancestor))));
                }
                Err(_) if ancestor == self.root => {
                    return Err(Output::failed(format!(
                        "The workspace `{}` does not exist any more; nothing can be written there.",
                        self.root.display()
                    )));
                }
                Err(_) => missing.extend(ancestor.file_name()),
            }
        }
        Err(self.outside(given))
    }

    fn refuse_version_control(&self, given: &str, path: &Path) -> Result<(), Output> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        match below.components().find(|component| is_version_control(component.as_os_str())) {
            None => Ok(()),
            Some(name) => Err(Output::failed(format!(
                "`{given}` is in `{}`, which belongs to version control and is not written by this tool. Use its own commands with `bash`.",
                name.as_os_str().to_string_lossy()
            ))),
        }
    }
}

/// Whether this is the name of a version-control directory. Some file systems do not tell `.GIT` from `.git`.
pub(crate) fn is_version_control(name: &OsStr) -> bool {
    VERSION_CONTROL.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}
