//! Forks in a workspace of their own: files exactly as they were, what was said with them, and nothing if anything fails.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use retake_engine::id::EntryId;
use retake_engine::progress::{NoProgress, Progress, Step};
use retake_engine::session::entry::{Body, Part};
use retake_engine::session::{ForkError, ForkedElsewhere};
use retake_engine::session::{Scope, SessionWriter};
use retake_engine::view::Side;
use retake_engine::{Timestamp, Workspace, WorkspacePath};

use super::super::{Desk, open};
use super::{new_fork, notes, prompts};
use crate::scanners::environment;

fn fork(desk: &mut Desk, entry: EntryId, directory: &Path) -> Result<ForkedElsewhere, ForkError> {
    let new = new_fork(desk);
    desk.bench.workspace.sessions_mut().fork_to_directory(desk.session, entry, directory, &new, &NoProgress)
}

fn fork_to(desk: &mut Desk, entry: EntryId, name: &str) -> Result<ForkedElsewhere, ForkError> {
    let directory = beside(desk, name);
    fork(desk, entry, &directory)
}

fn beside(desk: &Desk, name: &str) -> PathBuf {
    desk.bench.root.with_file_name(name)
}

fn workspace(desk: &Desk, root: &Path) -> Workspace {
    Workspace::open(environment(root, beside(desk, "store"))).unwrap()
}

/// Everything below a directory: path, kind and mode, content.
fn tree(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut to_do = vec![root.to_owned()];
    while let Some(directory) = to_do.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let content = if meta.is_dir() {
                to_do.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            found.push((path.strip_prefix(root).unwrap().to_owned(), meta.permissions().mode(), content));
        }
    }
    found.sort();
    found
}

