//! The picker: where to go back to, what that would change, and how.
//!
//! A pure state machine and its drawing. A key, an answer of the session or a new view of it changes the state and returns [`PickerStep`]s; the
//! app carries them out and hands every answer back, refusals too. Lists, plans, diffs and refusals all come from the session: nothing here
//! knows how a rewind works, and nothing is changed but by a [`Command`] that the user chose.
//!
//! ```text
//! rows      a prompt, the filter         list      the rows, and which one is chosen
//! tree      the graph of all branches    preview   what going back would change, asked for
//! menu      what can be done             conflicts what to do with conflicts
//! keys      key → change of state        apply     requests that change something, and their answers
//! draw      the whole screen             row_lines, row_panel, preview_lines: its parts as lines
//! ```

mod apply;
mod conflicts;
mod draw;
mod keys;
mod list;
mod menu;
mod preview;
mod preview_lines;
mod row_lines;
mod row_panel;
mod rows;
mod text_lines;
mod tree;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use retake_agent::contract::{Command, Query, Reason, Refusal, Reply, SeenHead, SessionRef, State, Summarised};
use retake_agent::rewind_document::RewindDocument;
use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::Body;

use conflicts::Deciding;
use list::{ListMode, RowList};
use menu::{Item, Menu, MenuFacts};
use preview::{Preview, Want, Why};
use preview_lines::PreviewLines;
pub use preview_lines::{PlanLines, plan_lines};
pub use text_lines::Paths;

/// The picker.
#[derive(Debug)]
pub struct Picker {
    list: RowList,
    preview: Preview,
    stage: PickerStage,
    /// The head that belongs to the list; `None` until it is there.
    head: Option<SeenHead>,
    /// Counts the lists that were asked for: only the newest counts.
    lists: u64,
    /// What was last seen of the session; `None` until [`Picker::view_changed`] has told.
    watched: Option<Watched>,
    /// What the user should know, until the next key.
    notice: Option<String>,
    /// Whether the preview has all the room.
    is_zoomed: bool,
    /// The preview as it was drawn last: thousands of lines are not made anew for every key.
    sheet: Option<PreviewLines>,
}

/// What the picker asked for; comes back with the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickerRequest {
    /// The list.
    Targets {
        /// Which one.
        generation: u64,
    },
    /// Prompts that changed a file with this in its path.
    Found {
        /// What is looked for.
        word: String,
    },
    /// The tree.
    Tree {
        /// Which one.
        generation: u64,
    },
    /// What would change.
    Plan {
        /// Which want it is of.
        generation: u64,
    },
    /// What would change, line by line.
    Diff {
        /// Which want it is of.
        generation: u64,
    },
    /// To go back.
    Apply,
    /// To fork.
    Fork,
    /// To summarise.
    Summarise,
    /// To label a point.
    Label,
}

/// What the app has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum PickerStep {
    /// Send this, and hand the answer to [`Picker::answered`], whatever it is: the picker waits for it.
    Ask(PickerRequest, Box<Command>),
    /// Close the picker; nothing was changed.
    Close,
    /// It is done: close the picker, show what was done and how to undo it, load the draft.
    Rewound(Box<RewindDocument>),
    /// It is done: close the picker, and go on there if the user wants to.
    Forked {
        /// The new session.
        session: SessionRef,
    },
    /// It is done: close the picker.
    Summarised(Box<Summarised>),
}

/// Where one is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PickerStage {
    /// Among the rows.
    Browse,
    /// Writing a label for a prompt.
    Label { entry: EntryId, text: String },
    /// In the menu.
    Menu(Menu),
    /// Deciding about conflicts.
    Deciding(Deciding),
    /// Asked whether to go on although another branch is checked out.
    Crossing(Crossing),
    /// Waiting for something that was sent and cannot be sent again.
    Busy { work: PendingWork, from: Box<Self> },
}

/// Another branch is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Crossing {
    entry: EntryId,
    scope: Scope,
    /// What was decided before that.
    deciding: Option<Deciding>,
    answer: CrossingAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrossingAnswer {
    Back,
    GoOn,
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingWork {
    Rewind,
    Fork,
    Summary,
}

/// What matters of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Watched {
    state: State,
    last_prompt: Option<EntryId>,
    /// While a turn runs it moves with every entry, and that is nothing new.
    settled_head: Option<EntryId>,
    jobs: Vec<String>,
}

