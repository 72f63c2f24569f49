//! Rewinding: what goes back, what stays, what is refused.

use retake_engine::checkpoint::Origin;
use retake_engine::operation::OperationKind;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Conflict, Files, Goal, HeadSeen, OnConflict, RewindError, RewindRequest};
use retake_engine::session::PromptLine;
use retake_engine::session::entry::{Body, Part};
use retake_engine::session::{Discard, Scope};

use super::{Desk, Moment, conversation, is_stored, open, result};
use crate::rewind::{conflicts, path};

#[test]
fn both_takes_files_and_conversation_back_in_one_operation() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let before = desk.conversation();
    let second = desk.turn("two", |root| {
        std::fs::write(root.join("a"), "2").unwrap();
        std::fs::rename(root.join("a"), root.join("b")).unwrap();
    });
    desk.writes("three", "c", "3");
    let operations = desk.workspace().operations().all().unwrap().len();
    let request = desk.goal(second.prompt, Scope::Both);
    let plan = desk.workspace().rewinds().plan(&request, &NoProgress).unwrap();
    let planned = plan.conversation.unwrap();
    assert_eq!(planned.leaves.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["two", "three"]);
    assert_eq!((planned.to, planned.discards, planned.went_on), (before.head(), false, false));

    let applied = desk.rewind(second.prompt, Scope::Both).unwrap();
    assert_eq!(applied.conversation_moved, Some(true));
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b"), desk.bench.read("c")), (Some("1"), None, None));
    assert_eq!(desk.conversation(), before);
    let made = desk.workspace().operations().all().unwrap();
    assert_eq!(made.len(), operations + 1, "one operation");
    assert!(made[0].kind == OperationKind::Rewind && made[0].moved_head && made[0].session == Some(desk.session));
    assert_eq!(desk.notes(), Vec::<Vec<String>>::new(), "the model knows the files as they are");
}

#[test]
fn a_plan_names_the_prompts_left_before_whose_files_go_back() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    desk.writes("three", "c", "3");
    desk.turn("talk", |_| {});
    desk.rewind(second.prompt, Scope::Conversation).unwrap();
    let fourth = desk.writes("four", "d", "4");
    let session = desk.session;
    let mut named = |request: &RewindRequest| {
        let planned = desk.workspace().rewinds().plan(request, &NoProgress).unwrap().conversation.unwrap();
        let texts = |lines: &[PromptLine]| lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
        (texts(&planned.leaves).join(" "), texts(&planned.left_before).join(" "))
    };
    let goal = |entry, scope| {
        let files = Files::Selective;
        RewindRequest::new(Goal::Entry { session, entry, scope, files, discard: Discard::No })
    };
    let names = |leaves: &str, left_before: &str| (leaves.to_owned(), left_before.to_owned());
    assert_eq!(named(&goal(first.prompt, Scope::Both)), names("one four", "two three"), "not the one that only talked");
    assert_eq!(named(&goal(first.prompt, Scope::Code)), names("", "two three"));
    assert_eq!(named(&goal(first.prompt, Scope::Conversation)), names("one four", ""), "files stay");
    assert_eq!(named(&goal(fourth.prompt, Scope::Both)), names("four", ""), "their files stay");
    let only = RewindRequest { paths: vec![path("c")], ..goal(first.prompt, Scope::Both) };
    assert_eq!(named(&only), names("one four", "three"));
    desk.rewind(first.prompt, Scope::Both).unwrap();
    assert_eq!((desk.bench.read("b"), desk.bench.read("c")), (None, None));
}

#[test]
fn code_leaves_the_conversation_and_conversation_leaves_the_files() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let (before, said) = (desk.conversation(), desk.prompts());
    desk.rewind(first.prompt, Scope::Code).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.prompts()), (Some("0"), said));
    assert_eq!(desk.draft(), [], "what was said has been said");
    desk.undo().unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.conversation()), (Some("1"), before));

    let applied = desk.rewind(first.prompt, Scope::Conversation).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.prompts().len()), (Some("1"), 0));
    assert_eq!((applied.conversation_moved, applied.plan.paths.len()), (Some(true), 0));
    assert_eq!(desk.draft(), [Part::text("one")]);
}

