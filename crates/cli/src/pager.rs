//! The pager: `$RETAKE_PAGER`, else `$PAGER`, else `less`, else none.
//!
//! Output always goes through it on a terminal; `less -F` is what keeps short output on the screen. A pager that the user leaves early
//! closes the pipe, which writers see as a broken pipe and `main` as a silent end.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Leave at once if it fits the screen, pass colours on, do not clear the screen.
const LESS_OPTIONS: &str = "FRX";

pub struct Pager {
    child: Child,
    /// Taken when the end of the data is told to the pager.
    input: Option<BufWriter<ChildStdin>>,
}

impl Pager {
    /// Starts the user's pager; `None` if they want none or there is none.
    pub fn start() -> io::Result<Option<Self>> {
        let Some(mut command) = command(env::var_os("RETAKE_PAGER").or_else(|| env::var_os("PAGER"))) else {
            return Ok(None);
        };
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS_OPTIONS);
        }
        let mut child = match command.stdin(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let input = child.stdin.take().map(BufWriter::new);
        Ok(Some(Self { child, input }))
    }

    /// Ends the data and waits until the user has read it.
    pub fn wait(mut self) -> io::Result<()> {
        let flushed = self.flush();
        drop(self.input.take());
        self.child.wait()?;
        flushed
    }
}

/// How to start the pager that the user named, or the usual one; `cat` and the empty string mean none.
fn command(wanted: Option<OsString>) -> Option<Command> {
    match wanted {
        None => {
            let mut less = Command::new("less");
            less.arg(format!("-{LESS_OPTIONS}"));
            Some(less)
        }
        Some(name) if name.is_empty() || name == "cat" => None,
        Some(name) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(name);
            Some(shell)
        }
    }
}

impl Write for Pager {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Ok(data.len()), |input| input.write(data))
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
        assert!(command(Some("cat".into())).is_none());
    }

    #[test]
    fn a_named_pager_runs_through_the_shell() {
        let command = command(Some("more -s".into())).expect("a pager was named");
        assert_eq!(command.get_program(), "sh");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-c", "more -s"]);
    }
}
