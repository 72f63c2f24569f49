//! Forks: a session that starts from an entry of another, while that one goes on, is rewound or deleted.

#[cfg(feature = "faults")]
mod crash;
mod elsewhere;
mod heirs;
mod owned;
mod undo;

use retake_engine::id::EntryId;
use retake_engine::id::{CheckpointId, OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::session::entry::{Body, Part};
use retake_engine::session::{Conversation, ForkError, Forked, NewFork};
use retake_engine::session::{ForkedFrom, Scope, SessionWriter};

use super::{Desk, bytes, now, open};

impl Desk {
    /// Forks from an entry of the desk's own session.
    pub(crate) fn fork(&mut self, entry: EntryId) -> Result<Forked, ForkError> {
        self.fork_of(self.session, entry)
    }

    pub(crate) fn fork_of(&mut self, session: SessionId, entry: EntryId) -> Result<Forked, ForkError> {
        let new = new_fork(self);
        self.bench.workspace.sessions_mut().fork(session, entry, &new, &NoProgress)
    }

    /// Goes on in another session, and returns the one that it was in with its writer.
    pub(crate) fn move_to(&mut self, session: SessionId) -> (SessionId, Option<SessionWriter>) {
        let writer = open(&mut self.bench, session).unwrap();
        (std::mem::replace(&mut self.session, session), self.writer.replace(writer))
    }

    pub(crate) fn said(&self, session: SessionId) -> Conversation {
        self.bench.workspace.sessions().conversation(session).unwrap()
    }
}

pub(crate) fn new_fork(desk: &mut Desk) -> NewFork {
    let at = now(&mut desk.bench);
    NewFork {
        session: SessionId::new(at, bytes(at.0, 11)),
        operation: OperationId::new(at, bytes(at.0, 12)),
        checkpoint: CheckpointId::new(at, bytes(at.0, 13)),
        note: EntryId::new(bytes(at.0, 14)),
        at,
        made_by: MadeBy::Command,
    }
}

pub(crate) fn prompts(conversation: &Conversation) -> Vec<String> {
    conversation.prompts().map(|(_, parts)| retake_engine::session::first_line(parts)).collect()
}

pub(crate) fn notes(conversation: &Conversation) -> Vec<Vec<String>> {
    let about = |body: &Body| match body {
        Body::Note { about, .. } => Some(about.clone()),
        _ => None,
    };
    conversation.entries().iter().filter_map(|entry| about(&entry.body)).collect()
}

#[test]
fn a_fork_from_a_prompt_ends_before_it_and_is_about_to_say_it() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let kept = desk.conversation();
    let parts = vec![Part::text("two"), Part::Paste { text: "pasted".to_owned() }];
    let second = desk.say_parts(parts.clone());
    desk.reply("seen", 0);
    desk.end(second);
    let (before, draft) = (desk.conversation(), desk.draft());
    let forked = desk.fork(second.prompt).unwrap();
    assert_eq!(desk.said(forked.session), kept, "no file differs, so there is no note");
    assert_eq!((forked.title.as_str(), &forked.draft), ("one", &parts));
    assert_eq!(desk.bench.workspace.sessions().draft(forked.session).unwrap(), parts);
    desk.assert_one_truth();
    assert_eq!((desk.conversation(), desk.draft()), (before, draft), "the other one is as it was");
    let sessions = desk.bench.workspace.sessions().all().unwrap();
    let found = sessions.iter().find(|session| session.id == forked.session).unwrap();
    let from = ForkedFrom { session: desk.session, entry: Some(second.prompt), root: None };
    assert_eq!(found.forked_from, Some(from));
    assert_eq!(found.title, "one");
}

