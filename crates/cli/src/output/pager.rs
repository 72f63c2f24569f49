//! The pager: `$RETAKE_PAGER`, else `$PAGER`, else `less`, else none.
//!
//! Output always goes through it on a terminal; `less -F` is what keeps short output on the screen. A pager that the user leaves early
//! closes the pipe, which writers see as a broken pipe and `main` as a silent end. One that cannot be started does so too: the shell
//! that was to start it tells by its exit code, and what was written until then is kept for printing it otherwise.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Leave at once if it fits the screen, pass colours on, do not clear the screen.
const LESS_OPTIONS: &str = "FRX";

/// More than a pipe and the buffer before it hold: when this much was written, somebody has read of it.
const UNREAD_BYTES: usize = 256 << 10;

/// By these exit codes a shell tells that it could not start a program.
const NOT_STARTED: [i32; 2] = [126, 127];

pub struct Pager {
    child: Child,
    name: String,
    /// Taken when the end of the data is told to the pager.
    input: Option<BufWriter<ChildStdin>>,
    /// All that was written, for as long as it is possible that nobody reads it.
    unread: Option<Vec<u8>>,
}

/// The user's pager could not be started.
#[derive(Debug)]
pub struct NotStarted {
    pub name: String,
    /// What it was given and did not read.
    pub unread: Vec<u8>,
}

impl Pager {
    /// Starts the user's pager; `None` if they want none, or have named none and the usual one is missing.
    pub fn start() -> Result<Option<Self>, NotStarted> {
        let wanted = env::var_os("RETAKE_PAGER").or_else(|| env::var_os("PAGER"));
        let name = wanted.as_ref().map_or_else(|| "less".into(), |name| name.to_string_lossy().into_owned());
        let is_named = wanted.is_some();
        let Some(mut command) = command(wanted) else { return Ok(None) };
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS_OPTIONS);
        }
        let mut child = match command.stdin(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => return Ok(None),
            Err(_) => return Err(NotStarted { name, unread: Vec::new() }),
        };
        let input = child.stdin.take().map(BufWriter::new);
        Ok(Some(Self { child, name, input, unread: Some(Vec::new()) }))
    }

    /// Ends the data, waits until the user has read it, and tells if it turns out that there was no pager to read it with.
    pub fn end(&mut self) -> io::Result<Option<NotStarted>> {
        drop(self.input.take());
        let ended = self.child.wait()?;
        let is_missing = ended.code().is_some_and(|code| NOT_STARTED.contains(&code));
        let unread = self.unread.take().filter(|_| is_missing);
        Ok(unread.map(|unread| NotStarted { name: self.name.clone(), unread }))
    }
}

/// How to start the pager that the user named, or the usual one; `cat` and nothing but blanks mean none.
fn command(wanted: Option<OsString>) -> Option<Command> {
    match wanted {
        None => {
            let mut less = Command::new("less");
            less.arg(format!("-{LESS_OPTIONS}"));
            Some(less)
        }
        Some(name) if matches!(name.as_encoded_bytes().trim_ascii(), b"" | b"cat") => None,
        Some(name) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(name);
            Some(shell)
        }
    }
}

impl Write for Pager {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let Some(input) = self.input.as_mut() else { return Ok(data.len()) };
        let written = input.write(data)?;
        match &mut self.unread {
            Some(unread) if unread.len() <= UNREAD_BYTES => unread.extend_from_slice(&data[..written]),
            _ => self.unread = None,
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Pager {
    /// The terminal stays the pager's until it ends, also when the command fails halfway.
    fn drop(&mut self) {
        drop(self.input.take());
        // Nobody is left to tell, and the shell sees the terminal again either way.
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_or_cat_means_no_pager() {
        assert!(command(Some(OsString::new())).is_none());
        assert!(command(Some(" \t".into())).is_none());
        assert!(command(Some("cat".into())).is_none());
    }

    #[test]
    fn a_named_pager_runs_through_the_shell() {
        let command = command(Some("more -s".into())).expect("a pager was named");
        assert_eq!(command.get_program(), "sh");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-c", "more -s"]);
    }
}
