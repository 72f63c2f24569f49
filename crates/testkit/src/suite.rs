//! One list of scenarios for every way to a session: the controller in this process, its socket, both versions of ACP, and HTTP.
//!
//! A [`TestClient`] is what a client can do behind one of them; [`scenarios!`](crate::scenarios) makes a test of every scenario there. What is
//! asserted is the same everywhere: the files on disk, what a newcomer is shown, and what the model is sent next.
//!
//! Every scenario means something behind every door, so none is left out anywhere. Where a door has no message of its own for something,
//! it does what a client does there: to edit a prompt in the client contract is to go back to before it and to say something else, and to
//! fork from the past over ACP is to type `/fork`.

mod contract;
pub mod scenarios;

use std::path::PathBuf;

pub use contract::{ByContract, Contract};

use crate::ScriptedModel;

/// What a client can do, whichever way it came. Whoever is asked is a user: nothing that changes something runs without an answer.
pub trait TestClient {
    /// The model that the session asks.
    fn model(&self) -> &ScriptedModel;

    /// The workspace.
    fn root(&self) -> PathBuf;

    /// The session.
    fn session(&mut self) -> String;

    /// Says something, and waits for nothing.
    fn say(&mut self, text: &str);

    /// Waits until `text` has come of the answer.
    fn until_words(&mut self, text: &str);

    /// Waits until somebody has to say whether a call may run: what is to run, in words.
    fn until_asked(&mut self) -> String;

    /// Says whether the call that was asked about may run.
    fn answer(&mut self, answer: Consent);

    /// Waits for the end of the turn that was begun last; whatever is asked until then is allowed.
    fn until_ended(&mut self) -> TurnEnded;

    /// Stops the turn.
    fn cancel(&mut self);

    /// What a newcomer is shown, oldest first.
    fn history(&mut self) -> Vec<ShownMessage>;

    /// Where the conversation stands, for [`Change::seen`].
    fn head(&mut self) -> Option<String>;

    /// Makes a change, or only works out what it would come to.
    fn change(&mut self, change: &Change<'_>) -> Result<ChangeOutcome, ChangeRefused>;

    /// Says `text` in the place of a prompt; the turn goes on.
    fn edit(&mut self, prompt: &str, text: &str);

    /// Forks the session before a prompt, or from its end: the new session.
    fn fork(&mut self, before: Option<&str>) -> String;

    /// Goes over to another session of the workspace.
    fn enter(&mut self, session: &str);

    /// The process ends in good order, and another one opens the session.
    fn reload(&mut self);
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// This once.
    Allow,
    /// No.
    Reject,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnEnded {
    /// The prompt that began it.
    pub prompt: String,
    /// Whether somebody stopped it.
    pub cancelled: bool,
}

/// A message as clients show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownMessage {
    /// `user` or `agent`.
    pub role: &'static str,
    /// Its id.
    pub id: String,
    /// What it says.
    pub text: String,
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// Go back to before this prompt.
    Before(&'a str),
    /// Go back to after this message, which stays.
    To(&'a str),
    /// Take back the newest operation.
    Undo,
    /// Repeat what was undone.
    Redo,
}

/// A change, and on which terms.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// What is to be done.
    pub goal: Goal<'a>,
    /// `conversation`, `code` or `both`.
    pub scope: &'a str,
    /// Only work out what would happen.
    pub dry_run: bool,
    /// Where the client saw the head.
    pub seen: Option<&'a str>,
    /// Stop a turn that runs.
    pub interrupt: bool,
    /// `stop`, `keep`, `overwrite` or `merge`.
    pub on_conflict: &'a str,
}

impl<'a> Change<'a> {
    /// A change of files and conversation that is made at once, stops at conflicts and stops no turn.
    pub fn new(goal: Goal<'a>) -> Self {
        Self { goal, scope: "both", dry_run: false, seen: None, interrupt: false, on_conflict: "stop" }
    }
}

/// What came of a change, or would.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeOutcome {
    /// The last message that stays.
    pub last: Option<String>,
    /// What the user had said, if it left the conversation.
    pub said: Option<String>,
    /// Files that have an earlier content again.
    pub restored: Vec<String>,
    /// Files that are gone again.
    pub deleted: Vec<String>,
    /// Files that stay as they are, because somebody else changed them.
    pub kept: Vec<String>,
    /// Files that changed since and did not go back.
    pub not_restored: Vec<String>,
    /// Whether there is an operation that could be undone.
    pub operation: bool,
}

/// A change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRefused {
    /// Why: `running`, `stale_head`, `conflicts`, `nothing` or `not_found`.
    pub reason: String,
    /// Paths that something has to be decided about.
    pub conflicts: Vec<String>,
}

/// Makes a test of every scenario behind one door: `scenarios!(open)`, where `open()` gives a [`TestClient`] with a new session.
#[macro_export]
macro_rules! scenarios {
    ($open:path) => {
        $crate::scenarios! { $open =>
            an_answer_comes_and_is_still_there_when_the_session_is_loaded
            tools_change_files_and_the_model_is_told_what_came_of_them
            what_is_allowed_runs_and_what_is_rejected_does_not
            a_turn_that_is_stopped_keeps_what_was_said
            a_turn_that_is_stopped_before_any_word_leaves_nothing
            a_turn_that_is_stopped_while_it_asks_runs_nothing
            a_fork_goes_its_own_way_and_the_session_stays_as_it_is
            a_fork_from_the_past_begins_before_the_prompt
            an_exclusive_rewind_takes_the_prompt_what_came_of_it_and_its_files
            an_inclusive_rewind_keeps_the_prompt_and_takes_what_came_of_it
            an_inclusive_rewind_to_an_answer_keeps_the_answer
            a_rewind_to_before_the_first_message_leaves_nothing
            one_half_goes_back_and_the_model_is_told_of_the_other
            a_rewind_in_the_middle_of_a_turn_stops_it_or_is_refused
            a_prompt_is_edited_and_the_old_one_is_gone
            a_head_that_has_moved_on_is_refused
            conflicts_stop_everything_until_they_are_decided
            a_large_file_that_changed_is_named_when_it_does_not_go_back
            a_dry_run_tells_all_and_changes_nothing
            undo_and_redo_bring_both_halves_back_and_forth
            a_turn_is_undone_and_redone_across_a_restart
            a_point_that_there_is_not_is_refused
        }
    };
    ($open:path => $($scenario:ident)+) => {
        $(
            #[test]
            fn $scenario() {
                $crate::suite::scenarios::$scenario(&mut $open());
            }
        )+
    };
}