impl Watched {
    fn of(view: &View) -> Self {
        let prompts = view.entries.iter().rev().filter(|entry| matches!(entry.body, Body::Prompt { .. }));
        Self {
            state: view.state,
            last_prompt: prompts.map(|entry| entry.id).next(),
            settled_head: view.head().filter(|_| view.state != State::Running),
            jobs: view
                .jobs
                .iter()
                .filter(|job| job.ended.is_none())
                .map(|job| text_lines::clean(&job.command))
                .collect(),
        }
    }
}

impl Picker {
    /// Opens it, and asks what there is to go back to. Whether a turn runs it knows only from [`Picker::view_changed`]: tell it at once.
    pub fn open() -> (Self, Vec<PickerStep>) {
        // An answer to a picker that was closed must not pass for one to the next.
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let first = OPENED.fetch_add(1, Ordering::Relaxed) << 32;
        let mut picker = Self {
            list: RowList::default(),
            preview: Preview::new(first),
            stage: PickerStage::Browse,
            head: None,
            lists: first,
            watched: None,
            notice: None,
            is_zoomed: false,
            sheet: None,
        };
        let steps = picker.ask_for_lists();
        (picker, steps)
    }

    /// Whether something was sent that must not be hidden before it is answered.
    pub fn is_busy(&self) -> bool {
        matches!(self.stage, PickerStage::Busy { .. })
    }

    /// Takes what the session answered.
    pub fn answered(&mut self, asked: PickerRequest, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        match asked {
            PickerRequest::Targets { generation } if generation == self.lists => self.take_targets(answer),
            PickerRequest::Tree { generation } if generation == self.lists => self.take_tree(answer),
            // A newer one is on its way.
            PickerRequest::Targets { .. } | PickerRequest::Tree { .. } => Vec::new(),
            PickerRequest::Found { word } => {
                let targets = match answer {
                    Ok(Reply::Targets { targets, .. }) => targets,
                    // What is in the rows is found all the same.
                    Ok(_) | Err(_) => Vec::new(),
                };
                self.list.filter.found(word, targets.iter().map(|target| target.id).collect());
                self.list.settle();
                self.choose()
            }
            PickerRequest::Plan { generation } => {
                let mut steps = self.preview.take_plan(generation, answer);
                steps.extend(self.refresh_decisions());
                steps
            }
            PickerRequest::Diff { generation } => self.preview.take_diff(generation, answer),
            PickerRequest::Apply | PickerRequest::Fork | PickerRequest::Summarise => self.take_outcome(answer),
            PickerRequest::Label => match answer {
                Ok(_) => self.ask_for_lists(),
                Err(refusal) => {
                    self.say(&refusal);
                    Vec::new()
                }
            },
        }
    }

    /// Takes a new view of the session: whatever has happened in it, list and plan follow. Cheap if nothing that matters has.
    pub fn view_changed(&mut self, view: &View) -> Vec<PickerStep> {
        let now = Watched::of(view);
        let Some(before) = self.watched.replace(now.clone()) else { return Vec::new() };
        let without_jobs = |watched: &Watched| (watched.state, watched.last_prompt, watched.settled_head);
        // What was sent is answered soon, and that settles it.
        if without_jobs(&before) == without_jobs(&now) || self.is_busy() {
            return Vec::new();
        }
        let is_running = |watched: &Watched| watched.state == State::Running;
        let notice = match (is_running(&before), is_running(&now)) {
            (false, true) => None,
            (true, false) => Some("the turn has ended; this is what there is now"),
            (_, _) if before.last_prompt == now.last_prompt => None,
            (_, _) => Some("the conversation has moved on; this is what there is now"),
        };
        self.notice = notice.map(str::to_owned).or_else(|| self.notice.take());
        self.refresh()
    }

    fn state(&self) -> State {
        self.watched.as_ref().map(|watched| watched.state).unwrap_or_default()
    }

    /// Asks for everything again; for the plan once the list has told what is chosen.
    fn refresh(&mut self) -> Vec<PickerStep> {
        self.preview.outdate();
        self.ask_for_lists()
    }

    fn ask_for_lists(&mut self) -> Vec<PickerStep> {
        self.lists += 1;
        self.list.filter.outdate();
        let generation = self.lists;
        let targets =
            PickerStep::Ask(PickerRequest::Targets { generation }, Box::new(Query::Targets { query: None }.into()));
        let tree = || PickerStep::Ask(PickerRequest::Tree { generation }, Box::new(Query::Tree.into()));
        let mut steps = vec![targets];
        steps.extend((self.list.mode == ListMode::Tree).then(tree));
        steps.extend(self.ask_for_files());
        steps
    }

