//! What is captured, what is left out, and what is said about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use retake_engine::progress::NoProgress;
use retake_engine::snapshot::GapKind;
use retake_engine::view::Side;
use retake_engine::{Durability, Environment, GlobalExcludes, Workspace, WorkspacePath};
use retake_testkit::{Scratch, repos};

use crate::scanners::{environment, numbered};

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn paths(workspace: &mut Workspace, number: i64) -> Vec<String> {
    let made = workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
    let mut found = Vec::new();
    let mut queue: Vec<Option<WorkspacePath>> = vec![None];
    while let Some(dir) = queue.pop() {
        for (name, node) in workspace.list(&Side::Stored(made.snapshot), dir.as_ref()).unwrap() {
            let path = dir.as_ref().map_or_else(|| WorkspacePath::parse(&name), |dir| dir.join(&name)).unwrap();
            found.push(path.display().to_string());
            if node.kind == retake_engine::snapshot::NodeKind::Directory {
                queue.push(Some(path));
            }
        }
    }
    found.sort();
    found
}

fn gaps(workspace: &Workspace) -> Vec<(String, GapKind)> {
    let newest = workspace.checkpoints().all().unwrap().remove(0);
    workspace
        .checkpoints()
        .gaps(&newest)
        .unwrap()
        .into_iter()
        .map(|gap| (gap.path.display().to_string(), gap.kind))
        .collect()
}

#[test]
fn included_names_are_captured_although_ignored() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    write(&root, ".gitignore", ".env*\n*.local\n*.log\nbuild/\n");
    for name in [".env", ".env.test", "db.local", "a.log", "build/.env", "sub/.env", "sub/x.log"] {
        write(&root, name, "x");
    }
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    assert_eq!(paths(&mut workspace, 1), [".env", ".env.test", ".gitignore", "db.local", "sub", "sub/.env"]);
}

#[test]
fn the_excludes_of_a_nested_repository_count_as_soon_as_they_change() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for name in ["nested/.git/HEAD", "nested/a", "nested/b"] {
        write(&root, name, "x");
    }
    let open = |name| Workspace::open_or_create(environment(&root, scratch.path().join(name))).unwrap();
    let (mut scanned, mut watched) = (open("scanned"), open("watched"));
    watched.watch();
    for (number, (rules, left)) in [("", "ab"), ("a\n", "b"), ("b\n", "a"), ("", "ab")].into_iter().enumerate() {
        write(&root, "nested/.git/info/exclude", rules);
        let mut wanted = vec!["nested".to_owned()];
        wanted.extend(left.chars().map(|name| format!("nested/{name}")));
        assert_eq!(paths(&mut scanned, number as i64), wanted, "{rules:?}");
        assert_eq!(paths(&mut watched, number as i64), wanted, "{rules:?}, watched");
    }
}

#[test]
fn global_excludes_are_anchored_in_each_repository() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for name in ["nested/.git/HEAD", "a", "nested/a", "nested/nested/a"] {
        write(&root, name, "x");
    }
    let global = scratch.path().join("global");
    fs::write(&global, "/a\nnested/nested\n").unwrap();
    let plain = environment(&root, scratch.path().join("store"));
    let mut workspace =
        Workspace::open_or_create(Environment { global_excludes: Some(GlobalExcludes::at(global)), ..plain }).unwrap();
    assert_eq!(paths(&mut workspace, 1), ["nested", "nested/nested", "nested/nested/a"]);
}

#[test]
fn version_control_directories_are_left_out_at_any_depth() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for name in [".git", ".hg", ".svn", ".jj", ".sl"] {
        write(&root, &format!("{name}/inside"), "x");
        write(&root, &format!("deep/er/{name}/inside"), "x");
    }
    write(&root, "submodule/.git", "gitdir: ../elsewhere\n");
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    assert_eq!(paths(&mut workspace, 1), ["deep", "deep/er", "submodule", "submodule/.git"]);
}

#[test]
fn the_store_never_captures_itself() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    write(&root, "file", "x");
    let mut workspace = Workspace::open_or_create(environment(&root, root.join("data/retake"))).unwrap();
    assert_eq!(paths(&mut workspace, 1), ["data", "file"]);
    assert_eq!(paths(&mut workspace, 2), ["data", "file"]);
    // By whatever name it is called.
    std::os::unix::fs::symlink("data", root.join("link")).unwrap();
    for name in ["link/retake", "data/../data/retake"] {
        let mut workspace = Workspace::open_or_create(environment(&root, root.join(name))).unwrap();
        let number = workspace.checkpoints().all().unwrap().len() as i64 + 10;
        assert_eq!(paths(&mut workspace, number), ["data", "file", "link"]);
    }
}

