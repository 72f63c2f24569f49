//! The only way to the terminal: data to stdout (or the pager), talk to stderr.
//!
//! Data is written exactly as given. Escape sequences in it may belong to the user's files, so colours are chosen before writing
//! ([`Paint`]), never filtered out afterwards; talk goes through `anstream`, which does filter.

use std::io::{self, BufWriter, IsTerminal, Stderr, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use thiserror::Error;

use crate::args::{GlobalArgs, When};
use crate::output::messages;
use crate::output::pager::{NotStarted, Pager};
use crate::output::progress::Bar;
use crate::output::quote;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default();
pub const GREEN: Style = AnsiColor::Green.on_default();
pub const CYAN: Style = AnsiColor::Cyan.on_default();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Columns assumed when stdout is no terminal.
const DEFAULT_COLUMNS: usize = 80;
/// Paths named in a warning.
pub const MAX_NAMED: usize = 20;

/// Colours on stdout: styles that turn into nothing when they are not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Colour,
    Plain,
}

impl Paint {
    /// `style` itself, or the style that writes nothing.
    pub fn with(self, style: Style) -> Style {
        match self {
            Self::Colour => style,
            Self::Plain => Style::new(),
        }
    }
}

/// How results are to be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

pub struct Ui {
    /// Data.
    pub out: DataOutput,
    pub format: Format,
    pub paint: Paint,
    /// Whether people read the data, rather than a program.
    pub on_terminal: bool,
    err: AutoStream<Stderr>,
    pager_allowed: bool,
    document: Document,
}

/// Whether the command's JSON document has been printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    Due,
    Printed,
}

