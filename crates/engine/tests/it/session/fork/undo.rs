//! Undo and redo of forks: the session goes and comes back exactly as it was, or is left alone and said to be in use.

use retake_engine::id::SessionId;
use retake_engine::operation::{OperationError, OperationKind};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Applied, ForkFate, ForkUse, Goal, RewindError, RewindRequest};
use retake_engine::session::ForkError;

use super::super::{Desk, identities, open};

fn apply(desk: &mut Desk, goal: Goal) -> Result<Applied, RewindError> {
    let new = identities(&mut desk.bench);
    desk.bench.workspace.rewinds_mut().apply(&RewindRequest::new(goal), None, &new, &NoProgress)
}

/// As a command does it: without the writer of anything.
fn undo(desk: &mut Desk) -> Result<Applied, RewindError> {
    apply(desk, Goal::Undo { operation: None, session: None })
}

fn redo(desk: &mut Desk) -> Result<Applied, RewindError> {
    apply(desk, Goal::Redo { session: None })
}

fn is_there(desk: &Desk, session: SessionId) -> bool {
    desk.bench.workspace.sessions().all().unwrap().iter().any(|known| known.id == session)
}

#[test]
fn a_fork_is_undone_and_redone_across_restarts() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let forked = desk.fork(second.prompt).unwrap();
    let state = |desk: &Desk| {
        let workspace = &desk.bench.workspace;
        let session = workspace.sessions().all().unwrap().into_iter().find(|known| known.id == forked.session);
        (
            workspace.sessions().conversation(forked.session).unwrap(),
            workspace.sessions().draft(forked.session).unwrap(),
            session,
        )
    };
    let (before, parent) = (state(&desk), desk.conversation());
    let plan = desk.workspace().rewinds().plan(&request(None), &NoProgress).unwrap();
    assert_eq!(plan.fork.map(|fork| (fork.session, fork.fate)), Some((forked.session, ForkFate::Goes)));
    assert!(plan.is_applicable() && plan.conversation.is_none() && plan.paths.is_empty());
    for _ in 0..2 {
        let applied = undo(&mut desk).unwrap();
        assert!(applied.operation.is_some());
        assert!(!is_there(&desk, forked.session));
        assert!(desk.workspace().sessions().conversation(forked.session).is_err());
        assert!(open(&mut desk.bench, forked.session).is_err());
        assert!(matches!(desk.fork_of(forked.session, second.prompt), Err(ForkError::NotAConversation { .. })));
        desk.reopen();
        assert_eq!(desk.conversation(), parent);
        redo(&mut desk).unwrap();
        desk.reopen();
        assert_eq!(state(&desk), before, "the same session");
    }
    let operations = desk.workspace().operations().all().unwrap();
    let kinds: Vec<OperationKind> = operations.iter().take(5).map(|operation| operation.kind).collect();
    use OperationKind::{Fork, Redo, Undo};
    assert_eq!(kinds, [Redo, Undo, Redo, Undo, Fork]);
    assert_eq!(operations[4].session, Some(desk.session), "it is an operation of what was forked from");
}

fn request(session: Option<SessionId>) -> RewindRequest {
    RewindRequest::new(Goal::Undo { operation: None, session })
}

#[test]
fn a_fork_is_undone_by_its_id_while_the_other_session_is_open() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let forked = desk.fork(first.prompt).unwrap();
    let before = desk.conversation();
    desk.undo_of(forked.operation).unwrap();
    assert!(!is_there(&desk, forked.session));
    assert_eq!(desk.conversation(), before);
    desk.undo().unwrap();
    assert_eq!(desk.prompts().len(), 0, "then the turn");
    desk.redo().unwrap();
    assert_eq!(desk.prompts(), ["one"]);
}

