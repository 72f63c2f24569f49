//! Turns of a story: what the agent says and does, its compactions, and the model's own checkpoints.

use std::path::Path;

use retake_engine::checkpoint::Origin;
use retake_engine::id::EntryId;
use retake_engine::operation::{MadeBy, OperationKind};
use retake_engine::session::context::RETAKE;
use retake_engine::session::entry::{
    Block, Body, CallId, Details, EndReason, Entry, Outcome, Part, StopReason, SummaryBy, Todo, TodoState, Usage,
};
use retake_engine::session::{EntryRange, NewEntry, NewTurn, TurnSummary};
use retake_testkit::naive::force::Hand;

use super::model::head;
use super::play::{Play, affect, check, on_disk};
use super::timeline::{Files, differing};
use super::{Call, Compact, Effect, End, OURS, Round, view};
use crate::compare::Verdict;
use crate::session::{Turn, operation};

impl Play<'_> {
    pub(super) fn turn(&mut self, prompt: u8, rounds: &[Round], end: End) -> Verdict {
        let before = self.model.now.entries.clone();
        let (draft, files) = (self.model.now.draft.clone(), self.model.files().clone());
        let said = format!("prompt {prompt}, number {}\nmore", self.fresh());
        let parts = vec![Part::text(said), Part::Paste { text: "pasted".to_owned() }];
        let told = self.desk.conversation();
        let mut entries = self.instructions(prompt);
        entries.push(self.entry(Body::Prompt { parts: parts.clone() }));
        let (id, at) = entries.last().map(|prompt| (prompt.id, prompt.at)).unwrap();
        let turn = Turn { prompt: id, operation: operation(&mut self.desk.bench) };
        self.model.told.insert(turn.prompt, told);
        self.model.begun.insert(turn.prompt, head(&before));
        let new = NewTurn { operation: turn.operation, at, made_by: MadeBy::Client, entries, draft: Vec::new() };
        self.desk.writer().begin_turn(new).unwrap();
        self.model.now.draft.clear();
        self.checkpoint(Origin::Prompt);
        self.model.pair_prompt();
        let mut left = None;
        for (number, Round { compact, calls }) in rounds.iter().enumerate() {
            compact.map_or(Ok(()), |compact| self.compact(turn, compact))?;
            let dies = end == End::Dies && number + 1 == rounds.len();
            let asked = self.round(turn, calls, if dies { calls.len() / 2 } else { calls.len() });
            match asked {
                Some(asked) if dies => left = Some(asked),
                Some(asked) => {
                    let report = self.report(asked);
                    self.append(report);
                }
                None => {}
            }
        }
        match end {
            End::Done => self.end(turn),
            End::Dies if rounds.is_empty() => {
                self.met.add("turn: died before any output");
                self.desk.reopen();
                (self.model.now.entries, self.model.now.draft) = (before, parts);
                return Ok(());
            }
            End::Dies => {
                self.die(rounds.last().map_or(0, |Round { calls, .. }| calls.len() - calls.len() / 2))?;
                if let Some(asked) = left {
                    self.met.add("model's rewind: made for a process that died");
                    let report = self.report(asked);
                    let report = self.entry(report);
                    self.desk.writer().end_turn(turn.operation, report).unwrap();
                }
            }
        }
        self.met.add("turn");
        self.summarise_turn(turn, &files, rounds);
        let op = self.log(turn.operation, OperationKind::Turn, before);
        (op.draft, op.prompt) = (Some((draft, Vec::new())), Some((turn.prompt, parts)));
        Ok(())
    }

    /// What a turn has done to `files`, as it should be told.
    fn summarise_turn(&mut self, turn: Turn, files: &Files, rounds: &[Round]) {
        let mut summary = TurnSummary::default();
        for name in differing(files, self.model.files()) {
            match (files.contains_key(&name), self.model.files().contains_key(&name)) {
                (false, _) => summary.added += 1,
                (true, true) => summary.modified += 1,
                (true, false) => summary.deleted += 1,
            }
        }
        for Round { calls, .. } in rounds {
            // In the order in which they are called.
            for call in calls {
                match call {
                    Call::Edit(..) => summary.tools.push("edit_file".to_owned()),
                    Call::Shell(_) => {
                        summary.tools.push("bash: work".to_owned());
                        summary.ran_commands = true;
                    }
                    _ => {}
                }
            }
        }
        self.model.summaries.insert(turn.prompt, summary);
    }

    /// Some turns begin with instructions, which go where the prompt goes.
    fn instructions(&mut self, prompt: u8) -> Vec<NewEntry> {
        let source = match prompt {
            0 => RETAKE,
            1 => "AGENTS.md",
            _ => return Vec::new(),
        };
        self.met.add("instructions");
        let (source, text) = (source.to_owned(), format!("obey {}", self.fresh()));
        vec![self.entry(Body::Instructions { source, text })]
    }

    /// Makes room before the model is asked, as the agent does.
    fn compact(&mut self, turn: Turn, compact: Compact) -> Verdict {
        let span = match compact {
            Compact::Before => EntryRange::UpTo(turn.prompt),
            Compact::Since => EntryRange::After(turn.prompt),
        };
        let Some((from, to)) = self.range(span)? else { return Ok(()) };
        self.met.add(match compact {
            Compact::Before => "compaction: of what is before the prompt",
            Compact::Since => "compaction: of the turn's own work",
        });
        if !view::open_checkpoints(&self.model.now.entries).is_empty() {
            self.met.add("compaction: with an open checkpoint");
        }
        let summary = self.summary(from, to, SummaryBy::Compaction);
        self.append(summary);
        Ok(())
    }

    /// One answer and what its calls do; only the first `answered` of them come to their end. Those that are about checkpoints are
    /// answered first. Returns the call that asked to go back, with the checkpoint.
    fn round(&mut self, turn: Turn, calls: &[Call], answered: usize) -> Option<(CallId, EntryId)> {
        // Unique within the answer only.
        let mut calls: Vec<(CallId, &Call)> =
            calls.iter().enumerate().map(|(number, call)| (CallId(format!("call-{number}")), call)).collect();
        let mut blocks = vec![Block::Text { text: format!("well {}", self.fresh()) }];
        blocks.extend(calls.iter().map(|(id, _)| Block::Call {
            id: id.clone(),
            name: "tool".to_owned(),
            arguments: "{}".to_owned(),
        }));
        let open = view::open_checkpoints(&self.model.now.entries);
        let usage = Usage { output: 1, ..Usage::default() };
        self.append(Body::Reply { blocks, model: "test/model".to_owned(), usage, stop: StopReason::Calls });
        calls.sort_by_key(|(_, call)| !matches!(call, Call::Checkpoint | Call::GoBack(_)));
        let mut asked = None;
        for (number, (id, call)) in calls.into_iter().enumerate() {
            let (mut todos, mut details) = (None, None);
            match call {
                Call::Edit(name, content) => {
                    let effect = Effect::Write(*name, *content);
                    // A tool declares the directories that it has to make, too.
                    let parent =
                        Path::new(OURS[*name]).parent().and_then(Path::to_str).filter(|parent| !parent.is_empty());
                    let declared: Vec<&str> = parent.into_iter().chain([OURS[*name]]).collect();
                    self.desk.tool(turn, &declared, |root| affect(root, &OURS, &effect));
                }
                Call::Shell(effects) => {
                    self.desk.tool(turn, &[], |root| effects.iter().for_each(|effect| affect(root, &OURS, effect)));
                }
                Call::Todo(number) => {
                    todos = Some(vec![Todo { text: number.to_string(), state: TodoState::Pending }]);
                }
                Call::Approved => self.append(Body::Approved { tool: "tool".to_owned(), prefix: None }),
                Call::Checkpoint => details = Some(Details::Checkpoint { goal: "look".to_owned(), name: None }),
                Call::GoBack(which) if asked.is_none() && number < answered && !open.is_empty() => {
                    let (checkpoint, _) = open[which % open.len()];
                    asked = Some((id.clone(), checkpoint));
                    let report = "found".to_owned();
                    details = Some(Details::Rewound { report, rewound: true, checkpoint, restore_files: false });
                }
                Call::GoBack(_) => {}
            }
            if matches!(call, Call::Edit(..) | Call::Shell(_)) {
                let files = on_disk(&self.desk.bench.root);
                self.model.timeline.change(self.model.now.id, turn.operation, Hand::Tool, files);
                self.model.pair();
            }
            if number < answered {
                let parts = vec![Part::text(format!("result {}", self.fresh()))];
                let (title, outcome) = ("tool".to_owned(), Outcome::Done);
                self.append(Body::ToolResult { call: id, title, outcome, parts, todos, details });
            }
        }
        asked
    }

    /// The report with which the model goes back, now that everything that it called has come to its end.
    fn report(&mut self, (call, checkpoint): (CallId, EntryId)) -> Body {
        let entries = &self.model.now.entries;
        let is_result = |entry: &Entry| matches!(entry.body, Body::ToolResult { .. });
        let open = view::open_checkpoints(entries);
        let from = open.iter().find(|(id, _)| *id == checkpoint).and_then(|(_, next)| *next).unwrap();
        let to = entries.iter().rfind(|entry| is_result(entry)).map(|entry| entry.id).unwrap();
        let range = &entries[entries.iter().position(|entry| entry.id == from).unwrap()..];
        let has = |wanted: &dyn Fn(&Body) -> bool| range.iter().any(|entry| wanted(&entry.body));
        let mut met = vec!["model's rewind"];
        if has(&|body| matches!(body, Body::Prompt { .. })) {
            met.push("model's rewind: with prompts in its range");
        }
        if has(&|body| matches!(body, Body::Summary { by: SummaryBy::User, .. })) {
            met.push("model's rewind: across a summary of the user's");
        }
        if has(&|body| matches!(body, Body::Summary { by: SummaryBy::Compaction, .. })) {
            met.push("model's rewind: across a compaction");
        }
        if has(&|body| matches!(body, Body::Summary { by: SummaryBy::Model { .. }, .. })) {
            met.push("model's rewind: across another");
        }
        if has(&|body| matches!(body, Body::Note { .. })) {
            met.push("model's rewind: with notes in its range");
        }
        if entries.iter().rev().skip(1).take_while(|entry| is_result(entry)).count() > 0 {
            met.push("model's rewind: with calls beside it");
        }
        if open.last().is_some_and(|(innermost, _)| *innermost != checkpoint) {
            met.push("model's rewind: to an outer checkpoint");
        }
        met.into_iter().for_each(|what| self.met.add(what));
        let text = format!("report {}", self.fresh());
        Body::Summary { from, to, text, by: SummaryBy::Model { call, checkpoint }, usage: Usage::default() }
    }

    fn end(&mut self, turn: Turn) {
        let end = self.entry(Body::Ended { reason: EndReason::Done });
        self.desk.writer().end_turn(turn.operation, end).unwrap();
        self.checkpoint(Origin::Turn);
        self.model.pair();
    }

    /// The process dies with `open` calls unanswered, and the next one puts that in order.
    fn die(&mut self, open: usize) -> Verdict {
        self.met.add("turn: died in the middle");
        self.desk.reopen();
        let found = self.desk.conversation();
        let added = found.entries().get(self.model.now.entries.len()..).unwrap_or_default();
        let is_result = |entry: &&Entry| matches!(entry.body, Body::ToolResult { outcome: Outcome::Interrupted, .. });
        check("results that were added", &added.iter().filter(is_result).count(), &open)?;
        let ended = added.last().map(|entry| entry.body.clone());
        check("the end", &ended, &Some(Body::Ended { reason: EndReason::Interrupted }))?;
        added.iter().for_each(|entry| self.model.push(entry.clone()));
        Ok(())
    }
}
