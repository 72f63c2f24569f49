//! `checkpoint` and `rewind`: the model prunes its own exploration. What they come to is in the log, and the controller knows it.

use super::Output;
use super::arguments::{self, Argument, ArgumentKind, Arguments, optional, required};
use crate::model::ToolSpec;

/// The tool that makes a checkpoint.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// The tool that goes back to one.
pub(crate) const REWIND: &str = "rewind";

const CHECKPOINT_ABOUT: &str = "Marks this place in the conversation before an exploration that will fill it with things you will not need \
afterwards: reading many files to find one, trying several ways, a long debugging session. With `rewind` you come back here later and keep \
only a report. Can be nested; give a name if more than one is open. It is of no use for a few quick calls.";
const REWIND_ABOUT: &str = "Goes back to your checkpoint: everything said and read since then leaves the conversation, and your report takes \
its place. Takes effect when all calls of this message have their results, which are kept. What the user said meanwhile is kept too. Files \
stay as they are, unless you ask for `restore_files`: then those that you changed since the checkpoint go back, if nobody else has changed \
them. Write the report for yourself: what you found out, with names, paths and lines, what did not work and why, and what is to be done next.";

const CHECKPOINT_ARGUMENTS: &[Argument] = &[
    required("goal", ArgumentKind::Text, "What you are about to find out or try, in one line."),
    optional("name", ArgumentKind::Text, "What to call it."),
];
const REWIND_ARGUMENTS: &[Argument] = &[
    required("report", ArgumentKind::Text, "All that you want to keep of what you found."),
    optional("name", ArgumentKind::Text, "Which checkpoint; the innermost open one if left out."),
    optional(
        "restore_files",
        ArgumentKind::Flag,
        "Whether your changes of files since the checkpoint are taken back. No, if left out.",
    ),
];

/// A call of one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exploring {
    Checkpoint { goal: String, name: Option<String> },
    Rewind { report: String, name: Option<String>, restore_files: bool },
}

impl Exploring {
    /// Reads a call; `None` if it is of another tool.
    pub(crate) fn read(tool: &str, raw: &str) -> Option<Result<Self, Output>> {
        let name = |arguments: &Arguments| {
            let name = arguments.text_if_given("name").map(str::trim);
            name.filter(|name| !name.is_empty()).map(str::to_owned)
        };
        match tool {
            CHECKPOINT => {
                Some(Arguments::parse(tool, CHECKPOINT_ARGUMENTS, raw).map(|arguments| Self::Checkpoint {
                    goal: arguments.text("goal").to_owned(),
                    name: name(&arguments),
                }))
            }
            REWIND => Some(Arguments::parse(tool, REWIND_ARGUMENTS, raw).map(|arguments| Self::Rewind {
                report: arguments.text("report").to_owned(),
                name: name(&arguments),
                restore_files: arguments.is_set("restore_files"),
            })),
            _ => None,
        }
    }

    /// The call in words for people.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Checkpoint { goal, .. } => format!("checkpoint: {}", super::in_one_line(goal)),
            Self::Rewind { name: Some(name), .. } => format!("rewind to {name}"),
            Self::Rewind { name: None, .. } => "rewind to the checkpoint".to_owned(),
        }
    }
}

/// What the model is told of the two.
pub(crate) fn specs() -> [ToolSpec; 2] {
    let spec = |name: &str, about: &str, fields| ToolSpec {
        name: name.to_owned(),
        description: about.to_owned(),
        schema: arguments::schema(fields),
    };
    [spec(CHECKPOINT, CHECKPOINT_ABOUT, CHECKPOINT_ARGUMENTS), spec(REWIND, REWIND_ABOUT, REWIND_ARGUMENTS)]
}
