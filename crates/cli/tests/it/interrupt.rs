//! Ctrl-C while files are read: the first asks, the second ends. What a process does is read from `/proc`, so that nothing is timed.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Run, Sandbox};

/// A workspace with files that take no space but time to read.
fn slow_to_read(files: u64, len: u64) -> Sandbox {
    let s = Sandbox::in_memory();
    s.config("[capture]\nmax_file = '1 TiB'\n").write("small", "1");
    s.checkpoint();
    for n in 0..files {
        File::create(s.ws(format!("f{n}"))).and_then(|file| file.set_len(len)).expect("a sparse file");
    }
    s
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn send(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has a number");
    kill_process(pid, signal).expect("it is ours and was not waited for");
}

/// A number that `/proc` tells of a process.
fn told(child: &Child, file: &str, key: &str, radix: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/{file}", child.id())).expect("it was not waited for");
    let value = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("it has ended: {text}"));
    u64::from_str_radix(value.trim(), radix).expect("a number")
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// Waits until the process has read more than anything but the workspace's files can be.
fn wait_until_reading(child: &Child) {
    wait_until(|| told(child, "io", "rchar:", 10) > 32 << 20);
}

fn end(child: Child) -> Run {
    Run::from_output(child.wait_with_output().expect("it ends"))
}

#[test]
fn the_first_signal_stops_a_checkpoint_and_the_next_one_goes_on() {
    let s = slow_to_read(40, 40 << 20);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let child = start(s.retake_command().arg("checkpoint"));
        wait_until_reading(&child);
        send(&child, signal);
        let run = end(child).fails(code);
        run.says("error: cancelled; nothing was changed, and what was read so far is kept\n");
        run.says("hint: run the command again to go on from there\n");
    }
    assert_eq!(s.retake(["log"]).text().lines().count(), 1);
    for n in 1..40 {
        s.remove(format!("f{n}"));
    }
    assert_eq!(s.retake(["checkpoint", "--json"]).json()["changed"]["added"], 1);
}

#[test]
fn a_signal_stops_a_comparison() {
    let s = slow_to_read(40, 40 << 20);
    let child = start(s.retake_command().arg("diff"));
    wait_until_reading(&child);
    send(&child, Signal::INT);
    let run = end(child).fails(130);
    assert_eq!(run.stderr, "error: cancelled; nothing was changed\n");
}

#[test]
fn the_second_signal_ends_the_program_at_once() {
    // One file that would be read for hours, and is never left in the middle.
    let s = slow_to_read(1, 1 << 39);
    let child = start(s.retake_command().arg("checkpoint"));
    wait_until_reading(&child);
    send(&child, Signal::INT);
    wait_until(|| told(&child, "status", "ShdPnd:", 16) == 0);
    send(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(Signal::INT.as_raw()));
    s.remove("f0");
    s.checkpoint();
}
