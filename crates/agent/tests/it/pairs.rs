//! R38, R46, R51, R52: everything that changes what the model sees of a conversation, alone and in every ordered pair.
//!
//! Each prompt, answer, result, summary and report has a word of its own, so that what the model is sent can be read as a list of words.
//! After each step the list is what a plain reading of the log gives, every word in it is there once, the whole request is the one that is
//! made from what is on disk, and a restart changes nothing. Then all steps are undone and redone, with the same checks.

#![allow(clippy::print_stderr, reason = "which steps were played is for whoever sees it fail")]

use retake_agent::contract::{Action, Change, ChangeGoal, Extent, Reason, Reply, WhileRunning};
use retake_agent::controller::Which;
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Details, Entry, SummaryBy};
use retake_testkit::model::Tokens;
use serde_json::{Value, json};

use crate::scene::{Scene, Wire};
use crate::word_trace::{words_seen, words_sent};

/// Tokens that the model can read; more than the longest conversation here.
const WINDOW: u64 = 40_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Summaries around the third prompt, and of everything.
    FromHere,
    UpToHere,
    Everything,
    /// A turn that becomes too long, because of what was before it or by its own work.
    CompactsPast,
    CompactsWork,
    /// A turn in which the model makes a checkpoint and goes back to it.
    Explores,
    /// A turn in which the model goes back to the checkpoint of the second turn.
    GoesBack,
    Clear,
    /// To before the first, the second or the fourth prompt, or into the third turn.
    Rewind(usize),
    RewindInto,
    /// Before one of the first four prompts, or inside the third turn, wherever that is by now.
    Fork,
    Undo,
    Redo,
    Restart,
}

const STEPS: [Step; 16] = [
    Step::FromHere,
    Step::UpToHere,
    Step::Everything,
    Step::CompactsPast,
    Step::CompactsWork,
    Step::Explores,
    Step::GoesBack,
    Step::Clear,
    Step::Rewind(0),
    Step::Rewind(1),
    Step::Rewind(3),
    Step::RewindInto,
    Step::Fork,
    Step::Undo,
    Step::Redo,
    Step::Restart,
];

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// To something that can be undone.
    Done,
    /// To nothing, which was said.
    ToNothing,
}

struct Table {
    scene: Scene,
    prompts: Vec<EntryId>,
    /// The last answer of the third turn.
    inside: EntryId,
    /// The contexts before each of the first four turns.
    told: Vec<String>,
    /// The head and the context when four turns were said.
    base: (EntryId, String),
    forks: usize,
    /// The contexts before all operations that are in force, and those that redos would bring back.
    before: Vec<String>,
    undone: Vec<String>,
    count: usize,
}

impl Table {
    fn new(wire: Wire) -> Self {
        let mut scene = Scene::with(wire).exploring().with_window(WINDOW).start();
        let mut prompts = Vec::new();
        let mut before = Vec::new();
        let mut count = 0;
        for turn in 0..4 {
            before.push(scene.context());
            count += 1;
            if turn == 1 {
                let mark = json!({"goal": "look", "name": "deep"});
                scene.model.thinks("hm").says(&format!("reply{count}a")).calls("checkpoint", mark);
            }
            works(&scene, count, 1);
            scene.model.says(&format!("reply{count}z"));
            prompts.push(scene.prompt(&format!("prompt{count}x")));
        }
        let entries = scene.stored().entries().to_vec();
        let fourth = entries.iter().position(|entry| entry.id == prompts[3]).unwrap();
        let inside = entries[..fourth].iter().rfind(|entry| matches!(entry.body, Body::Reply { .. })).unwrap().id;
        let base = (scene.view().head().unwrap(), scene.context());
        let told = before.clone();
        Self { scene, prompts, inside, told, base, forks: 0, before, undone: Vec::new(), count }
    }

    fn step(&mut self, step: Step) -> Came {
        self.count += 1;
        let number = self.count;
        match step {
            Step::FromHere => self.summarise(Extent::From { entry: self.prompts[2] }),
            Step::UpToHere => self.summarise(Extent::UpTo { entry: self.prompts[2] }),
            Step::Everything => self.summarise(Extent::All),
            Step::CompactsPast | Step::CompactsWork => {
                let lines = if step == Step::CompactsPast { 1 } else { 4_000 };
                let full = Tokens { input: WINDOW - 1_000, output: 10, ..Tokens::default() };
                let command = json!({"command": command(number, lines)});
                self.scene.model.says(&format!("reply{number}b")).calls("bash", command).costs(full);
                self.scene.model.says(&format!("summary{number}x"));
                self.turn(number)
            }
            Step::Explores => {
                self.scene.model.says(&format!("reply{number}b")).calls("checkpoint", json!({"goal": "find"}));
                works(&self.scene, number, 1);
                let report = json!({"report": format!("report{number}x")});
                self.scene.model.says(&format!("reply{number}c")).calls("rewind", report);
                self.turn(number)
            }
            Step::GoesBack => {
                works(&self.scene, number, 1);
                let report = json!({"report": format!("report{number}x"), "name": "deep"});
                let beside = json!({"command": format!("echo beside$(({number}))x")});
                self.scene.model.says(&format!("reply{number}c")).calls("bash", beside).calls("rewind", report);
                self.turn(number)
            }
            Step::Clear => {
                self.scene.request(Action::Clear).unwrap();
                Came::Done
            }
            Step::Rewind(which) => self.rewind(self.prompts[which]),
            Step::RewindInto => self.rewind(self.inside),
            Step::Fork => self.fork(number),
            Step::Undo | Step::Redo => {
                let goal = if step == Step::Undo {
                    ChangeGoal::Undo { operation: None }
                } else {
                    ChangeGoal::Redo { operation: None }
                };
                match self.scene.change(goal) {
                    Ok(_) => Came::Done,
                    Err(refusal) => {
                        assert_eq!(refusal.reason, Reason::Nothing, "{refusal:?}");
                        Came::ToNothing
                    }
                }
            }
            Step::Restart => {
                self.scene.restart();
                Came::ToNothing
            }
        }
    }