#[test]
fn a_fork_from_the_first_prompt_has_heard_nothing() {
    let mut desk = Desk::new();
    desk.append(Body::Instructions { source: "retake".to_owned(), text: "be brief".to_owned() });
    let first = desk.writes("one", "a", "1");
    let forked = desk.fork(first.prompt).unwrap();
    assert_eq!(prompts(&desk.said(forked.session)), Vec::<String>::new());
    assert_eq!(forked.draft, [Part::text("one")]);
    assert_eq!(forked.title, "");
    let (_, writer) = desk.move_to(forked.session);
    drop(writer);
    desk.writes("instead", "a", "2");
    assert_eq!(desk.prompts(), ["instead"]);
    desk.reopen();
    assert_eq!(desk.prompts(), ["instead"]);
}

#[test]
fn a_fork_from_an_answer_keeps_its_round_together() {
    let mut desk = Desk::new();
    let turn = desk.say("one");
    let (reply, calls) = desk.reply("on it", 2);
    let refused = desk.fork(reply);
    assert!(matches!(refused, Err(ForkError::NotSettled { .. })), "{refused:?}");
    let first = desk.result(&calls[0], "a");
    assert!(matches!(desk.fork(first), Err(ForkError::NotSettled { .. })), "one result is missing");
    let last = desk.result(&calls[1], "b");
    let round = desk.conversation();
    let forked = desk.fork(first).unwrap();
    assert_eq!(desk.said(forked.session), round, "while the turn runs");
    desk.reply("more", 0);
    let end = desk.end(turn);
    for (entry, head) in [(reply, last), (first, last), (end, end)] {
        let forked = desk.fork(entry).unwrap();
        assert_eq!(desk.said(forked.session).head(), Some(head));
        assert_eq!(forked.draft, []);
    }
}

#[test]
fn only_what_was_said_or_done_can_be_forked_from() {
    let mut desk = Desk::new();
    let turn = desk.writes("one", "a", "1");
    let instructions = desk.append(Body::Instructions { source: "x".to_owned(), text: "y".to_owned() });
    assert!(matches!(desk.fork(instructions), Err(ForkError::NotATarget { .. })));
    assert!(matches!(desk.fork(EntryId::new([9; 10])), Err(ForkError::UnknownEntry { .. })));
    let commands = desk.bench.session();
    let refused = desk.fork_of(commands, turn.prompt);
    assert!(matches!(refused, Err(ForkError::NotAConversation { .. })), "{refused:?}");
    let other = super::conversation(&mut desk.bench);
    let refused = desk.fork_of(other, turn.prompt);
    assert!(matches!(refused, Err(ForkError::UnknownEntry { .. })), "it is another one's: {refused:?}");
}

#[test]
fn the_model_is_told_which_files_are_not_as_it_saw_them_there() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let kept = desk.conversation();
    let second = desk.writes("two", "a", "2");
    desk.writes("three", "b", "3");
    desk.bench.write("by-hand", "x");
    let forked = desk.fork(second.prompt).unwrap();
    let said = desk.said(forked.session);
    assert_eq!(notes(&said), [["a", "b", "by-hand"]]);
    assert_eq!(said.entries()[..kept.entries().len()], *kept.entries());
    assert_eq!(said.entries().len(), kept.entries().len() + 1);
    let Body::Note { text, .. } = &said.entries().last().unwrap().body else { panic!("no note") };
    assert!(text.starts_with("This conversation was forked from here, but the files are those of now."), "{text}");
    assert_eq!(desk.notes(), Vec::<Vec<String>>::new(), "the other one is told nothing");
    // A note is of the fork: at it, files are as they are now.
    let point = desk.bench.workspace.sessions().resolve_point(&said.head().unwrap().to_string(), None).unwrap();
    assert!(point.checkpoint().unwrap().note.as_deref().unwrap().starts_with("fork"));
}

#[test]
fn both_go_on_by_themselves() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let forked = desk.fork(second.prompt).unwrap();
    let (parent, writer) = desk.move_to(forked.session);
    let mut parents = writer.unwrap();
    desk.writes("other two", "c", "3");
    assert_eq!(desk.prompts(), ["one", "other two"]);
    let entry = desk.entry(Body::Cleared);
    parents.append(vec![entry], retake_engine::Durability::Soon).unwrap();
    assert_eq!(prompts(&desk.said(parent)), ["one", "two"]);
    drop(parents);
    desk.reopen();
    assert_eq!(desk.prompts(), ["one", "other two"], "after a restart too");
    desk.move_to(parent);
    desk.rewind(second.prompt, Scope::Conversation).unwrap();
    assert_eq!(prompts(&desk.said(forked.session)), ["one", "other two"], "the fork needs nothing of that");
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one", "two"]);
}

