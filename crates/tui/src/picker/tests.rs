//! The picker without a terminal and without a session: keys and answers in, steps and drawings out.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod applying;
mod conflicts;
mod drawing;
mod filter;
mod plans;
mod screen;
mod tree;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use retake_agent::contract::{
    Action, Change, ChangeGoal, Command, JobFacts, Reason, Refusal, Reply, SeenHead, State, WhileRunning,
};
use retake_agent::diff::{DiffLine, FileDiff, HunkLines, LineKind};
use retake_agent::rewind_document::{Bytes, ConflictFacts, File, RewindDocument};
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::rewind::{Conflict, Files, LedgerItem, OnConflict};
use retake_engine::session::{Discard, Scope};
use retake_engine::session::{PlannedConversation, PromptLine, Target, TurnSummary};
use serde_json::json;

use super::{Picker, PickerRequest, PickerStep};
use crate::theme::{Colours, Theme};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn id(number: u8) -> EntryId {
    EntryId::new([number; 10])
}

/// The prompt with this number, said as many minutes ago as there are prompts after the tenth.
fn target(number: u8, text: &str) -> Target {
    Target {
        id: id(number),
        number: number.into(),
        at: Timestamp(NOW.0 - 60_000 * (10 - i64::from(number))),
        text: text.to_owned(),
        files: TurnSummary::default(),
        label: None,
        has_files: true,
    }
}

/// Four prompts with everything that a row can show.
fn targets() -> Vec<Target> {
    let git = |what: &str| LedgerItem { kind: "git".to_owned(), what: what.to_owned(), remedy: None };
    let files = |added, modified, tools: &[&str], ran_commands| TurnSummary {
        added,
        modified,
        deleted: 0,
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        ran_commands,
        outside: Vec::new(),
    };
    let first = files(2, 1, &["bash: npm install", "write_file: src/login.rs"], true);
    vec![
        Target {
            files: TurnSummary { outside: vec![git("HEAD moved")], ..first },
            ..target(4, "Add a login form with a very long description that goes on and on")
        },
        Target { label: Some("before tests".to_owned()), ..target(3, "Make the tests pass") },
        Target { files: files(0, 1, &["bash: test -f a"], true), ..target(2, "Übersetze 日本語 die Texte") },
        Target { has_files: false, ..target(1, "Set up the project") },
    ]
}

fn path(text: &str) -> Bytes {
    Bytes::Text(text.to_owned())
}

fn conflict(file: &str, choices: &[OnConflict]) -> ConflictFacts {
    let why = Conflict::ChangedSince;
    let text = why.describe().to_owned();
    ConflictFacts { path: path(file), why, text, choices: choices.to_vec(), choice: OnConflict::Stop }
}

/// A plan that brings back two files, and takes this prompt and what came after it out of the conversation.
fn plan(number: u8) -> RewindDocument {
    let file = |name: &str, action: &str, certainty: &str| File {
        path: path(name),
        action: Some(action.to_owned()),
        status: "planned".to_owned(),
        certainty: Some(certainty.to_owned()),
        yours: false,
        directory: false,
    };
    let line = |number| PromptLine { id: id(number), text: format!("Prompt {number}") };
    RewindDocument {
        applied: false,
        conversation_moved: None,
        scope: Some(Scope::Both),
        conversation: Some(PlannedConversation {
            from: Some(id(40)),
            to: None,
            leaves: (number..=4).map(line).collect(),
            returns: Vec::new(),
            left_before: Vec::new(),
            draft: None,
            went_on: false,
            removed: false,
            discards: false,
            kept_for: Vec::new(),
            fork_at: None,
        }),
        files: vec![file("src/main.rs", "restore", "certain"), file("new.txt", "delete", "presumed")],
        ..RewindDocument::taken_back("")
    }
}

fn with_conflicts(number: u8) -> RewindDocument {
    use OnConflict::{Keep, Merge, Overwrite, Stop};
    let conflicts = vec![conflict("a.rs", &[Keep, Overwrite, Merge, Stop]), conflict("b.rs", &[Keep, Overwrite, Stop])];
    let file = |name: &str| File {
        path: path(name),
        action: Some("restore".to_owned()),
        status: "conflict".to_owned(),
        certainty: None,
        yours: false,
        directory: false,
    };
    let files = plan(number).files.into_iter().chain([file("a.rs"), file("b.rs")]).collect();
    RewindDocument { conflicts, files, ..plan(number) }
}

fn with_branch(document: RewindDocument) -> RewindDocument {
    let branch = serde_json::from_value(json!({"then": "main", "now": "topic"})).unwrap();
    RewindDocument { branch: Some(branch), ..document }
}

fn diffs() -> Vec<FileDiff> {
    let line = |kind, text: &str| DiffLine { kind, text: text.to_owned() };
    let main = vec![
        line(LineKind::Same, "fn main() {"),
        line(LineKind::Removed, "\tnew();"),
        line(LineKind::Added, "\told();"),
        line(LineKind::Same, "}"),
    ];
    let file = |name: &str, added, removed, hunks| FileDiff {
        path: path(name),
        added,
        removed,
        instead: None,
        hunks,
        left_out: 0,
        about: None,
    };
    vec![
        file("src/main.rs", 1, 1, vec![HunkLines { start: (9, 9), lines: main }]),
        file("new.txt", 0, 1, vec![HunkLines { start: (1, 1), lines: vec![line(LineKind::Removed, "made up")] }]),
        file("b.rs", 1, 0, vec![HunkLines { start: (5, 5), lines: vec![line(LineKind::Added, "of b")] }]),
    ]
}

