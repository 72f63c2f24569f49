//! Keys while nothing else has taken the conversation's place, and where other keys go.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use retake_agent::contract::{Action, Change, State, WhileRunning};

use retake_engine::rewind::OnConflict;

use super::notice::{Lasts, Notice, Tone};
use super::page::{Page, PageBody, PlanPage};
use super::{App, Asked, Effect, MainView, NextSession, conflict_choices};
use crate::picker::Picker;

/// Within this many milliseconds a second key belongs to the first.
const TWICE: i64 = 1_500;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let key = self.plain(key);
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('l') if !matches!(self.place, MainView::Picker(_)) => return vec![Effect::Redraw],
                KeyCode::Char('z') => return vec![Effect::Suspend],
                KeyCode::Char('c') if !self.is_applying() => return self.ctrl_c(),
                _ => {}
            }
        }
        match &mut self.place {
            MainView::Talk => self.talk_key(key),
            MainView::Picker(picker) => {
                let steps = picker.key(key);
                self.picker_steps(steps)
            }
            MainView::List(_) => self.list_key(key),
            MainView::Help(_) | MainView::Page(_) => self.page_key(key),
        }
    }

    /// Where nobody types, Alt and a key is Esc and a key that came at once, as over a slow line: Esc it is, and nothing is chosen.
    fn plain(&self, key: KeyEvent) -> KeyEvent {
        let is_typing = matches!(self.place, MainView::Talk) && self.question().is_none();
        match key.modifiers.contains(KeyModifiers::ALT) && !is_typing {
            true => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
            false => key,
        }
    }

    /// Whether a rewind is under way that must not be hidden.
    fn is_applying(&self) -> bool {
        matches!(&self.place, MainView::Picker(picker) if picker.is_busy())
    }

    fn talk_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(effects) = self.answer_key(key) {
            return effects;
        }
        if let Some(effects) = self.completion_key(key) {
            return effects;
        }
        if key.code != KeyCode::Esc {
            self.escaped = None;
        }
        match key.code {
            KeyCode::Esc => return self.escape(),
            KeyCode::Char('r') if control => return self.open_picker(),
            KeyCode::Char('g') if control => return vec![Effect::Edit(self.composer.for_editor())],
            KeyCode::Char('d') if control && self.composer.is_blank() => return self.leave(),
            KeyCode::Char('d') if control && self.composer.is_at_end() => {
                return self.say_plain("Ctrl+D leaves when nothing is typed; Ctrl+C takes away what is");
            }
            KeyCode::Char('o') if control => self.transcript.toggle_all(),
            KeyCode::Char('t') if control => self.shows_todos = !self.shows_todos,
            KeyCode::Char('?') if self.composer.is_blank() => self.place = MainView::Help(0),
            KeyCode::F(1) => self.place = MainView::Help(0),
            KeyCode::PageUp => self.transcript.page(-1),
            KeyCode::PageDown => self.transcript.page(1),
            KeyCode::Up if key.modifiers.contains(KeyModifiers::SHIFT) => self.transcript.scroll(-1),
            KeyCode::Down if key.modifiers.contains(KeyModifiers::SHIFT) => self.transcript.scroll(1),
            KeyCode::Home if control => self.transcript.to_top(),
            KeyCode::End if control => self.transcript.to_bottom(),
            KeyCode::Tab if !self.view.questions.is_empty() => self.asking.is_aside = false,
            KeyCode::Char('/') if self.is_untouched() => self.shelve(),
            KeyCode::Enter if key.modifiers.is_empty() => return self.enter(),
            _ => return self.composer_key(key),
        }
        Vec::new()
    }

    /// Esc: closes what is open, stops what runs; twice on an empty composer opens the picker.
    fn escape(&mut self) -> Vec<Effect> {
        if self.asking.is_aside && !self.view.questions.is_empty() {
            self.asking.is_aside = false;
            return Vec::new();
        }
        if self.unshelve() {
            return Vec::new();
        }
        if self.view.state == State::Running || !self.view.questions.is_empty() || self.view.summarising {
            return self.interrupt();
        }
        if !self.transcript.is_at_bottom() {
            self.transcript.to_bottom();
            return Vec::new();
        }
        if !self.composer.is_blank() {
            return Vec::new();
        }
        let again = self.escaped.take().is_some_and(|before| self.now.0 - before.0 < TWICE);
        if again {
            return self.open_picker();
        }
        self.notice = None;
        self.escaped = Some(self.now);
        Vec::new()
    }

    /// Ctrl+C: stops what runs, else takes away what is typed, else leaves the second time.
    fn ctrl_c(&mut self) -> Vec<Effect> {
        if !matches!(self.place, MainView::Talk) {
            self.close_place();
            return Vec::new();
        }
        if self.view.state == State::Running || !self.view.questions.is_empty() || self.view.summarising {
            return self.interrupt();
        }
        if !self.composer.is_blank() {
            // It can be called back.
            self.composer.take();
            self.completion = None;
            self.shelved = Vec::new();
            return Vec::new();
        }
        self.leave_twice("Ctrl+C once more leaves; the session is kept", Lasts::On)
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        self.asking.is_why = false;
        vec![Effect::Ask(Asked::Quietly, Action::Interrupt { turn: None }.into())]
    }

    /// Leaves if that was said before.
    pub(super) fn leave_twice(&mut self, warning: &str, lasts: Lasts) -> Vec<Effect> {
        if self.warned.take().is_some_and(|before| self.now.0 - before.0 < TWICE * 2) {
            return self.leave();
        }
        self.warned = Some(self.now);
        self.notice = Some(Notice { tone: Tone::Warning, text: warning.to_owned(), lasts });
        Vec::new()
    }

    pub(super) fn leave(&mut self) -> Vec<Effect> {
        self.go(NextSession::Quit)
    }

    /// Leaves this session; what is being typed waits in it.
    pub(super) fn go(&mut self, next: NextSession) -> Vec<Effect> {
        let parts = self.composer.parts();
        let mut effects = Vec::new();
        // What a guide wrote is nobody's draft, and what somebody else has typed is not emptied by whoever never had it.
        let has_none = parts.is_empty() && self.loaded.is_empty();
        if parts != self.view.draft && !has_none && self.guide.is_none() {
            effects.push(Effect::Ask(Asked::Quietly, Action::Draft { parts }.into()));
        }
        effects.push(Effect::Leave(next));
        effects
    }

    /// Opens the picker; while a turn runs it says why not.
    pub(super) fn open_picker(&mut self) -> Vec<Effect> {
        if self.view.state == State::Running {
            return self
                .say_of_turn(Tone::Warning, "A turn is running, and nothing can go back under it: Esc stops it first");
        }
        let (mut picker, mut steps) = Picker::open();
        steps.extend(picker.view_changed(&self.view));
        self.place = MainView::Picker(Box::new(picker));
        self.completion = None;
        self.notice = None;
        self.picker_steps(steps)
    }

    /// Back to the conversation.
    pub(super) fn close_place(&mut self) {
        self.place = MainView::Talk;
    }

    /// Keys of pages that can only be read.
    fn page_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let step: i64 = match key.code {
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -20,
            KeyCode::PageDown | KeyCode::Char(' ') => 20,
            KeyCode::Home => i64::MIN / 2,
            KeyCode::End => i64::MAX / 2,
            KeyCode::Char('n') => return self.next_file(),
            KeyCode::Char('p') => return self.previous_file(),
            KeyCode::Enter => return self.page_enter(OnConflict::Stop),
            KeyCode::Char('k') if self.can_apply() => return self.page_enter(OnConflict::Keep),
            KeyCode::Char('o') if self.can_apply() => return self.page_enter(OnConflict::Overwrite),
            KeyCode::Char('m') if self.can_apply() => return self.page_enter(OnConflict::Merge),
            KeyCode::Esc | KeyCode::Char('q' | '?') => {
                self.close_place();
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        self.scroll_page(step);
        Vec::new()
    }

    /// To the next file of a diff.
    fn next_file(&mut self) -> Vec<Effect> {
        self.scroll_to(|starts, scroll| starts.iter().find(|start| **start > scroll).copied())
    }

    /// To the file before in a diff.
    fn previous_file(&mut self) -> Vec<Effect> {
        self.scroll_to(|starts, scroll| starts.iter().rev().find(|start| **start < scroll).copied())
    }

    /// Scrolls to one of the places at which files begin.
    fn scroll_to(&mut self, find: impl Fn(&[usize], usize) -> Option<usize>) -> Vec<Effect> {
        if let MainView::Page(shown) = &mut self.place
            && let Some(found) = find(&shown.starts(), shown.scroll)
        {
            shown.scroll = found;
        }
        Vec::new()
    }

    /// The plan that the page shows, if it shows one.
    fn plan(&self) -> Option<&PlanPage> {
        match &self.place {
            MainView::Page(page) => match &page.body {
                PageBody::Plan(plan) => Some(plan),
                PageBody::Diff(_) | PageBody::List(_) => None,
            },
            _ => None,
        }
    }

    /// Whether the page shows a change that can be made.
    fn can_apply(&self) -> bool {
        self.plan().is_some_and(PlanPage::has_work)
    }

    /// Makes the change that a page shows, if it shows one, and closes it. What the user has to decide first keeps it open.
    fn page_enter(&mut self, on_conflict: OnConflict) -> Vec<Effect> {
        if let Some(plan) = self.plan().filter(|plan| !conflict_choices::can_be(on_conflict, &plan.document.conflicts))
        {
            let keys = conflict_choices::keys(&plan.document.conflicts);
            return self.say(Tone::Warning, format!("Nothing was changed yet: {keys}"));
        }
        let place = std::mem::replace(&mut self.place, MainView::Talk);
        let MainView::Page(page) = place else { return Vec::new() };
        let Page { body: PageBody::Plan(plan), .. } = *page else { return Vec::new() };
        if !plan.has_work() {
            return Vec::new();
        }
        let PlanPage { change, document, .. } = *plan;
        let change = Change { on_conflict, ..change };
        let plan_seen = document.fingerprint_before_choices();
        let command = Action::Apply { change, head_seen: None, plan_seen, running: WhileRunning::Refuse };
        vec![Effect::Ask(Asked::Change { verb: "rewind" }, command.into())]
    }

    fn scroll_page(&mut self, step: i64) {
        match &mut self.place {
            MainView::Help(scroll) => {
                let last = i64::try_from(super::help::height()).unwrap_or(0);
                *scroll = u16::try_from((i64::from(*scroll) + step).clamp(0, last)).unwrap_or(0);
            }
            MainView::Page(page) => {
                // Drawing keeps it within what there is.
                let at = i64::try_from(page.scroll).unwrap_or(i64::MAX / 4).saturating_add(step);
                page.scroll = usize::try_from(at.max(0)).unwrap_or(0);
            }
            MainView::Talk | MainView::Picker(_) | MainView::List(_) => {}
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        match &mut self.place {
            MainView::Talk => {
                // Whoever pastes says something, and answers nothing.
                self.asking.is_aside = !self.asking.is_why;
                self.composer.paste(text);
                self.typed()
            }
            MainView::Picker(picker) => {
                let steps = picker.paste(text);
                self.picker_steps(steps)
            }
            MainView::Help(_) | MainView::List(_) | MainView::Page(_) => Vec::new(),
        }
    }

    pub(super) fn wheel(&mut self, lines: i32) -> Vec<Effect> {
        match &mut self.place {
            MainView::Talk => self.transcript.scroll(lines),
            MainView::Picker(picker) => picker.wheel(lines),
            MainView::List(list) => list.step(lines.signum() as isize),
            MainView::Help(_) | MainView::Page(_) => self.scroll_page(i64::from(lines)),
        }
        Vec::new()
    }

    pub(super) fn click(&mut self, row: u16) -> Vec<Effect> {
        let area = self.talk_area;
        if matches!(self.place, MainView::Talk) && row >= area.y && row < area.bottom() {
            self.transcript.click(row - area.y);
        }
        Vec::new()
    }
}
