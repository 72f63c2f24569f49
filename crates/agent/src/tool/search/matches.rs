//! What a search found, as the model is told of it.

use std::fmt::Write as _;

use grep_searcher::{Searcher, SinkContext, SinkFinish, SinkMatch};

use crate::tool::run::Stop;
use crate::tool::{Output, counted};

const MAX_MATCHES: usize = 250;
const MAX_FILES: usize = 500;
const MAX_BYTES: usize = 40_000;
/// What of one line is shown, in characters.
const MAX_LINE: usize = 400;

/// What is told of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchReport {
    Content,
    Files,
    Count,
}

/// Everything found so far.
#[derive(Debug)]
pub(crate) struct Matches {
    mode: MatchReport,
    text: String,
    matches: usize,
    files: usize,
    is_full: bool,
}

impl Matches {
    pub(crate) fn new(mode: MatchReport) -> Self {
        Self { mode, text: String::new(), matches: 0, files: 0, is_full: false }
    }

    /// Whether more would not be told.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn tell(self) -> Output {
        if self.matches == 0 {
            return Output::done("No match. Ignored and binary files were left out.");
        }
        let summary = match (self.mode, self.is_full) {
            (MatchReport::Content, false) => {
                format!("[{} in {}.]", counted(self.matches, "matching line"), counted(self.files, "file"))
            }
            (MatchReport::Files, false) => format!("[{}.]", counted(self.files, "file")),
            (MatchReport::Count, false) => {
                format!("[{} in {}.]", counted(self.matches, "matching line"), counted(self.files, "file"))
            }
            (MatchReport::Content, true) => format!(
                "[Only the first {} matching lines are shown; there may be more. Narrow the search with `path`, `glob` or the pattern, or use mode `files`.]",
                self.matches
            ),
            (MatchReport::Files | MatchReport::Count, true) => {
                format!(
                    "[Only the first {} files are shown; there may be more. Narrow the search with `path` or `glob`.]",
                    self.files
                )
            }
        };
        Output::done(format!("{}{summary}", self.text))
    }

    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let shown: String = line.chars().take(MAX_LINE).collect();
        let more = if shown.len() < line.len() { " […]" } else { "" };
        writeln!(self.text, "{:>6}{mark}{shown}{more}", number.unwrap_or_default()).expect("a String takes everything");
    }
}

/// Takes the matches of one file.
pub(crate) struct Sink<'a> {
    name: String,
    found: &'a mut Matches,
    stop: &'a Stop,
    here: usize,
    is_named: bool,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(name: String, found: &'a mut Matches, stop: &'a Stop) -> Self {
        Self { name, found, stop, here: 0, is_named: false }
    }

    /// Names the file before its first line, which may be one of context.
    fn name_once(&mut self) {
        if !std::mem::replace(&mut self.is_named, true) {
            self.found.text.extend([self.name.as_str(), "\n"]);
        }
    }

    /// Tells what the file had, once it is searched.
    pub(crate) fn finish(self) {
        let (found, name, here) = (self.found, self.name, self.here);
        if here == 0 {
            return;
        }
        found.files += 1;
        match found.mode {
            MatchReport::Content => found.text.push('\n'),
            MatchReport::Files => found.text.extend([name.as_str(), "\n"]),
            MatchReport::Count => writeln!(found.text, "{name}: {here}").expect("a String takes everything"),
        }
        found.is_full |= found.mode != MatchReport::Content && found.files >= MAX_FILES;
    }
}

impl grep_searcher::Sink for Sink<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.here += 1;
        self.found.matches += 1;
        match self.found.mode {
            MatchReport::Files => return Ok(false),
            MatchReport::Count => return Ok(!self.stop.is_set()),
            MatchReport::Content => {}
        }
        self.name_once();
        self.found.line(matched.line_number(), ':', matched.bytes());
        self.found.is_full = self.found.matches >= MAX_MATCHES || self.found.text.len() >= MAX_BYTES;
        Ok(!self.found.is_full && !self.stop.is_set())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        if self.found.mode == MatchReport::Content {
            self.name_once();
            self.found.line(context.line_number(), '-', context.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        if self.found.mode == MatchReport::Content {
            self.found.text.push_str("    --\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), Self::Error> {
        Ok(())
    }
}
