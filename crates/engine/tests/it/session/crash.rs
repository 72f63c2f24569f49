//! A crash at every step of taking files and conversation back: afterwards both have gone, or neither.

use std::path::{Path, PathBuf};
use std::process::Command;

use retake_engine::id::{EntryId, SessionId};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Files, Goal, Recovered, RecoveryChoice, RewindError, RewindRequest};
use retake_engine::session::Conversation;
use retake_engine::session::entry::Part;
use retake_engine::session::{Discard, Scope};
use retake_engine::{Timestamp, Workspace};
use retake_testkit::{Killer, Scratch, rerun};

use super::Desk;
use crate::rewind_crash::{copy_into, empty, identities, save};
use crate::scanners::environment;

const CHILD: &str = "session::crash::child";

/// One half of the story and the other.
#[derive(Clone, Debug, PartialEq)]
struct State {
    files: Vec<(String, Option<String>)>,
    conversation: Conversation,
    draft: Vec<Part>,
}

struct Scene {
    scratch: Scratch,
    session: SessionId,
    prompt: EntryId,
    scope: Scope,
}

fn workspace(place: &Path) -> Workspace {
    Workspace::open(environment(&place.join("root"), place.join("store"))).unwrap()
}

impl Scene {
    fn new(scope: Scope) -> Self {
        let scratch = Scratch::new();
        let mut desk = Desk::at(scratch.path());
        desk.writes("one", "b", "1");
        let turn = desk.turn("two", |root| {
            std::fs::write(root.join("a"), "2").unwrap();
            std::fs::rename(root.join("b"), root.join("c")).unwrap();
        });
        let session = desk.session;
        drop(desk);
        save(scratch.path());
        Self { scratch, session, prompt: turn.prompt, scope }
    }

    fn set_up(&self) -> Command {
        for name in ["root", "store"] {
            let place = self.scratch.path().join(name);
            empty(&place);
            copy_into(&self.scratch.path().join(format!("{name}.saved")), &place);
        }
        let mut command = rerun::test(CHILD);
        command.env("RETAKE_CRASH_SCENE", self.scratch.path());
        command.env("RETAKE_CRASH_SESSION", self.session.to_string());
        command.env("RETAKE_CRASH_PROMPT", self.prompt.to_string());
        command.env("RETAKE_CRASH_SCOPE", format!("{:?}", self.scope));
        command
    }

    fn state(&self, workspace: &Workspace) -> State {
        let root = self.scratch.path().join("root");
        let files = ["a", "b", "c"].map(|name| (name.to_owned(), std::fs::read_to_string(root.join(name)).ok()));
        State {
            files: files.to_vec(),
            conversation: workspace.sessions().conversation(self.session).unwrap(),
            draft: workspace.sessions().draft(self.session).unwrap(),
        }
    }
}

fn rewind(workspace: &mut Workspace, session: SessionId, entry: EntryId, scope: Scope) -> Result<(), RewindError> {
    let mut writer = workspace.sessions().open(session, Timestamp(90), &mut || [90; 10]).unwrap();
    let goal = Goal::Entry { session, entry, scope, files: Files::Selective, discard: Discard::No };
    workspace
        .rewinds_mut()
        .apply_in(&mut writer, &RewindRequest::new(goal), None, &identities(100), &NoProgress)
        .map(drop)
}

/// The process that is made to crash; does nothing when the test runner calls it.
#[test]
fn child() {
    let Some(place) = std::env::var_os("RETAKE_CRASH_SCENE").map(PathBuf::from) else { return };
    let Ok(session) = std::env::var("RETAKE_CRASH_SESSION") else { return };
    let mut workspace = workspace(&place);
    let session = workspace.sessions().resolve(&session).unwrap().id;
    let prompt = std::env::var("RETAKE_CRASH_PROMPT").unwrap().parse().unwrap();
    let scope = match std::env::var("RETAKE_CRASH_SCOPE").unwrap().as_str() {
        "Both" => Scope::Both,
        "Code" => Scope::Code,
        _ => Scope::Conversation,
    };
    let _faults = fail::FailScenario::setup();
    rewind(&mut workspace, session, prompt, scope).unwrap_or_else(|err| panic!("FAILED: {err}: {err:?}"));
}