#[test]
fn a_fork_that_is_used_is_not_undone() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let forked = desk.fork(second.prompt).unwrap();
    let refused = |result: Result<Applied, RewindError>| match result {
        Err(RewindError::ForkInUse { session, why }) if session == forked.session => why,
        other => panic!("{other:?}"),
    };
    let (parent, writer) = desk.move_to(forked.session);
    drop(writer);
    assert_eq!(refused(undo(&mut desk)), ForkUse::Open);
    desk.writes("other two", "b", "3");
    let said = desk.conversation();
    desk.close();
    let plan = desk.workspace().rewinds().plan(&RewindRequest::new(undo_of(&forked)), &NoProgress);
    assert!(matches!(plan, Err(RewindError::ForkInUse { why: ForkUse::WentOn, .. })), "{plan:?}");
    assert_eq!(refused(apply(&mut desk, undo_of(&forked))), ForkUse::WentOn);
    assert_eq!(desk.said(forked.session), said);
    desk.writer = Some(open(&mut desk.bench, forked.session).unwrap());
    desk.undo().unwrap();
    desk.close();
    apply(&mut desk, undo_of(&forked)).unwrap();
    assert!(!is_there(&desk, forked.session), "what was said in it is taken back, so it can go");
    desk.session = parent;
    desk.reopen();
    redo(&mut desk).unwrap();
    desk.move_to(forked.session);
    desk.redo().unwrap();
    assert_eq!(desk.conversation(), said, "nothing of it was lost");
}

#[test]
fn undo_in_the_session_that_was_forked_from_passes_over_forks() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let forked = desk.fork(second.prompt).unwrap();
    let (parent, writer) = desk.move_to(forked.session);
    desk.writes("other", "c", "3");
    desk.close();
    (desk.session, desk.writer) = (parent, writer);
    desk.undo().unwrap();
    assert_eq!((desk.prompts(), desk.bench.read("b")), (vec!["one".to_owned()], None), "its own turn");
    let again = desk.fork(desk.conversation().head().unwrap()).unwrap();
    desk.redo().unwrap();
    assert_eq!(desk.prompts(), ["one", "two"], "a fork is nothing new in it");
    undo(&mut desk).unwrap();
    assert!(!is_there(&desk, again.session), "without a session, forks count");
    desk.redo().unwrap();
    assert!(is_there(&desk, again.session) && is_there(&desk, forked.session));
    desk.undo().unwrap();
    desk.undo().unwrap();
    let nothing = desk.undo();
    assert!(matches!(nothing, Err(RewindError::Operation(OperationError::NothingToUndo))), "{nothing:?}");
}

fn undo_of(forked: &retake_engine::session::Forked) -> Goal {
    Goal::Undo { operation: Some(forked.operation), session: None }
}

#[test]
fn a_fork_with_forks_of_its_own_is_not_undone_before_them() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let forked = desk.fork(first.prompt).unwrap();
    let end = desk.conversation().head().unwrap();
    let other = desk.fork(end).unwrap();
    let again = desk.fork_of(other.session, end).unwrap();
    let refused = apply(&mut desk, undo_of(&other));
    assert!(matches!(refused, Err(RewindError::ForkInUse { why: ForkUse::Forked, .. })), "{refused:?}");
    for session in [again.session, other.session, forked.session] {
        undo(&mut desk).unwrap();
        assert!(!is_there(&desk, session));
    }
    for session in [forked.session, other.session, again.session] {
        redo(&mut desk).unwrap();
        assert!(is_there(&desk, session));
    }
}

#[test]
fn an_edited_draft_of_a_fork_is_not_lost() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let forked = desk.fork(first.prompt).unwrap();
    let (parent, _) = desk.move_to(forked.session);
    let edited = vec![retake_engine::session::entry::Part::text("edited")];
    desk.writer().set_draft(edited.clone()).unwrap();
    desk.close();
    undo(&mut desk).unwrap();
    redo(&mut desk).unwrap();
    assert_eq!(desk.workspace().sessions().draft(forked.session).unwrap(), edited);
    desk.session = parent;
}

#[test]
fn something_new_ends_what_can_be_redone_and_the_undone_fork_goes_with_its_operation() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let forked = desk.fork(first.prompt).unwrap();
    undo(&mut desk).unwrap();
    desk.bench.command(|root| std::fs::write(root.join("b"), "command").unwrap());
    assert!(matches!(redo(&mut desk), Err(RewindError::Operation(OperationError::NothingToRedo))));
    desk.close();
    desk.bench.checkpoint();
    super::super::care::collect(&mut desk, 100);
    assert!(!is_there(&desk, forked.session));
    let kinds: Vec<OperationKind> = desk.workspace().operations().all().unwrap().iter().map(|one| one.kind).collect();
    assert!(!kinds.contains(&OperationKind::Fork), "{kinds:?}");
    desk.reopen();
    assert_eq!(desk.prompts(), ["one"]);
}
