//! A crash, or a failure of the disk, at every step of a fork, of taking it back, and of deleting what it was forked from.

use std::path::{Path, PathBuf};
use std::process::Command;

use retake_engine::id::{CheckpointId, EntryId, OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Goal, RewindRequest};
use retake_engine::session::{ForkError, NewFork};
use retake_engine::{Timestamp, Workspace};
use retake_testkit::{Killer, Lasting, Scratch, rerun};

use super::super::Desk;
use super::prompts;
use crate::rewind_crash::{copy_into, empty, identities, save};
use crate::scanners::environment;

const CHILD: &str = "session::fork::crash::child";

fn workspace(place: &Path) -> Workspace {
    Workspace::open(environment(&place.join("root"), place.join("store"))).unwrap()
}

fn new_fork() -> NewFork {
    let at = Timestamp(100);
    NewFork {
        session: SessionId::new(at, [41; 10]),
        operation: OperationId::new(at, [42; 10]),
        checkpoint: CheckpointId::new(at, [43; 10]),
        note: EntryId::new([44; 10]),
        at,
        made_by: MadeBy::Command,
    }
}

/// What is done in the process that crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Fork,
    Undo,
    Redo,
    Delete,
    Elsewhere,
}

struct Scene {
    scratch: Scratch,
    session: SessionId,
    prompt: EntryId,
    deed: Deed,
}

impl Scene {
    fn new(deed: Deed) -> Self {
        let scratch = Scratch::new();
        let mut desk = Desk::at(scratch.path());
        desk.writes("one", "b", "1");
        let turn = desk.writes("two", "a", "2");
        let session = desk.session;
        drop(desk);
        let scene = Self { scratch, session, prompt: turn.prompt, deed };
        let place = scene.scratch.path();
        for earlier in [Deed::Fork, Deed::Undo] {
            if deed == Deed::Redo || deed != Deed::Fork && deed != Deed::Elsewhere && earlier == Deed::Fork {
                act(place, &mut workspace(place), session, turn.prompt, earlier);
            }
        }
        save(place);
        scene
    }

    fn set_up(&self) -> Command {
        for name in ["root", "store"] {
            let place = self.scratch.path().join(name);
            empty(&place);
            copy_into(&self.scratch.path().join(format!("{name}.saved")), &place);
        }
        std::fs::remove_dir_all(self.scratch.path().join("made")).ok();
        let mut command = rerun::test(CHILD);
        command.env("RETAKE_CRASH_SCENE", self.scratch.path());
        command.env("RETAKE_CRASH_SESSION", self.session.to_string());
        command.env("RETAKE_CRASH_PROMPT", self.prompt.to_string());
        command.env("RETAKE_CRASH_DEED", format!("{:?}", self.deed));
        command
    }

    /// Which sessions there are, and what was said in each.
    fn state(&self, workspace: &Workspace) -> Vec<(SessionId, Vec<String>, usize)> {
        let sessions = workspace.sessions().all().unwrap().into_iter();
        let said = sessions.map(|session| {
            let conversation = workspace.sessions().conversation(session.id).unwrap();
            let notes = conversation.entries().len();
            (session.id, prompts(&conversation), notes)
        });
        said.collect()
    }
}

fn act(place: &Path, workspace: &mut Workspace, session: SessionId, prompt: EntryId, deed: Deed) {
    match deed {
        Deed::Fork => drop(workspace.sessions_mut().fork(session, prompt, &new_fork(), &NoProgress).unwrap()),
        Deed::Elsewhere => {
            let made = place.join("made");
            drop(workspace.sessions_mut().fork_to_directory(session, prompt, &made, &new_fork(), &NoProgress).unwrap());
        }
        Deed::Undo | Deed::Redo => {
            let goal = match deed {
                Deed::Undo => Goal::Undo { operation: Some(new_fork().operation), session: None },
                _ => Goal::Redo { session: None },
            };
            let new = identities(if deed == Deed::Undo { 200 } else { 300 });
            drop(workspace.rewinds_mut().apply(&RewindRequest::new(goal), None, &new, &NoProgress).unwrap());
        }
        Deed::Delete => {
            let writer = workspace.sessions().open(session, Timestamp(400), &mut || [4; 10]).unwrap();
            workspace.sessions_mut().delete(writer).unwrap();
        }
    }
}

