//! What stays when a session with forks is deleted, discarded or grows old.

use retake_engine::id::SessionId;
use retake_engine::operation::OperationError;
use retake_engine::rewind::{Files, Goal, RewindError, RewindRequest};
use retake_engine::session::{Discard, Scope};

use super::super::care::collect;
use super::super::{Desk, open};
use super::prompts;

fn delete(desk: &mut Desk, session: SessionId) -> retake_engine::session::Deleted {
    let writer = open(&mut desk.bench, session).unwrap();
    desk.workspace().sessions_mut().delete(writer).unwrap()
}

#[test]
fn a_fork_outlives_what_it_was_forked_from() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let third = desk.writes("three", "c", "3");
    let forked = desk.fork(third.prompt).unwrap();
    let (said, targets) = (desk.said(forked.session), desk.workspace().sessions().targets(forked.session).unwrap());
    desk.close();
    let parent = desk.session;
    let deleted = delete(&mut desk, parent);
    assert!(deleted.entries > 0 && deleted.checkpoints > 0, "what only it needs goes: {deleted:?}");
    assert!(desk.workspace().sessions().conversation(parent).is_err());
    assert_eq!(desk.said(forked.session), said);
    assert_eq!(desk.workspace().sessions().targets(forked.session).unwrap(), targets, "with files and all");
    assert!(desk.workspace().sessions().resolve_point(&third.prompt.to_string(), None).is_err());
    let point = desk.workspace().sessions().resolve_point(&second.prompt.to_string(), None).unwrap();
    assert!(matches!(point, retake_engine::session::Point::Entry { session, .. } if session == forked.session));
    let sessions = desk.workspace().sessions().all().unwrap();
    let heir = sessions.iter().find(|session| session.id == forked.session).unwrap();
    assert_eq!(heir.forked_from, None, "there is nothing that it could name");
    desk.session = forked.session;
    desk.reopen();
    desk.rewind(first.prompt, Scope::Both).unwrap();
    let read = |name: &str| desk.bench.read(name);
    assert_eq!((read("a").as_deref(), read("b"), read("c")), (Some("0"), None, None), "what was ours still is");
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one", "two"]);
    assert!(desk.workspace().maintenance().check().unwrap().damage.is_empty());
}

#[test]
fn several_forks_outlive_it_and_none_owns_what_another_did() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let end = desk.conversation().head().unwrap();
    let early = desk.fork(end).unwrap();
    let parent = desk.session;
    desk.move_to(early.session);
    desk.writes("early", "e", "1");
    desk.move_to(parent);
    desk.writes("two", "b", "2");
    let end = desk.conversation().head().unwrap();
    let late = desk.fork(end).unwrap();
    let again = desk.fork_of(late.session, first.prompt).unwrap();
    desk.move_to(late.session);
    desk.writes("late", "l", "1");
    desk.close();
    let all = [early.session, late.session, again.session];
    let said = all.map(|session| desk.said(session));
    let targets = all.map(|session| desk.bench.workspace.sessions().targets(session).unwrap());
    delete(&mut desk, parent);
    assert_eq!(all.map(|session| desk.said(session)), said);
    assert_eq!(all.map(|session| desk.bench.workspace.sessions().targets(session).unwrap()), targets);
    desk.session = late.session;
    desk.reopen();
    desk.rewind(first.prompt, Scope::Code).unwrap();
    assert_eq!(desk.bench.read("e").as_deref(), Some("1"), "the other fork's");
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("l")), (Some("0"), None));
    desk.close();
    delete(&mut desk, early.session);
    assert_eq!([late.session, again.session].map(|session| prompts(&desk.said(session)).len()), [3, 0]);
    delete(&mut desk, late.session);
    assert!(desk.workspace().sessions().all().unwrap().iter().any(|session| session.id == again.session));
}

#[test]
fn each_fork_still_takes_back_all_that_was_its_past() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let parent = desk.session;
    let mut forks = Vec::new();
    for name in ["b", "c", "d"] {
        let end = desk.conversation().head().unwrap();
        forks.push(desk.fork(end).unwrap().session);
        desk.writes("more", name, "1");
    }
    desk.close();
    delete(&mut desk, parent);
    let past = [vec!["a"], vec!["a", "b"], vec!["a", "b", "c"]];
    for (session, past) in forks.into_iter().zip(past) {
        desk.session = session;
        desk.reopen();
        let plan = desk
            .bench
            .workspace
            .rewinds()
            .plan(&desk.goal(first.prompt, Scope::Code), &retake_engine::progress::NoProgress)
            .unwrap();
        let paths: Vec<String> = plan.paths.iter().map(|path| path.path.display().to_string()).collect();
        assert_eq!((paths, plan.conflicts().count()), (past.iter().map(|name| (*name).to_owned()).collect(), 0));
        assert!(desk.targets().iter().all(|target| target.files.added + target.files.modified == 1));
    }
}

