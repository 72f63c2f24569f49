//! The scenarios, each told once. See [`scenarios!`](crate::scenarios) for the list.

#![allow(missing_docs, reason = "a scenario's name says what holds")]

use std::fs;

use serde_json::json;

use super::{Change, ChangeOutcome, ChangeRefused, Consent, Goal, TestClient};
use crate::model::Received;

/// Says something and waits for the end of its turn, which nobody stops: the prompt.
fn turn(door: &mut impl TestClient, text: &str) -> String {
    door.say(text);
    let ended = door.until_ended();
    assert!(!ended.cancelled, "{:?}", door.model().complaints());
    ended.prompt
}

/// A turn that writes a file: `write a.txt`, answered by `wrote a.txt`.
fn writes(door: &mut impl TestClient, path: &str, content: &str) -> String {
    door.model().calls("write_file", json!({ "path": path, "content": content }));
    door.model().says(&format!("wrote {path}"));
    turn(door, &format!("write {path}"))
}

/// Two turns that wrote `a.txt` and `b.txt`: the prompts.
fn two_turns(door: &mut impl TestClient) -> [String; 2] {
    [writes(door, "a.txt", "first\n"), writes(door, "b.txt", "second\n")]
}

/// All files of the workspace: `a.txt: first\n`.
fn files(door: &impl TestClient) -> String {
    let entries = fs::read_dir(door.root()).expect("a workspace").map(|entry| entry.expect("an entry"));
    let line = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).expect("a text");
        format!("{}: {text}", entry.file_name().display())
    };
    let mut lines: Vec<String> = entries.map(line).collect();
    lines.sort();
    lines.concat()
}

fn write(door: &impl TestClient, path: &str, content: &str) {
    fs::write(door.root().join(path), content).expect("a file");
}

fn texts(door: &mut impl TestClient) -> Vec<String> {
    door.history().into_iter().map(|message| message.text).collect()
}

/// The request with which the model was first sent `text` as the newest prompt.
fn request_with(door: &impl TestClient, text: &str) -> Received {
    let is_it = |request: &Received| request.messages().last().is_some_and(|last| last.contains(text));
    door.model().requests().into_iter().find(is_it).unwrap_or_else(|| panic!("`{text}` was never asked"))
}

/// Says something new and gives what the model was sent with it.
fn next_request(door: &mut impl TestClient) -> Received {
    door.model().says("and so on");
    turn(door, "go on");
    request_with(door, "go on")
}

/// The messages before the newest prompt are byte for byte those that the model was sent with `prompt`, of which there is no word.
fn is_as_before(door: &mut impl TestClient, prompt: &str) {
    let (then, now) = (request_with(door, prompt), next_request(door));
    let (mut then, mut now) = (then.messages(), now.messages());
    then.pop();
    let last = now.pop().expect("a prompt");
    assert_eq!(now, then, "what is retained is what was said");
    assert!(!last.contains(prompt), "{last}");
}

fn apply(door: &mut impl TestClient, goal: Goal<'_>) -> ChangeOutcome {
    door.change(&Change::new(goal)).expect("it is made")
}

fn refused(door: &mut impl TestClient, change: &Change<'_>) -> ChangeRefused {
    door.change(change).expect_err("it is refused")
}

pub fn an_answer_comes_and_is_still_there_when_the_session_is_loaded(door: &mut impl TestClient) {
    door.model().thinks("hm").says("Hello ").says("there");
    let prompt = turn(door, "hi");
    let shown = door.history();
    let [said, answer] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((said.role, said.id.as_str(), said.text.as_str()), ("user", prompt.as_str(), "hi"));
    assert_eq!((answer.role, answer.text.as_str()), ("agent", "Hello there"));
    door.reload();
    assert_eq!(door.history(), shown, "with the same ids");
    let sent = next_request(door).transcript();
    assert!(sent.ends_with("user: hi\nassistant: [thought hm] Hello there\nuser: go on"), "{sent}");
}

pub fn tools_change_files_and_the_model_is_told_what_came_of_them(door: &mut impl TestClient) {
    write(door, "a.txt", "one\ntwo\n");
    door.model().says("I will.").calls("edit_file", json!({ "path": "a.txt", "old": "two", "new": "2" }));
    door.model().calls("bash", json!({ "command": "echo quicksilver | tee b.txt" }));
    door.model().says("done");
    turn(door, "edit");
    assert_eq!(files(door), "a.txt: one\n2\nb.txt: quicksilver\n");
    assert_eq!(texts(door), ["edit", "I will.", "done"]);
    let sent = next_request(door).transcript();
    let of_command = sent.lines().find(|line| line.starts_with("tool: quicksilver"));
    assert!(of_command.is_some(), "the model is told what the command printed: {sent}");
}