    /// Asks which prompts changed a file with a word of the filter in its path.
    fn ask_for_files(&mut self) -> Vec<PickerStep> {
        let ask = |word: String| {
            let command = Query::Targets { query: Some(word.clone()) };
            PickerStep::Ask(PickerRequest::Found { word }, Box::new(command.into()))
        };
        self.list.filter.unasked().into_iter().map(ask).collect()
    }

    fn take_targets(&mut self, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        let (head, targets) = match answer {
            Ok(Reply::Targets { head, targets }) => (head, targets),
            Ok(_) => return self.fail(&unexpected()),
            Err(refusal) => return self.fail(&refusal),
        };
        self.list.take_targets(&targets);
        let before = self.head.replace(SeenHead { head });
        if before.is_some_and(|before| before.head != head) {
            self.preview.outdate();
        }
        self.choose()
    }

    fn take_tree(&mut self, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        match answer {
            Ok(Reply::Tree { head, prompts }) => {
                self.list.take_tree(head, &prompts);
                self.choose()
            }
            Ok(_) => self.leave_tree(&unexpected()),
            Err(refusal) => self.leave_tree(&refusal),
        }
    }

    fn leave_tree(&mut self, refusal: &Refusal) -> Vec<PickerStep> {
        self.say(refusal);
        self.list.switch(ListMode::List);
        self.choose()
    }

    /// Without a new list the old one is all there is.
    fn fail(&mut self, refusal: &Refusal) -> Vec<PickerStep> {
        self.say(refusal);
        self.choose()
    }

    /// After the rows, or the chosen one, may be others: asks what that would change. What was open is about one prompt, and closes
    /// when that is not to be had any more.
    fn choose(&mut self) -> Vec<PickerStep> {
        let chosen = self.list.chosen().map(|row| row.id);
        let is_busy = self.is_busy();
        if let Some(entry) = self.stage.entry().filter(|entry| !is_busy && Some(*entry) != chosen) {
            self.stage = PickerStage::Browse;
            self.notice = Some(format!("prompt {} is not in the list any more; nothing was changed", entry.short()));
        }
        self.preview.want(self.wanted(), Why::Chosen)
    }

    /// What is to be worked out.
    fn wanted(&self) -> Option<Want> {
        let row = self.list.chosen()?;
        let scope = if row.files_gone { Scope::Conversation } else { Scope::Both };
        let choices = self.stage.deciding().map(Deciding::choices).unwrap_or_default();
        Some(Want { entry: row.id, scope, choices })
    }

    fn facts(&self) -> Option<MenuFacts<'_>> {
        let row = self.list.chosen()?;
        Some(MenuFacts { row, retained: self.list.retained(), state: self.state(), preview: &self.preview })
    }

    /// Tells why something was not done.
    fn say(&mut self, refusal: &Refusal) {
        let hint = refusal.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        self.notice = Some(text_lines::clean(&format!("{}{hint}", refusal.message)));
    }
}

impl PickerStage {
    /// The prompt that it is about.
    fn entry(&self) -> Option<EntryId> {
        match self {
            Self::Browse => None,
            Self::Label { entry, .. } => Some(*entry),
            Self::Menu(menu) => Some(menu.entry),
            Self::Deciding(deciding) => Some(deciding.entry),
            Self::Crossing(crossing) => Some(crossing.entry),
            Self::Busy { from, .. } => from.entry(),
        }
    }

    /// What is about to be done.
    fn item(&self) -> Option<Item> {
        match self {
            Self::Browse | Self::Label { .. } => None,
            Self::Menu(menu) => Some(menu.chosen),
            Self::Deciding(deciding) => Some(apply::item_of(deciding.scope)),
            Self::Crossing(crossing) => Some(apply::item_of(crossing.scope)),
            Self::Busy { from, .. } => from.item(),
        }
    }

    /// What is being decided.
    fn deciding(&self) -> Option<&Deciding> {
        match self {
            Self::Deciding(deciding) => Some(deciding),
            Self::Crossing(crossing) => crossing.deciding.as_ref(),
            Self::Busy { from, .. } => from.deciding(),
            Self::Browse | Self::Label { .. } | Self::Menu(_) => None,
        }
    }
}

/// An answer to something else.
fn unexpected() -> Refusal {
    let message = "the session answered something else than it was asked; nothing was changed".to_owned();
    Refusal { reason: Reason::Invalid, message, hint: None, document: None }
}