fn rewind(number: u8, scope: Scope) -> Change {
    Change::new(ChangeGoal::Rewind { entry: id(number), scope, files: Files::Selective, discard: Discard::No })
}

fn apply(change: Change) -> Vec<PickerStep> {
    let head_seen = Some(SeenHead { head: Some(id(40)) });
    let command = Action::Apply { change, head_seen, plan_seen: None, running: WhileRunning::Refuse };
    vec![PickerStep::Ask(PickerRequest::Apply, Box::new(command.into()))]
}

fn refusal(reason: Reason, message: &str) -> Refusal {
    Refusal { reason, message: message.to_owned(), hint: None, document: None }
}

fn view(state: State) -> View {
    View { state, ..View::default() }
}

/// A picker, with a session that answers only when it is told to.
struct Scene {
    picker: Picker,
    /// What was asked and not answered.
    asked: Vec<(PickerRequest, Command)>,
}

impl Scene {
    /// Opened, and nothing is answered.
    fn opened() -> Self {
        let (picker, steps) = Picker::open();
        let mut scene = Self { picker, asked: Vec::new() };
        scene.keep(steps);
        scene
    }

    /// Opened with four prompts, and the plan of the newest is there.
    fn ready() -> Self {
        let mut scene = Self::opened();
        scene.view(State::Idle);
        scene.answer_all(plan(4));
        scene
    }

    /// The same, with another plan.
    fn ready_with(document: RewindDocument) -> Self {
        let mut scene = Self::opened();
        scene.view(State::Idle);
        scene.answer_all(document);
        scene
    }

    /// Remembers what was asked. Returns everything else.
    fn keep(&mut self, steps: Vec<PickerStep>) -> Vec<PickerStep> {
        let mut others = Vec::new();
        for step in steps {
            match step {
                PickerStep::Ask(asked, command) => self.asked.push((asked, *command)),
                other => others.push(other),
            }
        }
        others
    }

    fn press(&mut self, code: KeyCode) -> Vec<PickerStep> {
        self.chord(code, KeyModifiers::NONE)
    }

    fn chord(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<PickerStep> {
        let steps = self.picker.key(KeyEvent::new(code, modifiers));
        self.keep(steps.clone());
        steps
    }

    fn ctrl(&mut self, letter: char) -> Vec<PickerStep> {
        self.chord(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c));
        }
    }

    fn view(&mut self, state: State) -> Vec<PickerStep> {
        let steps = self.picker.view_changed(&view(state));
        self.keep(steps.clone());
        steps
    }

    /// Answers the oldest question.
    fn answer(&mut self, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        let (asked, _) = self.asked.remove(0);
        let steps = self.picker.answered(asked, answer);
        self.keep(steps)
    }

    /// Answers everything: lists with the four prompts, plans with `rewind_document`.
    #[expect(clippy::needless_pass_by_value, reason = "it is made on the spot")]
    fn answer_all(&mut self, document: RewindDocument) {
        self.answer_lists(&document, &targets());
    }

    fn answer_lists(&mut self, document: &RewindDocument, targets: &[Target]) {
        while let Some((asked, _)) = self.asked.first() {
            let reply = match asked {
                PickerRequest::Targets { .. } => Reply::Targets { head: Some(id(40)), targets: targets.to_vec() },
                PickerRequest::Found { .. } => Reply::Targets { head: Some(id(40)), targets: Vec::new() },
                PickerRequest::Tree { .. } => Reply::Tree { head: Some(id(4)), prompts: tree::prompts() },
                PickerRequest::Plan { .. } => Reply::Change { document: Box::new(document.clone()) },
                PickerRequest::Diff { .. } => Reply::Diff { files: diffs(), plan: None },
                PickerRequest::Apply | PickerRequest::Fork | PickerRequest::Summarise | PickerRequest::Label => return,
            };
            self.answer(Ok(reply));
        }
    }

    /// The commands that wait for an answer.
    fn commands(&self) -> Vec<&Command> {
        self.asked.iter().map(|(_, command)| command).collect()
    }

    fn chosen(&self) -> Option<EntryId> {
        self.picker.list.chosen().map(|row| row.id)
    }

    fn numbers(&self) -> Vec<u64> {
        self.picker.list.matching().iter().filter_map(|row| row.number).collect()
    }

    /// What is on a screen of this size, without the spaces at the ends of lines.
    fn drawn(&mut self, width: u16, height: u16) -> String {
        let buffer = self.buffer(width, height);
        let mut text = String::new();
        for y in 0..height {
            let (mut line, mut skip) = (String::new(), 0);
            for x in 0..width {
                let symbol = buffer[(x, y)].symbol();
                if skip == 0 {
                    line.push_str(symbol);
                    skip = unicode_width::UnicodeWidthStr::width(symbol).max(1);
                }
                skip -= 1;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn buffer(&mut self, width: u16, height: u16) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        self.picker.draw(buffer.area, &mut buffer, &Theme::new(Colours::None), NOW);
        buffer
    }
}
