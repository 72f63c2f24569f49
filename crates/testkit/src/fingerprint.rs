//! Everything that version control keeps about a work tree, to be compared before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All that is below the `.git` directories that belong to a work tree, at any depth of it and wherever a `.git` file points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(BTreeMap<PathBuf, Trace>);

/// One file, directory or link. With inode and ctime, so that even a change that was taken back shows; a directory's times show files
/// that came and went in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trace {
    mode: u32,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    content: Option<blake3::Hash>,
}

/// Takes the fingerprint of everything that git keeps about `dir`, which may be a repository, a linked worktree or hold submodules.
pub fn fingerprint(dir: &Path) -> Fingerprint {
    let mut homes = BTreeSet::new();
    find(dir, &mut homes);
    assert!(!homes.is_empty(), "no repository at {}", dir.display());
    let mut traces = BTreeMap::new();
    for home in &homes {
        trace(home, &mut traces);
    }
    Fingerprint(traces)
}

impl Fingerprint {
    /// How many files, directories and links it covers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Does it cover nothing?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Panics with the paths that differ, if any do.
    pub fn assert_same(&self, after: &Self) {
        let paths: BTreeSet<_> = self.0.keys().chain(after.0.keys()).collect();
        let differs = |path: &&PathBuf| self.0.get(*path) != after.0.get(*path);
        let lines: Vec<String> = paths
            .into_iter()
            .filter(differs)
            .map(|path| {
                format!("{}\n  before {:?}\n  after  {:?}", path.display(), self.0.get(path), after.0.get(path))
            })
            .collect();
        assert!(lines.is_empty(), "version control was touched:\n{}", lines.join("\n"));
    }
}

/// Finds every `.git` below `dir` and the directories it stands for.
fn find(dir: &Path, homes: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory of a fixture") {
        let entry = entry.expect("an entry of a fixture");
        let path = entry.path();
        let kind = entry.file_type().expect("its type");
        if entry.file_name() == ".git" {
            homes.insert(path.clone());
            if kind.is_file() {
                follow(&path, homes);
            }
        } else if kind.is_dir() {
            find(&path, homes);
        }
    }
}

/// Adds what a `.git` file points to: the worktree's own directory and the one it shares with the others.
fn follow(file: &Path, homes: &mut BTreeSet<PathBuf>) {
    let text = fs::read_to_string(file).expect("a .git file is text");
    let target = text.trim_end().strip_prefix("gitdir: ").expect("a .git file says where its directory is");
    let own = file.parent().expect("a file is in a directory").join(target).canonicalize().expect("it is there");
    if let Ok(common) = fs::read_to_string(own.join("commondir")) {
        homes.insert(own.join(common.trim_end()).canonicalize().expect("the common directory is there"));
    }
    homes.insert(own);
}

fn trace(path: &Path, traces: &mut BTreeMap<PathBuf, Trace>) {
    let metadata = path.symlink_metadata().expect("a file of a fixture");
    let content = if metadata.is_file() {
        Some(blake3::hash(&fs::read(path).expect("a readable file")))
    } else if metadata.is_symlink() {
        Some(blake3::hash(fs::read_link(path).expect("a readable link").as_os_str().as_encoded_bytes()))
    } else {
        for entry in fs::read_dir(path).expect("a readable directory") {
            trace(&entry.expect("an entry of a fixture").path(), traces);
        }
        None
    };
    let trace = Trace {
        mode: metadata.mode(),
        inode: metadata.ino(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        content,
    };
    traces.insert(path.to_owned(), trace);
}
