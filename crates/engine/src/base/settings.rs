//! What a caller decides: settings, times, and the environment the engine works in.
//!
//! The engine looks nothing up for itself: no environment variable, no home directory, no clock. Everything of that kind
//! arrives through [`Environment`] or as an argument.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, as the caller's clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// What is captured and how much may be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Names (globs) of files that are captured although an ignore rule matches them.
    pub include: Vec<String>,
    /// Larger files are gaps.
    pub max_file: u64,
    /// Bytes that the store of one workspace may take.
    pub budget: u64,
    /// Days after which an unlabelled checkpoint may go.
    pub keep_days: u32,
    /// Bytes of hidden files that a rewind saves before it deletes them; what is larger stays.
    pub save_hidden: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            include: [".env", ".env.*", "*.local"].map(String::from).to_vec(),
            max_file: 64 << 20,
            budget: 4 << 30,
            keep_days: 30,
            save_hidden: 256 << 20,
        }
    }
}

/// Whether directories that are too broad to be a workspace are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// `/`, a home directory and everything above one are refused.
    Guarded,
    /// The caller insists.
    AllowBroad,
}

/// Everything the engine would otherwise have to look up for itself.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The workspace: an absolute path, best canonical.
    pub root: PathBuf,
    /// Where all stores are; never inside what is captured.
    pub data_dir: PathBuf,
    /// Where git's global excludes are found; `None` for none.
    pub global_excludes: Option<GlobalExcludes>,
    /// Home directories, for the guard.
    pub homes: Vec<PathBuf>,
    /// Whether the guard holds.
    pub breadth: Breadth,
    /// What is captured and kept.
    pub settings: Settings,
    /// Threads for scanning and hashing; at least one.
    pub threads: usize,
}

/// Where git's global excludes are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalExcludes {
    /// git's settings files, weakest first; they need not exist.
    pub settings: Vec<PathBuf>,
    /// The user's home directory, which `~` stands for.
    pub home: Option<PathBuf>,
    /// The excludes where no settings file names any; need not exist.
    pub usual: Option<PathBuf>,
}

impl GlobalExcludes {
    /// The excludes in `file`, whatever git's settings say.
    pub fn at(file: impl Into<PathBuf>) -> Self {
        Self { usual: Some(file.into()), ..Self::default() }
    }
}
