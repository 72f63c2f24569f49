//! Playing a story on a real session, with the naive model beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;
use std::sync::{Arc, Mutex};

use retake_agent::contract::{Change, ChangeGoal, Command, EventKind, Reason, Refusal, Reply, WhileRunning};
use retake_agent::document::{Bytes, RewindDocument};
use retake_agent::permission::Allowed;
use retake_engine::session::entry::{Body, Entry, EntryId, Outcome, Part};
use retake_engine::{OnConflict, Scope};
use retake_testkit::model::{Answer, Gate, ScriptedModel};
use serde_json::{Value, json};

use super::Met;
use super::model::{By, Files, Kind, Node, Operation, Timeline, Undone, differing, read, with};
use super::story::{Act, Ending, PATHS, Place, SHARED, Shell, Step, Story};
use crate::scene::{Scene, rewind_goal};

/// What the model answers, and what it saw of the files each time it was asked.
#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    seen: Vec<Files>,
}

/// A prompt that was said.
struct Said {
    /// The moment at which it was said.
    moment: usize,
    text: String,
    /// What was there before it.
    entries: Vec<Entry>,
}

/// Somewhere to go.
struct Aim {
    id: EntryId,
    moment: usize,
    /// What is left of the conversation there.
    entries: Vec<Entry>,
    /// What is to be said again.
    draft: Option<String>,
    is_listed: bool,
}

pub(super) struct Player<'a> {
    scene: Scene,
    script: Arc<Mutex<Script>>,
    met: &'a mut Met,
    log: &'a mut Vec<String>,
    timeline: Timeline,
    said: HashMap<EntryId, Said>,
    /// The moments after other entries.
    heard: HashMap<EntryId, usize>,
    done: Vec<Operation>,
    undone: Vec<Undone>,
    has_shell: bool,
    count: usize,
}

