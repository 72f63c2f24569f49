//! A real terminal that a test types at and looks at: a program in a window of a tmux server of its own.
//!
//! ```no_run
//! # use retake_testkit::tmux::Terminal;
//! let mut command = std::process::Command::new("retake");
//! let terminal = Terminal::start(&command.env("TERM", "tmux-256color"), (100, 30));
//! terminal.type_text("hello").key("Enter").wait_for("Hello.");
//! ```
//!
//! Nothing sleeps for a while and hopes: whatever takes time is waited for, up to [`PATIENCE`], and a wait that fails shows the screen.
//! The server has its socket in a directory of its own and is ended with the value, and with it whatever still runs in the window. A test
//! that fails leaves each terminal as it was in files of [`failure_dir`](crate::failure_dir), and says where.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Scratch;

/// How long something may take that should happen at once, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How often the screen is looked at.
const LOOK: Duration = Duration::from_millis(15);

/// The whole window is the program's, and stays when it has ended.
const OPTIONS: [[&str; 3]; 4] = [
    ["-g", "status", "off"],
    ["-g", "remain-on-exit", "on"],
    ["-g", "remain-on-exit-format", ""],
    ["-s", "escape-time", "0"],
];

/// A program in a terminal.
#[derive(Debug)]
pub struct Terminal {
    scratch: Scratch,
}

impl Terminal {
    /// Starts `command` in a terminal of so many columns and rows, with exactly its environment and directory.
    #[track_caller]
    pub fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let terminal = Self { scratch: Scratch::new() };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut tmux = terminal.tmux([]);
        for option in OPTIONS {
            tmux.arg("set-option").args(option).arg(";");
        }
        tmux.args(["new-session", "-d", "-x", &columns, "-y", &rows]);
        if let Some(dir) = command.get_current_dir() {
            tmux.arg("-c").arg(dir);
        }
        // The variables of tmux itself are none of the program's business.
        tmux.args(["--", "env", "-i"]);
        tmux.args(command.get_envs().filter_map(|(name, value)| Some(assignment(name, value?))));
        tmux.arg(command.get_program()).args(command.get_args());
        succeed(&mut tmux);
        terminal
    }

    /// Types `text`, letter by letter.
    #[track_caller]
    pub fn type_text(&self, text: &str) -> &Self {
        self.run(["send-keys", "-l", "--", text]);
        self
    }

    /// Presses a key: `Enter`, `Escape`, `C-r`, `M-Enter`, `Up`.
    #[track_caller]
    pub fn key(&self, name: &str) -> &Self {
        self.run(["send-keys", name]);
        self
    }

    /// Presses keys so fast that the program may see them at once.
    #[track_caller]
    pub fn keys<const N: usize>(&self, names: [&str; N]) -> &Self {
        succeed(self.tmux(["send-keys"]).args(names));
        self
    }

    /// Pastes `text` as terminals do it if the program has asked for brackets.
    #[track_caller]
    pub fn paste(&self, text: &str) -> &Self {
        let mut tmux = self.tmux(["load-buffer", "-b", "pasted", "-"]);
        let mut loading = tmux.stdin(Stdio::piped()).spawn().expect("tmux is installed");
        let mut stdin = loading.stdin.take().expect("it was asked for");
        stdin.write_all(text.as_bytes()).expect("tmux reads it");
        drop(stdin);
        assert!(loading.wait().expect("it ends").success(), "tmux takes what is pasted");
        self.run(["paste-buffer", "-d", "-p", "-b", "pasted"]);
        self
    }

    /// Gives the terminal another size.
    #[track_caller]
    pub fn resize(&self, columns: u16, rows: u16) -> &Self {
        self.run(["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        self
    }

    /// What is on the screen, without blanks at the ends of rows.
    #[track_caller]
    pub fn screen(&self) -> String {
        self.run(["capture-pane", "-p"])
    }

    /// What is on the screen, with the escapes for colours and such.
    #[track_caller]
    pub fn coloured_screen(&self) -> String {
        self.run(["capture-pane", "-p", "-e"])
    }

    /// Waits until `text` is on the screen, in one row or, as words, in several.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> &Self {
        self.wait_until(&format!("`{text}` is shown"), |screen| shows(screen, text))
    }

    /// Waits until `text` is not on the screen any more.
    #[track_caller]
    pub fn wait_until_gone(&self, text: &str) -> &Self {
        self.wait_until(&format!("`{text}` is gone"), |screen| !shows(screen, text))
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> &Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return self;
            }
            assert!(Instant::now() < deadline, "not so in {PATIENCE:?}: {what}\n{}", framed(&screen));
            std::thread::sleep(LOOK);
        }
    }

    /// Asserts that `text` is on the screen now.
    #[track_caller]
    pub fn shows(&self, text: &str) -> &Self {
        let screen = self.screen();
        assert!(shows(&screen, text), "`{text}` is not shown\n{}", framed(&screen));
        self
    }

    /// Asserts that `text` is not on the screen now.
    #[track_caller]
    pub fn shows_no(&self, text: &str) -> &Self {
        let screen = self.screen();
        assert!(!shows(&screen, text), "`{text}` is shown\n{}", framed(&screen));
        self
    }

    /// Something that tmux knows of the terminal: `alternate_on`, `cursor_flag`, `mouse_any_flag`, `pane_tty`.
    #[track_caller]
    pub fn fact(&self, name: &str) -> String {
        self.run(["display-message", "-p", &format!("#{{{name}}}")]).trim_end().to_owned()
    }

    /// The settings of the terminal's line, as `stty -g` prints them.
    #[track_caller]
    pub fn line_settings(&self) -> String {
        let output = Command::new("stty").arg("-F").arg(self.fact("pane_tty")).arg("-g").output();
        let output = output.expect("stty is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The process that was started in the terminal.
    #[track_caller]
    pub fn process(&self) -> Pid {
        self.fact("pane_pid").parse().ok().and_then(Pid::from_raw).expect("a process runs in the terminal")
    }

    /// Sends a signal to the process that was started in the terminal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) -> &Self {
        kill_process(self.process(), signal).expect("it runs");
        self
    }

    /// Kills the program without giving it a chance to do anything about it, and waits until it is dead.
    #[track_caller]
    pub fn kill_9(&self) {
        self.signal(Signal::KILL);
        self.wait_for_fact("it is dead", "pane_dead", |dead| dead == "1");
    }

    /// Waits until the program has ended by itself; returns its exit code.
    #[track_caller]
    pub fn wait_for_end(&self) -> String {
        self.wait_for_fact("it has ended", "pane_dead", |dead| dead == "1");
        // tmux may be slow to ask how the program ended, or forget about it until another child of its own ends.
        let ask = |code: &str| !code.is_empty() || !self.run(["run-shell", "true"]).is_empty();
        self.wait_for_fact("it has told how it ended", "pane_dead_status", ask)
    }

    #[track_caller]
    fn wait_for_fact(&self, what: &str, name: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let fact = self.fact(name);
            if is_so(&fact) {
                return fact;
            }
            assert!(Instant::now() < deadline, "not so in {PATIENCE:?}: {what}\n{}", framed(&self.screen()));
            std::thread::sleep(LOOK);
        }
    }

    /// From now on keeps every byte that the program writes; forgets those that were kept before.
    #[track_caller]
    pub fn record(&self) -> &Self {
        let path = self.recording();
        let quoted = path.to_str().expect("a scratch directory's name is text");
        // `cat` is started in the background; what is written before it reads waits for it.
        self.run(["pipe-pane"]);
        if let Err(error) = fs::remove_file(&path) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        }
        self.run(["pipe-pane", "-O", &format!("exec cat > '{quoted}'")]);
        let deadline = Instant::now() + PATIENCE;
        while !path.exists() {
            assert!(Instant::now() < deadline, "the recording does not begin");
            std::thread::sleep(LOOK);
        }
        self
    }

    /// What was written since [`Terminal::record`].
    #[track_caller]
    pub fn raw_output(&self) -> Vec<u8> {
        fs::read(self.recording()).expect("a recording was begun")
    }

    /// How many bytes were written since [`Terminal::record`].
    #[track_caller]
    pub fn raw_output_bytes(&self) -> usize {
        self.raw_output().len()
    }

    fn recording(&self) -> PathBuf {
        self.scratch.path().join("output")
    }

    /// tmux on this server.
    fn tmux<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new("tmux");
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Nothing of the developer's, neither settings nor a server that already runs.
        command
            .env_clear()
            .env("PATH", path)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh");
        command.arg("-u").arg("-S").arg(self.scratch.path().join("tmux")).args(["-f", "/dev/null"]);
        command.args(args);
        command
    }

    #[track_caller]
    fn run<const N: usize>(&self, args: [&str; N]) -> String {
        succeed(&mut self.tmux(args))
    }
}