#[test]
fn a_code_rewind_does_not_say_that_the_conversation_moved() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let applied = desk.rewind(first.prompt, Scope::Code).unwrap();
    assert_eq!(applied.conversation_moved, None, "that was not asked for");
}

#[test]
fn an_empty_code_half_is_legal() {
    let mut desk = Desk::new();
    let first = desk.turn("talk", |_| {});
    let applied = desk.rewind(first.prompt, Scope::Both).unwrap();
    assert!(applied.plan.paths.is_empty() && applied.operation.is_some());
    assert_eq!(applied.conversation_moved, Some(true));
    assert_eq!(desk.prompts().len(), 0);
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["talk"]);
}

#[test]
fn going_to_where_one_is_is_no_operation() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let head = desk.conversation().head().unwrap();
    let applied = desk.rewind(head, Scope::Both).unwrap();
    assert_eq!((applied.operation, applied.conversation_moved), (None, None));
    desk.undo().unwrap();
    assert_eq!(desk.prompts().len(), 0, "it is the turn that is undone");
}

#[test]
fn a_head_that_moved_since_the_caller_looked_is_refused() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let seen = desk.conversation().head();
    desk.writes("two", "a", "2");
    let now = desk.conversation().head();
    for scope in [Scope::Both, Scope::Conversation, Scope::Code] {
        let request = RewindRequest { head_seen: Some(HeadSeen(seen)), ..desk.goal(first.prompt, scope) };
        assert!(matches!(desk.apply(&request), Err(RewindError::StaleHead)), "{scope:?}");
        assert_eq!((desk.bench.read("a").as_deref(), desk.conversation().head()), (Some("2"), now));
    }
    let request = RewindRequest { head_seen: Some(HeadSeen(now)), ..desk.goal(first.prompt, Scope::Both) };
    desk.apply(&request).unwrap();
}

#[test]
fn a_plan_that_was_made_before_the_head_moved_is_refused() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let request = desk.goal(first.prompt, Scope::Conversation);
    let plan = desk.workspace().rewinds().plan(&request, &NoProgress).unwrap();
    desk.turn("two", |_| {});
    let new = super::identities(&mut desk.bench);
    let Desk { bench, writer, .. } = &mut desk;
    let refused = bench.workspace.rewinds_mut().apply_in(
        writer.as_mut().unwrap(),
        &request,
        Some(&plan.fingerprint()),
        &new,
        &NoProgress,
    );
    assert!(matches!(refused, Err(RewindError::Stale { .. })), "{refused:?}");
}

#[test]
fn without_its_writer_no_conversation_is_touched() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let request = desk.goal(first.prompt, Scope::Both);
    let refused = desk.bench.apply(&request);
    assert!(matches!(refused, Err(RewindError::SessionNotOpen { .. })), "{refused:?}");
    assert_eq!((desk.bench.read("a").as_deref(), desk.prompts()), (Some("1"), vec!["one".to_owned()]));
}

#[test]
fn a_call_is_never_cut_off_from_its_results() {
    let mut desk = Desk::new();
    let turn = desk.say("two calls");
    let (reply, calls) = desk.reply("both", 2);
    desk.tool(turn, &[], |root| std::fs::write(root.join("a"), "1").unwrap());
    let first = desk.result(&calls[0], "first");
    desk.append(Body::Approved { tool: "bash".to_owned(), prefix: None });
    desk.tool(turn, &["b"], |root| std::fs::write(root.join("b"), "1").unwrap());
    let second = desk.result(&calls[1], "second");
    let settled = desk.conversation();
    desk.reply("and", 0);
    desk.end(turn);
    desk.writes("later", "a", "2");
    for entry in [reply, first, second] {
        desk.rewind(entry, Scope::Both).unwrap();
        assert_eq!(desk.conversation(), settled, "sibling results stay");
        let files = (desk.bench.read("a"), desk.bench.read("b"));
        assert_eq!(files, (Some("1".to_owned()), Some("1".to_owned())), "and so does what they did");
        desk.undo().unwrap();
        assert_eq!(desk.bench.read("a").as_deref(), Some("2"));
    }
}

