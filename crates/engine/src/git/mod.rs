//! What Retake reads of a git repository. It reads files and never runs git, never writes, never takes a lock.

mod excludes;
pub(crate) mod split_index;
pub(crate) mod tracked;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::plain_file;

/// Where a repository stood when a checkpoint was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// The branch that was checked out; `None` without a repository or with a detached HEAD.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub branch: Option<String>,
    /// The commit HEAD was at; `None` without a repository or before the first commit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<String>,
    /// The checksum that ends the index file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub index: Option<String>,
    /// The newest stash.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stash: Option<String>,
    /// What git was in the middle of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub under_way: Option<GitAction>,
}

/// Something that git does in more than one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitAction {
    /// `git merge`
    Merge,
    /// `git rebase`
    Rebase,
    /// `git am`
    Am,
    /// `git cherry-pick`
    CherryPick,
    /// `git revert`
    Revert,
}

impl GitAction {
    /// The action as git calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
        }
    }
}

/// The top level of the work tree that `directory` is in.
pub fn top_level(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|place| is_repository(place)).map(Path::to_owned)
}

/// Whether `directory` is the top level of a work tree.
pub fn is_repository(directory: &Path) -> bool {
    let dot_git = directory.join(".git");
    fs::symlink_metadata(&dot_git).is_ok_and(|meta| meta.is_file() || dot_git.join("HEAD").exists())
}

/// The repository's `info/exclude`, shared by all its work trees.
pub(crate) fn exclude_file(top: &Path) -> Option<PathBuf> {
    let git_dir = git_dir(top)?;
    Some(common_dir(&git_dir).join("info/exclude"))
}

/// The directories in which the repository around `root` keeps everything; none without a repository.
pub(crate) fn homes(root: &Path) -> Vec<PathBuf> {
    let Some(git_dir) = top_level(root).and_then(|top| git_dir(&top)) else { return Vec::new() };
    let common = common_dir(&git_dir);
    // A linked work tree's own directory is usually inside the common one.
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (own, common) = (canonical(&git_dir), canonical(&common));
    if own.starts_with(&common) { vec![common] } else { vec![common, own] }
}

/// Reads where the repository around `root` stands.
pub(crate) fn state(root: &Path) -> GitState {
    let Some(git_dir) = top_level(root).and_then(|top| git_dir(&top)) else { return GitState::default() };
    let common = common_dir(&git_dir);
    let head = read_line(&git_dir.join("HEAD")).unwrap_or_default();
    let (branch, head) = match head.strip_prefix("ref: ") {
        Some(name) => (Some(name.trim_start_matches("refs/heads/").to_owned()), reference(&git_dir, &common, name)),
        None => (None, (!head.is_empty()).then_some(head)),
    };
    GitState {
        branch,
        head,
        index: index_checksum(&git_dir),
        stash: reference(&git_dir, &common, "refs/stash"),
        under_way: under_way(&git_dir),
    }
}

/// What git is in the middle of. A rebase picks commits one by one, so it comes before what it leaves while it does.
fn under_way(git_dir: &Path) -> Option<GitAction> {
    let signs = [
        ("rebase-merge", GitAction::Rebase),
        ("rebase-apply/applying", GitAction::Am),
        ("rebase-apply", GitAction::Rebase),
        ("MERGE_HEAD", GitAction::Merge),
        ("CHERRY_PICK_HEAD", GitAction::CherryPick),
        ("REVERT_HEAD", GitAction::Revert),
    ];
    signs.into_iter().find(|(sign, _)| git_dir.join(sign).exists()).map(|(_, action)| action)
}

/// The directory of a work tree's repository: `.git` itself, or where a `.git` file points.
fn git_dir(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let line = read_line(&dot_git)?;
    Some(top.join(line.strip_prefix("gitdir: ")?))
}

/// A linked work tree keeps most things in the main repository.
fn common_dir(git_dir: &Path) -> PathBuf {
    read_line(&git_dir.join("commondir")).map_or_else(|| git_dir.to_owned(), |path| git_dir.join(path))
}

fn reference(git_dir: &Path, common: &Path, name: &str) -> Option<String> {
    if let Some(id) = [git_dir, common].iter().find_map(|dir| read_line(&dir.join(name))) {
        return Some(id);
    }
    let packed = plain_file::read(&common.join("packed-refs")).ok()?;
    packed.split(|&b| b == b'\n').find_map(|line| {
        let id = line.strip_suffix(name.as_bytes())?.strip_suffix(b" ")?;
        String::from_utf8(id.to_vec()).ok()
    })
}

fn index_checksum(git_dir: &Path) -> Option<String> {
    use std::os::unix::fs::FileExt;
    let file = plain_file::open(&git_dir.join("index")).ok()?;
    let mut tail = [0; 20];
    file.read_exact_at(&mut tail, file.metadata().ok()?.len().checked_sub(20)?).ok()?;
    Some(tail.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read_line(path: &Path) -> Option<String> {
    let bytes = plain_file::read(path).ok()?;
    let line = bytes.split(|&b| b == b'\n').next()?;
    Some(std::ffi::OsStr::from_bytes(line).to_str()?.trim_end().to_owned())
}
