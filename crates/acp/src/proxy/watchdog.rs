//! The watchdog: a process that ends the inner agent, and everything it started, if Retake is killed.
//!
//! The watchdog is a shell that waits for the end of its input, which only Retake's process holds open. Then it sends SIGTERM to the agent's
//! process group, and two seconds later it kills what is left. A parent-death signal would reach only the agent's own process, which is often
//! a wrapper such as `npx`, would be tied to the thread that started it, and exists on Linux only.
//!
//! It never acts while Retake runs, and ends before Retake ends by itself. Without a shell there is no watchdog: then an agent outlives a kill
//! unless it ends when its own input does, and the user is told on stderr.

use std::process::Stdio;

use rustix::process::Pid;
use tokio::process::{Child, Command};

use super::complain;

/// Waits for the end of its input, then ends the process group `$1`, and looks again and again whether that is gone: its number may become
/// another's. Signals that are meant for a whole terminal are not for the watchdog.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM PIPE
read -r _
kill -s TERM -- "-$1" || exit
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.2
    kill -s 0 -- "-$1" || exit
done
kill -s KILL -- "-$1""#;

/// Shows that Retake is there, for as long as this lives.
pub(super) struct Watchdog(Option<Child>);

impl Watchdog {
    /// Watches over a process group.
    pub(super) fn over(group: Option<Pid>) -> Self {
        let Some(group) = group else { return Self(None) };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "retake-guard", &group.as_raw_nonzero().to_string()]);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match shell.current_dir("/").process_group(0).kill_on_drop(true).spawn() {
            Ok(child) => Self(Some(child)),
            Err(error) => {
                complain(&format!("if Retake is killed, the agent may stay: `/bin/sh` cannot be started ({error})"));
                Self(None)
            }
        }
    }

    /// The group is gone, and its number may become another's.
    pub(super) async fn dismiss(self) {
        if let Some(mut child) = self.0 {
            // It may have been ended by somebody else.
            child.kill().await.ok();
        }
    }
}