/// The process that is made to crash; does nothing when the test runner calls it.
#[test]
fn child() {
    let Some(place) = std::env::var_os("RETAKE_CRASH_SCENE").map(PathBuf::from) else { return };
    let Ok(deed) = std::env::var("RETAKE_CRASH_DEED") else { return };
    let mut workspace = workspace(&place);
    let session = workspace.sessions().resolve(&std::env::var("RETAKE_CRASH_SESSION").unwrap()).unwrap().id;
    let prompt = std::env::var("RETAKE_CRASH_PROMPT").unwrap().parse().unwrap();
    let deeds = [Deed::Fork, Deed::Undo, Deed::Redo, Deed::Delete, Deed::Elsewhere];
    let deed = deeds.into_iter().find(|known| format!("{known:?}") == deed).unwrap();
    let _faults = fail::FailScenario::setup();
    act(&place, &mut workspace, session, prompt, deed);
}

fn assert_all_or_nothing(deed: Deed, at_least: u64) {
    let scene = Scene::new(deed);
    scene.set_up();
    let mut whole = workspace(scene.scratch.path());
    let before = scene.state(&whole);
    act(scene.scratch.path(), &mut whole, scene.session, scene.prompt, deed);
    let after = scene.state(&whole);
    assert_ne!(before, after);
    drop(whole);
    let mut outcomes = Vec::new();
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|step, _| {
        let workspace = workspace(scene.scratch.path());
        let now = scene.state(&workspace);
        assert!(now == before || now == after, "{deed:?} at step {step}: {now:?}");
        assert!(workspace.maintenance().check().unwrap().damage.is_empty());
        outcomes.push(now == after);
    });
    assert!(steps >= at_least, "only {steps} steps");
    let turned = outcomes.iter().position(|after| *after).unwrap();
    assert!(turned > 0 && outcomes[turned..].iter().all(|after| *after), "{outcomes:?}");
}

#[test]
fn a_fork_is_made_or_not_made() {
    assert_all_or_nothing(Deed::Fork, 3);
}

#[test]
fn a_fork_is_undone_or_not_undone() {
    assert_all_or_nothing(Deed::Undo, 2);
}

#[test]
fn a_fork_is_redone_or_not_redone() {
    assert_all_or_nothing(Deed::Redo, 2);
}

#[test]
fn a_session_with_forks_is_deleted_with_what_only_it_needs_or_not_at_all() {
    assert_all_or_nothing(Deed::Delete, 2);
}

#[test]
fn a_crash_in_a_fork_elsewhere_changes_nothing_here_and_it_can_be_made_again() {
    let scene = Scene::new(Deed::Elsewhere);
    scene.set_up();
    let before = scene.state(&workspace(scene.scratch.path()));
    let mut again = 0;
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|step, _| {
        let mut workspace = workspace(scene.scratch.path());
        assert_eq!(scene.state(&workspace), before, "at step {step}");
        let (other, new) = (scene.scratch.path().join("other"), new_fork());
        workspace.sessions_mut().fork_to_directory(scene.session, scene.prompt, &other, &new, &NoProgress).unwrap();
        std::fs::remove_dir_all(&other).unwrap();
        // What it has left can be deleted, and then the same place is as good as before, unless the fork was made there.
        let made = scene.scratch.path().join("made");
        std::fs::remove_dir_all(&made).ok();
        match workspace.sessions_mut().fork_to_directory(scene.session, scene.prompt, &made, &new, &NoProgress) {
            Ok(_) => again += 1,
            Err(ForkError::BadDirectory { why, .. }) => assert!(why.contains("a history of that place"), "{why}"),
            Err(err) => panic!("at step {step}: {err}"),
        }
    });
    assert!(steps >= 5 && 2 * again > steps, "{again} of {steps} steps");
}

#[test]
fn a_fork_elsewhere_that_fails_leaves_nothing() {
    let scene = Scene::new(Deed::Elsewhere);
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|_, _| {});
    let mut failed = 0;
    Killer::new(|| scene.set_up()).fail_at_every_step(steps, "eio", Lasting::Once, |step, ended| {
        if ended.output().status.success() {
            return;
        }
        failed += 1;
        assert!(!scene.scratch.path().join("made").exists(), "at step {step}");
        let workspaces = std::fs::read_dir(scene.scratch.path().join("store/workspaces")).unwrap().count();
        assert_eq!(workspaces, 1, "at step {step}");
    });
    assert!(failed >= 5, "only {failed} failures");
}
