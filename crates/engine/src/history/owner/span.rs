//! Spans: when the tools of somebody else's agent were at work, as far as that is known.
//!
//! Whoever cannot make a tool wait for a checkpoint opens a window early and says later from when to when something in it counts. What a
//! path's time tells, as the kernel gave it, decides: a change outside all spans is not the window's, although it was found while the
//! window was open. Spans are in a file beside the window's own, replaced as a whole, so that a checkpoint of any process goes by what is
//! known when it judges, and so that they survive whoever wrote them. A file that cannot be read makes everything doubtful.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{OpenWindow, Reach, Verdict};
use crate::base::path::WorkspacePath;
use crate::base::plain_file;

/// A moment, as files know it: nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileTime(pub i64);

impl FileTime {
    /// Not later than what a file gets that changes from now on. The kernel's clock for files may be a few milliseconds behind.
    pub fn floor() -> Self {
        #[cfg(target_os = "linux")]
        return Self::of(ClockId::RealtimeCoarse);
        #[cfg(not(target_os = "linux"))]
        return Self::of(ClockId::Realtime);
    }

    /// Not earlier than what a file has got that changed before.
    pub fn now() -> Self {
        Self::of(ClockId::Realtime)
    }

    /// This much earlier.
    pub fn minus(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// This much later.
    pub fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)))
    }

    fn of(clock: ClockId) -> Self {
        let time = clock_gettime(clock);
        Self(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
    }
}

/// Whose a change is that falls into a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// Not the window's.
    No,
    /// Perhaps the window's: it is contested.
    Doubtful,
    /// The window's.
    Yes,
}

/// When a span counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Always.
    #[default]
    Always,
    /// Only if the process that opened the window was killed, and up to its death: it may not have read of a tool.
    IfKilled,
}

/// A time in which changes may be a window's: that of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// From here on.
    pub since: FileTime,
    /// Up to here; `None` as long as it is not over.
    pub until: Option<FileTime>,
    /// Paths that the tool declares, with all that is below them.
    #[serde(with = "as_bytes")]
    pub paths: BTreeSet<WorkspacePath>,
    /// Whose those are.
    pub declared: Claim,
    /// Whose all other paths are.
    pub others: Claim,
    /// When it counts.
    #[serde(default)]
    pub counts: Counts,
}

/// Paths as they are on disk; one that makes no sense makes no sense of the file.
mod as_bytes {
    use serde::de::Error;

    use super::*;

    pub(super) fn serialize<S: Serializer>(paths: &BTreeSet<WorkspacePath>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(WorkspacePath::as_bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<WorkspacePath>, D::Error> {
        let paths = Vec::<Vec<u8>>::deserialize(from)?;
        paths.iter().map(|path| WorkspacePath::parse(path).map_err(D::Error::custom)).collect()
    }
}

impl Span {
    /// How it claims a change of `path` that was made at `changed`.
    fn claim(&self, path: &WorkspacePath, changed: FileTime) -> Verdict {
        if changed < self.since || self.until.is_some_and(|until| until < changed) {
            return Verdict::Outside;
        }
        // What is below a directory goes with it.
        let mut above = std::iter::successors(Some(path.clone()), WorkspacePath::parent);
        let is_declared = !self.paths.is_empty() && above.any(|place| self.paths.contains(&place));
        match (is_declared, if is_declared { self.declared } else { self.others }) {
            (_, Claim::No) => Verdict::Outside,
            (_, Claim::Doubtful) => Verdict::Contested,
            (true, Claim::Yes) => Verdict::Certain,
            (false, Claim::Yes) => Verdict::Presumed,
        }
    }
}

/// Says when something in a window counts; others than the one who opened it may.
#[derive(Clone, Debug)]
pub struct Spans {
    path: PathBuf,
}

impl Spans {
    pub(super) fn of(window: &Path) -> Self {
        Self { path: window.with_extension("spans") }
    }

    /// These are all, from now on. Of a window that has ended, nobody reads them.
    pub fn set(&self, spans: &[Span]) -> io::Result<()> {
        let text = serde_json::to_vec(spans)?;
        let new = self.path.with_extension("new");
        plain_file::open_with(fs::OpenOptions::new().write(true).create(true).truncate(true), &new)?
            .write_all(&text)?;
        fs::rename(new, &self.path)
    }

    pub(super) fn read(&self) -> Option<Vec<Span>> {
        match plain_file::read(&self.path) {
            Ok(text) => serde_json::from_slice(&text).ok(),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Some(Vec::new()),
            Err(_) => None,
        }
    }

    pub(super) fn remove(&self) {
        // If it stays, nobody reads it.
        fs::remove_file(&self.path).ok();
    }
}

impl OpenWindow {
    /// Leaves the spans that count while the process that opened the window is there.
    pub(super) fn is_held(&mut self) {
        if let Some(spans) = &mut self.spans {
            spans.retain(|span| span.counts == Counts::Always);
        }
    }

    /// Ends the spans with the death of the process that opened the window, if it is known when that was: an agent does not outlive the
    /// process that listens to it.
    pub(super) fn was_held_until(&mut self, death: Option<FileTime>) {
        for span in self.spans.iter_mut().flatten() {
            span.until = match span.counts {
                Counts::Always => span.until.into_iter().chain(death).min(),
                Counts::IfKilled => death,
            };
        }
    }

    /// How the window claims a change of `path` that was made at `changed`, if that can be told.
    pub(super) fn claim(&self, path: &WorkspacePath, changed: Option<FileTime>) -> Verdict {
        let is_later = self.ended.zip(changed).is_some_and(|(ended, changed)| changed > ended);
        match self.claim_at_work(path, changed) {
            // A person may have saved it, or a process that the tool left behind; and the tool may have changed it before.
            Verdict::Certain | Verdict::Presumed if is_later => Verdict::Contested,
            verdict => verdict,
        }
    }

    /// The same, if the tool is still at work.
    fn claim_at_work(&self, path: &WorkspacePath, changed: Option<FileTime>) -> Verdict {
        let strength = |verdict: &Verdict| match verdict {
            Verdict::Outside => 0,
            Verdict::Contested => 1,
            Verdict::Presumed => 2,
            Verdict::Certain => 3,
        };
        match (&self.reach, &self.spans, changed) {
            (Reach::Everything | Reach::Declared, ..) if self.declared.contains(path) => Verdict::Certain,
            (Reach::Everything, ..) => Verdict::Presumed,
            (Reach::Declared, ..) => Verdict::Outside,
            (Reach::Spans, Some(spans), _) if spans.is_empty() => Verdict::Outside,
            (Reach::Spans, Some(spans), Some(changed)) => {
                let claims = spans.iter().map(|span| span.claim(path, changed));
                claims.max_by_key(strength).unwrap_or(Verdict::Outside)
            }
            (Reach::Spans, ..) => Verdict::Contested,
        }
    }
}
