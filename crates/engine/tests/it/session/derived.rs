//! What follows from the retained entries: context, usage, todo list, approvals, title, targets.

use retake_engine::session::Conversation;
use retake_engine::session::Scope;
use retake_engine::session::context::Message;
use retake_engine::session::entry::{Body, Outcome, Part, Todo, TodoState};

use super::{Desk, EntryId};

fn todo(desk: &mut Desk, text: &str) -> EntryId {
    let (_, calls) = desk.reply("todo", 1);
    let todos = vec![Todo { text: text.to_owned(), state: TodoState::Active }];
    desk.append(Body::ToolResult {
        call: calls[0].clone(),
        title: "todo".to_owned(),
        outcome: Outcome::Done,
        parts: vec![Part::text("noted")],
        todos: Some(todos),
        details: None,
    })
}

#[test]
fn everything_derived_is_worked_out_anew() {
    let mut desk = Desk::new();
    let first = desk.say("first prompt\nwith a second line");
    todo(&mut desk, "one");
    desk.append(Body::Approved { tool: "bash".to_owned(), prefix: Some("npm".to_owned()) });
    desk.end(first);
    let derived = |desk: &Desk| {
        let now = desk.conversation();
        (now.usage(), now.todos().to_vec(), now.approvals(), now.title(), format!("{:?}", now.context()))
    };
    let after_first = derived(&desk);
    assert_eq!((after_first.0.input, after_first.0.cost), (10, Some(0.25)));
    assert_eq!((after_first.1[0].text.as_str(), after_first.2.len()), ("one", 1));
    let second = desk.say("second");
    todo(&mut desk, "two");
    desk.append(Body::Approved { tool: "edit_file".to_owned(), prefix: None });
    desk.reply("done", 0);
    desk.end(second);
    let after_second = derived(&desk);
    assert_eq!((after_second.0.input, after_second.1[0].text.as_str(), after_second.2.len()), (30, "two", 2));
    desk.rewind(second.prompt, Scope::Both).unwrap();
    assert_eq!(derived(&desk), after_first);
    desk.undo().unwrap();
    assert_eq!(derived(&desk), after_second);
    desk.rewind(first.prompt, Scope::Both).unwrap();
    assert_eq!((derived(&desk).0, derived(&desk).1, derived(&desk).3), Default::default());
    let other = desk.say("another beginning");
    desk.end(other);
    assert_eq!(desk.conversation().title(), "another beginning");
    desk.assert_one_truth();
    desk.reopen();
    desk.assert_one_truth();
}

#[test]
fn retained_messages_are_those_of_the_earlier_request() {
    let mut desk = Desk::new();
    desk.append(Body::Instructions { source: "retake".to_owned(), text: "You are an agent.".to_owned() });
    desk.append(Body::Instructions { source: "AGENTS.md".to_owned(), text: "Be brief.".to_owned() });
    let mut sent = Vec::new();
    let mut prompts = Vec::new();
    for number in 0..4 {
        sent.push(desk.conversation());
        prompts.push(desk.writes(&format!("turn {number}"), "a", &number.to_string()).prompt);
    }
    let sent: Vec<_> = sent.iter().map(Conversation::context).collect();
    let all = desk.conversation();
    let whole = all.context();
    for (number, prompt) in prompts.iter().enumerate().rev() {
        desk.rewind(*prompt, Scope::Both).unwrap();
        assert_eq!(desk.conversation().context(), sent[number]);
        desk.reopen();
        assert_eq!(desk.conversation().context(), sent[number]);
        assert_eq!(whole.messages[..sent[number].messages.len()], sent[number].messages);
    }
    for _ in 0..4 {
        desk.undo().unwrap();
    }
    assert_eq!(desk.conversation().context(), whole);
    desk.rewind(prompts[2], Scope::Conversation).unwrap();
    let now = desk.conversation();
    assert_eq!(
        now.context().messages[..sent[2].messages.len()],
        sent[2].messages,
        "the note comes after what is retained"
    );
}

#[test]
fn summaries_and_clears_are_projections_that_one_can_go_back_across() {
    let mut desk = Desk::new();
    desk.append(Body::Instructions { source: "AGENTS.md".to_owned(), text: "Be brief.".to_owned() });
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let plain = desk.conversation();
    let (from, to) = (first.prompt, plain.head().unwrap());
    let summary = desk.append(Desk::summary(from, to, "wrote a twice"));
    let third = desk.writes("three", "a", "3");
    let summarised = desk.conversation();
    let messages = summarised.context().messages;
    assert!(matches!(&messages[1], Message::User { parts } if format!("{parts:?}").contains("wrote a twice")));
    assert_eq!(messages.len(), 2 + 4, "instructions, summary, and the turn after it: {messages:?}");
    assert_eq!(summarised.entries()[..plain.entries().len()], *plain.entries(), "the log is intact");
    let cleared = desk.clear();
    assert_eq!(desk.conversation().context().messages.len(), 1, "instructions stay");
    let fourth = desk.writes("four", "a", "4");
    assert_eq!(desk.targets().len(), 4, "every prompt is still a target");

    desk.rewind(fourth.prompt, Scope::Both).unwrap();
    assert_eq!(desk.conversation().head(), Some(cleared));
    desk.rewind(third.prompt, Scope::Both).unwrap();
    assert_eq!((desk.conversation().head(), desk.bench.read("a").as_deref()), (Some(summary), Some("2")));
    desk.rewind(second.prompt, Scope::Both).unwrap();
    assert_eq!((desk.prompts(), desk.bench.read("a").as_deref()), (vec!["one".to_owned()], Some("1")));
    assert_eq!(desk.conversation().context().messages.len(), 1 + 4, "said in full again");
    for _ in 0..3 {
        desk.undo().unwrap();
    }
    desk.rewind(summary, Scope::Both).unwrap();
    assert_eq!((desk.conversation().head(), desk.bench.read("a").as_deref()), (Some(summary), Some("2")));
    desk.undo().unwrap();
    desk.undo().unwrap();
    desk.undo().unwrap();
    assert_eq!(desk.conversation(), summarised, "the last turn and the clear are taken back");
}