pub fn what_is_allowed_runs_and_what_is_rejected_does_not(door: &mut impl TestClient) {
    for (answer, path) in [(Consent::Allow, "a.txt"), (Consent::Reject, "b.txt")] {
        door.model().calls("write_file", json!({ "path": path, "content": "x\n" }));
        door.model().says("I see");
        door.say(&format!("write {path}"));
        let asked = door.until_asked();
        assert!(asked.contains(path), "{asked}");
        assert!(!door.root().join(path).exists(), "nothing is written before it is allowed");
        door.answer(answer);
        assert!(!door.until_ended().cancelled);
    }
    assert_eq!(files(door), "a.txt: x\n");
    let sent = next_request(door).transcript();
    let results: Vec<_> = sent.lines().filter(|line| line.starts_with("tool: ")).collect();
    assert_eq!(results.len(), 2, "{sent}");
    assert_ne!(results[0].replace("a.txt", "b.txt"), results[1], "the model is told that it was rejected");
}

pub fn a_turn_that_is_stopped_keeps_what_was_said(door: &mut impl TestClient) {
    let gate = door.model().says_slowly(["Once upon", " a time"]);
    door.say("tell");
    door.until_words("Once upon");
    gate.wait_until_reached();
    door.cancel();
    assert!(door.until_ended().cancelled);
    assert_eq!(texts(door), ["tell", "Once upon"]);
    let sent = next_request(door).transcript();
    assert!(sent.contains("user: tell\nassistant: Once upon") && !sent.contains("a time"), "{sent}");
}

pub fn a_turn_that_is_stopped_before_any_word_leaves_nothing(door: &mut impl TestClient) {
    let gate = door.model().says("never").pauses();
    door.say("tell");
    gate.wait_until_reached();
    door.cancel();
    assert!(door.until_ended().cancelled);
    assert_eq!(door.history(), []);
    let sent = next_request(door).transcript();
    assert!(!sent.contains("tell\n") && sent.ends_with("user: go on"), "{sent}");
}

pub fn a_turn_that_is_stopped_while_it_asks_runs_nothing(door: &mut impl TestClient) {
    door.model().says("I will.").calls("bash", json!({ "command": "echo hi > a.txt" }));
    door.say("run");
    door.until_asked();
    door.cancel();
    assert!(door.until_ended().cancelled);
    assert_eq!(files(door), "");
    assert_eq!(texts(door), ["run", "I will."]);
    let sent = next_request(door).transcript();
    assert!(sent.contains("\ntool: "), "the call has a result, else the model would refuse: {sent}");
}

pub fn a_fork_goes_its_own_way_and_the_session_stays_as_it_is(door: &mut impl TestClient) {
    writes(door, "a.txt", "first\n");
    let (parent, shown) = (door.session(), door.history());
    let fork = door.fork(None);
    door.enter(&fork);
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt"]);
    door.model().says("elsewhere");
    turn(door, "another way");
    let sent = request_with(door, "another way").transcript();
    assert!(sent.contains("wrote a.txt"), "{sent}");
    door.enter(&parent);
    assert_eq!(door.history(), shown);
    let sent = next_request(door).transcript();
    assert!(sent.contains("wrote a.txt") && !sent.contains("elsewhere"), "{sent}");
    assert_eq!(files(door), "a.txt: first\n");
}

pub fn a_fork_from_the_past_begins_before_the_prompt(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    let parent = door.session();
    let fork = door.fork(Some(&second));
    door.enter(&fork);
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt"]);
    door.model().says("elsewhere");
    turn(door, "another way");
    let sent = request_with(door, "another way").transcript();
    assert!(sent.contains("wrote a.txt") && !sent.contains("write b.txt"), "{sent}");
    assert!(sent.contains("- b.txt"), "the files stay, and the model is told which it does not know: {sent}");
    assert_eq!(files(door), "a.txt: first\nb.txt: second\n");
    door.enter(&parent);
    assert_eq!(texts(door).len(), 4);
}

pub fn an_exclusive_rewind_takes_the_prompt_what_came_of_it_and_its_files(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    let outcome = apply(door, Goal::Before(&second));
    let shown = door.history();
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt"]);
    let wanted = ChangeOutcome {
        last: shown.last().map(|message| message.id.clone()),
        said: Some("write b.txt".to_owned()),
        deleted: vec!["b.txt".to_owned()],
        operation: true,
        ..ChangeOutcome::default()
    };
    assert_eq!(outcome, wanted);
    assert_eq!(files(door), "a.txt: first\n");
    is_as_before(door, "write b.txt");
    door.reload();
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt", "go on", "and so on"], "what went does not come back");
}