#[test]
fn only_what_was_said_or_done_is_a_target() {
    let mut desk = Desk::new();
    let instructions = desk.append(Body::Instructions { source: "AGENTS.md".to_owned(), text: "be brief".to_owned() });
    let turn = desk.say("  \n typed \n more");
    let approved = desk.append(Body::Approved { tool: "bash".to_owned(), prefix: None });
    desk.reply("yes", 0);
    desk.end(turn);
    desk.writes("two", "a", "2");
    desk.rewind(turn.prompt, Scope::Code).unwrap();
    let note = desk.conversation().head().unwrap();
    for entry in [instructions, approved, note] {
        let refused = desk.rewind(entry, Scope::Both);
        assert!(matches!(refused, Err(RewindError::NotATarget { .. })), "{refused:?}");
    }
    let unknown = super::EntryId::new([9; 10]);
    assert!(matches!(desk.rewind(unknown, Scope::Both), Err(RewindError::UnknownEntry { .. })));
    let texts: Vec<String> = desk.targets().into_iter().map(|target| target.text).collect();
    assert_eq!(texts, ["two", "typed"], "what was typed, newest first, and nothing else");
}

#[test]
fn a_prompt_can_stay_while_what_came_of_it_goes() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let (said, last) = (desk.conversation(), desk.conversation().head().unwrap());
    let keep = |prompt, scope| {
        let goal =
            Goal::AfterPrompt { session: desk.session, prompt, scope, files: retake_engine::rewind::Files::Selective };
        RewindRequest { made_by: retake_engine::operation::MadeBy::Client, ..RewindRequest::new(goal) }
    };
    let (both, code, wrong) =
        (keep(second.prompt, Scope::Both), keep(second.prompt, Scope::Code), keep(last, Scope::Both));
    desk.apply(&both).unwrap();
    assert_eq!(desk.conversation().head(), Some(second.prompt), "it is the last message, unanswered");
    assert!(!desk.bench.root.join("b").exists(), "files are as they were when it was said");
    assert!(desk.writer().draft().is_empty(), "it was said, so it is not about to be");
    desk.undo().unwrap();
    assert_eq!(desk.conversation().entries(), said.entries());
    desk.apply(&code).unwrap();
    assert!(desk.conversation().entries().starts_with(said.entries()), "only a note follows");
    assert!(matches!(desk.apply(&wrong), Err(RewindError::NotATarget { .. })));
}

#[test]
fn an_entry_of_another_conversation_is_no_target() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let other = conversation(&mut desk.bench);
    let mut writer = open(&mut desk.bench, other).unwrap();
    let goal = Goal::Entry {
        session: other,
        entry: first.prompt,
        scope: Scope::Both,
        files: retake_engine::rewind::Files::Selective,
        discard: Discard::No,
    };
    let new = super::identities(&mut desk.bench);
    let refused =
        desk.workspace().rewinds_mut().apply_in(&mut writer, &RewindRequest::new(goal), None, &new, &NoProgress);
    assert!(matches!(refused, Err(RewindError::UnknownEntry { .. })), "{refused:?}");
}

