//! Ending a program at every step it takes, and at any moment at all.
//!
//! [`Killer`] runs a command over and over. With fail points it makes the first step crash or fail, then the second, until the command
//! gets through; without them it sends SIGKILL at random moments. What has to hold after each end is the caller's to check.

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

/// How long an injected error lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// The next step works again.
    Once,
    /// No step works any more.
    FromThenOn,
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

    /// Crashes the command at its first step, then in a new run at its second, and so on until a run gets through, which has to succeed.
    /// `after` sees how each run but the last ended and checks what it left. Returns the number of steps met.
    ///
    /// A step is an evaluation of the fail point `io`, of which every program has one at each write, rename, sync and transaction.
    pub fn crash_at_every_step(&mut self, mut after: impl FnMut(u64, &Ended)) -> u64 {
        for step in 0..MAX_STEPS {
            let ended = self.run_with(&format!("io={step}*off->return(crash)"));
            if let Ended::Finished(output) = &ended {
                assert!(output.status.success(), "not killed, and yet it failed: {output:?}");
                assert!(step > 0, "no step was met: is the feature `faults` on?");
                return step;
            }
            after(step, &ended);
        }
        panic!("still not done after {MAX_STEPS} steps");
    }

    /// Makes each of the first `steps` steps fail with `error` (`eio` or `enospc`) in a run of its own: that one alone, or everything from
    /// it on, as on a disk that is broken or full. What comes of it is for `after` to judge; a run may well succeed.
    pub fn fail_at_every_step(
        &mut self,
        steps: u64,
        error: &str,
        lasting: Lasting,
        mut after: impl FnMut(u64, &Ended),
    ) {
        for step in 0..steps {
            let then = match lasting {
                Lasting::Once => format!("1*return({error})->off"),
                Lasting::FromThenOn => format!("return({error})"),
            };
            let ended = self.run_with(&format!("io={step}*off->{then}"));
            after(step, &ended);
        }
    }

    fn run_with(&mut self, failpoints: &str) -> Ended {
        Ended::of(output((self.command)().env("FAILPOINTS", failpoints)))
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
        let script = "echo $FAILPOINTS; case $FAILPOINTS in io=[01]*) kill -9 $$;; esac";
        let met = Killer::new(|| shell(script)).crash_at_every_step(|step, ended| {
            assert!(matches!(ended, Ended::Killed(_)));
            steps.push((step, String::from_utf8_lossy(&ended.output().stdout).into_owned()));
        });
        assert_eq!(met, 2);
        let said = |step| (step, format!("io={step}*off->return(crash)\n"));
        assert_eq!(steps, [said(0), said(1)]);
    }

    #[test]
    fn every_step_fails_once_or_from_then_on() {
        let mut said = Vec::new();
        for lasting in [Lasting::Once, Lasting::FromThenOn] {
            Killer::new(|| shell("echo $FAILPOINTS")).fail_at_every_step(1, "eio", lasting, |_, ended| {
                said.push(String::from_utf8_lossy(&ended.output().stdout).into_owned());
            });
        }
        assert_eq!(said, ["io=0*off->1*return(eio)->off\n", "io=0*off->return(eio)\n"]);
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
