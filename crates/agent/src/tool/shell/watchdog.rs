//! The watchdog: a small process that ends what Retake started, if Retake is killed.
//!
//! It waits on a pipe whose other end only Retake holds. However Retake ends, SIGKILL included, the pipe closes, and the watchdog kills the
//! registered process groups and every process with this Retake's mark. A signal on the parent's death would reach only the shell, not what
//! it started, and comes when the *thread* that started it ends; so it is not used.
//!
//! When Retake ends by itself, nothing is left to kill. Without `/proc` only the groups are found. A watchdog that is killed first kills nothing.

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

static WATCHDOG: OnceLock<Mutex<Option<ChildStdin>>> = OnceLock::new();

/// Starts the watchdog if need be. It has to be there before the first process that it keeps: Retake may be killed right after starting one.
pub(crate) fn begin(instance: &str) {
    tell("", instance);
}

/// Tells the watchdog of a process group.
pub(crate) fn watch(group: i32, instance: &str) {
    tell(&format!("+ {group}\n"), instance);
}

/// Tells the watchdog that nothing of a process group is left.
pub(crate) fn release(group: i32, instance: &str) {
    tell(&format!("- {group}\n"), instance);
}

// The watchdog is a second net. Where it cannot be had, everything else still ends what it starts, so failures are passed over.
fn tell(line: &str, instance: &str) {
    let mut watchdog = WATCHDOG.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if watchdog.is_none() {
        *watchdog = start(instance);
    }
    let is_told = watchdog.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok());
    if !is_told {
        *watchdog = None;
    }
}

fn start(instance: &str) -> Option<ChildStdin> {
    let mark = format!("{CALL_MARK}={instance}-");
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "retake-watchdog", &mark]).current_dir("/").process_group(0);
    // Its own mark would have it killed together with an outer Retake's command, before it has done its work.
    command.env_remove(CALL_MARK).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()?.stdin.take()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::path::Path;

    use super::*;
    use crate::tool::shell::process::new_mark;

    /// Run again in a process of its own by the test below, which kills it.
    #[test]
    fn a_process_that_is_killed_before_it_has_told_the_keeper() {
        if std::env::var_os("RETAKE_TEST_KILLED").is_none() {
            return;
        }
        let mut marked = Command::new("sleep");
        marked.arg("1000").env(CALL_MARK, new_mark()).env_remove("RETAKE_TEST_KILLED");
        let mut marked = marked.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("sleep is there");
        std::io::stderr().write_all(format!("started {}\n", marked.id()).as_bytes()).expect("the test reads");
        marked.wait().expect("it is ours");
    }

    #[test]
    fn a_process_that_the_keeper_has_not_heard_of_is_ended_with_retake() {
        let name = concat!(module_path!(), "::a_process_that_is_killed_before_it_has_told_the_keeper");
        let mut retake = retake_testkit::rerun::test(name.split_once("::").expect("it is in a module").1);
        let mut retake = retake
            .env("RETAKE_TEST_KILLED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this test can be run again");
        let lines = BufReader::new(retake.stderr.take().expect("it is a pipe")).lines().map_while(Result::ok);
        let marked = lines.filter_map(|line| line.strip_prefix("started ").map(str::to_owned)).next();
        let marked = marked.expect("it has started a process");
        retake.kill().expect("it runs");
        retake.wait().expect("it is ours");
        let stat = format!("/proc/{marked}/stat");
        let is_alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        while Path::new(&stat).exists() && is_alive() {
            std::thread::yield_now();
        }
    }
}
