//! Whose changes a fork takes back: those of the session that it was forked from, until then.

use retake_engine::rewind::{Conflict, OnConflict, RewindError, RewindRequest};
use retake_engine::session::Scope;

use super::super::Desk;

#[test]
fn inherited_prompts_are_targets_with_all_that_is_known_of_them() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "dir-b", "2");
    let third = desk.writes("three", "c", "3");
    let point = desk.workspace().sessions().resolve_point(&second.prompt.to_string(), None).unwrap();
    desk.workspace().checkpoints_mut().set_label(point.checkpoint_id().unwrap(), Some("here")).unwrap();
    let known: Vec<_> = desk.targets().into_iter().filter(|target| target.id != third.prompt).collect();
    let forked = desk.fork(third.prompt).unwrap();
    assert_eq!(desk.workspace().sessions().targets(forked.session).unwrap(), known);
    assert!(known.iter().all(|target| target.has_files && target.files.tools == ["bash: work"]));
    let again = desk.fork_of(forked.session, second.prompt).unwrap();
    assert_eq!(desk.workspace().sessions().targets(again.session).unwrap(), known[1..]);
    let search = |query: &str| -> Vec<_> {
        let found = desk.bench.workspace.sessions().search(forked.session, query).unwrap();
        found.into_iter().map(|target| target.id).collect()
    };
    assert_eq!(search("dir-b"), [second.prompt], "by a path");
    assert_eq!(search("ONE"), [first.prompt]);
    assert_eq!(search("HERE"), [second.prompt]);
    assert_eq!(search("three"), []);
    let point = desk.bench.workspace.sessions().resolve_point(&first.prompt.to_string(), Some(forked.session)).unwrap();
    let retake_engine::session::Point::Entry { session, .. } = point else { panic!("{point:?}") };
    assert_eq!(session, forked.session, "in the session that was named");
    let by_label = desk.bench.workspace.sessions().resolve_point("here", Some(forked.session)).unwrap();
    let retake_engine::session::Point::Entry { session, .. } = by_label else { panic!("{by_label:?}") };
    assert_eq!(session, forked.session);
    let other = desk.bench.workspace.sessions().resolve_point(&third.prompt.to_string(), Some(forked.session));
    assert!(other.is_err(), "it is not in the fork");
}

#[test]
fn a_fork_takes_back_what_was_changed_before_it_was_forked() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let forked = desk.fork(second.prompt).unwrap();
    let (parent, writer) = desk.move_to(forked.session);
    drop(writer);
    desk.writes("other two", "a", "3");
    desk.rewind(first.prompt, Scope::Both).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b")), (Some("0"), None), "all until the fork");
    assert_eq!(desk.prompts().len(), 0);
    assert_eq!(super::prompts(&desk.said(parent)), ["one", "two"], "only files are shared");
    desk.undo().unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b").as_deref()), (Some("3"), Some("2")));
    assert_eq!(desk.prompts(), ["one", "other two"]);
}

#[test]
fn what_others_of_the_lineage_did_after_the_fork_is_somebody_elses() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.writes("two", "b", "2");
    let end = desk.conversation().head().unwrap();
    let forked = desk.fork(end).unwrap();
    desk.writes("three", "a", "parent");
    desk.writes("four", "c", "parent");
    let (parent, writer) = desk.move_to(forked.session);
    drop(writer);
    let refused = desk.rewind(first.prompt, Scope::Code);
    let Err(RewindError::Refused { plan }) = refused else { panic!("{refused:?}") };
    let conflicts: Vec<_> = plan.conflicts().map(|path| (path.path.display().to_string(), path.conflict)).collect();
    assert!(matches!(conflicts.as_slice(), [(path, Some(Conflict::ChangedByOthers))] if path == "a"), "{conflicts:?}");
    assert!(plan.paths.iter().all(|path| path.path.display().to_string() != "c"), "not a path of ours");
    let request = RewindRequest { on_conflict: OnConflict::Keep, ..desk.goal(first.prompt, Scope::Code) };
    desk.apply(&request).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b")), (Some("parent"), None));
    assert_eq!(desk.bench.read("c").as_deref(), Some("parent"));
    desk.undo().unwrap();
    // And the other way round: what the fork does is none of the parent's.
    desk.writes("five", "a", "fork");
    desk.move_to(parent);
    let refused = desk.rewind(first.prompt, Scope::Code);
    let Err(RewindError::Refused { plan }) = refused else { panic!("{refused:?}") };
    assert_eq!(plan.conflicts().count(), 1);
}