    fn summarise(&mut self, extent: Extent) -> Came {
        self.scene.model.says(&format!("summary{}x", self.count));
        let reply = self.scene.request(Action::Summarise { extent, instructions: None });
        let came = match reply {
            Ok(Reply::Summarised { summary: Some(_) }) => return Came::Done,
            Ok(Reply::Summarised { summary: None }) => Came::ToNothing,
            Err(refusal) if refusal.reason == Reason::NotFound => Came::ToNothing,
            other => panic!("no summary: {other:?}"),
        };
        self.scene.model.clear();
        came
    }

    fn turn(&mut self, number: usize) -> Came {
        self.scene.model.says(&format!("reply{number}z"));
        self.scene.prompt(&format!("prompt{number}x"));
        self.scene.model.assert_exhausted();
        Came::Done
    }

    fn rewind(&mut self, entry: EntryId) -> Came {
        let document = self.scene.rewind(entry, Scope::Conversation);
        if document.operation.is_some() { Came::Done } else { Came::ToNothing }
    }

    /// A fork, in which the model receives what it was told there, also after a restart. Something is said in it and taken back.
    fn fork(&mut self, number: usize) -> Came {
        let which = self.forks % 5;
        self.forks += 1;
        let entry = self.prompts.get(which).copied().unwrap_or(self.inside);
        let told = self.told.get(which).or(self.told.last()).unwrap();
        let reply = self.scene.request(Action::Fork { entry }).expect("it is forked");
        let Reply::Forked { session, .. } = reply else { panic!("not forked: {reply:?}") };
        let session = self.scene.workspace().sessions().resolve(&session).expect("it is there").id;
        let said = format!("prompt{number}f");
        for again in [false, true] {
            let (model, opened) = self.scene.open_beside(Which::Existing(session));
            same(&self.scene.context_of(&opened.handle), told, "what it was told there");
            if !again {
                model.says("reply0f");
                self.scene.say_beside(&opened.handle, &said);
                let expected: Vec<String> = words_sent(told).into_iter().chain([said.clone()]).collect();
                assert_eq!(words_sent(&model.last_request().text), expected);
                let change = Change::new(ChangeGoal::Undo { operation: None });
                let running = WhileRunning::Refuse;
                let undo = opened.handle.request(Action::Apply { change, head_seen: None, plan_seen: None, running });
                self.scene.runtime().block_on(undo).expect("it is undone");
            }
            self.scene.runtime().block_on(opened.handle.request(Action::Close)).expect("it closes");
            opened.served.join().expect("it ends in good order");
        }
        // It changes nothing here, and so there is nothing to undo here either.
        Came::ToNothing
    }

    /// The context, which is what it has to be by everything that is known of it.
    fn context(&mut self) -> String {
        let context = self.scene.context();
        let words = words_sent(&context);
        assert_eq!(words, words_seen(self.scene.stored().entries()));
        for (at, word) in words.iter().enumerate() {
            // What is in a report's frame is there beside what it reports on.
            let is_once = !words[..at].contains(word) || word.starts_with("reply") || word.starts_with("report");
            assert!(is_once, "`{word}` twice: {words:?}");
        }
        same(&self.scene.stored_context(), &context, "it is made from what is on disk");
        context
    }

