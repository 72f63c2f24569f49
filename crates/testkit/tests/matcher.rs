//! The naive reference's small matcher against git itself: what one leaves out, so does the other.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use retake_testkit::Scratch;
use retake_testkit::naive::{self, Dialect, Reading};
use retake_testkit::repos;
use retake_testkit::tree::{self, Counts, Sandbox};

const TREES: usize = 400;

#[test]
fn the_small_matcher_leaves_out_what_git_does() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut compared, mut ignored, mut repositories) = (0, 0, 0);
    for number in 0..TREES {
        let case = tree::case().new_tree(&mut runner).expect("the strategy rejects nothing").current();
        let scratch = Scratch::new();
        let (root, outside) = (scratch.dir("root"), scratch.dir("outside"));
        let mut counts = Counts::default();
        let mut sandbox = Sandbox::new(&root, &outside, &mut counts);
        for step in case.start.iter().chain(case.rounds.iter().flatten()) {
            sandbox.apply(step);
        }
        let global = sandbox.global_excludes();
        make_real(&root, true);
        let reading = Reading { global_excludes: Some(global.clone()), dialect: Dialect::Git, ..Reading::default() };
        let ours = naive::read(&root, &reading).expect("a readable tree");
        let ours: BTreeSet<Vec<u8>> =
            ours.nodes.into_keys().chain(ours.gaps.into_iter().map(|(path, _)| path)).collect();
        let mut theirs = Theirs { global, ..Theirs::default() };
        theirs.repository(&root, Path::new(""));
        let wrong: Vec<_> =
            ours.symmetric_difference(&theirs.kept).map(|path| path.escape_ascii().to_string()).collect();
        assert!(wrong.is_empty(), "tree {number}: git and the matcher disagree on {wrong:#?}\n{:#?}", sandbox.log());
        compared += theirs.asked;
        ignored += theirs.asked - theirs.kept.len();
        repositories += theirs.repositories;
    }
    assert!(compared > 2_000 && ignored > 300 && repositories > TREES, "{compared} {ignored} {repositories}");
}

/// Turns what only looks like a repository into one, keeping its excludes, and takes away what git would wait for forever.
fn make_real(dir: &Path, is_root: bool) {
    let git = dir.join(".git");
    if is_root || git.symlink_metadata().is_ok() {
        let exclude = fs::read(git.join("info/exclude"));
        if git.is_dir() {
            fs::remove_dir_all(&git).expect("a directory of the test's");
        } else if git.exists() {
            fs::remove_file(&git).expect("a file of the test's");
        }
        repos::git(dir, &["init", "--quiet", "--template="]);
        if let Ok(exclude) = exclude {
            fs::create_dir_all(git.join("info")).expect("a directory of the test's");
            fs::write(git.join("info/exclude"), exclude).expect("a file of the test's");
        }
    }
    for entry in fs::read_dir(dir).expect("a readable directory") {
        let entry = entry.expect("a readable directory");
        let kind = entry.file_type().expect("its type");
        if kind.is_fifo() && entry.file_name() == ".gitignore" {
            fs::remove_file(entry.path()).expect("a fifo of the test's");
        } else if kind.is_dir() && entry.file_name() != ".git" {
            make_real(&entry.path(), false);
        }
    }
}

/// What git keeps of a tree, asked repository by repository: it looks into none but its own.
#[derive(Default)]
struct Theirs {
    global: PathBuf,
    kept: BTreeSet<Vec<u8>>,
    asked: usize,
    repositories: usize,
}

impl Theirs {
    fn repository(&mut self, root: &Path, at: &Path) {
        self.repositories += 1;
        let (mut paths, mut nested) = (Vec::new(), Vec::new());
        collect(&root.join(at), Path::new(""), &mut paths, &mut nested);
        let ignored = self.ignored(&root.join(at), &paths);
        self.asked += paths.len();
        for path in paths.iter().filter(|path| !ignored.contains(path.as_os_str().as_bytes())) {
            self.kept.insert(at.join(path).as_os_str().as_bytes().to_vec());
            if nested.contains(path) {
                self.repository(root, &at.join(path));
            }
        }
    }

    fn ignored(&self, repository: &Path, paths: &[PathBuf]) -> BTreeSet<Vec<u8>> {
        let global = format!("core.excludesFile={}", self.global.display());
        let args = ["-c", &global, "check-ignore", "--no-index", "--stdin", "-z"];
        let mut command = repos::command(repository, &args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("`git` is installed");
        let question: Vec<u8> = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        child.stdin.take().expect("a pipe").write_all(&question).expect("git reads all paths");
        let output = child.wait_with_output().expect("git answers");
        // 1 stands for none of them.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout.split(|&b| b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    }
}

/// Every path of the repository at `top`, with the nested repositories but not what they hold, and without version control.
fn collect(top: &Path, below: &Path, paths: &mut Vec<PathBuf>, nested: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(top.join(below)).expect("a readable directory") {
        let entry = entry.expect("a readable directory");
        let path = below.join(entry.file_name());
        let is_dir = entry.file_type().expect("its type").is_dir();
        if is_dir && matches!(entry.file_name().as_bytes(), b".git" | b".hg" | b".svn" | b".jj" | b".sl") {
            continue;
        }
        paths.push(path.clone());
        if is_dir && top.join(&path).join(".git").symlink_metadata().is_ok() {
            nested.push(path);
        } else if is_dir {
            collect(top, &path, paths, nested);
        }
    }
}
