//! `edit_file` and `multi_edit`: exact replacements in a file.
//!
//! Works on bytes: whatever is not replaced stays as it is, in any encoding. The only liberty taken is with line endings, which models
//! cannot see: they are written as the file has them. What does not match exactly once is not guessed at; the failure shows what is
//! there instead.

mod nearest;
mod replace;

use std::fs;
use std::io;

use self::replace::{Edit, EditRefused, Occurrences, apply};
use super::arguments::{Argument, ArgumentKind, Arguments, optional, required};
use super::file::put;
use super::path::{Link, WriteTarget};
use super::preview::{PathContent, Rewrite};
use super::run::writing;
use super::toolbox::{Tool, ToolContext};
use super::{Access, Output, Prepared, Preview};

/// A larger file is not read into memory for an edit.
const MAX_FILE: u64 = 64 << 20;

const OLD: Argument = required(
    "old",
    ArgumentKind::Text,
    "The text to replace, exactly as it is in the file, indentation included, without the line numbers of `read_file`.",
);
const NEW: Argument = required("new", ArgumentKind::Text, "The text to put in its place; empty to delete it.");
const ALL: Argument = optional(
    "replace_all",
    ArgumentKind::Flag,
    "Replace every occurrence. Default: false, then `old` must occur once.",
);

pub(crate) const EDIT: Tool = Tool {
    name: "edit_file",
    description: "Replaces one exact piece of text in a file. `old` must match the file exactly, with all spaces, tabs and newlines, and \
must occur exactly once; add surrounding lines until it does, or set `replace_all` (good for renaming). Everything else in the file stays \
as it is, byte for byte; line endings are kept as the file has them.\n\nRead the file first. For several changes in one file use \
`multi_edit`, for a new file or a complete rewrite `write_file`.",
    arguments: &[required("path", ArgumentKind::Text, "Path of the file, relative to the workspace."), OLD, NEW, ALL],
    prepare: |bench, arguments| prepare(bench, arguments, vec![edit(arguments)]),
};

pub(crate) const MULTI: Tool = Tool {
    name: "multi_edit",
    description: "Makes several exact replacements in one file, all or none. They are made in the given order, each in what the one before \
left, and each must match as in `edit_file`: exactly, and once unless `replace_all` is set. If one does not match, the file stays as it was \
and the failure says which. Prefer this to several calls of `edit_file` on the same file.",
    arguments: &[
        required("path", ArgumentKind::Text, "Path of the file, relative to the workspace."),
        required("edits", ArgumentKind::List(&[OLD, NEW, ALL]), "The replacements, in order; at least one."),
    ],
    prepare: |bench, arguments| prepare(bench, arguments, arguments.list("edits").iter().map(edit).collect()),
};

fn edit(arguments: &Arguments) -> Edit {
    let occurrences = if arguments.is_set("replace_all") { Occurrences::All } else { Occurrences::One };
    Edit { old: arguments.text("old").to_owned(), new: arguments.text("new").to_owned(), occurrences }
}

fn prepare(bench: &ToolContext, arguments: &Arguments, edits: Vec<Edit>) -> Result<Prepared, Output> {
    if edits.is_empty() {
        return Err(Output::failed("`edits` is empty: give at least one edit."));
    }
    let given = arguments.text("path").to_owned();
    let target = bench.places.to_write(&given, Link::Follow)?;
    let access = Access::Writes { paths: vec![target.path.clone()] };
    let title = format!("edit {}", target.name());
    let preview = {
        let (target, edits) = (target.clone(), edits.clone());
        Preview::new(move || preview(&target, &edits))
    };
    let bench = bench.clone();
    let run = writing(move || {
        // The links may have changed while the call waited to be allowed.
        match bench.places.to_write(&given, Link::Follow) {
            Ok(now) if now.real == target.real => change(&bench, &target, &edits),
            Ok(_) => Output::failed(format!(
                "`{given}` leads somewhere else than a moment ago; nothing was changed. Try again."
            )),
            Err(output) => output,
        }
    });
    Ok(Prepared::new(title, access, run).with_preview(preview))
}