#[test]
fn patterns_mean_what_they_mean_to_git() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    write(&root, ".gitignore", "*.{js,ts}\n[[:upper:]]1\n");
    for name in ["x.js", "x.{js,ts}", "A1", "a1"] {
        write(&root, name, "x");
    }
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    assert_eq!(paths(&mut workspace, 1), [".gitignore", "a1", "x.js"]);
}

#[test]
fn a_declared_path_is_captured_although_ignored_and_large() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    write(&root, ".gitignore", "dist/\n");
    write(&root, "dist/other.js", "x");
    write(&root, "dist/deep/out.js", "old");
    write(&root, "big", vec![7; 3000]);
    let mut env = environment(&root, scratch.path().join("store"));
    env.settings.max_file = 2000;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    assert_eq!(paths(&mut workspace, 1), [".gitignore"]);
    assert_eq!(gaps(&workspace), [("big".to_owned(), GapKind::TooLarge)]);
    for path in ["dist/deep/out.js", "big"] {
        workspace.windows().declare(&WorkspacePath::parse(path.as_bytes()).unwrap()).unwrap();
    }
    let expected = [".gitignore", "big", "dist", "dist/deep", "dist/deep/out.js"];
    assert_eq!(paths(&mut workspace, 2), expected);
    assert_eq!(gaps(&workspace), []);
    write(&root, "another", "which makes the root be listed again");
    let expected = [".gitignore", "another", "big", "dist", "dist/deep", "dist/deep/out.js"];
    assert_eq!(paths(&mut workspace, 4), expected, "what else is in the ignored directory stays out");
    write(&root, "dist/deep/out.js", "new");
    let made = workspace.checkpoints_mut().take(numbered(3), Durability::Soon, &NoProgress).unwrap();
    assert_eq!(made.changed.modified, 1);
}

#[test]
fn what_cannot_be_captured_is_a_gap() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    write(&root, "big", vec![7; 3000]);
    write(&root, "linked", "x");
    fs::hard_link(root.join("linked"), root.join("sub-link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let mut env = environment(&root, scratch.path().join("store"));
    env.settings.max_file = 2000;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    assert_eq!(paths(&mut workspace, 1), ["linked", "sub-link"]);
    let expected = [
        ("big".to_owned(), GapKind::TooLarge),
        ("linked".to_owned(), GapKind::HardLink),
        ("socket".to_owned(), GapKind::Special),
        ("sub-link".to_owned(), GapKind::HardLink),
    ];
    assert_eq!(gaps(&workspace), expected);
    assert_eq!(workspace.checkpoints().all().unwrap()[0].gap_count, 4);
    // Once the reasons are gone, so are the gaps.
    fs::write(root.join("big"), "small now").unwrap();
    fs::remove_file(root.join("sub-link")).unwrap();
    fs::remove_file(root.join("socket")).unwrap();
    assert_eq!(paths(&mut workspace, 2), ["big", "linked"]);
    assert_eq!(gaps(&workspace), []);
}

#[test]
fn gaps_of_what_is_on_disk_now_are_told_whether_stored_or_new() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for name in ["old/big", "goes/big"] {
        write(&root, name, vec![7; 3000]);
    }
    write(&root, "a", "1");
    let mut env = environment(&root, scratch.path().join("store"));
    env.settings.max_file = 2000;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap();
    write(&root, "new/deep/big", vec![7; 3000]);
    fs::remove_file(root.join("goes/big")).unwrap();
    let now = workspace.current(&NoProgress).unwrap();
    let told: Vec<_> = now.gaps().iter().map(|gap| (gap.path.display().to_string(), gap.kind)).collect();
    assert_eq!(told, [("new/deep/big".to_owned(), GapKind::TooLarge), ("old/big".to_owned(), GapKind::TooLarge)]);
}