#[test]
fn edits_of_others_are_kept_or_decided_on_before_anything_moves() {
    let mut desk = Desk::new();
    let first = desk.turn("one", |root| {
        std::fs::write(root.join("a"), "1").unwrap();
        std::fs::write(root.join("b"), "1").unwrap();
    });
    desk.bench.write("mine", "typed by hand");
    let other = desk.bench.session();
    desk.bench.tool(other, &["theirs"], |root| std::fs::write(root.join("theirs"), "x").unwrap());
    desk.bench.write("b", "edited by hand");
    let said = desk.conversation();
    let refused = desk.rewind(first.prompt, Scope::Both);
    assert_eq!(conflicts(refused), [("b".to_owned(), Conflict::ChangedSince)]);
    assert_eq!((desk.conversation(), desk.bench.read("a").as_deref()), (said, Some("1")), "neither half");

    let request = RewindRequest { on_conflict: OnConflict::Keep, ..desk.goal(first.prompt, Scope::Both) };
    desk.apply(&request).unwrap();
    assert_eq!(desk.prompts().len(), 0);
    let read = |name: &str| desk.bench.read(name).unwrap_or_default();
    assert_eq!([read("a"), read("b"), read("mine"), read("theirs")], ["0", "edited by hand", "typed by hand", "x"]);
}

#[test]
fn one_can_go_to_a_branch_that_was_left() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let left = desk.conversation();
    let end = left.head().unwrap();
    desk.rewind(first.prompt, Scope::Both).unwrap();
    desk.writes("other", "a", "other");
    let request = desk.goal(end, Scope::Both);
    let planned = desk.workspace().rewinds().plan(&request, &NoProgress).unwrap().conversation.unwrap();
    assert_eq!((planned.leaves.len(), planned.returns.len()), (1, 2));
    desk.rewind(end, Scope::Conversation).unwrap();
    let entries = desk.conversation();
    assert_eq!(entries.entries()[..left.entries().len()], *left.entries());
    desk.rewind(second.prompt, Scope::Conversation).unwrap();
    assert_eq!(desk.prompts(), ["one"]);
    assert_eq!(desk.bench.read("a").as_deref(), Some("other"));
}

#[test]
fn what_a_background_job_did_after_the_prompt_goes_back_with_it() {
    let mut desk = Desk::new();
    let first = desk.say("start the job");
    let window = retake_engine::window::NewWindow {
        session: desk.session,
        turn: None,
        tool: "bash: job &".to_owned(),
        reach: retake_engine::window::Reach::Everything,
        declared: vec![path("job")],
        operation: retake_engine::window::PartOf::Turn(first.operation),
    };
    let new = crate::scanners::numbered(desk.bench.tick());
    let began = desk.workspace().windows().begin(window, new, &NoProgress).unwrap();
    desk.bench.write("job", "1");
    desk.reply("started", 0);
    desk.end(first);
    let second = desk.say("and now?");
    desk.bench.write("job", "2");
    let new = crate::scanners::numbered(desk.bench.tick());
    desk.workspace().windows().end(began.window, new, retake_engine::Durability::Soon, &NoProgress).unwrap();
    desk.reply("it has ended", 0);
    desk.end(second);
    desk.rewind(second.prompt, Scope::Both).unwrap();
    assert_eq!(desk.bench.read("job").as_deref(), Some("1"), "as it was when the prompt was said");
}

#[test]
fn discarding_makes_the_conversation_half_final_and_removes_what_was_said() {
    for scope in [Scope::Both, Scope::Conversation] {
        let mut desk = Desk::new();
        let first = desk.writes("one", "a", "1");
        let kept = desk.conversation();
        let second = desk.writes("two", "a", "2");
        let mut request = desk.goal(second.prompt, scope);
        let Goal::Entry { discard, .. } = &mut request.goal else { unreachable!() };
        *discard = Discard::Now;
        let plan = desk.workspace().rewinds().plan(&request, &NoProgress).unwrap();
        assert!(plan.conversation.unwrap().discards, "the plan says so");
        desk.apply(&request).unwrap();
        desk.reopen();
        let said = desk.bench.workspace.sessions().all_entries(desk.session).unwrap();
        let prompts = said.iter().filter(|entry| matches!(entry.body, Body::Prompt { .. })).count();
        assert_eq!((prompts, desk.prompts()), (1, vec!["one".to_owned()]), "only the first was kept");
        assert!(matches!(desk.rewind(second.prompt, scope), Err(RewindError::UnknownEntry { .. })));
        match scope {
            Scope::Conversation => assert!(matches!(desk.undo(), Err(RewindError::Discarded { .. }))),
            _ => assert!(desk.undo().unwrap().operation.is_some()),
        }
        assert_eq!(desk.prompts(), ["one"], "what was said does not come back");
        assert_eq!(desk.bench.read("a").as_deref(), Some("2"), "the files do");
        desk.rewind(first.prompt, Scope::Conversation).unwrap();
        assert_eq!(desk.conversation().entries().iter().filter(|e| kept.entries().contains(e)).count(), 0);
    }
}