/// Data could not be written. It travels inside an [`io::Error`], so that a closed pipe stays recognisable as one.
#[derive(Debug, Error)]
#[error("cannot write the output")]
pub struct OutputError(#[source] io::Error);

impl OutputError {
    /// Marks `error` as one of the output.
    pub fn wrap(error: io::Error) -> io::Error {
        io::Error::new(error.kind(), Self(error))
    }

    /// Whether `error` is one of the output.
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// Where data goes.
pub enum DataOutput {
    Stdout(BufWriter<StdoutLock<'static>>),
    Pager(Pager),
}

impl Ui {
    pub fn new(global: &GlobalArgs) -> Self {
        match global.color {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        }
        .write_global();
        let stdout = io::stdout();
        let paint = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Paint::Plain,
            _ => Paint::Colour,
        };
        let on_terminal = stdout.is_terminal();
        Self {
            on_terminal,
            pager_allowed: on_terminal && !global.no_pager,
            out: DataOutput::stdout(),
            format: if global.json { Format::Json } else { Format::Text },
            paint,
            err: AutoStream::auto(io::stderr()),
            document: if global.json { Document::Due } else { Document::Printed },
        }
    }

    /// Whether somebody sits at a terminal and can be shown more than lines.
    pub fn is_interactive(&self) -> bool {
        let can_draw = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        self.on_terminal && self.format == Format::Text && io::stdin().is_terminal() && can_draw
    }

    /// Sends the data that follows through a pager, if stdout is a terminal and one is to be had.
    pub fn start_pager(&mut self) -> io::Result<()> {
        if !self.pager_allowed || self.format == Format::Json {
            return Ok(());
        }
        self.out.flush()?;
        match Pager::start() {
            Ok(Some(pager)) => self.out = DataOutput::Pager(pager),
            Ok(None) => {}
            Err(missing) => self.out.go_on_without(&missing)?,
        }
        Ok(())
    }

    /// Prints `rewind_document` as the command's one JSON document.
    pub fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(document)?;
        self.raw_json(&text)
    }

    /// Prints `rewind_document`, which is JSON already. What a terminal would obey in it is escaped, and it means the same.
    pub fn raw_json(&mut self, document: &str) -> io::Result<()> {
        self.document = Document::Printed;
        writeln!(self.out, "{}", quote::json(document))
    }

    /// Whether a JSON document is wanted and none has been printed yet.
    pub fn owes_document(&self) -> bool {
        self.document == Document::Due
    }

    /// Stderr, after the data written so far, so that both come in order on a terminal.
    pub fn talk(&mut self) -> io::Result<&mut AutoStream<Stderr>> {
        self.out.flush()?;
        Ok(&mut self.err)
    }

    /// Stderr, whatever became of the data.
    pub fn complain(&mut self) -> &mut AutoStream<Stderr> {
        &mut self.err
    }

    /// Says something about the data that calls for attention.
    pub fn warn(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.talk()?, "{YELLOW}warning:{YELLOW:#} {}", quote::harmless(text))
    }

    /// Says that something is wrong with the paths called `names`, if there are any: `one` of them, or `many`.
    pub fn warn_of(&mut self, one: &str, many: &str, names: &[String]) -> io::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let verb = if names.len() == 1 { one } else { many };
        self.warn(&format!("{} {verb}", messages::count(names.len() as u64, "path", "paths")))?;
        for name in names.iter().take(MAX_NAMED) {
            writeln!(self.talk()?, "  {name}")?;
        }
        match names.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => writeln!(self.talk()?, "  … and {more} more"),
        }
    }

    /// Asks on stderr for a line from stdin; an empty one if there is none.
    pub fn question(&mut self, text: &str) -> io::Result<String> {
        let err = self.talk()?;
        write!(err, "{BOLD}{text}{BOLD:#} ")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer)
    }

    /// A progress bar for work that may take long.
    pub fn progress(&self) -> Bar {
        if io::stderr().is_terminal() { Bar::on_stderr() } else { Bar::silent() }
    }

    /// How wide stdout is.
    pub fn columns(&self) -> usize {
        let size = rustix::termios::tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
        size.ok().filter(|columns| 0 < *columns).unwrap_or(DEFAULT_COLUMNS)
    }

    /// Writes what is buffered and waits for the user to leave the pager.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()?;
        let ended = match &mut self.out {
            DataOutput::Stdout(_) => None,
            DataOutput::Pager(pager) => pager.end()?,
        };
        match ended {
            Some(missing) => self.out.go_on_without(&missing)?,
            None => self.out = DataOutput::stdout(),
        }
        self.out.flush()
    }
}

/// Takes in what calls for attention.
pub trait Warn {
    fn warn(&mut self, text: &str) -> io::Result<()>;
}

impl Warn for Ui {
    fn warn(&mut self, text: &str) -> io::Result<()> {
        Self::warn(self, text)
    }
}

impl DataOutput {
    fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout().lock()))
    }

    /// Says that the pager is missing, and prints what it should have shown.
    fn go_on_without(&mut self, pager: &NotStarted) -> io::Result<()> {
        let mut err = AutoStream::auto(io::stderr());
        let name = quote::one_line(&pager.name);
        writeln!(
            err,
            "{YELLOW}warning:{YELLOW:#} the pager `{name}` could not be started; this is printed without it"
        )?;
        *self = Self::stdout();
        self.write_all(&pager.unread)
    }

    /// After a failed write: goes on if there is no pager after all. One that the user has left is a failure.
    fn recover(&mut self, error: io::Error) -> io::Result<()> {
        let ended = match self {
            Self::Pager(pager) if error.kind() == io::ErrorKind::BrokenPipe => pager.end()?,
            _ => None,
        };
        ended.map_or(Err(error), |missing| self.go_on_without(&missing))
    }
}

impl Write for DataOutput {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(data).map_err(OutputError::wrap),
            Self::Pager(pager) => pager.write(data).or_else(|error| {
                self.recover(error)?;
                self.write(data)
            }),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush().map_err(OutputError::wrap),
            Self::Pager(pager) => pager.flush().or_else(|error| {
                self.recover(error)?;
                self.flush()
            }),
        }
    }
}
