//! Keys of models, kept where the commands that the agent runs do not find them.
//!
//! Owns the variables that may hold a key. [`hide`] takes them out of the environment, so that no process that Retake starts inherits them,
//! and makes the process undumpable: its first environment, which the system goes on showing in `/proc/PID/environ`, and its memory are
//! then readable only to a user who may trace any process. That does not keep keys from root, from the processes that already had them
//! (the shell that started Retake, say), or from files; and macOS shows the first environment to the same user's processes.
//!
//! This is the program's only unsafe code: one call that changes the environment, made while the process has a single thread.

use std::ffi::OsString;
use std::sync::OnceLock;

use retake_agent::tool::Shell;

static HIDDEN: OnceLock<Vec<(String, OsString)>> = OnceLock::new();

/// A variable that [`hide`] has taken out of the environment.
pub fn hidden(name: &str) -> Option<OsString> {
    let hidden = HIDDEN.get()?.iter().find(|(hidden, _)| hidden == name);
    hidden.map(|(_, value)| value.clone())
}

/// Takes keys out of the environment. Call it before anything starts a thread.
pub fn hide() {
    let hidden: Vec<(String, OsString)> =
        Shell::default().hidden.into_iter().filter_map(|name| Some((name.clone(), std::env::var_os(name)?))).collect();
    if hidden.is_empty() {
        return;
    }
    #[cfg(target_os = "linux")]
    // A system that refuses this shows the keys to the user's own processes, as it shows those of every other program.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).ok();
    for (name, _) in &hidden {
        remove(name);
    }
    HIDDEN.set(hidden).ok();
}

#[allow(unsafe_code, reason = "see the comment in it")]
fn remove(name: &str) {
    // SAFETY: `main` calls this before it starts a thread, so nothing else reads or writes the environment meanwhile.
    unsafe { std::env::remove_var(name) };
}
