//! Where git keeps the settings that name the user's global excludes: the system's file and the user's own.
//!
//! Only says where; the engine reads them at every scan.

use std::path::PathBuf;

use retake_engine::GlobalExcludes;

use super::{Dirs, variable};

/// The places to look for global excludes.
pub fn find(dirs: Option<&Dirs>) -> GlobalExcludes {
    GlobalExcludes {
        settings: settings_files(dirs),
        home: dirs.map(|dirs| dirs.home.clone()),
        usual: dirs.map(|dirs| dirs.config.join("git/ignore")),
    }
}

/// git's settings files, weakest first.
fn settings_files(dirs: Option<&Dirs>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if variable("GIT_CONFIG_NOSYSTEM").is_none() {
        files.push(PathBuf::from("/etc/gitconfig"));
    }
    match (variable("GIT_CONFIG_GLOBAL"), dirs) {
        (Some(global), _) => files.push(global.into()),
        (None, Some(dirs)) => files.extend([dirs.config.join("git/config"), dirs.home.join(".gitconfig")]),
        (None, None) => {}
    }
    files
}