impl Terminal {
    /// Writes down what the terminal shows, its scrollback and the program's messages among it, for those who look into a failure.
    fn keep_screen(&self) -> std::io::Result<PathBuf> {
        let read = |args: [&str; 5]| {
            self.tmux(args).output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let facts =
            "#{pane_width}x#{pane_height}, dead: #{pane_dead} (#{pane_dead_status}), runs: #{pane_start_command}";
        let facts = read(["display-message", "-p", "-t", ":", facts])?;
        // On the alternate screen the one beneath it has what was written before, and with `-q` it is no error if there is none.
        let screens = [["-p", "-S", "-", "-J"], ["-p", "-a", "-q", "-J"]];
        let [shown, beneath] = screens.map(|[a, b, c, d]| read(["capture-pane", a, b, c, d]));
        let dir = crate::failure_dir();
        fs::create_dir_all(&dir)?;
        let taken = |n: &u32| dir.join(format!("screen-{n}.txt")).exists();
        let free = (1..).find(|n| !taken(n)).unwrap_or_default();
        let path = dir.join(format!("screen-{free}.txt"));
        fs::write(&path, format!("{facts}\n{}\n\nThe other screen:\n{}\n", framed(&shown?), framed(&beneath?)))?;
        Ok(path)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let told = match self.keep_screen() {
                Ok(path) => format!("the terminal's screen is in {}", path.display()),
                Err(error) => format!("the terminal's screen could not be kept: {error}"),
            };
            // Beside the message of the failure; if nobody reads that, there is nobody to tell.
            writeln!(std::io::stderr(), "{told}").ok();
        }
        // A server that has gone already needs no end.
        self.tmux(["kill-server"]).stderr(Stdio::null()).status().ok();
    }
}

/// Whether `text` is on `screen`; words may be in several rows.
pub fn shows(screen: &str, text: &str) -> bool {
    screen.contains(text) || in_one_row(screen).contains(&in_one_row(text))
}

fn in_one_row(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    let mut text = name.to_owned();
    text.push("=");
    text.push(value);
    text
}

/// The screen as a failure shows it.
fn framed(screen: &str) -> String {
    let mut text = String::from("┌──\n");
    for row in screen.lines() {
        writeln!(text, "│{row}").expect("a string takes everything");
    }
    text.push_str("└──");
    text
}

#[track_caller]
fn succeed(tmux: &mut Command) -> String {
    let output = tmux.output().expect("tmux is installed");
    assert!(output.status.success(), "{tmux:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
