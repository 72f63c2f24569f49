//! `move_file` and `delete_file`.
//!
//! Links are moved and deleted as links. A directory that holds a version-control directory is left to the user's own commands.

use std::fs;
use std::io;
use std::path::Path;

use retake_engine::WorkspacePath;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::subtree::{self, Subtree};
use crate::tool::arguments::{ArgumentKind, Arguments, optional, required};
use crate::tool::path::{Link, WriteTarget};
use crate::tool::preview::{PathContent, Rewrite};
use crate::tool::run::writing;
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared, Preview};

pub(crate) const MOVE: Tool = Tool {
    name: "move_file",
    description: "Moves or renames a file, a link or a directory inside the workspace; missing directories of the new place are created. \
Nothing is ever overwritten: the new path must not exist. Use this rather than `mv` with `bash`, so that both paths are known to be yours \
and can be rewound with certainty. References to the old path in other files are not changed.",
    arguments: &[
        required("from", ArgumentKind::Text, "The path now, relative to the workspace."),
        required("to", ArgumentKind::Text, "The whole new path, its file name included."),
    ],
    prepare: prepare_move,
};

pub(crate) const DELETE: Tool = Tool {
    name: "delete_file",
    description: "Deletes a file or a link (the link, not what it leads to). A directory is deleted with everything in it, ignored files \
included, but only if `recursive` is true. Use this rather than `rm` with `bash`, so that the path is known to be yours and can be rewound \
with certainty.",
    arguments: &[
        required("path", ArgumentKind::Text, "Path to delete, relative to the workspace."),
        optional("recursive", ArgumentKind::Flag, "Delete a directory with everything in it. Default: false."),
    ],
    prepare: prepare_delete,
};

fn prepare_move(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let from = bench.places.to_write(arguments.text("from"), Link::Keep)?;
    let to = bench.places.to_write(arguments.text("to"), Link::Keep)?;
    check_move(&from, &to)?;
    let title = format!("move {} to {}", from.name(), to.name());
    let access = match below(&from)? {
        None => Access::Unknown,
        Some(below) => {
            let paths = below.iter().flat_map(|relative| [under(&from, relative), under(&to, relative)]).flatten();
            Access::Writes { paths: to.new_parents.iter().cloned().chain(paths).collect() }
        }
    };
    let preview = {
        let (from, to) = (from.clone(), to.clone());
        Preview::new(move || {
            check_move(&from, &to)?;
            let Some(content) = PathContent::on_disk(&from.real) else { return Ok(Vec::new()) };
            let goes = Rewrite::new(&from, content.clone(), PathContent::Nothing);
            Ok(vec![goes, Rewrite::new(&to, PathContent::Nothing, content)])
        })
    };
    let (bench, given) = (bench.clone(), arguments.clone());
    let run = writing(move || {
        let again = || -> Result<(), Output> {
            still(&from, &bench.places.to_write(given.text("from"), Link::Keep)?)?;
            still(&to, &bench.places.to_write(given.text("to"), Link::Keep)?)?;
            check_move(&from, &to)?;
            refuse_version_control(&from)
        };
        again().err().unwrap_or_else(|| rename(&from, &to))
    });
    Ok(Prepared::new(title, access, run).with_preview(preview))
}

fn check_move(from: &WriteTarget, to: &WriteTarget) -> Result<(), Output> {
    let (old, new) = (from.name(), to.name());
    if fs::symlink_metadata(&from.real).is_err() {
        return Err(Output::failed(format!("There is nothing at `{old}`; nothing was moved.")));
    }
    if to.path.starts_with(&from.path) {
        return Err(Output::failed(format!("`{new}` is `{old}` itself or inside it; nothing was moved.")));
    }
    match fs::symlink_metadata(&to.real) {
        Err(_) => Ok(()),
        Ok(metadata) if metadata.is_dir() => {
            let name = String::from_utf8_lossy(from.path.file_name());
            Err(Output::failed(format!("`{new}` is a directory that exists; to move into it give `{new}/{name}`.")))
        }
        Ok(_) => {
            Err(Output::failed(format!("`{new}` exists and is not overwritten. Delete it first if that is meant.")))
        }
    }
}

fn rename(from: &WriteTarget, to: &WriteTarget) -> Output {
    let moved = to
        .real
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| rename_without_replacing(&from.real, &to.real));
    match moved {
        Ok(()) => Output::done(format!("Moved `{}` to `{}`.", from.name(), to.name())),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Output::failed(format!(
            "`{}` and `{}` are on different file systems; use `mv` with `bash`.",
            from.name(),
            to.name()
        )),
        Err(error) => Output::failed(format!("`{}` cannot be moved to `{}`: {error}.", from.name(), to.name())),
    }
}

fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can; that nothing is there was checked a moment ago.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(from, to),
        done => done.map_err(io::Error::from),
    }
}

fn prepare_delete(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let target = bench.places.to_write(arguments.text("path"), Link::Keep)?;
    let name = target.name();
    let metadata = fs::symlink_metadata(&target.real)
        .map_err(|_| Output::failed(format!("There is nothing at `{name}`; nothing was deleted.")))?;
    if metadata.is_dir() && !arguments.is_set("recursive") {
        return Err(Output::failed(format!(
            "`{name}` is a directory; nothing was deleted. Set `recursive` to true if all that is in it shall go."
        )));
    }
    let access = match below(&target)? {
        None => Access::Unknown,
        Some(below) => Access::Writes { paths: below.iter().filter_map(|relative| under(&target, relative)).collect() },
    };
    let preview = {
        let target = target.clone();
        Preview::new(move || {
            let before = PathContent::on_disk(&target.real);
            Ok(before.map(|before| Rewrite::new(&target, before, PathContent::Nothing)).into_iter().collect())
        })
    };
    let (bench, given) = (bench.clone(), arguments.clone());
    let title = format!("delete {name}");
    let run = writing(move || {
        let again = || -> Result<(), Output> {
            still(&target, &bench.places.to_write(given.text("path"), Link::Keep)?)?;
            refuse_version_control(&target)
        };
        again().err().unwrap_or_else(|| delete(&target, &given))
    });
    Ok(Prepared::new(title, access, run).with_preview(preview))
}

fn delete(target: &WriteTarget, arguments: &Arguments) -> Output {
    let name = target.name();
    let is_directory = fs::symlink_metadata(&target.real).is_ok_and(|metadata| metadata.is_dir());
    let done = match is_directory && arguments.is_set("recursive") {
        true => fs::remove_dir_all(&target.real),
        false => fs::remove_file(&target.real),
    };
    match done {
        Ok(()) if is_directory => Output::done(format!("Deleted `{name}` and everything in it.")),
        Ok(()) => Output::done(format!("Deleted `{name}`.")),
        Err(error) if is_directory => Output::failed(format!("`{name}` could not be deleted completely: {error}.")),
        Err(error) => Output::failed(format!("`{name}` cannot be deleted: {error}.")),
    }
}

/// The links may have changed while the call waited to be allowed.
fn still(before: &WriteTarget, now: &WriteTarget) -> Result<(), Output> {
    match before.real == now.real {
        true => Ok(()),
        false => Err(Output::failed(format!(
            "`{}` leads somewhere else than a moment ago; nothing was done.",
            before.name()
        ))),
    }
}

/// What is at and below the target, relative to it; `None` if that is too much.
fn below(target: &WriteTarget) -> Result<Option<Vec<std::path::PathBuf>>, Output> {
    match subtree::below(&target.real) {
        Ok(Subtree::All(paths)) => Ok(Some(paths)),
        Ok(Subtree::TooMany) => Ok(None),
        Ok(Subtree::VersionControl(found)) => Err(version_control(target, &found)),
        Err(error) => {
            Err(Output::failed(format!("`{}` cannot be looked through: {error}; nothing was done.", target.name())))
        }
    }
}

fn refuse_version_control(target: &WriteTarget) -> Result<(), Output> {
    if !fs::symlink_metadata(&target.real).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    match subtree::holds_version_control(&target.real) {
        Ok(None) => Ok(()),
        Ok(Some(found)) => Err(version_control(target, found.strip_prefix(&target.real).unwrap_or(&found))),
        Err(error) => {
            Err(Output::failed(format!("`{}` cannot be looked through: {error}; nothing was done.", target.name())))
        }
    }
}

fn version_control(target: &WriteTarget, found: &Path) -> Output {
    Output::failed(format!(
        "`{}` holds `{}`, which belongs to version control and cannot be rewound; nothing was done. Ask the user, or use `bash`.",
        target.name(),
        found.display()
    ))
}

fn under(target: &WriteTarget, relative: &Path) -> Option<WorkspacePath> {
    use std::os::unix::ffi::OsStrExt;
    let components = relative.components();
    components.into_iter().try_fold(target.path.clone(), |path, name| path.join(name.as_os_str().as_bytes()).ok())
}