impl<'a> Player<'a> {
    pub(super) fn new(story: &Story, met: &'a mut Met, log: &'a mut Vec<String>) -> Self {
        let allowed = if story.has_shell { Allowed::All } else { Allowed::Edits };
        let scene = Scene::with(story.wire).allowing(allowed);
        let mut scene = scene.file("a", "line 0\nend\n").file("d/e", "line 1\nend\n").file("d/keep", "");
        let (script, root) = (Arc::new(Mutex::new(Script::default())), scene.root());
        let answers = Arc::clone(&script);
        scene.model = ScriptedModel::answering(move |_| {
            let script = &mut *answers.lock().unwrap();
            script.seen.push(read(&root));
            script.answers.pop_front().unwrap_or_else(|| Answer::default().says("That is all."))
        });
        let scene = scene.start();
        let mut timeline = Timeline::default();
        timeline.push(By::Outside, read(&scene.root()));
        let (said, heard, done, undone) = (HashMap::new(), HashMap::new(), Vec::new(), Vec::new());
        Self { scene, script, met, log, timeline, said, heard, done, undone, has_shell: story.has_shell, count: 10 }
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
            Step::Restart => self.restart(),
            Step::Draft => {
                self.met.add("draft");
                let parts = vec![Part::text(format!("draft {}", self.fresh()))];
                self.scene.request(Command::Draft { parts: parts.clone() }).unwrap();
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

    fn fresh(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    fn content(&mut self) -> String {
        format!("line {}\nend\n", self.fresh())
    }

    fn entries(&mut self) -> Vec<Entry> {
        self.scene.view().entries
    }

    fn disk(&self) -> Files {
        read(&self.scene.root())
    }

    /// Whatever has changed since the newest moment, a person did.
    fn settle(&mut self) {
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

    /// The answers in which the model does `act`.
    fn answers(&mut self, act: &Act) -> Vec<Answer> {
        let content = self.content();
        let one = |tool: &str, arguments: Value| Answer::default().says("So.").calls(tool, arguments);
        match act {
            Act::Write(place) => {
                let path = PATHS[*place];
                vec![
                    one("read_file", json!({"path": path})),
                    one("write_file", json!({"path": path, "content": content})),
                ]
            }
            Act::WriteBlindly(place) => vec![one("write_file", json!({"path": PATHS[*place], "content": content}))],
            Act::Edit(place) => {
                let new = format!("line of {}", self.count);
                vec![one("edit_file", json!({"path": PATHS[*place], "old": "line", "new": new}))]
            }
            Act::Delete(place) => vec![one("delete_file", json!({"path": PATHS[*place]}))],
            Act::Move(from, to) => vec![one("move_file", json!({"from": PATHS[*from], "to": PATHS[*to]}))],
            Act::Shell(shell) => vec![one("bash", json!({"command": self.command(shell)}))],
            Act::Todo(items) => vec![one("todo", todo(*items, self.count))],
            Act::Read(place) => vec![one("read_file", json!({"path": PATHS[*place]}))],
            Act::Together(place) => vec![
                one("read_file", json!({"path": "d/keep"}))
                    .calls("delete_file", json!({"path": PATHS[*place]}))
                    .calls("todo", todo(2, self.count))
                    .calls("read_file", json!({"path": "missing"}))
                    .calls("grep", json!({"pattern": "line"})),
            ],
            Act::Nonsense(which) => vec![match which {
                0 => one("write_file", json!({"path": "../outside", "content": "x"})),
                1 => one("no_such_tool", json!({})),
                2 => one("write_file", json!({"path": 3})),
                3 => one("edit_file", json!({"path": "d/keep", "old": "nowhere", "new": "x"})),
                _ => one("write_file", json!({"path": ".git/config", "content": "x"})),
            }],
        }
    }

    fn command(&mut self, shell: &Shell) -> String {
        let n = self.count;
        let at = |place: &Place| PATHS[*place];
        let write = |place: &Place| format!("mkdir -p n; printf 'line {n}\\nend\\n' > {}", at(place));
        match shell {
            Shell::Write(place) => write(place),
            Shell::ThereAndBack(place) => {
                let path = at(place);
                format!("[ -e {path} ] && cp {path} ../kept && echo x > {path} && cat ../kept > {path}; echo done")
            }
            Shell::Append(place) => format!("mkdir -p n; echo {n} >> {}", at(place)),
            Shell::Remove(place) => format!("rm {}", at(place)),
            Shell::RemoveDirectory => "rm -rf n".to_owned(),
            Shell::Move(from, to) => format!("mkdir -p n; mv {} {}", at(from), at(to)),
            Shell::Mode(place) => format!("chmod {} {}", if n.is_multiple_of(2) { 755 } else { 600 }, at(place)),
            Shell::Fails(place) => format!("{}; exit 3", write(place)),
        }
    }

    fn turn(&mut self, rounds: &[Act], ending: &Ending) {
        self.settle();
        let (since, entries_before) = (self.timeline.now(), self.entries());
        let mut answers: VecDeque<Answer> = rounds.iter().flat_map(|act| self.answers(act)).collect();
        let gate = Gate::new();
        answers.push_back(match ending {
            Ending::Done => Answer::default().says("Done."),
            Ending::Fails => Answer::default().fails_with(400, "{\"error\":{\"message\":\"no\"}}"),
            Ending::StopsCall(place) => {
                let command = format!("{}; echo ready; exec sleep 300", self.command(&Shell::Write(*place)));
                Answer::default().calls("bash", json!({"command": command}))
            }
            Ending::StopsAnswer => Answer::default().says("So far.").waits_for(&gate).says("And so on."),
            Ending::StopsWaiting => Answer::default().begins_after(&gate),
        });
        *self.script.lock().unwrap() = Script { answers, seen: Vec::new() };
        let text = format!("prompt {}", self.fresh());
        let prompt = self.scene.say(&text);
        let reason = self.play_ending(prompt, ending, &gate);
        self.met.add(match reason.as_str() {
            "done" => "turn: done",
            "failed" => "turn: failed",
            _ => "turn: interrupted",
        });
        let seen = std::mem::take(&mut self.script.lock().unwrap().seen);
        seen.into_iter().skip(1).for_each(|files| self.timeline.push(By::Ours, files));
        self.timeline.push(By::Ours, self.disk());
        let entries_after = self.entries();
        if reason != "done" && rounds.is_empty() && matches!(ending, Ending::Fails | Ending::StopsWaiting) {
            self.met.add("turn: came to nothing");
            assert_eq!(entries_after, entries_before, "a turn that came to nothing leaves nothing");
            assert_eq!(self.scene.draft(), text);
            return;
        }
        self.count_calls(&entries_after[entries_before.len()..]);
        self.hear(&entries_after[entries_before.len()..], since);
        assert!(entries_after.iter().any(|entry| entry.id == prompt), "it was said");
        assert_eq!(entries_after[..entries_before.len()], entries_before, "what was said stays");
        self.said.insert(prompt, Said { moment: since, text, entries: entries_before.clone() });
        self.made(Kind::Turn, since, entries_before, entries_after);
    }

    fn play_ending(&mut self, prompt: EntryId, ending: &Ending, gate: &Gate) -> String {
        match ending {
            Ending::Done | Ending::Fails => {}
            Ending::StopsCall(_) if !self.has_shell => {}
            Ending::StopsCall(_) => {
                let mut heard = String::new();
                self.scene.until(|kind| {
                    if let EventKind::CallOutput { text, .. } = kind {
                        heard.push_str(text);
                    }
                    heard.contains("ready")
                });
                self.scene.request(Command::Interrupt { turn: None }).unwrap();
            }
            Ending::StopsAnswer => {
                gate.wait_until_reached();
                // What was sent before the gate has been heard.
                self.scene.until(|kind| matches!(kind, EventKind::Delta { text, .. } if text.ends_with('.')));
                self.scene.request(Command::Interrupt { turn: None }).unwrap();
            }
            Ending::StopsWaiting => {
                gate.wait_until_reached();
                self.scene.request(Command::Interrupt { turn: None }).unwrap();
            }
        }
        self.scene.until_ended(prompt).0
    }

    /// Takes down at which moment each answer, each result and the end of a turn came.
    fn hear(&mut self, entries: &[Entry], since: usize) {
        let last = self.timeline.now();
        let mut round = 0;
        for entry in entries {
            let moment = match entry.body {
                Body::Reply { .. } => {
                    round += 1;
                    (since + round).min(last)
                }
                Body::ToolResult { .. } => (since + round).min(last),
                Body::Ended { .. } => last,
                _ => continue,
            };
            self.heard.insert(entry.id, moment);
        }
    }

    fn count_calls(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Body::ToolResult { outcome, .. } = entry.body {
                self.met.add(match outcome {
                    Outcome::Done => "call: done",
                    Outcome::Failed => "call: failed",
                    Outcome::Denied => "call: denied",
                    Outcome::Interrupted => "call: interrupted",
                });
            }
        }
    }

    /// Takes an operation down: everything from `since` on is its doing.
    fn made(&mut self, kind: Kind, since: usize, entries_before: Vec<Entry>, entries_after: Vec<Entry>) {
        let then = self.timeline.at(since);
        let paths = self.timeline.changed(By::Ours, since);
        let before = paths.into_iter().map(|path| (path.clone(), then.get(&path).cloned())).collect();
        self.done.push(Operation { kind, since, before, entries_before, entries_after });
        self.undone.clear();
    }

    fn apply(&mut self, goal: ChangeGoal, on_conflict: OnConflict) -> Result<RewindDocument, Refusal> {
        self.scene.apply(Change { on_conflict, ..Change::new(goal) }, WhileRunning::Refuse)
    }

    /// One of the prompts that are listed, or now and then one that has left the conversation.
    fn prompt_aim(&self, which: usize) -> Option<Aim> {
        let mut known: Vec<EntryId> = self.scene.targets().iter().map(|target| target.id).collect();
        let listed = known.len();
        let mut others: Vec<EntryId> = self.said.keys().filter(|id| !known.contains(id)).copied().collect();
        others.sort_by_key(|id| self.said[id].moment);
        known.extend(others.into_iter().take(usize::from(which.is_multiple_of(3))));
        let at = which.checked_rem(known.len())?;
        let Said { moment, text, entries } = &self.said[&known[at]];
        let (moment, entries, draft) = (*moment, entries.clone(), Some(text.clone()));
        Some(Aim { id: known[at], moment, entries, draft, is_listed: at < listed })
    }

    /// One of the other entries. What belongs to the same round goes with it.
    fn entry_aim(&mut self, which: usize) -> Option<Aim> {
        let entries = self.entries();
        let known: Vec<usize> = (0..entries.len()).filter(|at| self.heard.contains_key(&entries[*at].id)).collect();
        let mut at = known[which.checked_rem(known.len())?];
        let (id, moment) = (entries[at].id, self.heard[&entries[at].id]);
        while entries.get(at + 1).is_some_and(|next| matches!(next.body, Body::ToolResult { .. })) {
            at += 1;
        }
        Some(Aim { id, moment, entries: entries[..=at].to_vec(), draft: None, is_listed: true })
    }

    fn rewind(&mut self, aim: &Aim, scope: Scope, choice: OnConflict) {
        self.settle();
        let (before, entries, now) = (self.disk(), self.entries(), self.timeline.now());
        let moment = aim.moment;
        let draft = self.scene.draft();
        let (mut states, conflicts) = self.timeline.going_back(moment);
        if scope == Scope::Conversation {
            states.clear();
        }
        let stops = scope != Scope::Conversation && !conflicts.is_empty() && choice == OnConflict::Stop;
        let result = self.apply(rewind_goal(aim.id, scope), choice);
        if stops {
            self.met.add("rewind: conflict stopped");
            return self.refused(result, &before, &entries, &conflicts);
        }
        let document = result.unwrap_or_else(|refusal| panic!("refused: {refusal:#?}\nconflicts: {conflicts:?}"));
        if scope != Scope::Conversation && !conflicts.is_empty() {
            self.met.add(if choice == OnConflict::Keep {
                "rewind: conflict kept"
            } else {
                "rewind: conflict overwritten"
            });
        }
        if choice == OnConflict::Keep {
            states.retain(|path, _| !conflicts.contains(path));
        }
        let expected = with(&before, &states);
        self.files_are(&expected, &format!("{document:#?}"));
        let changed = differing(&before, &expected);
        let entries_after = self.entries();
        let kept = if scope == Scope::Code { &entries } else { &aim.entries };
        assert_eq!(
            entries_after[..kept.len().min(entries_after.len())],
            kept[..],
            "the conversation goes where it was to go"
        );
        let note = &entries_after[kept.len()..];
        assert!(note.len() <= 1 && note.iter().all(|entry| matches!(entry.body, Body::Note { .. })), "{note:#?}");
        let kept_back = choice == OnConflict::Keep && !conflicts.is_empty();
        if !(scope == Scope::Both && kept_back) {
            let is_file = |path: &&String| {
                let state = before.get(*path).or_else(|| expected.get(*path));
                state.is_some_and(|(shape, ..)| *shape != retake_testkit::naive::Shape::Directory)
            };
            self.check_note(scope, note.first(), &before, moment, changed.iter().any(|path| is_file(&path)));
        }
        let said_again = aim.draft.as_ref().filter(|_| scope != Scope::Code);
        assert_eq!(self.scene.draft(), *said_again.unwrap_or(&draft));
        self.met.add(match scope {
            Scope::Code => "rewind: code",
            Scope::Conversation => "rewind: conversation",
            Scope::Both => "rewind: both",
        });
        if !changed.is_empty() {
            self.met.add("rewind: files changed");
        }
        if !aim.is_listed {
            self.met.add("rewind: into another branch");
        }
        if changed.is_empty() && entries_after == entries {
            self.met.add("rewind: nothing to do");
        }
        if document.operation.is_some() {
            self.timeline.push(By::Ours, expected);
            self.made(Kind::Rewind, now, entries, entries_after);
        }
    }

    /// The model is told of files if, and only if, there is something to tell.
    fn check_note(&mut self, scope: Scope, note: Option<&Entry>, files: &Files, moment: usize, has_changed: bool) {
        let is_file = |path: &String| match (files.get(path), self.timeline.at(moment).get(path)) {
            (Some((shape, ..)), _) | (None, Some((shape, ..))) => *shape == retake_testkit::naive::Shape::File,
            (None, None) => false,
        };
        match scope {
            Scope::Both => assert_eq!(note, None, "both halves agree"),
            Scope::Code => assert_eq!(note.is_some(), has_changed, "files went back: {note:#?}"),
            Scope::Conversation => {
                let differ = differing(files, self.timeline.at(moment));
                if differ.is_empty() {
                    assert_eq!(note, None, "no file differs");
                }
                let told: Vec<String> = match note.map(|note| &note.body) {
                    Some(Body::Note { about, .. }) => about.clone(),
                    _ => Vec::new(),
                };
                for path in differ.iter().filter(|path| is_file(path)) {
                    assert!(told.contains(path), "`{path}` differs, and the model is told of {told:?}");
                }
            }
        }
        if note.is_some() {
            self.met.add("rewind: note");
        }
    }

    /// Nothing at all may have changed.
    fn refused(
        &mut self,
        result: Result<RewindDocument, Refusal>,
        before: &Files,
        entries: &[Entry],
        conflicts: &BTreeSet<String>,
    ) {
        let refusal = result.expect_err("somebody has to decide");
        assert_eq!(refusal.reason, Reason::Conflicts, "{refusal:#?}");
        let document = refusal.document.expect("a plan");
        for path in conflicts {
            let is_listed = document.conflicts.iter().any(|conflict| conflict.path == Bytes::Text(path.clone()));
            assert!(is_listed, "`{path}` is a conflict: {document:#?}");
        }
        self.files_are(before, "refused");
        assert_eq!(self.entries(), entries, "refused");
    }

    fn files_are(&self, expected: &Files, why: &str) {
        let disk = self.disk();
        let shown = |files: &Files| -> BTreeMap<String, Option<Node>> {
            differing(&disk, expected).into_iter().map(|path| (path.clone(), files.get(&path).cloned())).collect()
        };
        assert!(disk == *expected, "files are\n{:?}\nand should be\n{:?}\n{why}", shown(&disk), shown(expected));
    }

    fn undo(&mut self) {
        self.settle();
        let (before, entries, now) = (self.disk(), self.entries(), self.timeline.now());
        let result = self.apply(ChangeGoal::Undo { operation: None }, OnConflict::Stop);
        let Some(operation) = self.done.last().cloned() else {
            self.met.add("undo: nothing");
            assert_eq!(result.expect_err("there is nothing").reason, Reason::Nothing);
            return;
        };
        let expected = with(&before, &operation.before);
        let document = match result {
            Ok(document) => document,
            Err(refusal) => {
                self.met.add("undo: conflict");
                let others = self.timeline.changed(By::Outside, operation.since);
                let conflicts: BTreeSet<_> = operation.before.keys().filter(|path| others.contains(*path)).collect();
                assert!(!conflicts.is_empty(), "nobody else was at work: {refusal:#?}");
                self.refused(Err(refusal), &before, &entries, &BTreeSet::new());
                self.apply(ChangeGoal::Undo { operation: None }, OnConflict::Overwrite).expect("decided")
            }
        };
        self.files_are(&expected, &format!("{operation:#?}{document:#?}"));
        assert_eq!(self.entries(), operation.entries_before, "the conversation is as before");
        self.met.add("undo");
        self.met.add(match operation.kind {
            Kind::Turn => "undo: turn",
            Kind::Rewind => "undo: rewind",
            Kind::Clear => "undo: clear",
        });
        self.done.pop();
        let changed = differing(&before, &expected);
        let before = changed.into_iter().map(|path| (path.clone(), before.get(&path).cloned())).collect();
        self.timeline.push(By::Ours, expected);
        assert_eq!(self.timeline.now(), now + 1);
        self.undone.push(Undone { operation, before });
    }

    fn redo(&mut self) {
        self.settle();
        let (before, entries) = (self.disk(), self.entries());
        let result = self.apply(ChangeGoal::Redo, OnConflict::Stop);
        let Some(undone) = self.undone.last().cloned() else {
            self.met.add("redo: nothing");
            assert_eq!(result.expect_err("there is nothing").reason, Reason::Nothing);
            return;
        };
        let expected = with(&before, &undone.before);
        if let Err(refusal) = result {
            self.refused(Err(refusal), &before, &entries, &BTreeSet::new());
            self.apply(ChangeGoal::Redo, OnConflict::Overwrite).expect("decided");
        }
        self.files_are(&expected, "redone");
        assert_eq!(self.entries(), undone.operation.entries_after, "the conversation is as before the undo");
        self.met.add("redo");
        self.undone.pop();
        self.timeline.push(By::Ours, expected);
        self.done.push(undone.operation);
    }

    fn clear(&mut self) {
        self.settle();
        let (since, entries) = (self.timeline.now(), self.entries());
        self.scene.request(Command::Clear).unwrap();
        let after = self.entries();
        assert_eq!(after[..entries.len()], entries);
        assert!(matches!(after[entries.len()..], [Entry { body: Body::Cleared, .. }]), "{after:#?}");
        self.met.add("clear");
        self.made(Kind::Clear, since, entries, after);
    }

    fn context(&self) -> String {
        match self.scene.request(Command::Context).unwrap() {
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
        assert_eq!((view.todos(), view.usage()), (stored.todos().to_vec(), stored.usage()));
        let session = self.scene.session();
        let sessions = self.scene.workspace().sessions().unwrap();
        let title = sessions.into_iter().find(|one| one.id == session).map(|one| one.title);
        assert_eq!(title, Some(stored.title()), "it is called after its first prompt");
        let prompts: Vec<EntryId> = stored.prompts().map(|(entry, _)| entry.id).rev().collect();
        let targets: Vec<EntryId> = self.scene.targets().iter().map(|target| target.id).collect();
        assert_eq!(targets, prompts, "every prompt can be gone back to");
        for entry in targets {
            for scope in [Scope::Code, Scope::Conversation, Scope::Both] {
                let change = Change::new(rewind_goal(entry, scope));
                self.scene
                    .request(Command::Plan { change })
                    .unwrap_or_else(|refusal| panic!("{scope:?}: {refusal:#?}"));
            }
        }
    }
}

fn todo(items: usize, number: usize) -> Value {
    let state = |at: usize| ["done", "active", "pending"][at.min(2)];
    let items: Vec<_> =
        (0..items).map(|at| json!({"text": format!("item {at} of {number}"), "state": state(at)})).collect();
    json!({"items": items})
}
