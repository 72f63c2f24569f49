//! What typed commands do.

use std::path::PathBuf;

use retake_agent::contract::{Action, Change, ChangeGoal, DiffOf, Extent, Query, SeenHead, State, WhileRunning};
use retake_engine::id::EntryId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::entry::Body;

use super::notice::{Lasts, Tone};
use super::slash::Slash;
use super::{App, Asked, Effect, MainView, NextSession};

impl App {
    pub(super) fn command(&mut self, slash: Slash, argument: &str) -> Vec<Effect> {
        match slash {
            Slash::Rewind => self.open_picker(),
            Slash::Undo => self.change("undo", ChangeGoal::Undo { operation: None }, argument),
            Slash::Redo => self.change("redo", ChangeGoal::Redo { operation: None }, argument),
            Slash::Diff => match self.last_prompt() {
                Some(prompt) => vec![Effect::Ask(Asked::Diff, Query::Diff { of: DiffOf::Turn { prompt } }.into())],
                None => self.nothing_said(),
            },
            Slash::Fork => match self.view.head() {
                Some(entry) => vec![Effect::Ask(Asked::Fork, Action::Fork { entry }.into())],
                None => self.nothing_said(),
            },
            Slash::Label => self.label(argument),
            Slash::Checkpoints => vec![Effect::Ask(Asked::Checkpoints, Query::Checkpoints.into())],
            Slash::Sessions => vec![Effect::Ask(Asked::Sessions, Query::Sessions.into())],
            Slash::Compact => self.summarise(Extent::All, argument),
            Slash::Summarize => self.summarise_part(argument),
            Slash::Clear => vec![Effect::Ask(Asked::Quietly, Action::Clear.into())],
            Slash::New => self.leave_for(NextSession::New),
            Slash::Model if argument.is_empty() => {
                let window = self.view.window.map(|window| format!(", {window} tokens of context")).unwrap_or_default();
                self.say_plain(format!("{}{window}. `/model PROVIDER/NAME` asks another", self.view.model))
            }
            Slash::Model => {
                let model = argument.to_owned();
                vec![Effect::Ask(Asked::Model(model.clone()), Action::Model { model }.into())]
            }
            Slash::Export => self.export(argument),
            Slash::Web => vec![Effect::Web],
            Slash::Jobs => self.jobs(argument),
            Slash::Draft => {
                if self.view.draft.is_empty() {
                    return self.say_plain("Nothing waits to be said");
                }
                self.take_draft();
                Vec::new()
            }
            Slash::Help => {
                self.place = MainView::Help(0);
                Vec::new()
            }
            Slash::Quit if self.view.state == State::Running => {
                let warning = "A turn is running. /quit once more stops it and leaves; everything so far is kept";
                self.leave_twice(warning, Lasts::Turn)
            }
            Slash::Quit => self.leave(),
        }
    }

    fn nothing_said(&mut self) -> Vec<Effect> {
        self.say_plain("Nothing has been said in this session yet")
    }

    /// Leaves for another session, unless a turn would be stopped by that.
    pub(super) fn leave_for(&mut self, next: NextSession) -> Vec<Effect> {
        if self.view.state == State::Running {
            return self.say_of_turn(Tone::Warning, "A turn is running: Esc stops it first");
        }
        self.go(next)
    }

    fn change(&mut self, verb: &'static str, goal: ChangeGoal, argument: &str) -> Vec<Effect> {
        let on_conflict = match argument {
            "" => OnConflict::Stop,
            "keep" => OnConflict::Keep,
            "overwrite" => OnConflict::Overwrite,
            "merge" => OnConflict::Merge,
            _ => {
                return self.say_plain(format!(
                    "/{verb}, or /{verb} with keep, overwrite or merge: what to do with files that others changed"
                ));
            }
        };
        let command = Action::Apply {
            change: Change { on_conflict, ..Change::new(goal) },
            // What this very client is about to move is not somebody else's doing.
            head_seen: (self.changing == 0).then(|| SeenHead { head: self.view.head() }),
            plan_seen: None,
            running: WhileRunning::Refuse,
        };
        self.changing += 1;
        vec![Effect::Ask(Asked::Change { verb }, command.into())]
    }

    fn label(&mut self, text: &str) -> Vec<Effect> {
        let Some(prompt) = self.last_prompt() else { return self.nothing_said() };
        if text.is_empty() {
            return self
                .say_plain("/label TEXT names the point before the last prompt; in the picker Ctrl+L names any");
        }
        let label = Some(text.to_owned());
        vec![Effect::Ask(Asked::Label(text.to_owned()), Action::Label { prompt, label }.into())]
    }

    fn summarise(&mut self, extent: Extent, instructions: &str) -> Vec<Effect> {
        let instructions = (!instructions.is_empty()).then(|| instructions.to_owned());
        vec![Effect::Ask(Asked::Summary, Action::Summarise { extent, instructions }.into())]
    }

    /// `from 3`, `up to 3`; without anything the picker opens, where it can be chosen.
    fn summarise_part(&mut self, argument: &str) -> Vec<Effect> {
        let words: Vec<&str> = argument.split_whitespace().collect();
        let number = words.last().and_then(|word| word.trim_start_matches('#').parse::<usize>().ok());
        let entry = number.and_then(|number| self.prompt_number(number));
        let extent = match (words.as_slice(), entry) {
            ([], _) => {
                let mut effects = self.open_picker();
                effects.extend(self.say_plain("Choose a prompt, then `Summarise from here` or `up to here`"));
                return effects;
            }
            (["from", _], Some(entry)) => Extent::From { entry },
            (["up", "to", _] | ["up-to" | "to" | "upto", _], Some(entry)) => Extent::UpTo { entry },
            _ => return self.say_plain("/summarize from NUMBER, or up to NUMBER: the numbers are those of the picker"),
        };
        self.summarise(extent, "")
    }

    fn prompt_number(&self, number: usize) -> Option<EntryId> {
        let prompts = self.view.entries.iter().filter(|entry| matches!(entry.body, Body::Prompt { .. }));
        prompts.map(|entry| entry.id).nth(number.checked_sub(1)?)
    }

    fn export(&mut self, argument: &str) -> Vec<Effect> {
        let short = self.view.session.short();
        let path = match argument {
            "" => PathBuf::from(format!("retake-{short}.jsonl")),
            path => PathBuf::from(path),
        };
        let mut text = String::new();
        for entry in &self.view.entries {
            // Entries came as JSON, and go as JSON.
            text.push_str(&serde_json::to_string(entry).unwrap_or_default());
            text.push('\n');
        }
        vec![Effect::Export(path, text)]
    }

    fn jobs(&mut self, argument: &str) -> Vec<Effect> {
        if let Some(job) = argument.strip_prefix("end ") {
            let job = job.trim().to_owned();
            return vec![Effect::Ask(Asked::Quietly, Action::EndJob { job }.into())];
        }
        if self.view.jobs.is_empty() {
            return self.say_plain("No background jobs");
        }
        let line = |job: &retake_agent::contract::JobFacts| {
            let state = job.ended.as_ref().map_or_else(|| "runs".to_owned(), |ended| format!("ended: {ended}"));
            format!("{} ({state})  {}", job.job, crate::text::clean(&job.command))
        };
        let lines: Vec<String> = self.view.jobs.iter().map(line).collect();
        self.say_plain(format!("{}\n`/jobs end JOB` ends one", lines.join("\n")))
    }
}
