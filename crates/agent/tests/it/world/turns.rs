//! Turns of a story: what the model answers, and when what came of it was there.

use std::collections::VecDeque;

use retake_agent::contract::{Action, EventKind, TurnEnd};
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, Entry, Outcome};
use retake_testkit::model::{Answer, Gate, Tokens};
use serde_json::{Value, json};

use super::explore::Exploration;
use super::model::{By, Kind};
use super::play::{Player, Said, WINDOW};
use super::story::{Act, Ending, PATHS, Place, Shell};

impl Player<'_> {
    /// The answers in which the model does `act`.
    fn answers(&mut self, act: &Act) -> Vec<Answer> {
        let content = self.content();
        let mut part = 0;
        let number = self.count;
        let mut one = |tool: &str, arguments: Value| {
            part += 1;
            Answer::default().says(&format!("reply{number}p{part}")).calls(tool, arguments)
        };
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
            Act::Long => {
                let full = Tokens { input: WINDOW - 1_000, output: 10, ..Tokens::default() };
                vec![one("read_file", json!({"path": "d/keep"})).costs(full)]
            }
            Act::Checkpoint | Act::GoBack { .. } => unreachable!("the exploration has its own"),
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

    pub(super) fn turn(&mut self, rounds: &[Act], ending: &Ending) {
        self.settle();
        let (since, entries_before) = (self.timeline.now(), self.entries());
        let mut exploration = Exploration::of(&entries_before);
        let mut answers: VecDeque<Answer> = VecDeque::new();
        for act in rounds {
            let next = answers.len();
            match act {
                Act::Checkpoint => answers.push_back(exploration.begins(self.fresh(), next)),
                Act::GoBack { which, restores } => {
                    let heard = &self.heard;
                    let knows = |entry: &EntryId| heard.contains_key(entry);
                    self.count += 1;
                    answers.push_back(exploration.ends(self.count, next, *which, *restores, knows));
                }
                act => answers.extend(self.answers(act)),
            }
        }
        let gate = Gate::new();
        answers.push_back(match ending {
            Ending::Done => Answer::default().says(&format!("reply{}z", self.fresh())),
            Ending::Fails => Answer::default().fails_with(400, "{\"error\":{\"message\":\"no\"}}"),
            Ending::StopsCall(place) => {
                let command = format!("{}; echo ready; exec sleep 300", self.command(&Shell::Write(*place)));
                Answer::default().calls("bash", json!({"command": command}))
            }
            Ending::StopsAnswer => Answer::default().says("So far.").waits_for(&gate).says("And so on."),
            Ending::StopsWaiting => Answer::default().begins_after(&gate),
        });
        self.script.lock().unwrap().answers = answers;
        self.script.lock().unwrap().seen.clear();
        let text = format!("prompt{}x", self.fresh());
        let waiting = self.scene.draft();
        let prompt = self.scene.say(&text);
        let reason = self.play_ending(prompt, ending, &gate);
        self.met.add(match reason {
            TurnEnd::Done => "turn: done",
            TurnEnd::Failed => "turn: failed",
            _ => "turn: interrupted",
        });
        let seen = std::mem::take(&mut self.script.lock().unwrap().seen);
        seen.into_iter().skip(1).for_each(|files| self.timeline.push(By::Ours, files));
        self.timeline.push(By::Ours, self.disk());
        let entries_after = self.entries();
        if reason != TurnEnd::Done && rounds.is_empty() && matches!(ending, Ending::Fails | Ending::StopsWaiting) {
            self.met.add("turn: came to nothing");
            assert_eq!(entries_after, entries_before, "a turn that came to nothing leaves nothing");
            // What was typed and never said waits on.
            let left = if waiting.contains("draft") { format!("{text}\n\n{waiting}") } else { text };
            assert_eq!(self.scene.draft(), left);
            return;
        }
        self.count_calls(&entries_after[entries_before.len()..]);
        self.hear(&entries_after[entries_before.len()..], since);
        self.check_exploration(&exploration, &entries_after[entries_before.len()..], since);
        assert!(entries_after.iter().any(|entry| entry.id == prompt), "it was said");
        assert_eq!(entries_after[..entries_before.len()], entries_before, "what was said stays");
        self.said.insert(prompt, Said { moment: since, text, entries: entries_before.clone() });
        self.made(Kind::Turn, since, entries_before, entries_after);
    }

    fn play_ending(&mut self, prompt: EntryId, ending: &Ending, gate: &Gate) -> TurnEnd {
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
                self.scene.request(Action::Interrupt { turn: None }).unwrap();
            }
            Ending::StopsAnswer => {
                gate.wait_until_reached();
                // What was sent before the gate has been heard.
                self.scene.until(|kind| matches!(kind, EventKind::Delta { text, .. } if text.ends_with('.')));
                self.scene.request(Action::Interrupt { turn: None }).unwrap();
            }
            Ending::StopsWaiting => {
                gate.wait_until_reached();
                self.scene.request(Action::Interrupt { turn: None }).unwrap();
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
}

fn todo(items: usize, number: usize) -> Value {
    let state = |at: usize| ["done", "active", "pending"][at.min(2)];
    let items: Vec<_> =
        (0..items).map(|at| json!({"text": format!("item {at} of {number}"), "state": state(at)})).collect();
    json!({"items": items})
}