#[test]
fn files_of_that_point_are_laid_out_exactly() {
    let mut desk = Desk::new();
    let first = desk.turn("make odd things", |root| {
        fs::write(root.join("binary"), [0, 255, 13, 10, 0]).unwrap();
        fs::write(root.join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o4755)).unwrap();
        fs::write(root.join(OsStr::from_bytes(b"odd\n\xff name")), "x").unwrap();
        fs::create_dir_all(root.join("empty/below")).unwrap();
        fs::create_dir(root.join("shut")).unwrap();
        fs::write(root.join("shut/in"), "x").unwrap();
        fs::set_permissions(root.join("shut/in"), fs::Permissions::from_mode(0o400)).unwrap();
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o555)).unwrap();
        symlink("nowhere/at all", root.join("dangling")).unwrap();
        symlink("/", root.join("outside")).unwrap();
        fs::write(root.join("large"), vec![7; 3 << 20]).unwrap();
    });
    let (expected, end) = (tree(&desk.bench.root), desk.conversation().head().unwrap());
    desk.turn("break it", |root| {
        fs::remove_file(root.join("binary")).unwrap();
        fs::write(root.join("a"), "later").unwrap();
    });
    let before = (desk.conversation(), tree(&desk.bench.root), desk.bench.workspace.operations().all().unwrap());
    let forked = fork_to(&mut desk, end, "made").unwrap();
    assert_eq!(tree(&forked.root), expected);
    let after = (desk.conversation(), tree(&desk.bench.root), desk.bench.workspace.operations().all().unwrap());
    assert_eq!(after, before, "here everything is as it was");
    let there = workspace(&desk, &forked.root);
    let newest = there.checkpoints().all().unwrap().remove(0);
    assert_eq!(newest.snapshot, forked.checkpoint.snapshot);
    assert_eq!(prompts(&there.sessions().conversation(forked.session).unwrap()), ["make odd things"]);
    let empty = fork_to(&mut desk, first.prompt, "empty").unwrap();
    assert_eq!(tree(&empty.root).len(), 1, "before the first prompt there was one file");
    assert_eq!(empty.draft, [Part::text("make odd things")]);
    fs::set_permissions(desk.bench.root.join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(forked.root.join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_was_said_goes_on_there_by_itself() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let kept = desk.conversation();
    let second = desk.writes("two", "a", "2");
    let forked = fork_to(&mut desk, second.prompt, "made").unwrap();
    let there = workspace(&desk, &forked.root);
    let said = there.sessions().conversation(forked.session).unwrap();
    assert_eq!(said.entries()[..kept.entries().len()], *kept.entries(), "the same entries");
    assert_eq!(notes(&said), [Vec::<String>::new()], "and a note of where it is now");
    let Body::Note { text, .. } = &said.entries().last().unwrap().body else { panic!("no note") };
    assert!(text.contains(&forked.root.display().to_string()), "{text}");
    assert_eq!(
        (forked.title.as_str(), there.sessions().draft(forked.session).unwrap()),
        ("one", vec![Part::text("two")])
    );
    let known = there.sessions().all().unwrap().remove(0);
    let from = known.forked_from.unwrap();
    assert_eq!((from.session, from.entry), (desk.session, Some(second.prompt)));
    assert_eq!(from.root, Some(desk.bench.root.clone()));
    let here = desk.bench.workspace.sessions().all().unwrap().remove(0);
    assert_eq!(here.forked_from, None);
    let [elsewhere] = here.forks_elsewhere.as_slice() else { panic!("{here:?}") };
    assert_eq!((elsewhere.session, elsewhere.entry), (forked.session, Some(second.prompt)));
    assert_eq!(elsewhere.root, forked.root);
    // Two workspaces, two conversations: each goes on and goes back without the other.
    let here = desk.conversation();
    let (session, root) = (forked.session, forked.root);
    desk.close();
    desk.bench.workspace = there;
    let (was, was_root) = (desk.session, std::mem::replace(&mut desk.bench.root, root));
    desk.session = session;
    desk.writer = Some(open(&mut desk.bench, session).unwrap());
    let third = desk.writes("three", "a", "3");
    desk.rewind(third.prompt, Scope::Both).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.prompts().len()), (Some("1"), 1));
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one", "three"]);
    let first = desk.targets().pop().unwrap();
    assert!(!first.has_files, "files of earlier points are where it was forked from");
    desk.rewind(first.id, Scope::Conversation).unwrap();
    assert_eq!(desk.prompts().len(), 0);
    (desk.session, desk.bench.root) = (was, was_root);
    desk.reopen();
    assert_eq!((desk.conversation(), desk.bench.read("a").as_deref()), (here, Some("2")));
}

