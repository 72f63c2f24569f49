//! Playing a story on a real session, with the naive model beside it.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::sync::{Arc, Mutex};

use retake_agent::contract::{Action, Change, Extent, Query, Reply};
use retake_agent::permission::Allowed;
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Entry, Part, SummaryBy};
use retake_testkit::model::{Answer, Received, ScriptedModel};

use super::Met;
use super::model::{By, Files, Kind, Operation, Timeline, Undone, read};
use super::story::{PATHS, Place, SHARED, Step, Story, Stretch};
use crate::scene::{Scene, rewind_goal};
use crate::word_trace::{words_seen, words_sent};

/// Tokens that the model can read.
pub(super) const WINDOW: u64 = 100_000;

/// What the model answers, and what it saw of the files each time it was asked.
#[derive(Default)]
pub(super) struct Script {
    pub(super) answers: VecDeque<Answer>,
    pub(super) seen: Vec<Files>,
    summaries: usize,
}

impl Script {
    /// What it answers when `path_search` are there. Summaries are asked for whenever it suits the agent.
    fn answer(&mut self, request: &Received, files: Files) -> Answer {
        if request.text.contains("Write a summary that will take the place") {
            self.summaries += 1;
            return Answer::default().says(&format!("summary{}x", self.summaries));
        }
        self.seen.push(files);
        self.answers.pop_front().unwrap_or_else(|| Answer::default().says("That is all."))
    }
}

/// A prompt that was said.
pub(super) struct Said {
    /// The moment at which it was said.
    pub(super) moment: usize,
    pub(super) text: String,
    /// What was there before it.
    pub(super) entries: Vec<Entry>,
}

pub(super) struct Player<'a> {
    pub(super) scene: Scene,
    pub(super) script: Arc<Mutex<Script>>,
    pub(super) met: &'a mut Met,
    pub(super) log: &'a mut Vec<String>,
    pub(super) timeline: Timeline,
    pub(super) said: HashMap<EntryId, Said>,
    /// The moments after other entries.
    pub(super) heard: HashMap<EntryId, usize>,
    pub(super) done: Vec<Operation>,
    pub(super) undone: Vec<Undone>,
    pub(super) has_shell: bool,
    /// Whether an undo may have left a note.
    pub(super) has_notes: bool,
    pub(super) count: usize,
}

impl<'a> Player<'a> {
    pub(super) fn new(story: &Story, met: &'a mut Met, log: &'a mut Vec<String>) -> Self {
        let allowed = if story.has_shell { Allowed::All } else { Allowed::Edits };
        let scene = Scene::with(story.wire).allowing(allowed).exploring().with_window(WINDOW);
        let mut scene = scene.file("a", "line 0\nend\n").file("d/e", "line 1\nend\n").file("d/keep", "");
        let (script, root) = (Arc::new(Mutex::new(Script::default())), scene.root());
        let answers = Arc::clone(&script);
        scene.model = ScriptedModel::answering(move |request| answers.lock().unwrap().answer(request, read(&root)));
        let scene = scene.start();
        let mut timeline = Timeline::default();
        timeline.push(By::Outside, read(&scene.root()));
        let (said, heard, done, undone) = (HashMap::new(), HashMap::new(), Vec::new(), Vec::new());
        Self {
            scene,
            script,
            met,
            log,
            timeline,
            said,
            heard,
            done,
            undone,
            has_shell: story.has_shell,
            has_notes: false,
            count: 10,
        }
    }

