//! What an editor does to one path that it has chosen beforehand, so that it can be declared before it is written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::apply::{fill, make_special, remove, set_mode};
use super::pools::Content;
use super::sandbox::{Impossible, Is, Sandbox, shown};
use super::step::{Pick, Place, Special};

/// A path, named before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// Something that exists and is no directory.
    There(Pick),
    /// Anything that exists.
    Any(Pick),
    /// A path of the pool.
    At(Place),
}

/// What is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Save {
    /// It becomes a file of this content; what was there goes.
    Write(Content),
    /// One of the lines of a text of four becomes another, so that changes of several hands can be told apart again.
    Line(u8, u8),
    /// Its mode changes.
    Mode(u32),
    /// It becomes a link.
    Link,
    /// It becomes a directory.
    Directory,
    /// It becomes a directory that holds something which nobody captures.
    Holding,
    /// It becomes a fifo.
    Fifo,
    /// It goes.
    Remove,
}

const LINES: u8 = 4;

impl Sandbox<'_> {
    /// The path that `spot` names now, relative to the root.
    pub fn spot(&mut self, spot: Spot) -> Option<PathBuf> {
        self.forget_found();
        match spot {
            Spot::There(pick) => {
                self.pick(pick, |found| !matches!(found.is, Is::Directory | Is::Rules)).ok().map(|f| f.path)
            }
            Spot::Any(pick) => self.pick(pick, |_| true).ok().map(|found| found.path),
            Spot::At(place) => Some(self.place(place)),
        }
    }

    /// Does `editor_save` to `path`, if that is possible.
    pub fn save(&mut self, path: &Path, save: Save) -> bool {
        let done = self.try_save(path, save).is_ok();
        self.forget_found();
        if done {
            self.note(format!("save {}: {save:?}", shown(path)));
        }
        done
    }

    fn try_save(&mut self, path: &Path, save: Save) -> Result<(), Impossible> {
        let is_rule = path.file_name().is_some_and(|name| matches!(name.as_bytes(), b".gitignore" | b".retakeignore"));
        let full = self.at(path);
        let there = fs::symlink_metadata(&full).ok();
        let is_file = there.as_ref().is_some_and(fs::Metadata::is_file);
        // Rule files hold nothing but rules, so that their reader need not know more than the generator writes.
        if is_rule && !matches!(save, Save::Mode(_) | Save::Remove) {
            return Err(Impossible);
        }
        match save {
            Save::Mode(mode) if is_file => return Ok(set_mode(&full, mode)?),
            Save::Mode(_) => return Err(Impossible),
            Save::Line(line, value) if is_file => {
                return Ok(fs::write(&full, with_line(&fs::read(&full)?, line, value))?);
            }
            _ => {}
        }
        let writes_in_place = is_file && matches!(save, Save::Write(_));
        if there.is_some() && !writes_in_place {
            remove(&full)?;
        } else if there.is_none() && save == Save::Remove {
            return Err(Impossible);
        }
        match save {
            Save::Write(content) => fill(&full, content)?,
            Save::Line(line, value) => fs::write(&full, with_line(b"", line, value))?,
            Save::Link => symlink(OsStr::from_bytes(b"saved/li\xffnk"), &full)?,
            Save::Directory => fs::create_dir(&full)?,
            Save::Holding => {
                fs::create_dir_all(full.join(".hg"))?;
                fs::write(full.join(".hg/store"), "not ours\n")?;
            }
            Save::Fifo => make_special(&full, Special::Fifo)?,
            Save::Mode(_) | Save::Remove => {}
        }
        Ok(())
    }
}

/// A text of four lines far apart, in which `line` has `value`; the others are as in `old`, if that is such a text.
fn with_line(old: &[u8], line: u8, value: u8) -> Vec<u8> {
    let text = String::from_utf8_lossy(old);
    let value_of = |wanted: u8| {
        let start = format!("{wanted} = ");
        let old = text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok());
        if wanted == line % LINES { value } else { old.unwrap_or(0_u8) }
    };
    let paragraph = |line| format!("{line} = {}\n\n a{line}\n b{line}\n c{line}\n\n", value_of(line));
    (0..LINES).map(paragraph).collect::<String>().into_bytes()
}