pub fn an_inclusive_rewind_keeps_the_prompt_and_takes_what_came_of_it(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    let outcome = apply(door, Goal::To(&second));
    assert_eq!((outcome.last.as_deref(), outcome.said), (Some(second.as_str()), None));
    assert_eq!(files(door), "a.txt: first\n", "files are as they were when it was said");
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt", "write b.txt"]);
    let sent = next_request(door).transcript();
    assert!(sent.contains("write b.txt") && !sent.contains("wrote b.txt"), "{sent}");
    door.reload();
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt", "write b.txt", "go on", "and so on"]);
}

pub fn an_inclusive_rewind_to_an_answer_keeps_the_answer(door: &mut impl TestClient) {
    two_turns(door);
    let answer = door.history().remove(1).id;
    let outcome = apply(door, Goal::To(&answer));
    assert_eq!((outcome.last, outcome.said), (Some(answer), None));
    assert_eq!(files(door), "a.txt: first\n");
    assert_eq!(texts(door), ["write a.txt", "wrote a.txt"]);
    is_as_before(door, "write b.txt");
}

pub fn a_rewind_to_before_the_first_message_leaves_nothing(door: &mut impl TestClient) {
    let [first, _] = two_turns(door);
    let outcome = apply(door, Goal::Before(&first));
    assert_eq!(outcome.last, None);
    assert_eq!(outcome.deleted, ["a.txt", "b.txt"]);
    assert_eq!((files(door), door.history()), (String::new(), Vec::new()));
    door.reload();
    assert_eq!(door.history(), []);
    is_as_before(door, "write a.txt");
}

pub fn one_half_goes_back_and_the_model_is_told_of_the_other(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    let code = Change { scope: "code", ..Change::new(Goal::Before(&second)) };
    assert_eq!(door.change(&code).expect("it is made").deleted, ["b.txt"]);
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: first\n", 4));
    apply(door, Goal::Undo);
    assert_eq!(files(door), "a.txt: first\nb.txt: second\n");
    let words = Change { scope: "conversation", ..Change::new(Goal::Before(&second)) };
    assert_eq!(door.change(&words).expect("it is made").deleted, [""; 0]);
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: first\nb.txt: second\n", 2));
    let sent = next_request(door).transcript();
    assert!(
        !sent.contains("write b.txt") && sent.contains("- b.txt"),
        "the model is told what it does not know: {sent}"
    );
}

pub fn a_rewind_in_the_middle_of_a_turn_stops_it_or_is_refused(door: &mut impl TestClient) {
    let first = writes(door, "a.txt", "first\n");
    let gate = door.model().says_slowly(["On my way", " there"]);
    door.say("and then");
    door.until_words("On my way");
    gate.wait_until_reached();
    let why = refused(door, &Change::new(Goal::Before(&first)));
    assert_eq!((why.reason.as_str(), files(door).as_str()), ("running", "a.txt: first\n"));
    let interrupting = Change { interrupt: true, ..Change::new(Goal::Before(&first)) };
    assert_eq!(door.change(&interrupting).expect("it is made").last, None);
    assert_eq!((files(door), door.history()), (String::new(), Vec::new()));
    is_as_before(door, "write a.txt");
}

pub fn a_prompt_is_edited_and_the_old_one_is_gone(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    door.model().says("instead");
    door.edit(&second, "write nothing");
    let ended = door.until_ended();
    assert!(!ended.cancelled);
    assert_ne!(ended.prompt, second);
    assert_eq!(files(door), "a.txt: first\n");
    let shown = door.history();
    assert_eq!(
        shown.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(),
        ["write a.txt", "wrote a.txt", "write nothing", "instead"]
    );
    assert_eq!(shown[2].id, ended.prompt);
    let (then, now) = (request_with(door, "write b.txt"), request_with(door, "write nothing"));
    assert_eq!(then.messages().split_last().map(|(_, kept)| kept), now.messages().split_last().map(|(_, kept)| kept));
}

pub fn a_head_that_has_moved_on_is_refused(door: &mut impl TestClient) {
    let first = writes(door, "a.txt", "first\n");
    let head = door.head();
    let change = Change { seen: head.as_deref(), ..Change::new(Goal::Before(&first)) };
    writes(door, "b.txt", "second\n");
    assert_eq!(refused(door, &change).reason, "stale_head");
    assert_eq!(files(door), "a.txt: first\nb.txt: second\n");
    let sent = next_request(door).transcript();
    assert!(sent.contains("wrote b.txt"), "nothing was changed: {sent}");
    let head = door.head();
    door.change(&Change { seen: head.as_deref(), ..change }).expect("it is where the client saw it");
    assert_eq!(files(door), "");
}

