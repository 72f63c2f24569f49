//! Signs of life: until when a tool at work was there, and whether a path changed after that.
//!
//! Whoever has a window open touches its file again and again. Nobody can tell who changed what after the last sign of a
//! process that was killed, and so it is not taken for the tool's. All times compared are those that the kernel gave to files.
//! Where they tell nothing, a path counts as changed later: then somebody is asked once too often, and nothing is lost.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::{By, FileTime, OpenWindow, Reach, attribute, contested, window};
use crate::base::limits;
use crate::base::path::WorkspacePath;
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::StoreError;
use crate::store::tree::NodeKind;

/// Shows that a window is held, as long as this lives.
#[derive(Debug)]
pub(crate) struct Pulse {
    path: PathBuf,
    /// The thread ends when this is gone.
    _stop: Sender<()>,
}

impl Pulse {
    /// Touches the window's file at `path` from now on. It does so by name: with a handle of its own it would keep the lock.
    pub(crate) fn start(path: &Path) -> Self {
        touch(path);
        let (stop, stopped) = mpsc::channel();
        let touched = path.to_owned();
        let pause = Duration::from_millis(limits::SIGN_OF_LIFE_MS);
        let beat = move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                touch(&touched);
            }
        };
        // Without it, more is contested than need be.
        thread::Builder::new().name("window".to_owned()).spawn(beat).ok();
        Self { path: path.to_owned(), _stop: stop }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        touch(&self.path);
    }
}

/// Gives the file the present as its time. A file that is gone stays gone, and nothing else can be done about a failure.
fn touch(path: &Path) {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).ok();
}

/// The windows whose processes are gone, and when each was there for certain, or nearly so; in nanoseconds.
pub(crate) struct Abandoned(BTreeMap<i64, Option<i128>>);

impl Abandoned {
    /// Those of `windows`, whose spans are then what they are with or without their processes.
    pub(crate) fn find(store_dir: &Path, windows: &mut [OpenWindow]) -> Self {
        let found = Self::among(store_dir, windows);
        for window in windows {
            match found.0.get(&window.seq) {
                None => window.is_held(),
                Some(until) => {
                    window.was_held_until(until.and_then(|until| i64::try_from(until).ok()).map(FileTime));
                }
            }
        }
        found
    }

    fn among(store_dir: &Path, windows: &[OpenWindow]) -> Self {
        let abandoned = windows.iter().map(|window| window.seq).filter(|seq| window::is_abandoned(store_dir, *seq));
        let until = |seq| {
            let metadata = std::fs::symlink_metadata(window::window_path(store_dir, seq)).ok()?;
            let last_sign = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
            Some(last_sign + i128::from(limits::DEATH_GRACE_MS) * 1_000_000)
        };
        Self(abandoned.map(|seq| (seq, until(seq))).collect())
    }

    /// Those of `windows` whose processes are gone, and when their tools ended at the latest.
    pub(crate) fn of(&self, windows: Vec<OpenWindow>) -> Vec<(OpenWindow, FileTime)> {
        let ended = |window: &OpenWindow| {
            let until = self.0.get(&window.seq)?.and_then(|until| i64::try_from(until).ok()).map(FileTime);
            window.ended.into_iter().chain(until).chain([FileTime::now()]).min()
        };
        windows.into_iter().filter_map(|window| ended(&window).map(|ended| (window, ended))).collect()
    }

    /// Decides who changed `path` of the workspace at `root` while `windows` were open, `then` being what was there before; with when it
    /// changed, if that may be judged again.
    pub(crate) fn attribute(
        &self,
        root: &Path,
        path: &WorkspacePath,
        windows: &[OpenWindow],
        then: &Evidence<'_>,
    ) -> Result<(By, Option<FileTime>), StoreError> {
        let has_spans = windows.iter().any(|window| window.reach == Reach::Spans);
        let has_ended = windows.iter().any(|window| window.ended.is_some());
        let is_asked = has_spans || has_ended || !self.0.is_empty();
        let time = if is_asked { last_change(root, path, then)? } else { None };
        let changed = time.map(|time| i128::from(time.0));
        let by = attribute(path, windows, time);
        // Whoever has spans may have more to say of it.
        let time = time.filter(|_| has_spans);
        if self.0.is_empty() || by.session.is_none() {
            return Ok((by, time));
        }
        let was_there = |window: &&OpenWindow| match self.0.get(&window.seq) {
            None => true,
            Some(until) => matches!((changed, until), (Some(changed), Some(until)) if changed <= *until),
        };
        // Another tool of the session may have been at work all the time: then it is the session's in any case.
        let there: Vec<OpenWindow> = windows.iter().filter(was_there).cloned().collect();
        let by_those = attribute(path, &there, time);
        Ok((if by_those.session == by.session { by_those } else { contested() }, time))
    }
}

/// When `path` last changed; `None` if that cannot be told.
///
/// Something that is gone went when the directory changed where it would have to be. What is in a directory keeps its time when the
/// directory is moved; so the time of each directory counts that was not there `then`, or that changed without a change of
/// its list of names, as one does that is moved.
pub(super) fn last_change(
    root: &Path,
    path: &WorkspacePath,
    then: &Evidence<'_>,
) -> Result<Option<FileTime>, StoreError> {
    let changed = walk_to(root, path, then)?;
    Ok(changed.and_then(|changed| i64::try_from(changed).ok()).map(FileTime))
}

fn walk_to(root: &Path, path: &WorkspacePath, then: &Evidence<'_>) -> Result<Option<i128>, StoreError> {
    let Ok(top) = std::fs::symlink_metadata(root) else { return Ok(None) };
    let (mut at, mut above, mut latest) = (root.to_owned(), changed(&top), i128::MIN);
    let mut walked: Option<WorkspacePath> = None;
    for name in path.components() {
        at.push(std::ffi::OsStr::from_bytes(name));
        let next = walked.as_ref().map_or_else(|| WorkspacePath::parse(name), |walked| walked.join(name));
        let Ok(next) = next else { return Ok(None) };
        let metadata = match std::fs::symlink_metadata(&at) {
            Ok(metadata) => metadata,
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Some(latest.max(above))),
            Err(_) => return Ok(None),
        };
        above = changed(&metadata);
        if next == *path || !metadata.is_dir() {
            return Ok(Some(latest.max(above)));
        }
        let was_there = matches!(then.at(&next)?, Presence::There(node) if node.kind == NodeKind::Directory);
        if !was_there || above != nanoseconds(metadata.mtime(), metadata.mtime_nsec()) {
            latest = latest.max(above);
        }
        walked = Some(next);
    }
    Ok(Some(latest.max(above)))
}

fn changed(metadata: &Metadata) -> i128 {
    nanoseconds(metadata.ctime(), metadata.ctime_nsec())
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}
