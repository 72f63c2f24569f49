//! Where tests make input and output fail, or stop the process as a crash would.
//!
//! Without the feature `faults` every function here is empty. With it, the one fail point `io` stands at each write,
//! rename, sync and transaction: `FAILPOINTS="io=3*off->return(crash)"` kills the process at the fourth of them, and
//! `eio` or `enospc` in place of `crash` makes that step fail instead. [`seeded`] switches on deliberate bugs by which
//! the property tests prove that they would notice.

use std::io;

/// A step that reaches the disk; fails or never returns when a test says so.
#[inline]
pub(crate) fn step() -> io::Result<()> {
    #[cfg(feature = "faults")]
    fail::fail_point!("io", |action| act(action.as_deref()));
    Ok(())
}

/// A moment at which a crash matters and nothing can fail: an error that a test asks for here is not given.
#[inline]
pub(crate) fn moment() {
    step().ok();
}

/// A place at which a test lets something happen: in this process by a callback, in another one by a command, as in
/// `FAILPOINTS="rewind-begins=return(cp mine file)"`.
#[inline]
#[cfg_attr(not(feature = "faults"), allow(unused_variables))]
pub(crate) fn place(name: &str) {
    #[cfg(feature = "faults")]
    fail::fail_point!(name, |command| {
        let command = command.unwrap_or_default();
        let status = std::process::Command::new("sh").args(["-c", &command]).status();
        assert!(status.is_ok_and(|status| status.success()), "`{command}` at {name}");
    });
}

/// Whether the test switch `name` is on.
#[inline]
#[cfg_attr(not(feature = "faults"), allow(unused_variables))]
pub(crate) fn seeded(name: &str) -> bool {
    #[cfg(feature = "faults")]
    fail::fail_point!(name, |_| true);
    false
}

#[cfg(feature = "faults")]
fn act(action: Option<&str>) -> io::Result<()> {
    match action {
        Some("eio") => Err(rustix::io::Errno::IO.into()),
        Some("enospc") => Err(rustix::io::Errno::NOSPC.into()),
        // SIGKILL, not a panic or an exit: nothing of ours may run afterwards, as after a real crash.
        _ => {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
            Err(io::Error::other("killed"))
        }
    }
}