#[test]
fn a_directory_that_cannot_take_it_is_refused_and_left_alone() {
    let mut desk = Desk::new();
    let turn = desk.writes("one", "a", "1");
    let full = beside(&desk, "full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "x").unwrap();
    let file = beside(&desk, "file");
    fs::write(&file, "x").unwrap();
    let link = beside(&desk, "link");
    fs::create_dir(beside(&desk, "linked")).unwrap();
    symlink("linked", &link).unwrap();
    let inside = desk.bench.root.join("inside");
    let inside_by_link = beside(&desk, "by-link");
    symlink(&desk.bench.root, &inside_by_link).unwrap();
    let in_store = beside(&desk, "store").join("x");
    let slashed = link.join("");
    let in_another = fork_to(&mut desk, turn.prompt, "another").unwrap().root.join("dir");
    fs::create_dir(&in_another).unwrap();
    let (here, there) = (in_another.join("x"), in_another.with_file_name("y"));
    for bad in
        [&full, &file, &link, &slashed, &link.join("."), &inside, &inside_by_link.join("x"), &in_store, &here, &there]
    {
        let refused = fork(&mut desk, turn.prompt, bad);
        assert!(matches!(refused, Err(ForkError::BadDirectory { .. })), "{}: {refused:?}", bad.display());
    }
    let nowhere = fork_to(&mut desk, turn.prompt, "no/such");
    assert!(matches!(nowhere, Err(ForkError::Write { .. })), "{nowhere:?}");
    assert!(!here.exists() && !there.exists());
    assert!(!inside.exists() && !in_store.exists() && !desk.bench.root.join("x").exists());
    assert_eq!(fs::read(full.join("mine")).unwrap(), b"x");
    assert_eq!(fs::read_dir(beside(&desk, "linked")).unwrap().count(), 0);
    let empty = beside(&desk, "empty");
    fs::create_dir(&empty).unwrap();
    let forked = fork(&mut desk, turn.prompt, &empty.join("")).unwrap();
    assert_eq!(forked.root, empty);
    fs::remove_dir_all(&empty).unwrap();
    let again = fork(&mut desk, turn.prompt, &empty);
    assert!(matches!(again, Err(ForkError::BadDirectory { .. })), "its history is still there: {again:?}");
    assert!(!empty.exists());
}

#[test]
fn files_that_are_gone_are_said_to_be() {
    let mut desk = Desk::new();
    let turn = desk.writes("one", "a", "1");
    desk.close();
    desk.bench.checkpoint();
    super::super::care::collect(&mut desk, 100);
    let refused = fork_to(&mut desk, turn.prompt, "made");
    assert!(matches!(refused, Err(ForkError::FilesGone { .. })), "{refused:?}");
    assert!(!beside(&desk, "made").exists());
    desk.fork(turn.prompt).unwrap();
}

#[test]
fn ignored_files_and_repositories_do_not_come_along() {
    let mut desk = Desk::new();
    desk.bench.write(".gitignore", "out\n");
    desk.bench.write("out/built", "x");
    desk.bench.write(".git", "gitdir: /somewhere/else");
    desk.bench.write("module/.git", "gitdir: ../.git/modules/module");
    desk.bench.write("module/code", "x");
    let turn = desk.writes("one", "a", "1");
    let forked = fork_to(&mut desk, turn.prompt, "made").unwrap();
    let names: Vec<String> = tree(&forked.root).iter().map(|(path, ..)| path.display().to_string()).collect();
    assert_eq!(names, [".gitignore", "a", "module", "module/code"]);
}

/// Cancels after some steps.
struct Cancelling(std::sync::atomic::AtomicI32);

impl Progress for Cancelling {
    fn report(&self, _: Step) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) <= 0
    }
}

#[test]
fn what_is_cancelled_leaves_nothing() {
    let mut desk = Desk::new();
    let turn = desk.turn("one", |root| {
        fs::create_dir(root.join("dir")).unwrap();
        (0..20).for_each(|number| fs::write(root.join(format!("dir/{number}")), "x").unwrap());
    });
    let end = desk.conversation().head().unwrap();
    for (entry, is_new) in [(end, true), (end, false), (turn.prompt, true)] {
        let place = beside(&desk, "made");
        if !is_new {
            fs::create_dir(&place).unwrap();
        }
        let new = new_fork(&mut desk);
        let progress = Cancelling(if entry == end { 7 } else { 0 }.into());
        let cancelled =
            desk.bench.workspace.sessions_mut().fork_to_directory(desk.session, entry, &place, &new, &progress);
        assert!(matches!(cancelled, Err(ForkError::Cancelled)), "{cancelled:?}");
        assert_eq!(place.exists(), !is_new);
        fs::remove_dir(&place).ok();
    }
    assert_eq!(desk.bench.workspace.sessions().all().unwrap()[0].forks_elsewhere, []);
    fork_to(&mut desk, end, "made").unwrap();
}

/// Does something once a few files are written, and then cancels.
struct Meddling<'a> {
    steps: std::sync::atomic::AtomicI32,
    deed: &'a (dyn Fn() + Sync),
    cancels: bool,
}

impl Progress for Meddling<'_> {
    fn report(&self, _: Step) {
        if self.steps.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            (self.deed)();
        }
    }

    fn cancelled(&self) -> bool {
        self.cancels && self.steps.load(std::sync::atomic::Ordering::Relaxed) <= 0
    }
}