#[test]
fn what_was_discarded_is_in_no_file_of_the_store() {
    for scope in [Scope::Both, Scope::Conversation] {
        let mut desk = Desk::new();
        desk.writes("one", "a", "1");
        let second = desk.writes("two", "a", "2");
        let long = "SECRET ".repeat(2_000);
        desk.writer().set_draft(vec![Part::text(format!("three\n{long}"))]).unwrap();
        let turn = desk.say(&format!("three\n{long}"));
        desk.tool_called(turn, "bash: echo SECRET", |root| std::fs::write(root.join("a"), "3").unwrap());
        desk.reply(&long, 0);
        desk.end(turn);
        assert!(is_stored(&desk.bench.root.with_file_name("store"), b"SECRET"));
        let mut request = desk.goal(second.prompt, scope);
        let Goal::Entry { discard, .. } = &mut request.goal else { unreachable!() };
        *discard = Discard::Now;
        desk.apply(&request).unwrap();
        assert!(!is_stored(&desk.bench.root.with_file_name("store"), b"SECRET"), "{scope:?}");
    }
}

#[test]
fn an_undo_of_what_was_discarded_says_that_it_is_gone() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let mut request = desk.goal(second.prompt, Scope::Conversation);
    let Goal::Entry { discard, .. } = &mut request.goal else { unreachable!() };
    *discard = Discard::Now;
    let rewound = desk.apply(&request).unwrap().operation;
    for operation in [rewound, Some(second.operation)] {
        let goal = Goal::Undo { operation, session: None };
        let plan = desk.workspace().rewinds().plan(&RewindRequest::new(goal), &NoProgress).unwrap();
        let planned = plan.conversation.unwrap();
        assert_eq!((planned.removed, planned.went_on), (true, false), "{}", plan.what);
    }
}

#[test]
fn a_code_rewind_discards_nothing() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let mut request = desk.goal(first.prompt, Scope::Code);
    let Goal::Entry { discard, .. } = &mut request.goal else { unreachable!() };
    *discard = Discard::Now;
    desk.apply(&request).unwrap();
    assert_eq!(desk.prompts(), ["one"]);
    desk.undo().unwrap();
    assert_eq!((desk.prompts(), desk.bench.read("a").as_deref()), (vec!["one".to_owned()], Some("1")));
}

#[test]
fn a_late_checkpoint_belongs_to_the_entry_that_it_names() {
    let mut desk = Desk::new();
    let first = desk.begin(vec![Part::text("one")]);
    desk.reply("quick", 0);
    let end = desk.entry(Body::Ended { reason: retake_engine::session::entry::EndReason::Done });
    desk.writer().end_turn(first.operation, end).unwrap();
    let second = desk.begin(vec![Part::text("two")]);
    // Both come after the second prompt.
    desk.point(Moment { session: desk.session, entry: Some(first.prompt), origin: Origin::Prompt });
    desk.point(Moment { session: desk.session, entry: Some(second.prompt), origin: Origin::Prompt });
    let (_, calls) = desk.reply("on it", 1);
    desk.tool(second, &["a"], |root| std::fs::write(root.join("a"), "2").unwrap());
    desk.append(result(&calls[0], "written"));
    desk.end(second);
    assert!(desk.targets().iter().all(|target| target.has_files));
    desk.rewind(second.prompt, Scope::Both).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.prompts()), (Some("0"), vec!["one".to_owned()]));
}