#[test]
fn another_file_system_below_the_root_is_a_gap() {
    let fixed = [("/dev", "shm"), ("/", "proc"), ("/sys", "fs")];
    // Any directory with a mount below it will do; nothing is written there.
    let Some((root, mounted)) = fixed.into_iter().find(|(root, below)| {
        use std::os::unix::fs::MetadataExt;
        let dev = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
        *root != "/" && dev(Path::new(root)) != dev(&Path::new(root).join(below))
    }) else {
        panic!("no mount to test with");
    };
    let scratch = Scratch::on_disk();
    let mut env: Environment = environment(Path::new(root), scratch.path().join("store"));
    env.settings.max_file = 0;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap();
    assert!(gaps(&workspace).contains(&(mounted.to_owned(), GapKind::OtherFilesystem)));
}

#[test]
fn a_small_change_to_a_large_file_stores_little() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut state = 1_u64;
    let mut content: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(24 << 20)
    .collect();
    fs::write(root.join("large"), &content).unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap();
    let before = workspace.maintenance().usage().unwrap().pack_bytes;
    content.splice((12 << 20)..(12 << 20) + 3, *b"inserted");
    fs::write(root.join("large"), &content).unwrap();
    let made = workspace.checkpoints_mut().take(numbered(2), Durability::Soon, &NoProgress).unwrap();
    let grown = workspace.maintenance().usage().unwrap().pack_bytes - before;
    assert!(grown < 2 << 20, "grew by {grown} bytes");
    let path = WorkspacePath::parse(b"large").unwrap();
    let side = Side::Stored(made.snapshot);
    let node = workspace.entry(&side, &path).unwrap().unwrap();
    let mut read = Vec::new();
    workspace.content(&side, &path, &node, &mut read).unwrap();
    assert!(read == content, "the content comes back byte for byte");
}

#[test]
fn a_directory_that_loses_its_permissions_keeps_its_mode_in_the_snapshot() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    fs::create_dir(root.join("dir")).unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    for (number, mode) in [(1, 0o755), (2, 0o700), (3, 0o2770), (4, 0o1777)] {
        fs::set_permissions(root.join("dir"), fs::Permissions::from_mode(mode)).unwrap();
        let made = workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
        let path = WorkspacePath::parse(b"dir").unwrap();
        let node = workspace.entry(&Side::Stored(made.snapshot), &path).unwrap().unwrap();
        assert_eq!(u32::from(node.mode), mode);
    }
}

#[test]
fn a_tracked_file_that_a_pipe_replaces_in_an_ignored_directory_counts_as_deleted() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    repos::git(&root, &["init", "-q"]);
    write(&root, "build/kept", "x");
    repos::git(&root, &["add", "build/kept"]);
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    paths(&mut workspace, 1);
    write(&root, ".gitignore", "*\n");
    fs::remove_file(root.join("build/kept")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("build/kept")).status().unwrap().success());
    let made = workspace.checkpoints_mut().take(numbered(2), Durability::Soon, &NoProgress).unwrap();
    assert_eq!(gaps(&workspace), [("build/kept".to_owned(), GapKind::Special)]);
    assert_eq!((made.changed.added, made.changed.modified, made.changed.deleted), (1, 0, 1));
}

#[test]
fn what_git_tracks_is_captured_although_ignored() {
    for version in ["2", "4"] {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        let git = |args: &[&str]| drop(repos::git(&root, args));
        git(&["init", "-q"]);
        write(&root, ".gitignore", "*.log\nbuild/\n");
        for name in ["a.log", "b.log", "build/deep/kept", "build/deep/left", "build/left", "sub/c.log", "sub/d.log"] {
            write(&root, name, "x");
        }
        git(&["add", "-f", "a.log", "build/deep/kept", "sub/c.log", ".gitignore"]);
        git(&["update-index", "--index-version", version]);
        let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
        let mut expected = vec![".gitignore", "a.log", "build", "build/deep", "build/deep/kept", "sub", "sub/c.log"];
        assert_eq!(paths(&mut workspace, 1), expected);
        // What git comes to track later is captured from then on.
        git(&["add", "-f", "b.log"]);
        expected.insert(2, "b.log");
        assert_eq!(paths(&mut workspace, 2), expected);
        // And what it tracks no more is ignored from then on.
        git(&["rm", "-q", "--cached", "b.log", "build/deep/kept"]);
        expected = vec![".gitignore", "a.log", "sub", "sub/c.log"];
        assert_eq!(paths(&mut workspace, 3), expected);
        let mut below =
            Workspace::open_or_create(environment(&root.join("sub"), scratch.path().join("other"))).unwrap();
        assert_eq!(paths(&mut below, 1), ["c.log"]);
    }
}
