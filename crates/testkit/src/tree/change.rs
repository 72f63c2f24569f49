//! Carrying out steps: changing what is there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};

use super::apply::{directory_mode, file_mode, fill, remove, set_mode};
use super::kinds::Happened;
use super::pools::When;
use super::sandbox::{Attempt, ExistingPath, Impossible, Is, Sandbox, shown};
use super::step::{Form, Pick, Place, Write};

impl Sandbox<'_> {
    pub(super) fn write(&mut self, path: &Path, shown: &str, how: Write) -> Attempt {
        let happened = match how {
            Write::InPlace(content) => {
                fill(path, content)?;
                Happened::WrittenInPlace
            }
            Write::ByRename(content) => {
                let beside = self.outside.join("being-saved");
                fill(&beside, content)?;
                set_mode(&beside, fs::metadata(path)?.mode() & 0o7777)?;
                fs::rename(&beside, path)?;
                Happened::WrittenByRename
            }
            Write::Append => {
                fs::OpenOptions::new().append(true).open(path)?.write_all(b"more\n")?;
                Happened::Appended
            }
            Write::SameSize(at) => {
                flip(path, path, at)?;
                Happened::SameSize
            }
            Write::SameSizeSameTime(at) => {
                let before = modified(path)?;
                flip(path, path, at)?;
                set_modified(path, before)?;
                Happened::SameSizeSameTime
            }
            Write::SameSizeByRename(at) => {
                let beside = self.outside.join("being-saved");
                flip(path, &beside, at)?;
                set_mode(&beside, fs::metadata(path)?.mode() & 0o7777)?;
                set_modified(&beside, modified(path)?)?;
                fs::rename(&beside, path)?;
                Happened::SameSizeSameTime
            }
        };
        self.done(happened, format!("write {shown}: {how:?}"))
    }

    pub(super) fn change_file_mode(&mut self, file: Pick, mode: u32) -> Attempt {
        let file = self.pick(file, |found| found.is == Is::File)?.path;
        set_mode(&self.at(&file), mode)?;
        if let Some(kind) = file_mode(mode) {
            self.counts.add(kind);
        }
        self.done(Happened::ModeOnly, format!("mode of {} is {mode:o}", shown(&file)))
    }

    pub(super) fn change_directory_mode(&mut self, dir: Pick, mode: u32) -> Attempt {
        let dir = self.pick(dir, |found| found.is == Is::Directory)?.path;
        set_mode(&self.at(&dir), mode)?;
        if let Some(kind) = directory_mode(mode) {
            self.counts.add(kind);
        }
        self.done(Happened::DirectoryMode, format!("mode of directory {} is {mode:o}", shown(&dir)))
    }

    pub(super) fn touch(&mut self, what: Pick, when: When) -> Attempt {
        let path = self.pick(what, |_| true)?.path;
        set_modified(&self.at(&path), Timespec { tv_sec: when.seconds(), tv_nsec: 0 })?;
        self.done(Happened::Touched, format!("touch {}: {when:?}", shown(&path)))
    }

    pub(super) fn sneak(&mut self, at: Place) -> Attempt {
        let path = self.free_place(at)?;
        let file = self.at(&path);
        let directory = file.parent().ok_or(Impossible)?;
        let before = modified(directory)?;
        fs::write(&file, "sneaked in\n")?;
        set_modified(directory, before)?;
        self.done(Happened::DirectoryTouched, format!("sneak {} in, mtime of its directory put back", shown(&path)))
    }

    pub(super) fn rename(&mut self, what: Pick, to: Place) -> Attempt {
        let from = self.pick(what, |_| true)?;
        // Free places are many: without help a rename would seldom replace something.
        let to = match self.pick(to.name, |found| matches!(found.is, Is::File | Is::Link)) {
            Ok(found) if to.dir.0.is_multiple_of(4) => found.path,
            _ => self.place(to),
        };
        if from.path == to {
            return Err(Impossible);
        }
        let replaces = fs::symlink_metadata(self.at(&to)).is_ok();
        fs::rename(self.at(&from.path), self.at(&to))?;
        self.count_name(&to);
        let stays = from.path.parent() == to.parent();
        let happened = match (from.is, replaces, stays) {
            (Is::Directory, _, true) => Happened::DirectoryRenamed,
            (Is::Directory, _, false) => Happened::DirectoryMoved,
            (_, true, _) => Happened::RenamedOver,
            (_, false, true) => Happened::RenamedWithin,
            (_, false, false) => Happened::RenamedAcross,
        };
        self.done(happened, format!("rename {} to {}", shown(&from.path), shown(&to)))
    }

    pub(super) fn replace(&mut self, dir: Pick, with: Pick) -> Attempt {
        let old = self.pick(dir, |found| found.is == Is::Directory)?.path;
        let new = self.pick(with, |found| found.is == Is::Directory)?.path;
        if old.starts_with(&new) || new.starts_with(&old) {
            return Err(Impossible);
        }
        fs::remove_dir_all(self.at(&old))?;
        fs::rename(self.at(&new), self.at(&old))?;
        let line = format!("remove {}, rename {} to its place", shown(&old), shown(&new));
        self.done(Happened::DirectoryOntoRemoved, line)
    }

    #[cfg(not(target_vendor = "apple"))]
    pub(super) fn exchange(&mut self, one: Pick, other: Pick) -> Attempt {
        let plain = |found: &ExistingPath| found.is != Is::Rules;
        let (one, other) = (self.pick(one, plain)?.path, self.pick(other, plain)?.path);
        if one == other {
            return Err(Impossible);
        }
        rustix::fs::renameat_with(CWD, self.at(&one), CWD, self.at(&other), rustix::fs::RenameFlags::EXCHANGE)?;
        self.done(Happened::Exchanged, format!("exchange {} and {}", shown(&one), shown(&other)))
    }

    #[cfg(target_vendor = "apple")]
    pub(super) fn exchange(&mut self, _: Pick, _: Pick) -> Attempt {
        Err(Impossible)
    }

    pub(super) fn swap(&mut self, what: Pick, into: Form) -> Attempt {
        let wanted: &[Is] = match into {
            // Links are few: every other time none but them will do.
            Form::File if what.0.is_multiple_of(2) => &[Is::Link],
            Form::File => &[Is::Directory],
            Form::Directory => &[Is::File],
            Form::Link => &[Is::File, Is::Directory],
        };
        let old = self.pick(what, |found| wanted.contains(&found.is))?;
        let path = self.at(&old.path);
        let happened = match (old.is, into) {
            (Is::Link, _) => Happened::LinkToRegular,
            (Is::Directory, Form::Link) => Happened::DirectoryToLink,
            (Is::Directory, _) => Happened::DirectoryToFile,
            (_, Form::Link) => Happened::FileToLink,
            (_, _) => Happened::FileToDirectory,
        };
        remove(&path)?;
        match into {
            Form::File => fs::write(&path, "in its place\n")?,
            Form::Directory => {
                fs::create_dir(&path)?;
                fs::write(path.join("a"), "in its place\n")?;
            }
            Form::Link => symlink("in/its/place", &path)?,
        }
        self.done(happened, format!("put a {into:?} in the place of {}", shown(&old.path)))
    }

    pub(super) fn hard_link(&mut self, file: Pick, at: Place) -> Attempt {
        let file = self.pick(file, |found| found.is == Is::File)?.path;
        let path = self.free_place(at)?;
        fs::hard_link(self.at(&file), self.at(&path))?;
        self.new_links.push(path.clone());
        self.done(Happened::HardLinked, format!("hard-link {} as {}", shown(&file), shown(&path)))
    }

    pub(super) fn hard_link_outside(&mut self, file: Pick) -> Attempt {
        let file = self.pick(file, |found| found.is == Is::File)?.path;
        let path = self.outside.join(format!("link-{}", self.outside_links.len()));
        fs::hard_link(self.at(&file), &path)?;
        self.new_links.push(path.clone());
        self.outside_links.push(path);
        let line = format!("hard-link {} as link-{} outside", shown(&file), self.outside_links.len() - 1);
        self.done(Happened::HardLinkedOutside, line)
    }

    pub(super) fn write_through(&mut self, which: Pick, how: Write) -> Attempt {
        let file = self.pick(which, |found| found.is == Is::File && found.names > 1)?.path;
        let path = self.at(&file);
        self.write(&path, &shown(&file), how)?;
        self.counts.add(Happened::WrittenThroughLink);
        Ok(())
    }

    pub(super) fn write_outside(&mut self, which: Pick, how: Write) -> Attempt {
        let at = usize::from(which.0).checked_rem(self.outside_links.len()).ok_or(Impossible)?;
        let path = self.outside_links[at].clone();
        self.write(&path, &format!("link-{at} outside"), how)?;
        self.counts.add(Happened::WrittenOutside);
        Ok(())
    }

    pub(super) fn remove(&mut self, what: Pick) -> Attempt {
        let found = self.pick(what, |_| true)?;
        remove(&self.at(&found.path))?;
        let happened = if found.is == Is::Directory { Happened::TreeRemoved } else { Happened::Removed };
        self.done(happened, format!("remove {}", shown(&found.path)))
    }
}

/// Writes `from` with one byte flipped to `to`, in place if that is the same file.
fn flip(from: &Path, to: &Path, at: u8) -> Attempt {
    let mut bytes = fs::read(from)?;
    let at = usize::from(at).checked_rem(bytes.len()).ok_or(Impossible)?;
    bytes[at] ^= 1;
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(from != to).open(to)?;
    file.write_all(&bytes)?;
    Ok(())
}

pub(super) fn modified(path: &Path) -> std::io::Result<Timespec> {
    let metadata = fs::symlink_metadata(path)?;
    Ok(Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() })
}

/// Sets the mtime and nothing else, of a link itself if it is one.
pub(super) fn set_modified(path: &Path, at: Timespec) -> rustix::io::Result<()> {
    let times = Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: at };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
}