#[test]
fn what_somebody_put_there_meanwhile_is_left_alone() {
    let mut desk = Desk::new();
    desk.turn("one", |root| {
        fs::create_dir_all(root.join("dir/below")).unwrap();
        (0..20).for_each(|number| fs::write(root.join(format!("dir/{number}")), "x").unwrap());
        fs::write(root.join("dir/below/deep"), "x").unwrap();
    });
    let end = desk.conversation().head().unwrap();
    for is_new in [true, false] {
        let place = beside(&desk, "made");
        if !is_new {
            fs::create_dir(&place).unwrap();
        }
        let new = new_fork(&mut desk);
        let edited = std::sync::Mutex::new(None);
        let deed = || {
            fs::write(place.join("mine"), "mine").unwrap();
            fs::write(place.join("dir/mine"), "mine").unwrap();
            let mut written = fs::read_dir(place.join("dir")).unwrap().map(|entry| entry.unwrap().path());
            let path = written.find(|path| path.is_file() && !path.ends_with("mine")).unwrap();
            fs::write(&path, "edited").unwrap();
            *edited.lock().unwrap() = Some(path);
        };
        let progress = Meddling { steps: 9.into(), deed: &deed, cancels: true };
        let cancelled =
            desk.bench.workspace.sessions_mut().fork_to_directory(desk.session, end, &place, &new, &progress);
        assert!(matches!(cancelled, Err(ForkError::Cancelled)), "{cancelled:?}");
        let left: Vec<PathBuf> = tree(&place).into_iter().map(|(path, ..)| place.join(path)).collect();
        let edited = edited.lock().unwrap().clone().unwrap();
        let mut expected = vec![place.join("dir"), place.join("dir/mine"), edited, place.join("mine")];
        expected.sort();
        assert_eq!(left, expected, "and nothing of the fork");
        let again = fork(&mut desk, end, &place).unwrap_err();
        assert!(again.to_string().contains("if a fork was cut short there, delete"), "{again}");
        fs::remove_dir_all(&place).unwrap();
    }
    fork_to(&mut desk, end, "made").unwrap();
}

#[test]
fn of_two_forks_into_one_directory_one_is_refused() {
    let mut desk = Desk::new();
    desk.turn("one", |root| (0..9).for_each(|number| fs::write(root.join(number.to_string()), "x").unwrap()));
    let (place, end, session) = (beside(&desk, "made"), desk.conversation().head().unwrap(), desk.session);
    fs::create_dir(&place).unwrap();
    let (first, second) = (new_fork(&mut desk), new_fork(&mut desk));
    let there = beside(&desk, "store");
    let here = desk.bench.root.clone();
    let deed = || {
        let mut other = Workspace::open(environment(&here, there.clone())).unwrap();
        let refused = other.sessions_mut().fork_to_directory(session, end, &place, &second, &NoProgress);
        assert!(
            matches!(refused, Err(ForkError::BadDirectory { why, .. }) if why.contains("another fork")),
            "{refused:?}"
        );
    };
    let progress = Meddling { steps: 1.into(), deed: &deed, cancels: false };
    let forked =
        desk.bench.workspace.sessions_mut().fork_to_directory(session, end, &place, &first, &progress).unwrap();
    assert_eq!(tree(&forked.root), tree(&desk.bench.root));
    assert_eq!(prompts(&workspace(&desk, &forked.root).sessions().conversation(forked.session).unwrap()), ["one"]);
}

#[test]
fn the_files_are_those_of_the_store_not_of_the_disk() {
    let mut desk = Desk::new();
    let turn = desk.writes("one", "a", "1");
    desk.bench.write("a", "by hand");
    let forked = fork_to(&mut desk, turn.prompt, "made").unwrap();
    assert_eq!(fs::read(forked.root.join("a")).unwrap(), b"0");
    let there = workspace(&desk, &forked.root);
    let newest = there.checkpoints().all().unwrap().remove(0);
    let path = WorkspacePath::parse(b"a").unwrap();
    assert!(there.entry(&Side::Stored(newest.snapshot), &path).unwrap().is_some());
    let mut random = || [1; 10];
    let writer: SessionWriter = there.sessions().open(forked.session, Timestamp(1), &mut random).unwrap();
    assert_eq!(writer.draft(), [Part::text("one")]);
}
