//! A turn as people, or programs, see it on the command line: the model's words on stdout, what it does on stderr; or every event as a
//! line of JSON.

use std::io::{self, Write};

use retake_agent::contract::{Event, EventKind};
use retake_engine::session::entry::{Block, Body, Details, Outcome, Part};

use crate::output::quote;
use crate::output::ui::{DIM, Format, RED, Ui, YELLOW};

/// Lines of a failed call's result that are shown.
const MAX_LINES: usize = 5;

/// Prints the events of a turn.
pub struct Printer<'a> {
    ui: &'a mut Ui,
    /// Whether the last thing printed was a part of a line.
    in_line: bool,
    /// Whether something was changed, or could have been, that no snapshot protects.
    unprotected: bool,
}

impl<'a> Printer<'a> {
    pub fn new(ui: &'a mut Ui) -> Self {
        Self { ui, in_line: false, unprotected: false }
    }

    /// Prints one event.
    pub fn take(&mut self, event: &Event) -> io::Result<()> {
        if self.ui.format == Format::Json {
            self.ui.json(event)?;
            return self.ui.out.flush();
        }
        match &event.kind {
            // What may have to be said again is better not said to a program.
            EventKind::Delta { .. } if !self.ui.on_terminal => {}
            EventKind::Delta { text, .. } => {
                self.ui.out.write_all(quote::harmless(text).as_bytes())?;
                self.ui.out.flush()?;
                self.in_line = !text.ends_with('\n');
            }
            EventKind::CallStarted { title, .. } => {
                self.end_line()?;
                writeln!(self.ui.talk()?, "{DIM}• {}{DIM:#}", quote::one_line(title))?;
            }
            EventKind::Appended { entry } => self.entry(&entry.body)?,
            EventKind::Retrying { after_ms, message, .. } => {
                self.end_line()?;
                let (seconds, message) = (after_ms.div_ceil(1000), quote::one_line(message));
                writeln!(self.ui.talk()?, "{YELLOW}{message}; trying again in {seconds} s{YELLOW:#}")?;
            }
            EventKind::Summarising { active: true } => {
                self.end_line()?;
                writeln!(self.ui.talk()?, "{DIM}• summarising earlier parts: the conversation is long{DIM:#}")?;
            }
            EventKind::Warning { text } => {
                self.end_line()?;
                self.ui.warn(&quote::harmless(text))?;
            }
            EventKind::Snapshot { error: Some(error), .. } => {
                self.unprotected = true;
                self.end_line()?;
                self.ui.warn(&format!("no snapshot could be taken: {error}"))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn entry(&mut self, body: &Body) -> io::Result<()> {
        match body {
            Body::Reply { .. } if self.ui.on_terminal => self.end_line()?,
            Body::Reply { blocks, .. } => {
                for block in blocks {
                    if let Block::Text { text } = block {
                        self.ui.out.write_all(text.as_bytes())?;
                        self.in_line = !text.ends_with('\n');
                        self.end_line()?;
                    }
                }
            }
            // The model's own checkpoints are no calls that start.
            Body::ToolResult {
                title,
                outcome: Outcome::Done,
                details: Some(Details::Checkpoint { .. } | Details::Rewound { .. }),
                ..
            } => {
                self.end_line()?;
                writeln!(self.ui.talk()?, "{DIM}• {}{DIM:#}", quote::one_line(title))?;
            }
            Body::ToolResult { title, outcome, parts, .. } if *outcome != Outcome::Done => {
                self.end_line()?;
                let what = match outcome {
                    Outcome::Failed => "failed",
                    Outcome::Denied => "not allowed",
                    Outcome::Interrupted => "interrupted",
                    Outcome::Done => return Ok(()),
                };
                writeln!(self.ui.talk()?, "{RED}{what}{RED:#}: {}", quote::one_line(title))?;
                let text = parts.iter().filter_map(|part| match part {
                    Part::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                for line in text.flat_map(str::lines).take(MAX_LINES) {
                    writeln!(self.ui.talk()?, "{DIM}  {}{DIM:#}", quote::one_line(line))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.in_line {
            self.in_line = false;
            writeln!(self.ui.out)?;
            self.ui.out.flush()?;
        }
        Ok(())
    }

    /// After the last event.
    pub fn finish(&mut self) -> io::Result<()> {
        self.end_line()
    }

    /// Whether something of the turn cannot be taken back.
    pub fn is_unprotected(&self) -> bool {
        self.unprotected
    }

    pub fn ui(&mut self) -> &mut Ui {
        self.ui
    }
}
