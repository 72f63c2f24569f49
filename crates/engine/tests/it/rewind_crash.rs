//! A crash or an error at every step of a rewind and of an undo: afterwards the files are as they were or as they should be, and
//! nothing is lost or left lying about. A crash in the middle of the recovery is one more crash.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use retake_engine::id::{CheckpointId, OperationId};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Goal, NewRewind, Recovered, RecoveryChoice, RewindError, RewindRequest};
use retake_engine::{Durability, Timestamp, Workspace};
use retake_testkit::{Ended, Killer, Lasting, Scratch, rerun};

use crate::rewind::exactly;
use crate::scanners::{environment, numbered};

const CHILD: &str = "rewind_crash::child";
const SCENE: &str = "RETAKE_CRASH_SCENE";

/// What is on disk: kind, permissions and content by path.
type State = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

/// A workspace whose files are to be rewound, put back before every run.
struct Scene {
    scratch: Scratch,
    work: Work,
    before: State,
    after: State,
}

/// What the child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Rewind,
    Undo,
    /// Recovering, from a rewind that was stopped right after it was armed.
    Recover,
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn mode(root: &Path, path: &str, mode: u32) {
    fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn first_state(root: &Path) {
    write(root, "changed", "one");
    write(root, "gone", "gone");
    write(root, "dir/file", "in a directory");
    write(root, "becomes-dir", "a file");
    write(root, "becomes-file/child", "child");
    write(root, "script", "#!/bin/sh");
    mode(root, "script", 0o755);
    std::os::unix::fs::symlink("changed", root.join("link")).unwrap();
    write(root, "same", "same");
    write(root, ".gitignore", "*.o\n");
    write(root, "ignored.o", "ignored");
}

fn second_state(root: &Path) {
    write(root, "changed", "two");
    fs::remove_file(root.join("gone")).unwrap();
    fs::remove_dir_all(root.join("dir")).unwrap();
    write(root, "new/deep/file", "new");
    mode(root, "new", 0o750);
    fs::remove_file(root.join("becomes-dir")).unwrap();
    write(root, "becomes-dir/inside", "inside");
    fs::remove_dir_all(root.join("becomes-file")).unwrap();
    write(root, "becomes-file", "a file now");
    mode(root, "script", 0o600);
    fs::remove_file(root.join("link")).unwrap();
    std::os::unix::fs::symlink("elsewhere", root.join("link")).unwrap();
}

fn state(root: &Path) -> State {
    fn walk(root: &Path, below: &Path, state: &mut State) {
        for entry in fs::read_dir(root.join(below)).unwrap().map(Result::unwrap) {
            let path = below.join(entry.file_name());
            let meta = entry.metadata().unwrap();
            let bits = meta.permissions().mode() & 0o7777;
            if meta.is_dir() {
                state.insert(path.clone(), ('d', bits, Vec::new()));
                walk(root, &path, state);
            } else if meta.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                state.insert(path, ('l', 0, target.into_os_string().into_encoded_bytes()));
            } else {
                state.insert(path, ('f', bits, fs::read(entry.path()).unwrap()));
            }
        }
    }
    let mut found = State::new();
    walk(root, Path::new(""), &mut found);
    found
}

pub(crate) fn identities(number: i64) -> NewRewind {
    let at = Timestamp(number);
    let random = |kind: u8| {
        let mut random = [kind; 10];
        random[..8].copy_from_slice(&number.to_be_bytes());
        random
    };
    NewRewind {
        note: retake_engine::id::EntryId::new([0; 10]),
        operation: OperationId::new(at, random(2)),
        safety: CheckpointId::new(at, random(3)),
        after: CheckpointId::new(at, random(4)),
        at,
    }
}

fn open(scratch: &Path) -> Workspace {
    Workspace::open_or_create(environment(&scratch.join("root"), scratch.join("store"))).unwrap()
}

fn rewind_to_the_first(workspace: &mut Workspace, number: i64) -> Result<(), RewindError> {
    let first = workspace.checkpoints().all()?.pop().unwrap();
    let request = exactly(&first);
    workspace.rewinds_mut().apply(&request, None, &identities(number), &NoProgress).map(drop)
}

fn undo(workspace: &mut Workspace, number: i64) -> Result<(), RewindError> {
    let request = RewindRequest::new(Goal::Undo { operation: None, session: None });
    workspace.rewinds_mut().apply(&request, None, &identities(number), &NoProgress).map(drop)
}