/// What the edits would make of the file as it is now.
fn preview(target: &WriteTarget, edits: &[Edit]) -> Result<Vec<Rewrite>, Output> {
    let before = content(target)?;
    let EditedContent { content, .. } = make(target, before.clone(), edits)?;
    Ok(vec![Rewrite::new(target, PathContent::of(before), PathContent::of(content))])
}

fn change(bench: &ToolContext, target: &WriteTarget, edits: &[Edit]) -> Output {
    let made = content(target).and_then(|before| make(target, before, edits));
    let EditedContent { content, changes } = match made {
        Ok(made) => made,
        Err(output) => return output,
    };
    let name = target.name();
    if let Err(error) = put(&target.real, &content) {
        return Output::failed(format!("`{name}` cannot be written: {error}. It was left as it was."));
    }
    bench.seen.note_now(&target.real);
    Output::done(told(&name, &changes)).at_lines(changes.iter().map(|(line, _)| *line).collect())
}

/// A file's content after all edits, with the first line and the number of replacements of each.
struct EditedContent {
    content: Vec<u8>,
    changes: Vec<(usize, usize)>,
}

/// Makes the edits in memory; fails if one of them does not match.
fn make(target: &WriteTarget, mut content: Vec<u8>, edits: &[Edit]) -> Result<EditedContent, Output> {
    let mut changes = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let refused = |refused| Output::failed(refusal(&target.name(), &content, edit, at, edits.len(), &refused));
        let applied = apply(&content, edit).map_err(refused)?;
        changes.push((applied.first_line, applied.count));
        content = applied.content;
    }
    Ok(EditedContent { content, changes })
}

fn content(target: &WriteTarget) -> Result<Vec<u8>, Output> {
    let name = target.name();
    let looked_at = fs::symlink_metadata(&target.real).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Output::failed(format!("There is no file `{name}`. To create it use `write_file`.")),
        _ => Output::failed(format!("`{name}` cannot be looked at: {error}.")),
    })?;
    if looked_at.is_dir() {
        return Err(Output::failed(format!("`{name}` is a directory.")));
    }
    if !looked_at.is_file() || looked_at.len() > MAX_FILE {
        return Err(Output::failed(format!("`{name}` is not a regular file, or larger than {} MiB.", MAX_FILE >> 20)));
    }
    fs::read(&target.real).map_err(|error| Output::failed(format!("`{name}` cannot be read: {error}.")))
}

fn told(name: &str, changes: &[(usize, usize)]) -> String {
    match changes {
        [(line, 1)] => format!("Edited `{name}` at line {line}."),
        [(line, count)] => format!("Edited `{name}`: {count} occurrences replaced, the first at line {line}."),
        several => {
            let lines: Vec<String> = several.iter().map(|(line, _)| line.to_string()).collect();
            format!("Edited `{name}`: {} edits made, at lines {}.", several.len(), lines.join(", "))
        }
    }
}

fn refusal(name: &str, content: &[u8], edit: &Edit, at: usize, of: usize, refused: &EditRefused) -> String {
    let which = if of > 1 { format!("Edit {} of {of}: ", at + 1) } else { String::new() };
    let kept = if at > 0 { " No edit was made, those before it included." } else { " Nothing was changed." };
    let why = match refused {
        EditRefused::Empty => {
            "`old` is empty. Give the text to replace; to add text, give a line next to it and repeat it in `new`."
                .to_owned()
        }
        EditRefused::Same => "`old` and `new` are the same.".to_owned(),
        EditRefused::Several { lines, count } => {
            let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let more = if lines.len() < *count { " …" } else { "" };
            format!(
                "`old` occurs {count} times in `{name}`, at lines {}{more}. Add surrounding lines so that it occurs once, or set `replace_all`.",
                shown.join(", ")
            )
        }
        EditRefused::NotFound => format!("`old` was not found in `{name}`. {}", nearest::explain(content, &edit.old)),
    };
    format!("{which}{why}{kept}")
}