#[test]
fn opening_a_fork_changes_no_point_of_what_it_was_forked_from() {
    let mut desk = Desk::new();
    let turn = desk.say("one");
    let (reply, _) = desk.reply("done", 0);
    let end = desk.end(turn);
    let files = |desk: &Desk, entry: EntryId| {
        let point = desk.bench.workspace.sessions().resolve_point(&entry.to_string(), None).unwrap();
        point.checkpoint().unwrap().snapshot
    };
    let then = files(&desk, end);
    let forked = desk.fork(end).unwrap();
    assert_eq!(desk.said(forked.session).head(), Some(end));
    desk.bench.write("a", "later");
    let moment = retake_engine::session::Moment {
        session: forked.session,
        entry: None,
        origin: retake_engine::checkpoint::Origin::Turn,
    };
    desk.point(moment);
    assert_eq!((files(&desk, end), files(&desk, reply)), (then, then));
}

#[test]
fn a_fork_inside_a_summary_has_what_it_stands_for() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let whole = desk.conversation();
    let (from, to) = (whole.entries()[0].id, whole.head().unwrap());
    let summary = Desk::summary(from, to, "they wrote a twice");
    let summary = desk.append(summary);
    desk.writes("three", "a", "3");
    let inside = desk.fork(second.prompt).unwrap();
    let said = desk.said(inside.session);
    assert_eq!(prompts(&said), ["one"]);
    assert!(!said.entries().iter().any(|entry| entry.id == summary));
    assert_eq!(said.entries()[0].id, first.prompt);
    let after = desk.fork(summary).unwrap();
    let after = desk.said(after.session);
    let context = format!("{:?}", after.context().messages);
    assert!(context.contains("they wrote a twice") && !context.contains("on it: one"), "{context}");
    let before: Vec<EntryId> = whole.entries().iter().map(|entry| entry.id).collect();
    assert_eq!(after.entries()[..before.len()].iter().map(|entry| entry.id).collect::<Vec<_>>(), before);
}

#[test]
fn a_fork_can_be_forked() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let second = desk.writes("two", "a", "2");
    let forked = desk.fork(second.prompt).unwrap();
    desk.move_to(forked.session);
    let third = desk.writes("other two", "b", "2");
    let again = desk.fork(third.prompt).unwrap();
    assert_eq!(prompts(&desk.said(again.session)), ["one"]);
    let inherited = desk.fork(first.prompt).unwrap();
    let sessions = desk.bench.workspace.sessions().all().unwrap();
    let from = |id: SessionId| sessions.iter().find(|session| session.id == id).unwrap().forked_from.clone().unwrap();
    assert_eq!(from(again.session).session, forked.session);
    assert_eq!(from(inherited.session).session, forked.session, "it is one of its entries too");
    desk.move_to(again.session);
    desk.writes("third way", "c", "3");
    desk.reopen();
    assert_eq!(desk.prompts(), ["one", "third way"]);
}

#[test]
fn what_was_left_behind_can_be_forked_from() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let left = desk.conversation();
    desk.rewind(second.prompt, Scope::Both).unwrap();
    desk.writes("instead", "c", "3");
    let now = desk.conversation();
    let forked = desk.fork(left.head().unwrap()).unwrap();
    let said = desk.said(forked.session);
    assert_eq!(said.entries()[..left.entries().len()], *left.entries());
    assert_eq!(notes(&said), [["b", "c"]]);
    assert_eq!(desk.conversation(), now);
    desk.close();
    super::care::collect(&mut desk, 100);
    assert_eq!(desk.said(forked.session), said, "retention leaves it what it needs");
}
