//! Ending a program at every step it takes, and at any moment at all.
//!
//! [`Killer`] runs a command over and over. With a fail point it makes the first step crash or fail, then the second, until the command
//! gets through; without one it sends SIGKILL at random moments. What has to hold after each end is the caller's to check.

use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// More steps than any one command takes: a loop that passes this does not end by itself.
const MAX_STEPS: u64 = 10_000;

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// By itself, whatever its exit code.
    Finished(Output),
    /// By a signal; this is what it had printed.
    Killed(Output),
}

impl Ended {
    /// What it printed.
    pub fn output(&self) -> &Output {
        let (Self::Finished(output) | Self::Killed(output)) = self;
        output
    }

    fn of(output: Output) -> Self {
        if is_killed(output.status) { Self::Killed(output) } else { Self::Finished(output) }
    }
}

/// Runs one command many times, each to a different end.
pub struct Killer<'a> {
    command: Box<dyn FnMut() -> Command + 'a>,
}

impl<'a> Killer<'a> {
    /// For the command that `command` makes: a new one for each run, arguments and environment set, output not.
    pub fn new(command: impl FnMut() -> Command + 'a) -> Self {
        Self { command: Box::new(command) }
    }

    /// Makes the fail point `point` do `action` at its first evaluation, then in a new run at its second, and so on until a run does not
    /// get that far. `after` sees how each run but the last ended and checks what it left.
    ///
    /// `return(crash)`, `return(eio)` and `return(enospc)` are what the engine's point `io` understands. From the chosen step on every
    /// step fails, as on a disk that is broken or full. The last run has to succeed. Returns the number of steps met.
    pub fn at_every_step(&mut self, point: &str, action: &str, mut after: impl FnMut(u64, &Ended)) -> u64 {
        for step in 0..MAX_STEPS {
            let mut command = (self.command)();
            command.env("FAILPOINTS", format!("{point}={step}*off->{action}"));
            let ended = Ended::of(output(&mut command));
            if let Ended::Finished(output) = &ended
                && output.status.success()
            {
                assert!(step > 0, "the fail point `{point}` was never met: is the feature `faults` on?");
                return step;
            }
            after(step, &ended);
        }
        panic!("still failing after {MAX_STEPS} steps");
    }

    /// Kills `times` runs, each at a random moment of the time that an undisturbed run takes, and tells `after` how each ended: a kill
    /// may come too late. Returns how many were killed.
    pub fn at_random(&mut self, times: u32, seed: u64, mut after: impl FnMut(u32, &Ended)) -> u32 {
        let started = Instant::now();
        let whole = Ended::of(output(&mut (self.command)()));
        let span = started.elapsed();
        assert!(whole.output().status.success(), "the undisturbed run failed: {:?}", whole.output());
        let mut state = seed | 1;
        let mut killed = 0;
        for time in 0..times {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // A little more than the whole span, since a run may take longer this time: a few kills come too late.
            let fraction = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let ended = kill_after(&mut (self.command)(), span.mul_f64(1.1 * fraction));
            killed += u32::from(matches!(ended, Ended::Killed(_)));
            after(time, &ended);
        }
        killed
    }
}

/// Starts `command` and sends it SIGKILL after `delay`, unless it ends before.
pub fn kill_after(command: &mut Command, delay: Duration) -> Ended {
    let mut child = spawn(command);
    wait(&child, delay);
    // A child that has ended and was not waited for can still be signalled, to no effect.
    child.kill().expect("signalling our own child");
    Ended::of(child.wait_with_output().expect("the output of our own child"))
}

/// Waits for `child` to end or the time to pass.
#[cfg(target_os = "linux")]
fn wait(child: &Child, delay: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("a handle of our own child");
    let timeout = Timespec::try_from(delay).expect("a short time");
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).expect("waiting for a child");
}

/// Waits for the time to pass: there is no handle of a process to wait for here.
#[cfg(not(target_os = "linux"))]
fn wait(_: &Child, delay: Duration) {
    std::thread::sleep(delay.min(Duration::from_secs(5)));
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn output(command: &mut Command) -> Output {
    spawn(command).wait_with_output().expect("the output of our own child")
}

fn is_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn every_step_is_tried_until_the_command_gets_through() {
        let mut steps = Vec::new();
        let script = "case $FAILPOINTS in io=[01]*) kill -9 $$;; io=2*) echo no; exit 1;; esac";
        let met = Killer::new(|| shell(script)).at_every_step("io", "return(crash)", |step, ended| {
            steps.push((step, matches!(ended, Ended::Killed(_)), ended.output().stdout.clone()));
        });
        assert_eq!(met, 3);
        assert_eq!(steps, [(0, true, vec![]), (1, true, vec![]), (2, false, b"no\n".to_vec())]);
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed() {
        let ended = kill_after(&mut shell("exec sleep 60"), Duration::from_millis(1));
        assert!(matches!(&ended, Ended::Killed(_)), "{ended:?}");
    }

    #[test]
    fn what_was_printed_before_the_kill_is_kept() {
        let ended = kill_after(&mut shell("echo printed; kill -9 $$"), Duration::from_secs(60));
        assert!(matches!(&ended, Ended::Killed(output) if output.stdout == b"printed\n"), "{ended:?}");
    }

    #[test]
    fn a_command_that_ends_first_is_not_killed() {
        let ended = kill_after(&mut shell("exit 7"), Duration::from_secs(60));
        assert!(matches!(&ended, Ended::Finished(output) if output.status.code() == Some(7)), "{ended:?}");
    }
}