#[test]
fn a_summary_that_begins_within_a_round_is_not_lost() {
    let mut desk = Desk::new();
    let turn = desk.say("one");
    let (_, calls) = desk.reply("two calls", 2);
    let from = desk.result(&calls[0], "first");
    let to = desk.result(&calls[1], "second");
    desk.append(Desk::summary(from, to, "the gist"));
    desk.end(turn);
    let told = format!("{:?}", desk.conversation().context());
    assert!(told.contains("the gist"), "{told}");
}

#[test]
fn the_newest_turn_is_offered_at_once() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let turn = desk.begin(vec![Part::text("two")]);
    let newest = desk.targets().remove(0);
    assert_eq!(
        (newest.id, newest.number, newest.has_files),
        (turn.prompt, 2, true),
        "before any checkpoint of its own"
    );
    let (_, calls) = desk.reply("on it", 1);
    desk.tool(turn, &["b"], |root| std::fs::write(root.join("b"), "2").unwrap());
    desk.result(&calls[0], "written");
    assert_eq!(desk.targets()[0].files.added, 1, "before it has ended");
    desk.end(turn);
    let newest = desk.targets().remove(0);
    assert_eq!((newest.files.added, newest.files.tools), (1, vec!["edit_file".to_owned()]));
    assert!(!newest.files.ran_commands);
    desk.rewind(turn.prompt, Scope::Both).unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b")), (Some("1"), None));
    assert_eq!(desk.targets().len(), 1);
}

#[test]
fn a_target_tells_what_its_turn_did() {
    let mut desk = Desk::new();
    desk.turn("one", |root| {
        std::fs::write(root.join("a"), "1").unwrap();
        std::fs::write(root.join("b"), "1").unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
    });
    desk.bench.write("by-hand", "x");
    desk.turn("two", |root| {
        std::fs::remove_file(root.join("a")).unwrap();
        std::fs::write(root.join("b"), "2").unwrap();
    });
    let targets = desk.targets();
    let counts = |at: usize| (targets[at].files.added, targets[at].files.modified, targets[at].files.deleted);
    assert_eq!((counts(1), counts(0)), ((1, 1, 0), (0, 1, 1)));
    assert!(targets.iter().all(|target| target.files.ran_commands && target.files.tools == ["bash: work"]));
}

#[test]
fn a_target_warns_of_effects_that_are_known_to_be_outside_the_files() {
    let mut desk = Desk::new();
    let git = |root: &std::path::Path, arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let mut command = std::process::Command::new("git");
        command.current_dir(root).args(identity).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.output().expect("git runs").status.success(), "{arguments:?}");
    };
    desk.bench.write("a", "1");
    git(&desk.bench.root.clone(), &["init", "-q"]);
    git(&desk.bench.root.clone(), &["add", "a"]);
    let kinds =
        |desk: &Desk| -> Vec<String> { desk.targets()[0].files.outside.iter().map(|item| item.kind.clone()).collect() };
    let mut turn = |tool: &str, work: &dyn Fn(&std::path::Path)| {
        let turn = desk.say(tool);
        let (_, calls) = desk.reply("on it", 1);
        desk.tool_called(turn, tool, work);
        desk.result(&calls[0], "done");
        desk.end(turn);
        kinds(&desk)
    };
    let none: [&str; 0] = [];
    assert_eq!(turn("bash: test -f a", &|_| {}), none, "that a command ran is no warning");
    let refresh = |root: &std::path::Path| {
        std::fs::write(root.join("a"), "2").unwrap();
        git(root, &["status"]);
    };
    assert_eq!(turn("bash: git status", &refresh), none, "git only refreshed its index");
    assert_eq!(turn("bash: git add a", &|root| git(root, &["add", "a"])), ["git"]);
    assert_eq!(turn("bash: git commit", &|root| git(root, &["commit", "-qm", "x"])), ["git"]);
    let fifo = |root: &std::path::Path| {
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    };
    assert_eq!(turn("bash: mkfifo pipe", &fifo), ["gap"]);
    assert_eq!(turn("bash: ls", &|_| {}), none, "the gap is not of this turn");
    assert_eq!(turn("bash: touch /tmp", &|_| {}), ["path"]);
    let session = desk.session;
    let tree = desk.workspace().sessions().prompt_tree(session).unwrap();
    let listed: Vec<_> = tree.prompts.into_iter().rev().map(|prompt| prompt.files.unwrap_or_default()).collect();
    let targets: Vec<_> = desk.targets().into_iter().map(|target| target.files).collect();
    assert_eq!(listed, targets, "list and tree agree");
}