fn assert_all_or_nothing(scope: Scope, at_least: u64) {
    let scene = Scene::new(scope);
    scene.set_up();
    let mut whole = workspace(scene.scratch.path());
    let before = scene.state(&whole);
    rewind(&mut whole, scene.session, scene.prompt, scope).unwrap();
    let after = scene.state(&whole);
    assert_ne!(before, after);
    drop(whole);
    let mut outcomes = Vec::new();
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|step, _| {
        let mut workspace = workspace(scene.scratch.path());
        let id = identities(200);
        let recovered = workspace.rewinds_mut().recover(RecoveryChoice::Ask, id.after, id.at).unwrap();
        let now = scene.state(&workspace);
        assert!(now == before || now == after, "{scope:?} at step {step}, {recovered:?}: {now:?}");
        let is_after = now == after;
        assert!(!matches!(recovered, Recovered::Finished(_)) || is_after, "step {step}");
        assert!(workspace.rewinds().interrupted().unwrap().is_none());
        let mut writer = workspace.sessions().open(scene.session, Timestamp(300), &mut || [3; 10]).unwrap();
        if is_after {
            let goal = Goal::Undo { operation: None, session: Some(scene.session) };
            let request = RewindRequest::new(goal);
            workspace.rewinds_mut().apply_in(&mut writer, &request, None, &identities(301), &NoProgress).unwrap();
            assert_eq!(scene.state(&workspace), before, "{scope:?} at step {step}, undone");
        }
        outcomes.push(is_after);
    });
    assert!(steps >= at_least, "only {steps} steps");
    let turned = outcomes.iter().position(|after| *after).unwrap();
    assert!(turned > 0 && outcomes[turned..].iter().all(|after| *after), "{outcomes:?}");
}

#[test]
fn files_and_conversation_go_back_together_or_not_at_all() {
    assert_all_or_nothing(Scope::Both, 30);
}

#[test]
fn files_go_back_with_their_note_or_not_at_all() {
    assert_all_or_nothing(Scope::Code, 30);
}

#[test]
fn a_conversation_goes_back_with_its_note_or_not_at_all() {
    assert_all_or_nothing(Scope::Conversation, 2);
}

#[test]
fn nothing_is_said_while_an_interrupted_rewind_waits() {
    let scene = Scene::new(Scope::Both);
    let mut checked = false;
    Killer::new(|| scene.set_up()).crash_at_every_step(|_, _| {
        let workspace = workspace(scene.scratch.path());
        if checked || workspace.rewinds().interrupted().unwrap().is_none() {
            return;
        }
        checked = true;
        let mut writer = workspace.sessions().open(scene.session, Timestamp(300), &mut || [3; 10]).unwrap();
        let id = EntryId::new([77; 10]);
        let body = retake_engine::session::entry::Body::Cleared;
        let entry = retake_engine::session::NewEntry { id, at: Timestamp(300), body };
        let refused = writer.append(vec![entry], retake_engine::Durability::Soon);
        assert!(
            matches!(refused, Err(retake_engine::session::SessionError::StaleHead)),
            "the head is about to move: {refused:?}"
        );
    });
    assert!(checked);
}

#[test]
fn a_session_with_an_interrupted_rewind_is_not_deleted() {
    let scene = Scene::new(Scope::Both);
    let mut checked = false;
    Killer::new(|| scene.set_up()).crash_at_every_step(|_, _| {
        let mut workspace = workspace(scene.scratch.path());
        if checked || workspace.rewinds().interrupted().unwrap().is_none() {
            return;
        }
        checked = true;
        let writer = workspace.sessions().open(scene.session, Timestamp(300), &mut || [3; 10]).unwrap();
        let refused = workspace.sessions_mut().delete(writer);
        assert!(matches!(refused, Err(retake_engine::session::SessionError::Pending { .. })), "{refused:?}");
        let id = identities(200);
        workspace.rewinds_mut().recover(RecoveryChoice::Ask, id.after, id.at).unwrap();
        let writer = workspace.sessions().open(scene.session, Timestamp(300), &mut || [3; 10]).unwrap();
        workspace.sessions_mut().delete(writer).unwrap();
    });
    assert!(checked);
}