pub fn a_large_file_that_changed_is_named_when_it_does_not_go_back(door: &mut impl TestClient) {
    let big = door.root().join("big.dat");
    let resize = |len: u64| {
        let file = fs::File::options().write(true).create(true).truncate(false).open(&big);
        file.expect("a file").set_len(len).expect("a sparse file");
    };
    resize(100 << 20);
    let prompt = writes(door, "a.txt", "x\n");
    resize(90 << 20);
    let plan = door.change(&Change { dry_run: true, ..Change::new(Goal::Before(&prompt)) }).expect("it can be made");
    assert_eq!(plan.not_restored, ["big.dat"]);
    let back = apply(door, Goal::Before(&prompt));
    assert_eq!((&back.deleted[..], &back.not_restored[..]), (&["a.txt".to_owned()][..], &["big.dat".to_owned()][..]));
    assert_eq!(apply(door, Goal::Undo).not_restored, [""; 0], "the rewind had not touched it");
}

pub fn conflicts_stop_everything_until_they_are_decided(door: &mut impl TestClient) {
    write(door, "a.txt", "mine\n");
    door.model().calls("edit_file", json!({ "path": "a.txt", "old": "mine", "new": "its" }));
    door.model().says("edited");
    let prompt = turn(door, "edit");
    write(door, "a.txt", "mine again\n");
    let change = Change::new(Goal::Before(&prompt));
    let why = refused(door, &change);
    assert_eq!((why.reason.as_str(), &why.conflicts[..]), ("conflicts", &["a.txt".to_owned()][..]));
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: mine again\n", 2), "nothing was changed");
    let kept = door.change(&Change { on_conflict: "keep", ..change }).expect("it is decided");
    assert_eq!((&kept.kept[..], &kept.not_restored[..]), (&["a.txt".to_owned()][..], &["a.txt".to_owned()][..]));
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: mine again\n", 0));
    apply(door, Goal::Undo);
    let overwritten = door.change(&Change { on_conflict: "overwrite", ..change }).expect("it is decided");
    assert_eq!(overwritten.restored, ["a.txt"]);
    assert_eq!(files(door), "a.txt: mine\n");
    apply(door, Goal::Undo);
    assert_eq!(files(door), "a.txt: mine again\n", "what was overwritten comes back");
    let sent = next_request(door).transcript();
    assert!(sent.contains("user: edit\n"), "{sent}");
}

pub fn a_dry_run_tells_all_and_changes_nothing(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    let change = Change::new(Goal::Before(&second));
    let plan = door.change(&Change { dry_run: true, ..change }).expect("it is worked out");
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: first\nb.txt: second\n", 4));
    let made = door.change(&change).expect("it is made");
    assert_eq!(plan, ChangeOutcome { operation: false, ..made }, "what was told is what is done");
    apply(door, Goal::Undo);
    let sent = next_request(door).transcript();
    assert!(sent.contains("wrote b.txt"), "{sent}");
}

pub fn undo_and_redo_bring_both_halves_back_and_forth(door: &mut impl TestClient) {
    let [_, second] = two_turns(door);
    let shown = door.history();
    apply(door, Goal::Before(&second));
    let undone = apply(door, Goal::Undo);
    assert_eq!(undone.last, shown.last().map(|message| message.id.clone()));
    assert_eq!((files(door).as_str(), door.history()), ("a.txt: first\nb.txt: second\n", shown));
    apply(door, Goal::Redo);
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: first\n", 2));
    assert_eq!(refused(door, &Change::new(Goal::Redo)).reason, "nothing");
    is_as_before(door, "write b.txt");
}

pub fn a_turn_is_undone_and_redone_across_a_restart(door: &mut impl TestClient) {
    two_turns(door);
    let shown = door.history();
    let undone = apply(door, Goal::Undo);
    assert_eq!((undone.deleted, undone.said.as_deref()), (vec!["b.txt".to_owned()], Some("write b.txt")));
    door.reload();
    assert_eq!((files(door).as_str(), texts(door).len()), ("a.txt: first\n", 2));
    apply(door, Goal::Redo);
    assert_eq!((files(door).as_str(), door.history()), ("a.txt: first\nb.txt: second\n", shown));
    assert!(next_request(door).transcript().contains("wrote b.txt"));
}

pub fn a_point_that_there_is_not_is_refused(door: &mut impl TestClient) {
    writes(door, "a.txt", "first\n");
    for goal in [Goal::Before("00000000000000000000"), Goal::To("00000000000000000000")] {
        assert_eq!(refused(door, &Change::new(goal)).reason, "not_found");
    }
    assert_eq!(files(door), "a.txt: first\n");
    assert!(next_request(door).transcript().contains("wrote a.txt"), "nothing was changed");
}