#[test]
fn a_fork_undoes_nothing_that_it_has_not_done_itself() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let parent = desk.session;
    let end = desk.conversation().head().unwrap();
    let early = desk.fork(end).unwrap();
    desk.move_to(early.session);
    desk.writes("early", "e", "1");
    desk.undo().unwrap();
    desk.move_to(parent);
    desk.writes("two", "b", "2");
    let end = desk.conversation().head().unwrap();
    desk.fork(end).unwrap();
    desk.close();
    delete(&mut desk, parent);
    desk.session = early.session;
    desk.reopen();
    assert_eq!(desk.prompts(), ["one"]);
    assert!(matches!(desk.undo(), Err(RewindError::Operation(OperationError::NothingToUndo))));
    desk.redo().unwrap();
    assert_eq!((desk.prompts().len(), desk.draft()), (2, Vec::new()));
    assert_eq!(["a", "b", "e"].map(|name| desk.bench.read(name).is_some()), [true; 3]);
    desk.undo().unwrap();
    assert_eq!(["a", "b", "e"].map(|name| desk.bench.read(name).is_some()), [true, true, false]);
}

#[test]
fn deleting_a_fork_leaves_what_it_was_forked_from() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let before =
        (desk.conversation(), desk.targets(), desk.bench.workspace.sessions().all_entries(desk.session).unwrap());
    let forked = desk.fork(second.prompt).unwrap();
    let (parent, writer) = desk.move_to(forked.session);
    desk.writes("other", "c", "3");
    desk.close();
    delete(&mut desk, forked.session);
    desk.session = parent;
    drop(writer);
    desk.reopen();
    let now = (desk.conversation(), desk.targets(), desk.bench.workspace.sessions().all_entries(desk.session).unwrap());
    assert_eq!(now, before);
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one"], "the fork is nothing to undo any more");
}

#[test]
fn retention_takes_nothing_that_a_fork_needs() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.writes("two", "b", "2");
    let end = desk.conversation().head().unwrap();
    let forked = desk.fork(end).unwrap();
    let undone = desk.fork(end).unwrap();
    let said = desk.said(forked.session);
    desk.rewind(first.prompt, Scope::Conversation).unwrap();
    desk.writes("instead", "c", "3");
    desk.close();
    desk.bench.checkpoint();
    for _ in 0..2 {
        collect(&mut desk, 100);
        assert_eq!(desk.said(forked.session), said);
        assert_eq!(desk.said(undone.session), said);
    }
    delete(&mut desk, forked.session);
    collect(&mut desk, 100);
    assert_eq!(desk.said(undone.session), said);
    delete(&mut desk, undone.session);
    collect(&mut desk, 100);
    let left = desk.bench.workspace.sessions().all_entries(desk.session).unwrap();
    assert!(left.iter().all(|entry| entry.id != first.prompt), "now nobody needs it");
}

#[test]
fn what_a_fork_needs_is_not_discarded_and_that_is_said() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let end = desk.conversation().head().unwrap();
    let third = desk.writes("three", "c", "3");
    let forked = desk.fork(end).unwrap();
    let said = desk.said(forked.session);
    let (files, discard) = (Files::Selective, Discard::Now);
    let goal = |entry| Goal::Entry { session: desk.session, entry, scope: Scope::Conversation, files, discard };
    let (all, some) = (RewindRequest::new(goal(second.prompt)), RewindRequest::new(goal(third.prompt)));
    let kept_for = |desk: &Desk, request: &RewindRequest| {
        let plan = desk.bench.workspace.rewinds().plan(request, &retake_engine::progress::NoProgress).unwrap();
        plan.conversation.unwrap().kept_for
    };
    assert_eq!(kept_for(&desk, &some), Vec::<String>::new());
    assert_eq!(kept_for(&desk, &all), [forked.session.to_string()]);
    desk.apply(&all).unwrap();
    assert_eq!(desk.said(forked.session), said);
    assert!(desk.workspace().sessions().resolve_point(&third.prompt.to_string(), None).is_err(), "the rest goes");
    assert!(matches!(desk.undo(), Err(RewindError::Discarded { .. })));
    assert_eq!(desk.prompts(), ["one"], "for this session it is final");
    assert_eq!(desk.said(forked.session), said);
}

