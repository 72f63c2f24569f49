//! What the session answered.

use retake_agent::contract::{Query, Reason, Refusal, Reply, Summarised};
use retake_agent::rewind_document::{ConflictFacts, File, NotRestoredFacts, RewindDocument};
use retake_engine::session::first_line;

use super::complete::{self, Completion, Typing};
use super::events::DRAFT_WAITS;
use super::list::ListPanel;
use super::notice::Tone;
use super::page::{Page, PageBody, PlanPage};
use super::{App, Asked, Effect, MainView, NextSession, conflict_choices};
use crate::picker::{Paths, PickerStep};
use crate::text::clean;
use crate::text::diff::{DiffView, path_text};

/// Paths that a notice names.
const MAX_NAMED: usize = 4;

impl App {
    pub(super) fn answered(&mut self, asked: Asked, answer: Result<Reply, Refusal>) -> Vec<Effect> {
        if let Asked::Picker(asked) = asked {
            let MainView::Picker(picker) = &mut self.place else { return Vec::new() };
            let steps = picker.answered(asked, answer);
            return self.picker_steps(steps);
        }
        if matches!(asked, Asked::Change { .. }) {
            self.changing = self.changing.saturating_sub(1);
        }
        // What comes late does not take the place of what was opened meanwhile.
        let is_late = !matches!((&self.place, &asked), (MainView::Talk, _) | (MainView::List(_), Asked::Preview(_)));
        if is_late && matches!(asked, Asked::Diff | Asked::Preview(_) | Asked::Sessions | Asked::Checkpoints) {
            return Vec::new();
        }
        match (asked, answer) {
            (Asked::Said(parts), Err(refusal)) => {
                // It is not lost.
                if self.composer.is_blank() {
                    self.composer.set(&parts);
                }
                self.refused(&refusal)
            }
            (Asked::Said(parts), Ok(Reply::Held { .. })) => {
                self.say_of_turn(Tone::Plain, format!("Held until the turn has ended: {}", first_line(&parts)))
            }
            (Asked::Files(query), Ok(Reply::Files { paths })) => {
                if self.files_wanted.as_ref() == Some(&query)
                    && complete::typing(&self.composer) == Some(Typing::File(query.clone()))
                {
                    self.completion = Completion::of_files(&query, paths);
                }
                Vec::new()
            }
            (Asked::Store, Ok(Reply::Store { bytes, budget })) => {
                self.store = Some((bytes, budget));
                Vec::new()
            }
            (Asked::Files(_) | Asked::Store, _) => Vec::new(),
            (Asked::Change { verb }, Err(refusal)) if refusal.reason == Reason::Conflicts => {
                self.needs_a_decision(verb, &refusal)
            }
            (Asked::Model(_), Err(refusal)) => self.say_bad(refusal.message),
            (_, Err(refusal)) => self.refused(&refusal),
            (Asked::Change { verb }, Ok(Reply::Change { document })) => self.changed(verb, &document),
            (Asked::Diff, Ok(Reply::Diff { files, .. })) if files.is_empty() => {
                self.say_plain("The last turn changed no files")
            }
            (Asked::Diff, Ok(Reply::Diff { files, .. })) => {
                let title = "What the last turn changed".to_owned();
                self.place = MainView::Page(Box::new(Page::new(title, PageBody::Diff(DiffView::new(files)))));
                Vec::new()
            }
            (Asked::Preview(change), Ok(Reply::Diff { files, plan: Some(plan) })) => {
                self.show_plan(PlanPage::new(change, plan, files));
                Vec::new()
            }
            (Asked::Fork, Ok(Reply::Forked { session, .. })) => self.go(NextSession::Forked(session.into())),
            (Asked::Summary, Ok(Reply::Summarised { summary })) => self.summarised(summary.as_deref()),
            (Asked::Label(label), Ok(_)) => self.say_good(format!("The point before the last prompt is `{label}` now")),
            (Asked::Sessions, Ok(Reply::Sessions { sessions })) => {
                self.place = MainView::List(Box::new(ListPanel::of_sessions(sessions, &self.view.session)));
                Vec::new()
            }
            (Asked::Checkpoints, Ok(Reply::Checkpoints { checkpoints })) => {
                self.place = MainView::List(Box::new(ListPanel::of_checkpoints(checkpoints)));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Shows what going back to a checkpoint would change, what stays, and what the user has to decide first.
    fn show_plan(&mut self, plan: PlanPage) {
        let keys = match plan.document.conflicts.as_slice() {
            _ if !plan.has_work() => "No captured file has to change; Esc leaves".to_owned(),
            [] => "Enter applies this, and the conversation stays; Esc leaves".to_owned(),
            conflicts => format!("{}, Esc leaves", conflict_choices::keys(conflicts)),
        };
        let means = plan.document.means.map(|means| format!(": {}", means.describe())).unwrap_or_default();
        let title = format!("Rewind to {}{means}\n{keys}", clean(&plan.document.what));
        self.place = MainView::Page(Box::new(Page::new(title, PageBody::Plan(Box::new(plan)))));
    }

    /// Files were changed by somebody else since: nothing was done, and the user says what is to become of them.
    fn needs_a_decision(&mut self, verb: &str, refusal: &Refusal) -> Vec<Effect> {
        let conflicts = refusal.document.as_ref().map(|document| document.conflicts.as_slice()).unwrap_or_default();
        let mut lines = vec![format!("{}: nothing was changed yet", refusal.message)];
        lines.extend(first(conflicts, undecided).into_iter().map(|name| format!("  {name}")));
        lines.push(match verb {
            "rewind" => format!("/checkpoints once more: {}", conflict_choices::keys(conflicts)),
            _ => conflict_choices::arguments(verb, conflicts),
        });
        self.say(Tone::Warning, lines.join("\n"))
    }

    fn refused(&mut self, refusal: &Refusal) -> Vec<Effect> {
        if refusal.reason == Reason::Running {
            return self.say_of_turn(Tone::Bad, format!("{} · Esc stops it", refusal.message));
        }
        let hint = refusal.hint.as_ref().map(|hint| format!(" · {hint}")).unwrap_or_default();
        self.say_bad(format!("{}{hint}", refusal.message))
    }

    /// An undo or a redo was made.
    fn changed(&mut self, verb: &str, document: &RewindDocument) -> Vec<Effect> {
        let (done, back) = match verb {
            "undo" if document.operation.is_none() && document.conversation_moved.is_none() => {
                let what = &document.what;
                return self.say_plain(format!("Nothing was undone of {what}: its files are as they were before it. If its change comes back, /undo takes it back"));
            }
            "undo" => ("Undid", "/redo repeats it"),
            "redo" => ("Redid", "/undo takes it back"),
            _ => ("Went back to", "/undo takes it back"),
        };
        self.say_done(done, document, back);
        vec![Effect::Ask(Asked::Store, Query::Store.into())]
    }

    /// Says what a change has done. If more paths did not go back than the notice has room for, a page lists all of them.
    fn say_done(&mut self, done: &str, document: &RewindDocument, back: &str) {
        let kept_text = match document.conversation_moved == Some(true) && self.keeps_draft_out() {
            true => format!(". {DRAFT_WAITS}"),
            false => String::new(),
        };
        self.say_good(format!("{done} {}: {}. {back}{kept_text}", document.what, in_files(document)));
        if document.not_restored.len() > MAX_NAMED {
            let title = format!("These {} paths changed since and did not go back", document.not_restored.len());
            let paths = document.not_restored.iter().map(stays).collect();
            self.place = MainView::Page(Box::new(Page::new(title, PageBody::List(paths))));
        }
    }

    fn summarised(&mut self, summary: Option<&Summarised>) -> Vec<Effect> {
        let Some(summary) = summary else { return self.say_plain("There was nothing to summarise") };
        let (before, after) = summary.bytes;
        let saved = 100 - (after * 100).checked_div(before).unwrap_or(100).min(100);
        self.say_good(format!("Summarised: the next request is {saved} % shorter. /undo takes it back"))
    }

    /// Does what the picker wants.
    pub(super) fn picker_steps(&mut self, steps: Vec<PickerStep>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for step in steps {
            match step {
                PickerStep::Ask(asked, command) => effects.push(Effect::Ask(Asked::Picker(asked), *command)),
                PickerStep::Close => self.close_place(),
                PickerStep::Rewound(document) => {
                    self.place = MainView::Talk;
                    self.refilled = Some(self.now);
                    self.transcript.to_bottom();
                    self.say_done("Went back to", &document, "/undo takes this back");
                    effects.push(Effect::Ask(Asked::Store, Query::Store.into()));
                }
                PickerStep::Forked { session } => {
                    self.place = MainView::Talk;
                    effects.extend(self.go(NextSession::Forked(session.into())));
                }
                PickerStep::Summarised(summary) => {
                    self.place = MainView::Talk;
                    effects.extend(self.summarised(Some(&summary)));
                }
            }
        }
        effects
    }
}

/// A path that changed since and did not go back, with why.
fn stays(one: &NotRestoredFacts) -> String {
    format!("{} ({})", path_text(&one.path), clean(&one.text))
}

/// A path that needs a decision, with why.
fn undecided(one: &ConflictFacts) -> String {
    format!("{} ({})", path_text(&one.path), clean(&one.text))
}

/// The first of `all` by name, and how many more there are.
fn first<T>(all: &[T], name: impl Fn(&T) -> String) -> Vec<String> {
    let mut names: Vec<String> = all.iter().take(MAX_NAMED).map(name).collect();
    match all.len().saturating_sub(MAX_NAMED) {
        0 => {}
        more => names.push(format!("and {more} more")),
    }
    names
}

/// What became of the files, and what did not go back with them: `2 files went back, 1 was kept`.
fn in_files(document: &RewindDocument) -> String {
    let count = |status: &str| document.files.iter().filter(|file| file.status == status).count();
    let is_merged = |file: &File| file.action.as_deref() == Some("merge");
    let all_done = || document.files.iter().filter(|file| file.status == "done");
    let merged = all_done().filter(|file| is_merged(file)).count();
    let done = Paths::count(all_done().filter(|file| !is_merged(file)));
    let (kept, failed) = (count("kept"), count("failed"));
    let mut words = vec![match done.is_empty() {
        true if merged > 0 => format!("{merged} merged"),
        true => "no file changed".to_owned(),
        false => format!("{} went back", done.in_words()),
    }];
    if !done.is_empty() && merged > 0 {
        words.push(format!("{merged} merged"));
    }
    match kept {
        0 => {}
        1 => words.push("1 is kept as it is now".to_owned()),
        _ => words.push(format!("{kept} are kept as they are now")),
    }
    if failed > 0 {
        words.push(format!("{failed} FAILED"));
    }
    if !document.not_restored.is_empty() {
        words.push(format!("did not go back: {}", first(&document.not_restored, stays).join(", ")));
    }
    let remedies: Vec<String> =
        document.ledger.iter().filter_map(|item| item.remedy.as_ref()).map(|remedy| format!("`{remedy}`")).collect();
    if !remedies.is_empty() {
        words.push(format!("git stays where it is now: {} would move it back", remedies.join(", ")));
    } else if document.ledger.iter().any(|item| item.kind == "git") {
        words.push("git has moved and stays where it is now".to_owned());
    }
    words.join(", ")
}