#[test]
fn a_fork_of_a_fork_owns_each_part_of_its_past_until_it_was_forked() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let end = desk.conversation().head().unwrap();
    let forked = desk.fork(end).unwrap();
    desk.writes("parent alone", "p", "1");
    desk.move_to(forked.session);
    desk.writes("two", "b", "2");
    let end = desk.conversation().head().unwrap();
    let again = desk.fork(end).unwrap();
    desk.writes("fork alone", "f", "1");
    desk.move_to(again.session);
    desk.writes("three", "c", "3");
    desk.rewind(first.prompt, Scope::Both).unwrap();
    let read = |name: &str| desk.bench.read(name);
    assert_eq!((read("a").as_deref(), read("b"), read("c")), (Some("0"), None, None));
    assert_eq!((read("p").as_deref(), read("f").as_deref()), (Some("1"), Some("1")), "those went their own way");
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one", "two", "three"]);
    assert_eq!(desk.bench.read("c").as_deref(), Some("3"));
}

#[test]
fn in_a_fork_one_can_go_back_and_forth_between_inherited_prompts() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let end = desk.conversation().head().unwrap();
    let forked = desk.fork(end).unwrap();
    desk.move_to(forked.session);
    let whole = desk.conversation();
    desk.rewind(first.prompt, Scope::Conversation).unwrap();
    desk.writes("instead", "b", "1");
    let entries = desk.bench.workspace.sessions().all_entries(forked.session).unwrap();
    assert!(entries.iter().any(|entry| entry.id == second.prompt), "what was left behind is listed");
    desk.rewind(end, Scope::Conversation).unwrap();
    assert_eq!(desk.prompts(), ["one", "two"], "and can be gone back to");
    desk.undo().unwrap();
    desk.undo().unwrap();
    desk.undo().unwrap();
    assert_eq!(desk.conversation(), whole);
}

#[test]
fn a_path_that_was_declared_before_the_fork_goes_back_to_before_that() {
    let mut desk = Desk::new();
    desk.bench.write(".gitignore", "secret\n");
    desk.bench.write("secret", "0");
    let first = desk.writes("one", "a", "1");
    let second = desk.say("two");
    desk.tool(second, &["secret"], |root| std::fs::write(root.join("secret"), "1").unwrap());
    desk.reply("done", 0);
    let end = desk.end(second);
    let forked = desk.fork(end).unwrap();
    desk.move_to(forked.session);
    desk.rewind(first.prompt, Scope::Both).unwrap();
    assert_eq!(desk.bench.read("secret").as_deref(), Some("0"), "it is ignored, and was captured for the tool");
    desk.undo().unwrap();
    assert_eq!(desk.bench.read("secret").as_deref(), Some("1"));
}

#[test]
fn the_files_of_an_inherited_entry_are_those_before_the_fork() {
    for delete_parent in [false, true] {
        let mut desk = Desk::new();
        let first = desk.writes("one", "a", "1");
        let end = desk.conversation().head().unwrap();
        let forked = desk.fork(end).unwrap();
        let other = desk.fork(end).unwrap();
        desk.bench.write("by-hand", "x");
        // What is there now is saved, and that is what the parent had at the end before it went back.
        desk.rewind(first.prompt, Scope::Code).unwrap();
        let (parent, writer) = desk.move_to(forked.session);
        drop(writer);
        if delete_parent {
            let gone = super::super::open(&mut desk.bench, parent).unwrap();
            desk.workspace().sessions_mut().delete(gone).unwrap();
        }
        let told = desk.fork(end).unwrap();
        assert_eq!(super::notes(&desk.said(told.session)), [["a", "by-hand"]], "parent deleted: {delete_parent}");
        // The same for what the fork saves while it is still there.
        desk.rewind(first.prompt, Scope::Conversation).unwrap();
        desk.move_to(other.session);
        let told = desk.fork(end).unwrap();
        assert_eq!(super::notes(&desk.said(told.session)), [["a", "by-hand"]], "parent deleted: {delete_parent}");
    }
}
