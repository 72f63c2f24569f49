//! The keeper: a small process that ends what Retake started, should Retake itself be killed.
//!
//! It waits on a pipe whose other end only Retake holds. However Retake ends, SIGKILL included, the pipe closes, and the keeper kills the
//! process groups that it was told of and every process with this Retake's mark. The system's own way, a signal on the parent's death,
//! goes to the shell alone and not to what it started, and comes when the *thread* that started it ends; so it is not used. When Retake
//! ends in order nothing is left to kill. Without `/proc` the groups alone are found; a keeper that is killed first keeps nothing.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::process::CALL_MARK;

/// Reads `+ GROUP` and `- GROUP` until the pipe closes. Twice round, for what was started meanwhile.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
    esac
done
for round in 1 2 3; do
    for group in $groups; do kill -s KILL -- "-$group"; done
    for file in $(grep -l "$1" /proc/[0-9]*/environ); do
        process=${file#/proc/}
        kill -s KILL "${process%/environ}"
    done
done
"#;

static KEEPER: OnceLock<Mutex<Option<ChildStdin>>> = OnceLock::new();

/// Tells the keeper of a process group, and starts it if need be.
pub(crate) fn watch(group: i32, instance: &str) {
    tell(&format!("+ {group}\n"), instance);
}

/// Tells the keeper that nothing of a process group is left.
pub(crate) fn release(group: i32, instance: &str) {
    tell(&format!("- {group}\n"), instance);
}

// The keeper is a second net. Where it cannot be had, everything else still ends what it starts, so failures are passed over.
fn tell(line: &str, instance: &str) {
    let mut keeper = KEEPER.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if keeper.is_none() {
        *keeper = start(instance);
    }
    let is_told = keeper.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok());
    if !is_told {
        *keeper = None;
    }
}

fn start(instance: &str) -> Option<ChildStdin> {
    let mark = format!("{CALL_MARK}={instance}-");
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "retake-keeper", &mark]).current_dir("/").process_group(0);
    // Its own mark would have it killed together with an outer Retake's command, before it has done its work.
    command.env_remove(CALL_MARK).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()?.stdin.take()
}
