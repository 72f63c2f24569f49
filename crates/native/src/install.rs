//! Installing, removing and looking at the hooks of one agent: each gives a [`Plan`], or says how things stand, and writes nothing.
//!
//! Merging adds entries behind those of the user. Installing twice is one installation; where entries of an earlier version stand, they
//! alone are replaced. Removing gives the file as it was, byte for byte, as long as what was written is still in its place; otherwise the
//! entries of ours are found by their command line and taken out.
//!
//! A configuration that cannot be read is refused with its place, and a file that stands where one of ours belongs is left alone.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::agent::{Agent, Places};
use crate::config::{self, BadConfig};
use crate::hook::Program;
use crate::plan::{self, FileEdit, Kind, Plan};
use crate::receipt::{Receipt, Written};
use crate::target::{self, Content, Presence, Target};

/// The hooks of one agent in one environment.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The agent.
    pub agent: Agent,
    /// Where its configuration is.
    pub places: &'a Places,
    /// How its hooks call Retake.
    pub program: &'a Program,
    /// A directory of Retake's own, for receipts.
    pub receipts: &'a Path,
}

/// How the hooks of an agent stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There are none.
    Absent,
    /// There are some, but not the ones that would be installed now.
    Outdated,
    /// They are as they would be installed now.
    Installed,
}

/// Why no plan was made. Nothing was changed.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The user's configuration cannot be merged into.
    #[error("{path}: {place}")]
    Config {
        /// The file.
        path: PathBuf,
        /// The place and the problem.
        place: BadConfig,
    },
    /// The user's configuration is not UTF-8.
    #[error("{0} is not UTF-8 text")]
    NotText(PathBuf),
    /// A file stands where one of Retake's belongs, and is not what Retake wrote.
    #[error("{0} is not as Retake wrote it; move it away first")]
    Foreign(PathBuf),
    /// A file could not be read.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Setup<'_> {
    /// What to write so that the hooks are there.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn install(&self) -> Result<Plan, SetupError> {
        let (receipt_path, receipt_before, old) = self.receipt()?;
        let (mut plan, mut written) = (Plan::default(), Vec::new());
        for target in target::targets(self.agent, self.places, self.program) {
            let file = Current::read(&target)?;
            if self.presence(&target, &file, &old)? == Presence::Same {
                written.extend(old.of(&target.path).cloned());
                continue;
            }
            let base = self.without(&target, &file, &old)?;
            let text = base.as_deref().unwrap_or("");
            let pieces = target
                .content
                .insertions(text)
                .map_err(|place| SetupError::Config { path: target.path.clone(), place })?;
            let after = Some(config::insert(text, &pieces).into_bytes());
            written.push(Written { path: target.path.clone(), is_new: base.is_none(), pieces });
            plan.push(FileEdit { kind: Kind::Configuration, path: target.path, before: file.bytes, after });
        }
        if plan.is_empty() {
            return Ok(plan);
        }
        let mut directories = plan.new_directories();
        directories.extend(old.directories.iter().filter(|folder| folder.exists()).cloned());
        let after = Some(Receipt { files: written, directories }.to_bytes());
        // The receipt first: one that is not yet true is harmless, an installation without one is removed less exactly.
        plan.edits.insert(0, FileEdit { kind: Kind::Record, path: receipt_path, before: receipt_before, after });
        Ok(plan)
    }

    /// What to write so that no hook is left.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn remove(&self) -> Result<Plan, SetupError> {
        let (receipt_path, receipt_before, old) = self.receipt()?;
        let mut plan = Plan::default();
        for target in target::targets(self.agent, self.places, self.program) {
            let file = Current::read(&target)?;
            if self.presence(&target, &file, &old)? == Presence::Absent {
                continue;
            }
            let after = self.without(&target, &file, &old)?.map(String::into_bytes);
            plan.push(FileEdit { kind: Kind::Configuration, path: target.path, before: file.bytes, after });
        }
        plan.push(FileEdit { kind: Kind::Record, path: receipt_path, before: receipt_before, after: None });
        plan.emptied = old.directories.iter().filter(|folder| folder.is_dir()).cloned().collect();
        Ok(plan)
    }

    /// How the hooks stand.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn status(&self) -> Result<Status, SetupError> {
        let (_, _, old) = self.receipt()?;
        let targets = target::targets(self.agent, self.places, self.program);
        let found = targets.iter().map(|target| self.presence(target, &Current::read(target)?, &old));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let all = |wanted| found.iter().all(|found| *found == wanted);
        Ok(match (all(Presence::Same), all(Presence::Absent)) {
            (true, _) => Status::Installed,
            (_, true) => Status::Absent,
            (false, false) => Status::Outdated,
        })
    }

    fn receipt(&self) -> Result<(PathBuf, Option<Vec<u8>>, Receipt), SetupError> {
        let path = self.receipts.join(format!("{}.json", self.agent));
        let bytes = read(&path)?;
        let receipt = bytes.as_deref().and_then(Receipt::parse).unwrap_or_default();
        Ok((path, bytes, receipt))
    }

    fn presence(&self, target: &Target, file: &Current, old: &Receipt) -> Result<Presence, SetupError> {
        let Some(text) = &file.text else { return Ok(Presence::Absent) };
        let presence = target.content.presence(self.agent, text);
        let presence = presence.map_err(|place| SetupError::Config { path: target.path.clone(), place })?;
        if presence == Presence::Other && matches!(target.content, Content::Whole(_)) {
            // Only the very file that an earlier installation wrote may be replaced or deleted.
            let recorded = old.of(&target.path).map(|file| config::insert("", &file.pieces));
            if recorded.as_ref() != Some(text) {
                return Err(SetupError::Foreign(target.path.clone()));
            }
        }
        Ok(presence)
    }

    /// The user's own text, `None` if the user has no such file.
    fn without(&self, target: &Target, file: &Current, old: &Receipt) -> Result<Option<String>, SetupError> {
        let Some(text) = &file.text else { return Ok(None) };
        if matches!(target.content, Content::Whole(_)) {
            return Ok(None);
        }
        let found = target.content.without(self.agent, text);
        let found = found.map_err(|place| SetupError::Config { path: target.path.clone(), place })?;
        let recorded = old.of(&target.path);
        let exact = recorded.and_then(|file| config::take_out(text, &file.pieces));
        let base = exact.filter(|exact| target.content.is_same(exact, &found)).unwrap_or(found);
        let is_gone = base.is_empty() && recorded.is_some_and(|file| file.is_new);
        Ok((!is_gone).then_some(base))
    }
}

/// A file as it is.
#[derive(Debug, Default)]
struct Current {
    bytes: Option<Vec<u8>>,
    text: Option<String>,
}

impl Current {
    fn read(target: &Target) -> Result<Self, SetupError> {
        let bytes = read(&target.path)?;
        let text = bytes.clone().map(String::from_utf8).transpose();
        let text = text.map_err(|_| SetupError::NotText(target.path.clone()))?;
        Ok(Self { bytes, text })
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, SetupError> {
    plan::read(path).map_err(|source| SetupError::Io { path: path.to_owned(), source })
}