    pub(super) fn play(mut self, story: &Story) {
        for step in &story.steps {
            self.log.push(format!("{step:?}"));
            self.step(step);
            self.forget_heads();
            self.check();
        }
        self.restart();
        self.check();
        assert_eq!(self.scene.model.complaints(), Vec::<String>::new());
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Turn { rounds, ending } => self.turn(rounds, ending),
            Step::Outside { place, is_delete } => self.outside(*place, *is_delete),
            Step::Rewind { which, scope, choice } => {
                if let Some(aim) = self.prompt_aim(*which) {
                    self.rewind(&aim, *scope, *choice);
                }
            }
            Step::RewindInto { which, scope, choice } => {
                if let Some(aim) = self.entry_aim(*which) {
                    self.met.add("rewind: into a turn");
                    self.rewind(&aim, *scope, *choice);
                }
            }
            Step::Undo => self.undo(),
            Step::Redo => self.redo(),
            Step::Clear => self.clear(),
            Step::Summarise { stretch, which } => self.summarise(*stretch, *which),
            Step::Restart => self.restart(),
            Step::Draft => {
                self.met.add("draft");
                let parts = vec![Part::text(format!("draft {}", self.fresh()))];
                self.scene.request(Action::Draft { parts: parts.clone() }).unwrap();
                assert_eq!(self.scene.view().draft, parts);
            }
        }
    }

    /// Where the conversation stands now, snapshots go on being taken: what files belong there is no longer what the turn left.
    fn forget_heads(&mut self) {
        for entry in self.entries().iter().rev() {
            self.heard.remove(&entry.id);
            if !matches!(entry.body, Body::Note { .. } | Body::ToolResult { .. }) {
                return;
            }
        }
    }

    pub(super) fn fresh(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    pub(super) fn content(&mut self) -> String {
        format!("line {}\nend\n", self.fresh())
    }

    pub(super) fn entries(&mut self) -> Vec<Entry> {
        self.scene.view().entries
    }

    pub(super) fn disk(&self) -> Files {
        read(&self.scene.root())
    }

    /// Whatever has changed since the newest moment, a person did.
    pub(super) fn settle(&mut self) {
        let disk = self.disk();
        if disk != *self.timeline.at(self.timeline.now()) {
            self.timeline.push(By::Outside, disk);
        }
    }

    fn outside(&mut self, place: Place, is_delete: bool) {
        let content = self.content();
        let ours = self.timeline.changed(By::Ours, 0);
        // Mostly where it hurts.
        let shared: Vec<&str> = PATHS[..SHARED].iter().copied().filter(|path| ours.contains(*path)).collect();
        let path = if place < 3 { shared.get(self.count % shared.len().max(1)).copied() } else { None };
        let path = path.unwrap_or(PATHS[place]);
        let is_ours = ours.contains(path);
        // One that came only now is left, so that a path never goes and comes back unseen.
        if is_delete && self.timeline.at(self.timeline.now()).contains_key(path) {
            fs::remove_file(self.scene.root().join(path)).ok();
        } else {
            self.scene.write(path, &content);
        }
        self.met.add(if is_ours { "outside: a path of the session" } else { "outside: another path" });
    }

    /// Takes an operation down: everything from `since` on is its doing.
    pub(super) fn made(&mut self, kind: Kind, since: usize, entries_before: Vec<Entry>, entries_after: Vec<Entry>) {
        let then = self.timeline.at(since);
        let paths = self.timeline.changed(By::Ours, since);
        let before = paths.into_iter().map(|path| (path.clone(), then.get(&path).cloned())).collect();
        self.done.push(Operation { kind, since, before, entries_before, entries_after });
        self.undone.clear();
    }

    fn clear(&mut self) {
        self.settle();
        let (since, entries) = (self.timeline.now(), self.entries());
        self.scene.request(Action::Clear).unwrap();
        let after = self.entries();
        assert_eq!(after[..entries.len()], entries);
        assert!(matches!(after[entries.len()..], [Entry { body: Body::Cleared, .. }]), "{after:#?}");
        self.met.add("clear");
        self.made(Kind::Clear, since, entries, after);
    }

    fn summarise(&mut self, stretch: Stretch, which: usize) {
        self.settle();
        let (since, entries) = (self.timeline.now(), self.entries());
        let Some(at) = which.checked_rem(entries.len()) else { return };
        let entry = entries[at].id;
        let extent = match stretch {
            Stretch::All => Extent::All,
            Stretch::From => Extent::From { entry },
            Stretch::UpTo => Extent::UpTo { entry },
        };
        let reply = self.scene.request(Action::Summarise { extent, instructions: None }).unwrap();
        let after = self.entries();
        assert_eq!(after[..entries.len()], entries);
        match reply {
            Reply::Summarised { summary: Some(summary) } => {
                let [Entry { body: Body::Summary { from, to, by: SummaryBy::User, .. }, .. }] = &after[entries.len()..]
                else {
                    panic!("one summary: {after:#?}")
                };
                assert_eq!((*from, *to), summary.range);
                self.met.add("summary");
                self.made(Kind::Summary, since, entries, after);
            }
            Reply::Summarised { summary: None } => {
                self.met.add("summary: of nothing");
                assert_eq!(after, entries);
            }
            other => panic!("no summary: {other:?}"),
        }
    }

    fn context(&self) -> String {
        match self.scene.request(Query::Context).unwrap() {
            Reply::Context { body } => body,
            other => panic!("no context: {other:?}"),
        }
    }

    fn restart(&mut self) {
        let (before, context, targets, files) = (self.scene.view(), self.context(), self.scene.targets(), self.disk());
        // A session in which nothing was ever said is forgotten.
        if self.said.is_empty() && before.entries.is_empty() && before.draft.is_empty() {
            return;
        }
        self.met.add("restart");
        self.scene.restart();
        let after = self.scene.view();
        assert_eq!((after.entries, after.draft), (before.entries, before.draft), "what is shown is what was shown");
        assert_eq!(self.context(), context, "the model would be sent the same");
        assert_eq!(self.scene.targets(), targets, "the same is listed");
        self.files_are(&files, "opening changes nothing");
    }

    /// What has to hold at any time.
    fn check(&mut self) {
        self.scene.check();
        let (view, stored) = (self.scene.view(), self.scene.stored());
        let context = self.scene.context();
        assert_eq!(words_sent(&context), words_seen(stored.entries()), "the model sees what it should");
        assert!(context == self.scene.stored_context(), "what the model would be sent is made from what is on disk");
        assert_eq!((view.todos(), view.usage()), (stored.todos().to_vec(), stored.usage()));
        let session = self.scene.session();
        let sessions = self.scene.workspace().sessions().all().unwrap();
        let title = sessions.into_iter().find(|one| one.id == session).map(|one| one.title);
        assert_eq!(title, Some(stored.title()), "it is called after its first prompt");
        let prompts: Vec<EntryId> = stored.prompts().map(|(entry, _)| entry.id).rev().collect();
        let targets: Vec<EntryId> = self.scene.targets().iter().map(|target| target.id).collect();
        assert_eq!(targets, prompts, "every prompt can be gone back to");
        for entry in targets {
            for scope in [Scope::Code, Scope::Conversation, Scope::Both] {
                let change = Change::new(rewind_goal(entry, scope));
                self.scene.request(Query::Plan { change }).unwrap_or_else(|refusal| panic!("{scope:?}: {refusal:#?}"));
            }
        }
    }
}