fn recover(workspace: &mut Workspace, number: i64) -> Result<Recovered, RewindError> {
    let NewRewind { after, at, .. } = identities(number);
    workspace.rewinds_mut().recover(RecoveryChoice::Ask, after, at)
}

/// The process that is made to crash; does nothing when the test runner calls it.
#[test]
fn child() {
    let Some(scratch) = std::env::var_os(SCENE).map(PathBuf::from) else { return };
    let mut workspace = open(&scratch);
    // Opening takes steps of its own, which other tests crash at.
    let _faults = fail::FailScenario::setup();
    let done = match std::env::var("RETAKE_CRASH_WORK").unwrap().as_str() {
        "Rewind" => rewind_to_the_first(&mut workspace, 100),
        "Undo" => undo(&mut workspace, 100),
        _ => recover(&mut workspace, 100).map(drop),
    };
    // A panic makes this process fail, which is what whoever runs it looks at.
    done.unwrap_or_else(|err| panic!("FAILED: {err}: {err:?}"));
}

impl Scene {
    fn new(work: Work) -> Self {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        first_state(&root);
        let first = state(&root);
        let mut workspace = open(scratch.path());
        workspace.checkpoints_mut().take(numbered(1), Durability::Synced, &NoProgress).unwrap();
        second_state(&root);
        let second = state(&root);
        let (mut before, mut after) = (second, first);
        if work == Work::Undo {
            rewind_to_the_first(&mut workspace, 50).unwrap();
            std::mem::swap(&mut before, &mut after);
        }
        drop(workspace);
        let scene = Self { scratch, work, before, after };
        scene.save();
        if work == Work::Recover {
            // Stopped where every file is staged and not one is touched.
            let armed = scene.armed_at();
            let mut command = scene.command(Work::Rewind);
            command.env("FAILPOINTS", format!("io={armed}*off->return(crash)")).output().unwrap();
            assert!(open(scene.scratch.path()).rewinds().interrupted().unwrap().is_some());
            scene.save();
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The step at which a rewind is armed and has not touched a file: the first after which recovering finishes it.
    fn armed_at(&self) -> u64 {
        let mut armed = None;
        Killer::new(|| self.set_up(Work::Rewind)).crash_at_every_step(|step, _| {
            let mut workspace = open(self.scratch.path());
            let finished = matches!(recover(&mut workspace, 60), Ok(Recovered::Finished(_)));
            if finished && armed.is_none() {
                armed = Some(step);
            }
        });
        self.set_up(Work::Rewind);
        armed.expect("a rewind is armed")
    }

    fn save(&self) {
        save(self.scratch.path());
    }

    /// Puts files and store back.
    fn set_up(&self, work: Work) -> Command {
        for name in ["root", "store"] {
            empty(&self.path(name));
            copy_into(&self.path(&format!("{name}.saved")), &self.path(name));
        }
        self.command(work)
    }

    fn command(&self, work: Work) -> Command {
        let mut command = rerun::test(CHILD);
        command.env(SCENE, self.scratch.path()).env("RETAKE_CRASH_WORK", format!("{work:?}"));
        command
    }

    /// Recovers, and checks that all is as before or as after; returns whether it is as after.
    fn assert_recovers(&self, step: u64, ended: &Ended) -> bool {
        let context = || format!("{:?}, step {step}: {}", self.work, String::from_utf8_lossy(&ended.output().stderr));
        let mut workspace = open(self.scratch.path());
        let recovered = recover(&mut workspace, 200).unwrap_or_else(|err| panic!("{}: {err:?}", context()));
        let now = state(&self.path("root"));
        let is_after = match recovered {
            Recovered::Finished(_) => true,
            Recovered::TakenBack(_) => false,
            Recovered::Nothing => now == self.after,
        };
        let expected = if is_after { &self.after } else { &self.before };
        assert_eq!(&now, expected, "{}: {recovered:?}", context());
        assert!(workspace.rewinds().interrupted().unwrap().is_none(), "{}", context());
        assert!(workspace.maintenance().check().unwrap().damage.is_empty(), "{}", context());
        assert!(workspace.maintenance().check().unwrap().affected.is_empty(), "{}", context());
        // The log goes on: another checkpoint, and what was done can be taken back and repeated.
        workspace.checkpoints_mut().take(numbered(300), Durability::Soon, &NoProgress).unwrap();
        if is_after && self.work != Work::Undo {
            undo(&mut workspace, 301).unwrap_or_else(|err| panic!("{}: {err:?}", context()));
            assert_eq!(state(&self.path("root")), self.before, "{}", context());
        }
        is_after
    }
}

/// Copies files and store in `place`, to be put back before every run.
pub(crate) fn save(place: &Path) {
    for name in ["root", "store"] {
        let copy = place.join(format!("{name}.saved"));
        if copy.exists() {
            fs::remove_dir_all(&copy).unwrap();
        }
        copy_all(&place.join(name), &copy);
    }
}

pub(crate) fn empty(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    copy_into(from, to);
}

pub(crate) fn copy_into(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy_all(&entry.path(), &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn assert_survives_crashes(work: Work, at_least: u64) {
    let scene = Scene::new(work);
    let mut outcomes = Vec::new();
    let steps = Killer::new(|| scene.set_up(work)).crash_at_every_step(|step, ended| {
        outcomes.push(scene.assert_recovers(step, ended));
    });
    assert!(steps >= at_least, "only {steps} steps: is one missing a fail point?");
    let turned = outcomes.iter().position(|after| *after).unwrap_or(outcomes.len());
    assert!(outcomes[turned..].iter().all(|after| *after), "once armed, always finished: {outcomes:?}");
    assert!(turned < outcomes.len(), "it was never armed");
    assert!(work == Work::Recover || turned > 0, "it was armed from the beginning");
}

#[test]
fn a_rewind_survives_a_crash_at_every_step() {
    assert_survives_crashes(Work::Rewind, 40);
}

#[test]
fn an_undo_survives_a_crash_at_every_step() {
    assert_survives_crashes(Work::Undo, 40);
}

#[test]
fn a_recovery_survives_a_crash_at_every_step() {
    assert_survives_crashes(Work::Recover, 20);
}

#[test]
fn a_rewind_survives_an_error_at_every_step() {
    let scene = Scene::new(Work::Rewind);
    let steps = Killer::new(|| scene.set_up(Work::Rewind)).crash_at_every_step(|_, _| {});
    for (error, lasting) in [("eio", Lasting::Once), ("eio", Lasting::FromThenOn), ("enospc", Lasting::FromThenOn)] {
        let mut refused = 0;
        Killer::new(|| scene.set_up(Work::Rewind)).fail_at_every_step(steps, error, lasting, |step, ended| {
            let Ended::Finished(output) = ended else { panic!("{error} at step {step}: {ended:?}") };
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let mut now = state(&scene.path("root"));
            // A temporary file that cannot be removed stays until the next recovery.
            now.retain(|path, _| !path.to_string_lossy().starts_with(".retake-"));
            if output.status.success() {
                assert_eq!(now, scene.after, "{error} at step {step}: it said that all was done");
            }
            let is_refused = said.contains("nothing was changed");
            refused += u32::from(is_refused);
            assert!(!is_refused || now == scene.before, "{error} at step {step}: {said}\n{now:?}");
            let is_after = scene.assert_recovers(step, ended);
            assert!(!is_refused || !is_after, "{error} at step {step}: refused, and then done all the same: {said}");
        });
        assert!(refused > 0, "no {error} was noticed");
    }
}

#[test]
fn what_somebody_edits_between_the_crash_and_the_recovery_stays() {
    for choice in [RecoveryChoice::Finish, RecoveryChoice::GoBack] {
        let scene = Scene::new(Work::Recover);
        let root = scene.path("root");
        write(&root, "changed", "edited after the crash");
        let mut workspace = open(scene.scratch.path());
        match recover(&mut workspace, 200) {
            Err(RewindError::ChangedSinceCrash { paths, .. }) => {
                assert_eq!(paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(), ["changed"]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_to_string(root.join("changed")).unwrap(), "edited after the crash");
        let NewRewind { after, at, .. } = identities(201);
        let recovered = workspace.rewinds_mut().recover(choice, after, at).unwrap();
        let mut expected = match (choice, recovered) {
            (RecoveryChoice::Finish, Recovered::Finished(_)) => scene.after.clone(),
            (RecoveryChoice::GoBack, Recovered::TakenBack(_)) => scene.before.clone(),
            other => panic!("{other:?}"),
        };
        expected.get_mut(Path::new("changed")).unwrap().2 = b"edited after the crash".to_vec();
        assert_eq!(state(&root), expected, "{choice:?}");
        assert!(workspace.rewinds().interrupted().unwrap().is_none());
        workspace.checkpoints_mut().take(numbered(300), Durability::Soon, &NoProgress).unwrap();
    }
}
