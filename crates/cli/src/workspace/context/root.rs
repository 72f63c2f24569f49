//! Which directory is the workspace: the one named, else the git top level, else the nearest workspace above, else the current one.

use std::fs;
use std::path::{Path, PathBuf};

/// Applies the rule; `is_workspace` tells whether a directory already is one. git itself is never run.
pub fn find(named: Option<&Path>, current_dir: &Path, is_workspace: impl Fn(&Path) -> bool) -> PathBuf {
    if let Some(named) = named {
        return current_dir.join(named);
    }
    let nearest = |accepts: &dyn Fn(&Path) -> bool| current_dir.ancestors().find(|dir| accepts(dir));
    nearest(&is_git_top_level).or_else(|| nearest(&is_workspace)).unwrap_or(current_dir).to_owned()
}

/// A repository has a `.git` directory with a `HEAD`; a linked worktree or a submodule has a `.git` file that points to one.
fn is_git_top_level(dir: &Path) -> bool {
    let git = dir.join(".git");
    match fs::metadata(&git) {
        // An unborn or dangling HEAD is a repository too, so only its presence counts, even as a symlink to nothing.
        Ok(meta) if meta.is_dir() => fs::symlink_metadata(git.join("HEAD")).is_ok(),
        Ok(meta) if meta.is_file() => fs::read(&git).is_ok_and(|text| text.starts_with(b"gitdir:")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[&str]) -> Self {
            let tree = Self(tempfile::tempdir().expect("a temporary directory"));
            for file in files {
                let path = tree.path(file);
                fs::create_dir_all(path.parent().expect("it is below the directory")).expect("it can be made");
                fs::write(path, "gitdir: elsewhere\n").expect("it can be written");
            }
            tree
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }
    }

    #[test]
    fn a_named_directory_wins() {
        let tree = Tree::new(&["repo/.git/HEAD", "repo/src/a"]);
        assert_eq!(find(Some(Path::new("src")), &tree.path("repo"), |_| true), tree.path("repo/src"));
    }

    #[test]
    fn the_git_top_level_is_found_for_repositories_and_worktrees() {
        let tree = Tree::new(&["repo/.git/HEAD", "repo/src/a", "linked/.git", "linked/src/a"]);
        assert_eq!(find(None, &tree.path("repo/src"), |_| false), tree.path("repo"));
        assert_eq!(find(None, &tree.path("linked/src"), |_| false), tree.path("linked"));
    }

    #[test]
    fn a_git_directory_without_head_is_no_repository() {
        let tree = Tree::new(&["repo/.git/config", "repo/src/a"]);
        assert_eq!(find(None, &tree.path("repo/src"), |_| false), tree.path("repo/src"));
    }

    #[test]
    fn without_git_the_nearest_workspace_is_used() {
        let tree = Tree::new(&["ws/a/b/c"]);
        let known = |dir: &Path| dir.ends_with("ws") || dir.ends_with("a");
        assert_eq!(find(None, &tree.path("ws/a/b"), known), tree.path("ws/a"));
    }
}
