//! What the session tells.

use retake_agent::contract::{Event, EventKind, Query, State, TurnEnd};
use retake_agent::view::View;
use retake_engine::session::entry::Body;

use super::notice::Tone;
use super::totals::Totals;
use super::{App, Asked, Effect, MainView};

/// Where the prompt of the point is, if the composer holds another text.
pub(super) const DRAFT_WAITS: &str = "Your text is kept; what was said then waits: /draft loads it";

impl App {
    pub(super) fn event(&mut self, event: &Event) -> Vec<Effect> {
        if event.seq <= self.view.seq {
            return Vec::new();
        }
        let is_own = event.request.as_ref().is_some_and(|request| self.own.contains(request));
        let asked_before = self.view.questions.len();
        let questions_before = self.view.questions.first().map(|question| question.call.clone());
        self.view.apply(event);
        match &event.kind {
            EventKind::Appended { entry } => {
                self.facts.take(entry);
                if let Body::Prompt { parts } = &entry.body
                    && is_own
                {
                    self.warn_of_missing(parts);
                }
            }
            EventKind::HeadMoved { operation, .. } => {
                self.facts = Totals::of(&self.view);
                if !is_own && operation.is_some() {
                    self.say(Tone::Plain, "Another client changed the conversation");
                }
            }
            EventKind::DraftChanged { .. } => self.draft_changed(is_own),
            EventKind::StateChanged { .. } => self.watch_state(),
            EventKind::TurnEnded { prompt, reason, message, taken_back, .. } => {
                self.end_notice_of_turn();
                let is_cut = !taken_back && self.view.entries.iter().rev().all(|entry| entry.id != *prompt);
                // A rewind has said what became of a turn that is cut.
                if !is_cut {
                    match taken_back {
                        true => drop(self.say_taken_back(message.as_deref())),
                        false => self.say_ended(*reason, message.as_deref()),
                    }
                }
                self.running_since = None;
                return vec![Effect::Ask(Asked::Store, Query::Store.into())];
            }
            EventKind::Retrying { after_ms, attempt, message } => {
                let seconds = after_ms.div_ceil(1_000);
                self.say_of_turn(Tone::Warning, format!("{message}. Asking again in {seconds} s (attempt {attempt})"));
            }
            EventKind::Warning { text } => {
                self.say(Tone::Warning, text.clone());
            }
            EventKind::Returned => {
                self.say(
                    Tone::Warning,
                    "What was held is not said, because the turn before it was stopped: it is the draft",
                );
            }
            EventKind::Snapshot { error: Some(error), .. } => {
                self.say(Tone::Warning, format!("No snapshot could be taken: {error}"));
            }
            EventKind::ModelChanged { model, .. } => {
                self.say(Tone::Plain, format!("{model} is asked from now on"));
            }
            _ => {}
        }
        let first = self.view.questions.first().map(|question| question.call.clone());
        if self.view.questions.len() != asked_before || first != questions_before {
            self.question_changed();
        }
        self.tell_picker()
    }

    /// Everything is told anew.
    pub(super) fn missed(&mut self, view: View) -> Vec<Effect> {
        self.view = view;
        self.facts = Totals::of(&self.view);
        self.question_changed();
        self.watch_state();
        self.tell_picker()
    }

    fn tell_picker(&mut self) -> Vec<Effect> {
        let MainView::Picker(picker) = &mut self.place else { return Vec::new() };
        let steps = picker.view_changed(&self.view);
        self.picker_steps(steps)
    }

    /// Remembers since when a turn runs.
    pub(super) fn watch_state(&mut self) {
        if self.view.state != State::Running {
            self.end_notice_of_turn();
        }
        match self.view.state {
            State::Running => drop(self.running_since.get_or_insert(self.now)),
            State::Paused if !self.view.questions.is_empty() => {}
            State::Idle | State::Paused => self.running_since = None,
        }
    }

    /// Says how a turn ended, unless it ended as it should.
    fn say_ended(&mut self, reason: TurnEnd, message: Option<&str>) {
        match reason {
            TurnEnd::Interrupted => {
                drop(self.say_plain("Stopped. /undo takes the turn back; Ctrl+R goes further back"))
            }
            TurnEnd::RoundLimit => drop(self.say(Tone::Warning, message.unwrap_or("The turn took too many rounds"))),
            TurnEnd::Done | TurnEnd::Failed => {}
        }
    }

    /// A turn came to nothing: says why, and where to find what was said.
    fn say_taken_back(&mut self, message: Option<&str>) -> Vec<Effect> {
        let is_loaded = !self.loaded.is_empty() && self.composer.parts() == self.loaded;
        let place =
            if is_loaded { "what you said is in the composer again" } else { "what was said waits: /draft loads it" };
        match message {
            Some(message) => self.say_bad(format!("{message}; {place}")),
            None => self.say_plain(format!("Nothing came of it; {place}")),
        }
    }

    /// Loads what waits to be said, when the client starts.
    pub(super) fn load_draft(&mut self) {
        if self.composer.is_blank() && !self.view.draft.is_empty() {
            self.take_draft();
        }
    }

    /// Puts what waits to be said into the composer.
    pub(super) fn take_draft(&mut self) {
        self.composer.set(&self.view.draft);
        self.loaded = self.composer.parts();
        self.completion = None;
    }

    /// Whether the composer holds a text of the user's own, which no draft replaces.
    fn has_own_text(&self) -> bool {
        !self.composer.is_blank() && self.composer.parts() != self.loaded
    }

    /// Whether the user's own text keeps the draft out of the composer.
    pub(super) fn keeps_draft_out(&self) -> bool {
        !self.view.draft.is_empty() && self.has_own_text()
    }

    /// What waits to be said has changed. What the user has typed stays.
    fn draft_changed(&mut self, is_own: bool) {
        match (is_own, self.has_own_text()) {
            (true, false) => self.take_draft(),
            _ if self.view.draft.is_empty() => {}
            (true, true) => self.add_to_notice(DRAFT_WAITS),
            (false, _) => {
                self.say(Tone::Plain, "Another client went back. What was said then waits: /draft loads it");
            }
        }
    }

    /// What was said can be called back with the arrow keys.
    pub(super) fn remember_prompts(&mut self) {
        for entry in &self.view.entries {
            if let Body::Prompt { parts } = &entry.body {
                self.composer.remember(parts.clone());
            }
        }
    }
}
