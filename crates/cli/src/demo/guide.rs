//! The demo's hints: a function of the session, of what is typed and of the demo's own files, so that they hold whatever a newcomer does.
//!
//! Owns the story's ten steps and which of them has been reached. Reads the project's files; changes nothing.

use std::path::PathBuf;

use retake_agent::view::View;
use retake_engine::session::entry::{Body, EndReason, Entry, Outcome, Part};
use retake_tui::{Guide, Hint, Moment};

use super::story;

const STEPS: usize = 10;

/// The guide through the demo.
pub struct Hints {
    root: PathBuf,
    reached: Reached,
}

/// How far the story has come; it never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    Nothing,
    /// The notes were deleted.
    Lost,
    /// They are back.
    Restored,
    /// The script was moved, and the notes are still there.
    Tidied,
    /// That was undone.
    Undone,
}

/// The project as it is now.
#[derive(Clone, Copy)]
struct ProjectFiles {
    has_notes: bool,
    is_tidy: bool,
}

/// What the last turn in the conversation asked for, and how far it has come.
#[derive(Clone, Copy)]
struct LastTurn {
    task: PromptTask,
    end: Option<End>,
}

/// What a prompt asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptTask {
    /// To tidy up, whatever is lost.
    Careless,
    /// To tidy up, and to leave files alone.
    Careful,
    Other,
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It did what it was allowed to do.
    Done,
    /// The user did not allow something.
    Denied,
    /// The user stopped it.
    Stopped,
}

impl PromptTask {
    fn of(prompt: &str) -> Self {
        match (story::is_tidy(prompt), story::is_careful(prompt)) {
            (_, true) => Self::Careful,
            (true, false) => Self::Careless,
            (false, false) => Self::Other,
        }
    }
}

impl Hints {
    /// For the project at `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root, reached: Reached::Nothing }
    }

    fn files(&self) -> ProjectFiles {
        let exists = |name: &str| self.root.join(name).exists();
        ProjectFiles { has_notes: exists("notes.txt"), is_tidy: exists("src/total.sh") }
    }

    /// Takes in what has happened to the files since the last look.
    fn look(&mut self, files: ProjectFiles) {
        let next = match self.reached {
            Reached::Nothing if !files.has_notes => Reached::Lost,
            Reached::Lost if files.has_notes => Reached::Restored,
            Reached::Restored if files.has_notes && files.is_tidy => Reached::Tidied,
            Reached::Tidied if !files.is_tidy => Reached::Undone,
            reached => reached,
        };
        self.reached = next;
    }

    /// While a turn runs, or asks.
    fn during(&self, turn: LastTurn, is_asking: bool) -> (usize, String) {
        let is_restored = self.reached >= Reached::Restored;
        let number = match (is_restored, turn.task) {
            (true, _) => 8,
            (false, PromptTask::Careless | PromptTask::Careful) => 4,
            (false, PromptTask::Other) => 2,
        };
        let text = match (is_asking, turn.task, is_restored) {
            (false, ..) => "the agent is at work. Esc would stop it.",
            (true, PromptTask::Other, _) => {
                "it asks before it runs or changes something: Enter or y allows it, n does not. Above is what would be written."
            }
            (true, PromptTask::Careless, true) => {
                "the same words, so the same command: rm is in it. n stops it; y does, and you can go back once more."
            }
            (true, PromptTask::Careless, false) => "allow it (Enter or y), although it looks careless: rm is in it.",
            (true, PromptTask::Careful, true) => {
                "it goes another way now: no rm. Enter or y allows it. Tab in the picker still shows what you left behind."
            }
            (true, PromptTask::Careful, false) => {
                "it moves the script and deletes nothing: no rm. Enter or y allows it."
            }
        };
        (number, text.to_owned())
    }

    /// While nothing runs.
    fn between(
        &self,
        files: ProjectFiles,
        turn: Option<LastTurn>,
        typed: &str,
    ) -> (usize, String, Option<&'static str>) {
        if !files.has_notes {
            let text = "notes.txt was deleted, a file of yours that is nowhere else. Ctrl+R opens the picker.";
            return (5, text.to_owned(), None);
        }
        match self.reached {
            Reached::Nothing | Reached::Lost => match turn {
                None => (1, self.welcome(), Some(story::FIRST)),
                Some(turn) => (3, before_the_mistake(turn).to_owned(), Some(story::SECOND)),
            },
            Reached::Restored => (7, once_more(turn, typed).to_owned(), None),
            Reached::Tidied => {
                let text = "a whole turn can be taken back, too: type /undo and press Enter. /redo would repeat it.";
                (9, text.to_owned(), None)
            }
            Reached::Undone => {
                let text = "that is it. Ctrl+R, /undo, /redo, ? for the rest; /quit leaves, then run `retake` in a project of yours.";
                (10, text.to_owned(), None)
            }
        }
    }

    fn welcome(&self) -> String {
        format!(
            "the agent is the real one, the model is scripted, and the project in {} is yours to break. Enter sends the prompt below.",
            self.root.display()
        )
    }
}

