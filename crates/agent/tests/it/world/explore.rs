//! The model's own checkpoints in a story: which are open, what it answers to make one or to go back, and what has to come of it.

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, Details, Entry, SummaryBy};
use retake_testkit::model::Answer;
use serde_json::json;

use super::model::with;
use super::play::Player;

/// A checkpoint.
#[derive(Clone, Debug)]
struct Mark {
    name: String,
    made: Made,
}

#[derive(Clone, Copy, Debug)]
enum Made {
    /// In an earlier turn, with this result.
    Before(EntryId),
    /// By this answer of the turn.
    Now(usize),
}

/// Going back by an answer of the turn.
#[derive(Clone, Debug)]
struct GoingBack {
    answer: usize,
    mark: Mark,
    restores: bool,
}

/// What the model does with checkpoints in one turn.
#[derive(Debug)]
pub(super) struct Exploration {
    open: Vec<Mark>,
    made: usize,
    going_back: Vec<GoingBack>,
    /// Attempts without any checkpoint.
    in_vain: usize,
}

impl Exploration {
    /// With the checkpoints that are open after `entries`.
    pub(super) fn of(entries: &[Entry]) -> Self {
        let position = |id: EntryId| entries.iter().position(|entry| entry.id == id).unwrap();
        let closes = |at: usize, later: &Entry| match &later.body {
            Body::Cleared => true,
            Body::Summary { from, to, by: SummaryBy::User, .. } => (position(*from)..=position(*to)).contains(&at),
            Body::Summary { by: SummaryBy::Model { checkpoint, .. }, .. } => position(*checkpoint) <= at,
            _ => false,
        };
        let mark = |(at, entry): (usize, &Entry)| match &entry.body {
            Body::ToolResult { details: Some(Details::Checkpoint { name, .. }), .. } => {
                let is_open = !entries[at..].iter().any(|later| closes(at, later));
                is_open.then(|| Mark { name: name.clone().unwrap(), made: Made::Before(entry.id) })
            }
            _ => None,
        };
        let open = entries.iter().enumerate().filter_map(mark).collect();
        Self { open, made: 0, going_back: Vec::new(), in_vain: 0 }
    }

    /// The answer, the turn's number `answer`, in which the model makes a checkpoint.
    pub(super) fn begins(&mut self, number: usize, answer: usize) -> Answer {
        let name = format!("mark {number}");
        let arguments = json!({"goal": "look around", "name": name});
        self.open.push(Mark { name, made: Made::Now(answer) });
        self.made += 1;
        Answer::default().says(&format!("reply{number}p")).calls("checkpoint", arguments)
    }

    /// The answer in which the model goes back. Files only go back to a checkpoint of which it is known what they were.
    pub(super) fn ends(
        &mut self,
        number: usize,
        answer: usize,
        which: usize,
        restores: bool,
        knows: impl Fn(&EntryId) -> bool,
    ) -> Answer {
        let says = Answer::default().says(&format!("reply{number}p"));
        let report = format!("report{number}x");
        let Some(at) = which.checked_rem(self.open.len()) else {
            self.in_vain += 1;
            return says.calls("rewind", json!({"report": report}));
        };
        let mark = self.open.drain(at..).next().unwrap();
        let restores = restores
            && match &mark.made {
                Made::Before(entry) => knows(entry),
                Made::Now(_) => true,
            };
        let arguments = json!({"report": report, "name": mark.name, "restore_files": restores});
        self.going_back.push(GoingBack { answer, mark, restores });
        let says = if number.is_multiple_of(2) { says.calls("read_file", json!({"path": "d/keep"})) } else { says };
        says.calls("rewind", arguments)
    }
}

impl Player<'_> {
    /// The model has gone back as often as it wanted to, and the files with it where they were to.
    pub(super) fn check_exploration(&mut self, exploration: &Exploration, entries: &[Entry], since: usize) {
        let reports: Vec<&str> = entries.iter().filter_map(report).collect();
        assert_eq!(reports.len(), exploration.going_back.len(), "{exploration:#?}");
        (0..exploration.made).for_each(|_| self.met.add("checkpoint"));
        (0..exploration.in_vain).for_each(|_| self.met.add("goes back: no checkpoint is open"));
        for _ in entries.iter().filter(|entry| is_compaction(entry)) {
            self.met.add("compaction");
        }
        for (GoingBack { answer, mark, restores }, report) in exploration.going_back.iter().zip(reports) {
            self.met.add("goes back");
            let moment = match mark.made {
                Made::Before(entry) => {
                    self.met.add("goes back: across turns");
                    self.heard.get(&entry).copied()
                }
                Made::Now(answer) => Some(since + answer + 1),
            };
            let (before, after) = (self.timeline.at(since + answer), self.timeline.at(since + answer + 1));
            let told = |text: &str| assert!(report.contains(text), "{text}: {report}");
            let (expected, met) = match moment.filter(|_| *restores) {
                None => (before.clone(), "goes back: files stay"),
                Some(moment) => match self.timeline.going_back_from(since + answer, moment) {
                    (_, conflicts) if !conflicts.is_empty() => {
                        told("NOT taken back");
                        conflicts.iter().for_each(|path| told(&format!("`{path}`")));
                        (before.clone(), "goes back: files in conflict")
                    }
                    (states, _) if states.is_empty() => {
                        told("There were no files to take back");
                        (before.clone(), "goes back: no files to restore")
                    }
                    (states, _) => {
                        told("These files were taken back");
                        (with(before, &states), "goes back: files restored")
                    }
                },
            };
            assert!(*after == expected, "files are\n{after:?}\nand should be\n{expected:?}\n{report}");
            self.met.add(met);
            if *restores {
                self.timeline.is_our_rewind(since + answer + 1);
            }
        }
    }
}

fn report(entry: &Entry) -> Option<&str> {
    match &entry.body {
        Body::Summary { by: SummaryBy::Model { .. }, text, .. } => Some(text),
        _ => None,
    }
}

fn is_compaction(entry: &Entry) -> bool {
    matches!(entry.body, Body::Summary { by: SummaryBy::Compaction, .. })
}
