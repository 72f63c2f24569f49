//! Carrying out steps: making things.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::kinds::Happened;
use super::pools::{Content, MAX_FILE};
use super::sandbox::{Attempt, Impossible, Is, Sandbox, shown};
use super::step::{LinkTarget, Pick, Place, Special, Step};

impl Sandbox<'_> {
    pub(super) fn attempt(&mut self, step: &Step) -> Attempt {
        match step {
            Step::File { at, content, mode } => self.make_file(*at, *content, *mode),
            Step::Directory { at, mode } => self.make_directory(*at, *mode),
            Step::Deep { at } => self.make_deep(*at),
            Step::Link { at, to } => self.make_link(*at, *to),
            Step::Special { at, what } => self.make_special(*at, *what),
            Step::Rules { dir, name, change } => self.change_rules(*dir, *name, change),
            Step::Track { what } => self.track(*what),
            Step::Nest { dir } => self.nest(*dir),
            Step::GitFile { dir } => self.make_git_file(*dir),
            Step::Unnest { which } => self.unnest(*which),
            Step::Expose { which } => self.expose(*which),
            Step::OtherVersionControl { dir, which } => self.make_other_version_control(*dir, *which),
            Step::Write { file, how } => {
                let file = self.pick(*file, |found| found.is == Is::File)?.path;
                let path = self.at(&file);
                self.write(&path, &shown(&file), *how)
            }
            Step::FileMode { file, mode } => self.change_file_mode(*file, *mode),
            Step::DirectoryMode { dir, mode } => self.change_directory_mode(*dir, *mode),
            Step::Touch { what, when } => self.touch(*what, *when),
            Step::Sneak { at } => self.sneak(*at),
            Step::Rename { what, to } => self.rename(*what, *to),
            Step::Replace { dir, with } => self.replace(*dir, *with),
            Step::Exchange { one, other } => self.exchange(*one, *other),
            Step::Swap { what, into } => self.swap(*what, *into),
            Step::HardLink { file, at } => self.hard_link(*file, *at),
            Step::HardLinkOutside { file } => self.hard_link_outside(*file),
            Step::WriteThrough { which, how } => self.write_through(*which, *how),
            Step::WriteOutside { which, how } => self.write_outside(*which, *how),
            Step::Remove { what } => self.remove(*what),
        }
    }

    fn make_file(&mut self, at: Place, content: Content, mode: u32) -> Attempt {
        let path = self.free_place(at)?;
        fill(&self.at(&path), content)?;
        set_mode(&self.at(&path), mode)?;
        self.count_name(&path);
        if let Some(kind) = file_mode(mode) {
            self.counts.add(kind);
        }
        self.done(content.happened(), format!("make {} of {content:?}, mode {mode:o}", shown(&path)))
    }

    fn make_directory(&mut self, at: Place, mode: u32) -> Attempt {
        let path = self.free_place(at)?;
        fs::create_dir(self.at(&path))?;
        set_mode(&self.at(&path), mode)?;
        self.count_name(&path);
        if let Some(kind) = directory_mode(mode) {
            self.counts.add(kind);
        }
        self.done(Happened::EmptyDirectory, format!("make directory {}, mode {mode:o}", shown(&path)))
    }

    fn make_deep(&mut self, at: Place) -> Attempt {
        let top = self.free_place(at)?;
        let mut path = top.clone();
        for level in 1..20 {
            path.push(if level % 2 == 0 { "src" } else { "d" });
        }
        fs::create_dir_all(self.at(&path))?;
        fs::write(self.at(&path).join("deep.txt"), "deep\n")?;
        self.done(Happened::DeepPath, format!("make twenty levels at {}", shown(&top)))
    }

    fn make_link(&mut self, at: Place, to: LinkTarget) -> Attempt {
        let path = self.free_place(at)?;
        let (target, kind) = self.link_target(&path, to)?;
        symlink(&target, self.at(&path))?;
        self.count_name(&path);
        self.done(kind, format!("link {} to {}", shown(&path), shown(&target)))
    }

    fn link_target(&mut self, link: &Path, to: LinkTarget) -> Result<(PathBuf, Happened), Impossible> {
        let up: PathBuf = std::iter::repeat_n("..", link.components().count() - 1).collect();
        Ok(match to {
            LinkTarget::File(pick) => {
                (up.join(self.pick(pick, |found| found.is == Is::File)?.path), Happened::LinkToFile)
            }
            LinkTarget::Directory(pick) => {
                (up.join(self.pick(pick, |found| found.is == Is::Directory)?.path), Happened::LinkToDirectory)
            }
            LinkTarget::Dangling => (OsStr::from_bytes(b"no\xffwhere").into(), Happened::LinkDangling),
            LinkTarget::Absolute => ("/etc/passwd".into(), Happened::LinkAbsolute),
            LinkTarget::Itself => (link.file_name().ok_or(Impossible)?.into(), Happened::LinkToItself),
            LinkTarget::Outside => (up.join("../outside"), Happened::LinkOutside),
        })
    }

    fn make_special(&mut self, at: Place, what: Special) -> Attempt {
        let path = self.free_place(at)?;
        make_special(&self.at(&path), what)?;
        let kind = match what {
            Special::Fifo => Happened::Fifo,
            Special::Socket => Happened::Socket,
        };
        self.done(kind, format!("make {what:?} {}", shown(&path)))
    }

    pub(super) fn nest(&mut self, dir: Pick) -> Attempt {
        let dir = self.directory(dir);
        let git = self.at(&dir).join(".git");
        fs::create_dir(&git)?;
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
        let kind = if dir.as_os_str().is_empty() { Happened::RootRepository } else { Happened::NestedMade };
        self.done(kind, format!("make {} a repository", shown(&dir)))
    }

    fn make_git_file(&mut self, dir: Pick) -> Attempt {
        let dir = self.directory(dir);
        let git = self.at(&dir).join(".git");
        if fs::symlink_metadata(&git).is_ok() {
            return Err(Impossible);
        }
        fs::write(git, "gitdir: ../nowhere/.git/modules/x\n")?;
        self.done(Happened::GitFile, format!("put a .git file into {}", shown(&dir)))
    }

    fn unnest(&mut self, which: Pick) -> Attempt {
        let dir = self.repository(which)?;
        remove(&self.at(&dir).join(".git"))?;
        self.done(Happened::NestedRemoved, format!("remove .git of {}", shown(&dir)))
    }

    fn expose(&mut self, which: Pick) -> Attempt {
        let dir = self.repository(which)?;
        fs::rename(self.at(&dir).join(".git"), self.at(&dir).join("dot-git"))?;
        self.done(Happened::NestedRenamed, format!("rename .git of {} to dot-git", shown(&dir)))
    }

    fn make_other_version_control(&mut self, dir: Pick, which: Pick) -> Attempt {
        let dir = self.directory(dir);
        let name = [".hg", ".svn", ".jj", ".sl"][usize::from(which.0 % 4)];
        let path = self.at(&dir).join(name);
        fs::create_dir(&path)?;
        fs::write(path.join("store"), "not ours\n")?;
        self.done(Happened::OtherVersionControl, format!("make {name} in {}", shown(&dir)))
    }
}