#[test]
fn nothing_that_was_said_stays_in_what_a_fork_has_left() {
    let mut desk = Desk::new();
    desk.say("SECRETWORD hunter2");
    desk.reply("seen", 0);
    desk.writes("two", "a", "1");
    desk.bench.write("by-hand", "x");
    let first = desk.targets().pop().unwrap().id;
    let forked = desk.fork(first).unwrap();
    let undone = desk.fork(first).unwrap();
    desk.undo_of(undone.operation).unwrap();
    desk.close();
    let parent = desk.session;
    delete(&mut desk, parent);
    delete(&mut desk, forked.session);
    let notes: Vec<_> =
        desk.workspace().checkpoints().all().unwrap().into_iter().filter_map(|point| point.note).collect();
    assert!(notes.iter().all(|note| !note.contains("SECRETWORD")), "{notes:?}");
    let store = desk.workspace().store_dir().to_owned();
    for entry in std::fs::read_dir(store).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(10).any(|part| part == b"SECRETWORD"), "{}", entry.path().display());
    }
}

#[test]
fn undone_forks_that_go_with_a_session_are_told() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let end = desk.conversation().head().unwrap();
    let (kept, undone) = (desk.fork(end).unwrap(), desk.fork(end).unwrap());
    let (parent, _) = desk.move_to(undone.session);
    desk.writes("said in it", "b", "1");
    desk.undo().unwrap();
    desk.close();
    let below = desk.fork_of(undone.session, end).unwrap();
    desk.session = parent;
    desk.reopen();
    for fork in [&below, &undone] {
        desk.undo_of(fork.operation).unwrap();
    }
    desk.close();
    assert_eq!(desk.workspace().sessions().undone_forks(kept.session).unwrap(), []);
    let expected = [undone.session, below.session];
    assert_eq!(desk.workspace().sessions().undone_forks(parent).unwrap(), expected, "before");
    let deleted = delete(&mut desk, parent);
    assert_eq!(deleted.undone_forks, expected, "and after");
    assert!(deleted.entries > 0, "what was said in them is counted: {deleted:?}");
}

#[test]
fn each_fork_inherits_only_what_its_own_conversation_holds() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let first_end = desk.conversation().head().unwrap();
    let early = desk.fork(first_end).unwrap().session;
    let second = desk.writes("two", "b", "2");
    desk.writes("three", "c", "3");
    let end = desk.conversation().head().unwrap();
    let late = desk.fork(end).unwrap().session;
    let latest = desk.fork(second.prompt).unwrap().session;
    desk.close();
    let all = [early, late, latest];
    let state = |desk: &Desk| {
        let workspace = &desk.bench.workspace;
        all.map(|session| {
            (
                desk.said(session),
                workspace.sessions().targets(session).unwrap(),
                workspace.sessions().all_entries(session).unwrap(),
            )
        })
    };
    let before = state(&desk);
    let parent = desk.session;
    delete(&mut desk, parent);
    assert_eq!(state(&desk), before, "all that each of them knows");
    let sessions = desk.workspace().sessions().all().unwrap();
    let from = |id| sessions.iter().find(|session| session.id == id).unwrap().forked_from.clone();
    let parted = |id| from(id).map(|from: retake_engine::session::ForkedFrom| (from.session, from.entry));
    assert_eq!((from(early), parted(late)), (None, Some((early, Some(first_end)))));
    assert_eq!(parted(latest), Some((late, Some(second.prompt))), "before that prompt, as ever");
    desk.session = early;
    desk.reopen();
    let read = |desk: &Desk, name: &str| desk.bench.read(name);
    assert!(desk.undo().is_err(), "it did nothing itself");
    desk.session = latest;
    desk.reopen();
    let request = desk.goal(desk.targets()[0].id, Scope::Code);
    desk.apply(&request).unwrap();
    let files = |desk: &Desk| (read(desk, "a"), read(desk, "b"), read(desk, "c"));
    assert_eq!(files(&desk), (Some("0".to_owned()), None, None), "what was done until it was forked is still its past");
    desk.undo().unwrap();
    desk.session = late;
    desk.reopen();
    desk.rewind(second.prompt, Scope::Both).unwrap();
    assert_eq!(files(&desk), (Some("1".to_owned()), None, None));
    desk.undo().unwrap();
    desk.close();
    delete(&mut desk, late);
    delete(&mut desk, early);
    assert_eq!(
        (desk.said(latest), desk.workspace().sessions().targets(latest).unwrap()),
        (before[2].0.clone(), before[2].1.clone())
    );
    assert!(desk.workspace().maintenance().check().unwrap().damage.is_empty());
}