    /// A step, after which the context is what it was at the time that it leads to.
    fn checked(&mut self, step: Step) -> Came {
        let (before, stored) = (self.scene.context(), self.scene.stored());
        let came = self.step(step);
        let context = self.context();
        // A redo leads to what has been through this before.
        if step != Step::Redo {
            self.scene.restart();
            same(&self.scene.context(), &context, "it is the same after a restart");
        }
        let added = summaries(self.scene.stored().entries()).saturating_sub(summaries(stored.entries()));
        let expected = match step {
            Step::FromHere | Step::UpToHere | Step::Everything => usize::from(came == Came::Done),
            Step::CompactsPast | Step::CompactsWork | Step::Explores => 1,
            Step::GoesBack => usize::from(is_deep_open(stored.entries())),
            _ => added,
        };
        assert_eq!(added, expected, "how often what the model sees has changed");
        match (step, came) {
            (_, Came::ToNothing) => {
                assert!(step != Step::Redo || self.undone.is_empty(), "there is something to redo");
                same(&context, &before, "nothing has changed");
                assert_eq!(self.scene.stored(), stored, "nothing was written");
            }
            (Step::Undo, Came::Done) => {
                same(&context, &self.before.pop().unwrap(), "what was before the newest operation");
                self.undone.push(before);
            }
            (Step::Redo, Came::Done) => {
                same(&context, &self.undone.pop().unwrap(), "what was before the newest undo");
                self.before.push(before);
            }
            (_, Came::Done) => self.did(before),
        }
        came
    }

    /// Something was done that can be undone.
    fn did(&mut self, before: String) {
        self.before.push(before);
        self.undone.clear();
    }

    /// Plays steps one after the other, then goes back and forth between what they came to.
    fn play(&mut self, steps: &[Step]) {
        let mut undoable = 0;
        for step in steps {
            match (step, self.checked(*step)) {
                (Step::Undo | Step::Redo, _) => undoable = 0,
                (_, Came::Done) => undoable += 1,
                (_, Came::ToNothing) => {}
            }
        }
        (0..undoable).for_each(|_| assert_eq!(self.checked(Step::Undo), Came::Done));
        (0..undoable).for_each(|_| assert_eq!(self.checked(Step::Redo), Came::Done));
        self.scene.check();
        // What the model really receives is that, and what is said to it then.
        let before = self.scene.context();
        self.count += 1;
        let said = format!("prompt{}y", self.count);
        self.scene.model.says("reply0z");
        self.scene.prompt(&said);
        let expected: Vec<String> = words_sent(&before).into_iter().chain([said]).collect();
        assert_eq!(words_sent(&self.scene.last_request().text), expected);
        self.did(before);
        // Everything that was ever there can be gone back to.
        let before = self.scene.context();
        self.scene.rewind(self.base.0, Scope::Conversation);
        same(&self.scene.context(), &self.base.1, "as in the beginning");
        self.did(before);
    }
}

/// Compares requests; their tools are long.
fn same(found: &str, expected: &str, why: &str) {
    assert_eq!(words_sent(found), words_sent(expected), "{why}");
    let messages = |body: &str| serde_json::from_str::<Value>(body).unwrap()["messages"].take();
    assert!(found == expected, "{why}: {:#}\nand not {:#}", messages(found), messages(expected));
}

/// A command that prints a word which is not in the command itself.
fn command(number: usize, lines: usize) -> String {
    format!("echo result$(({number}))x; seq {lines} | tr '0-9' '.'")
}

fn works(scene: &Scene, number: usize, lines: usize) {
    scene.model.says(&format!("reply{number}w")).calls("bash", json!({"command": command(number, lines)}));
}

fn summaries(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry.body, Body::Summary { .. })).count()
}

/// Whether the model can go back to the checkpoint of the second turn.
fn is_deep_open(entries: &[Entry]) -> bool {
    let is_deep = |entry: &Entry| match &entry.body {
        Body::ToolResult { details: Some(Details::Checkpoint { name, .. }), .. } => name.as_deref() == Some("deep"),
        _ => false,
    };
    let Some(at) = entries.iter().position(is_deep) else { return false };
    let closes = |entry: &Entry| match &entry.body {
        Body::Cleared => true,
        Body::Summary { by: SummaryBy::User, from, to, .. } => {
            let position = |id: EntryId| entries.iter().position(|entry| entry.id == id).unwrap();
            (position(*from)..=position(*to)).contains(&at)
        }
        Body::Summary { by: SummaryBy::Model { checkpoint, .. }, .. } => *checkpoint == entries[at].id,
        _ => false,
    };
    !entries[at..].iter().any(closes)
}

#[test]
fn each_alone() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut table = Table::new(wire);
        for step in STEPS {
            eprintln!("{wire:?}: {step:?}");
            table.play(&[step]);
        }
    }
}

fn every_pair(wire: Wire, firsts: &[Step]) {
    let mut table = Table::new(wire);
    for first in firsts {
        for second in STEPS {
            eprintln!("{wire:?}: {first:?}, then {second:?}");
            table.play(&[*first, second]);
        }
    }
}

#[test]
fn summaries_and_compactions_before_anything_else() {
    every_pair(Wire::Anthropic, &STEPS[..5]);
}

#[test]
fn the_models_rewinds_and_clears_before_anything_else() {
    every_pair(Wire::OpenAi, &STEPS[5..8]);
}

#[test]
fn the_users_rewinds_and_forks_before_anything_else() {
    every_pair(Wire::Anthropic, &STEPS[8..13]);
}

#[test]
fn undo_redo_and_restart_before_anything_else() {
    every_pair(Wire::OpenAi, &STEPS[13..]);
}
