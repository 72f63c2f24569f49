//! `write_file`: a file's whole content.

use std::fs;
use std::io;

use super::seen_files::Knows;
use super::write_in_place::put;
use crate::tool::arguments::{ArgumentKind, Arguments, required};
use crate::tool::path::{Link, WriteTarget};
use crate::tool::preview::{PathContent, Rewrite};
use crate::tool::run::writing;
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared, Preview, counted};

pub(crate) const WRITE: Tool = Tool {
    name: "write_file",
    description: "Writes a whole file: creates it, with its directories, or replaces what is in it. The content is written exactly as given; \
end it with a newline if the file should end with one.\n\nUse it for new files and for complete rewrites. To change part of a file use \
`edit_file` or `multi_edit`: they are quicker and touch nothing else. A file that exists must have been read with `read_file` first, and \
not have changed since. Nothing outside the workspace and nothing in `.git` is written.",
    arguments: &[
        required("path", ArgumentKind::Text, "Path of the file, relative to the workspace."),
        required("content", ArgumentKind::Text, "The file's whole content."),
    ],
    prepare,
};

fn prepare(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let (given, content) = (arguments.text("path").to_owned(), arguments.text("content").to_owned());
    let target = bench.places.to_write(&given, Link::Follow)?;
    let paths = target.new_parents.iter().chain([&target.path]).cloned().collect();
    let title = format!("write {}", target.name());
    let preview = {
        let (bench, target, content) = (bench.clone(), target.clone(), content.clone());
        Preview::new(move || {
            known(&bench, &target)?;
            let after = PathContent::of(content.clone().into_bytes());
            let before = PathContent::on_disk(&target.real);
            Ok(before.map(|before| Rewrite::new(&target, before, after)).into_iter().collect())
        })
    };
    let bench = bench.clone();
    let run = writing(move || {
        // The links may have changed while the call waited to be allowed.
        match bench.places.to_write(&given, Link::Follow) {
            Ok(now) if now.real == target.real => write(&bench, &target, &content),
            Ok(_) => Output::failed(format!(
                "`{given}` leads somewhere else than a moment ago; nothing was written. Try again."
            )),
            Err(output) => output,
        }
    });
    Ok(Prepared::new(title, Access::Writes { paths }, run).with_preview(preview))
}

fn write(bench: &ToolContext, target: &WriteTarget, content: &str) -> Output {
    let name = target.name();
    let before = match before(bench, target) {
        Ok(before) => before,
        Err(output) => return output,
    };
    if let Err(error) = put(&target.real, content.as_bytes()) {
        return Output::failed(format!("`{name}` cannot be written: {error}. It was left as it was."));
    }
    bench.seen.note_now(&target.real);
    let lines = lines_in(content.as_bytes());
    let output = match before {
        None => Output::done(format!("Created `{name}` with {lines}.")),
        Some(before) if before == content.as_bytes() => {
            Output::done(format!("`{name}` had exactly this content already."))
        }
        Some(before) => {
            let crlf = |text: &[u8]| text.windows(2).any(|pair| pair == b"\r\n");
            let remark = match crlf(&before) && !crlf(content.as_bytes()) {
                true => " The old content had CRLF line endings, the new one has LF.",
                false => "",
            };
            Output::done(format!("Replaced `{name}`: {} before, {lines} now.{remark}", lines_in(&before)))
        }
    };
    output.at_lines(vec![1])
}

/// The content before, if there is a file.
fn before(bench: &ToolContext, target: &WriteTarget) -> Result<Option<Vec<u8>>, Output> {
    let read = |error| Output::failed(format!("`{}` cannot be read: {error}.", target.name()));
    match known(bench, target)? {
        There::Nothing => Ok(None),
        There::KnownFile => fs::read(&target.real).map(Some).map_err(read),
    }
}

/// What a write would replace.
enum There {
    Nothing,
    KnownFile,
}

/// Refuses to replace anything but a file that the model knows as it is now.
fn known(bench: &ToolContext, target: &WriteTarget) -> Result<There, Output> {
    let name = target.name();
    let metadata = match fs::symlink_metadata(&target.real) {
        Ok(metadata) if metadata.is_dir() => return Err(Output::failed(format!("`{name}` is a directory."))),
        Ok(metadata) if !metadata.is_file() => return Err(Output::failed(format!("`{name}` is not a regular file."))),
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(Output::failed(format!("`{name}` cannot be looked at: {error}."))),
    };
    let why = match bench.seen.knows(&target.real, &metadata) {
        Knows::Current => None,
        Knows::Never if metadata.len() == 0 => None,
        Knows::Never => Some("exists and you have not read it in what you still see of this conversation"),
        Knows::Outdated => Some("changed on disk since you last read it, or was not shown to you as a whole"),
    };
    match why {
        Some(why) => Err(Output::failed(format!(
            "`{name}` {why}; nothing was written. Read it with `read_file` first, then write it, or change part of it with `edit_file`."
        ))),
        None => Ok(There::KnownFile),
    }
}

fn lines_in(content: &[u8]) -> String {
    counted(content.split_inclusive(|byte| *byte == b'\n').count(), "line")
}