/// What to do until the notes are lost.
fn before_the_mistake(turn: LastTurn) -> &'static str {
    match (turn.task, turn.end) {
        (PromptTask::Careless, Some(End::Denied | End::Stopped)) => {
            "you stopped it, and notes.txt is still there. To see the way back, send it again and allow it."
        }
        (PromptTask::Careful, Some(End::Denied | End::Stopped)) => {
            "you stopped it. To see the way back, ask for something that goes wrong: Enter."
        }
        (PromptTask::Careless | PromptTask::Careful, _) => {
            "it left your files alone. To see the way back, ask for something that goes wrong: Enter."
        }
        (PromptTask::Other, Some(End::Denied)) => {
            "you did not allow it, so it was not done. Now ask for something that will go wrong: Enter."
        }
        (PromptTask::Other, Some(End::Stopped)) => "you stopped it. Now ask for something that will go wrong: Enter.",
        (PromptTask::Other, _) => "that was one turn. Now ask for something that will go wrong: Enter.",
    }
}

/// What to do once the notes are back.
fn once_more(turn: Option<LastTurn>, typed: &str) -> &'static str {
    let was_stopped = turn.is_some_and(|turn| matches!(turn.end, Some(End::Denied | End::Stopped)));
    match PromptTask::of(typed) {
        PromptTask::Careful => "notes.txt is back. Press Enter: the model is told this time to leave your files alone.",
        PromptTask::Careless => {
            "notes.txt is back, and your prompt is in the composer. Add \"Leave my text files alone!\" and press Enter."
        }
        PromptTask::Other if was_stopped => {
            "you stopped it, and notes.txt is still there. Ask again with \"Leave my text files alone!\" added (↑ brings the prompt back)."
        }
        PromptTask::Other => {
            "notes.txt is back. Ask to tidy up again, with \"Leave my text files alone!\" added (↑ brings the prompt back)."
        }
    }
}

impl Guide for Hints {
    fn hint(&mut self, moment: &Moment<'_>) -> Hint {
        let (view, files) = (moment.view, self.files());
        let turn = last_turn(view);
        let (number, text, prompt) = match turn.as_ref().filter(|turn| turn.end.is_none()) {
            Some(turn) => {
                let (number, text) = self.during(*turn, !view.questions.is_empty());
                (number, text, None)
            }
            None => {
                self.look(files);
                self.between(files, turn, moment.typed)
            }
        };
        let (number, text, prompt) = match (moment.is_picker_open, number) {
            (false, _) => (number, text, prompt.map(str::to_owned)),
            (true, 5) => {
                let text = "on each row a prompt, beside it exactly what going back would change. Enter, then Enter again: code and conversation.";
                (6, text.to_owned(), None)
            }
            (true, _) => {
                let text = "this is the picker: on each row a prompt, beside it what going back would change. Esc closes it, and nothing has changed.";
                (number, text.to_owned(), None)
            }
        };
        Hint { number, of: STEPS, text, prompt }
    }
}

fn last_turn(view: &View) -> Option<LastTurn> {
    let is_prompt = |entry: &Entry| matches!(entry.body, Body::Prompt { .. });
    let at = view.entries.iter().rposition(is_prompt)?;
    let Body::Prompt { parts } = &view.entries[at].body else { return None };
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } | Part::Paste { text } => Some(text.as_str()),
        Part::File { .. } | Part::Image { .. } => None,
    });
    let of_turn = &view.entries[at..];
    let is_denied = |entry: &Entry| matches!(entry.body, Body::ToolResult { outcome: Outcome::Denied, .. });
    let reason = of_turn.iter().find_map(|entry| match &entry.body {
        Body::Ended { reason, .. } => Some(reason),
        _ => None,
    });
    let end = reason.map(|reason| match reason {
        _ if of_turn.iter().any(is_denied) => End::Denied,
        EndReason::Interrupted => End::Stopped,
        _ => End::Done,
    });
    Some(LastTurn { task: PromptTask::of(&texts.collect::<String>()), end })
}