/// Makes a file or truncates one, and writes.
pub(super) fn fill(path: &Path, content: Content) -> std::io::Result<()> {
    if content == Content::OverLimit {
        return fs::File::create(path)?.set_len(MAX_FILE + 1);
    }
    fs::write(path, content.bytes())
}

pub(super) fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Removes whatever is there, with what it holds.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn make_special(path: &Path, what: Special) -> rustix::io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let kind = match what {
        Special::Fifo => FileType::Fifo,
        Special::Socket => FileType::Socket,
    };
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), 0)
}

#[cfg(target_vendor = "apple")]
pub(super) fn make_special(path: &Path, what: Special) -> rustix::io::Result<()> {
    match what {
        Special::Fifo => Err(rustix::io::Errno::NOSYS),
        Special::Socket => match std::os::unix::net::UnixListener::bind(path) {
            Ok(_) => Ok(()),
            Err(_) => Err(rustix::io::Errno::NAMETOOLONG),
        },
    }
}

pub(super) fn file_mode(mode: u32) -> Option<Happened> {
    Some(match mode {
        0o600 => Happened::ModePrivate,
        0o755 => Happened::ModeExecutable,
        0o4755 => Happened::ModeSetuid,
        0o444 => Happened::ModeReadOnly,
        0o664 => Happened::ModeGroup,
        _ => return None,
    })
}

pub(super) fn directory_mode(mode: u32) -> Option<Happened> {
    Some(match mode {
        0o700 => Happened::DirectoryPrivate,
        0o1777 => Happened::DirectorySticky,
        _ => return None,
    })
}
