//! The tour as text: a prompt, a mistake, the way back, and that it can be undone. Each step is done by the real engine and checked byte by
//! byte; a restore that does not restore ends the tour with an error.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use retake_agent::contract::{Action, Change, ChangeGoal, Command, Event, EventKind, Query, Reply, TurnEnd};
use retake_agent::controller::{self, Attached, Handle, Opened, SessionSetup, Unprotected, Which};
use retake_agent::model::{Model, ModelSettings, Models};
use retake_agent::permission::{Allowed, Mode, Policy};
use retake_agent::rewind_document::RewindDocument;
use retake_agent::tool::{Jobs, Shell, Toolbox};
use retake_engine::id::EntryId;
use retake_engine::operation::MadeBy;
use retake_engine::rewind::Files as RewoundFiles;
use retake_engine::session::entry::{Body, Part};
use retake_engine::session::{Discard, Scope};
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

use super::scratch::{Afterwards, Files, Scratch};
use super::{model, story};
use crate::agent::{self, AgentError};
use crate::failure::Result;
use crate::output::ui::{BOLD, CYAN, DIM, GREEN, Paint, RED, Ui, YELLOW};

/// The demo did not go as it has to.
#[derive(Debug, Error)]
pub enum DemoError {
    #[error("the demo went wrong: {what}")]
    Wrong { what: String },
    #[error("the demo's directory cannot be made in `{}`", std::env::temp_dir().display())]
    Scratch(#[source] std::io::Error),
}

fn wrong(what: impl Into<String>) -> DemoError {
    DemoError::Wrong { what: what.into() }
}

/// Takes the tour, from the first prompt to the last undo.
pub fn run(ui: &mut Ui, afterwards: Afterwards) -> Result<()> {
    let runtime = agent::runtime()?;
    let scratch = Scratch::new(afterwards).map_err(DemoError::Scratch)?;
    let url = runtime.block_on(model::start(Duration::ZERO))?;
    let opened = open(&runtime, &scratch, &url, Mode::Headless(Allowed::All))?;
    let Attached { events, .. } = runtime.block_on(opened.handle.attach(None)).map_err(AgentError::from)?;
    let mut tour = Tour {
        paint: ui.paint,
        ui,
        runtime: &runtime,
        handle: opened.handle.clone(),
        events,
        scratch: &scratch,
        step: 0,
    };
    let toured = tour.walk();
    drop(tour);
    runtime.block_on(opened.handle.request(Action::Close)).ok();
    drop(opened.handle);
    opened.served.join().ok();
    toured
}

/// Opens a session of the demo.
pub fn open(runtime: &Runtime, scratch: &Scratch, url: &str, mode: Mode) -> Result<Opened> {
    let _inside = runtime.enter();
    let settings = ModelSettings::parse("anthropic/demo", Some(url), |_| None).map_err(AgentError::from)?;
    let (jobs, ended) = Jobs::new();
    let opened = controller::open(SessionSetup {
        environment: scratch.environment(),
        which: Which::New,
        model: Model::new(settings).map_err(AgentError::from)?,
        models: Models::none(),
        policy: Policy { mode, ..Policy::default() },
        unprotected: Unprotected::Ask,
        made_by: MadeBy::Client,
        tools: (Toolbox::new(&scratch.root(), Shell::default(), jobs), ended),
    });
    Ok(opened.map_err(AgentError::Open)?)
}

struct Tour<'a> {
    ui: &'a mut Ui,
    paint: Paint,
    runtime: &'a Runtime,
    handle: Handle,
    events: broadcast::Receiver<Arc<Event>>,
    scratch: &'a Scratch,
    step: u32,
}

impl Tour<'_> {
    fn walk(&mut self) -> Result<()> {
        let root = self.scratch.root();
        let names = story::FILES.map(|(name, _)| name).join(", ");
        self.line(&format!("A tour of Retake in {}: {names}.", root.display()))?;
        self.line("The agent and the engine are the real ones; only the model is scripted. No key, no network.")?;

        self.title("The agent works: it edits through tools and through the shell")?;
        self.prompt(story::FIRST)?;
        let mended = self.scratch.files()?;
        check(mended["total.sh"] != story::FILES[0].1.as_bytes(), "the script was not mended")?;

        self.title("Then it makes a mistake, through the shell")?;
        let second = self.prompt(story::SECOND)?;
        let tidied = self.scratch.files()?;
        check(!tidied.contains_key("notes.txt"), "the mistake was not made")?;
        self.mark(RED, "notes.txt and prices.txt are gone. No edit tool deleted them, and git was never asked.")?;
        self.line("Meanwhile you change README.md yourself:")?;
        let mine = "# Prices\n\nMine, written while the agent worked.\n";
        std::fs::write(root.join("README.md"), mine)?;

        self.title("What going back to before that prompt would do (retake rewind PROMPT --dry-run)")?;
        let plan = self.change(Query::Plan { change: back_to(second) })?;
        self.show_plan(&plan)?;

        self.title("Going back: files and conversation, as one operation (retake rewind PROMPT)")?;
        self.change(apply(back_to(second)))?;
        let mut wanted = mended;
        wanted.insert("README.md".to_owned(), mine.as_bytes().to_vec());
        self.compare(&wanted, "every file is as it was before the prompt, byte for byte; README.md is yours")?;
        let draft = self.draft()?;
        check(draft == story::SECOND, "the prompt is not there to be said again")?;
        self.mark(GREEN, &format!("the prompt waits to be said again: \"{draft}\""))?;

        self.title("Everything can be undone, the rewind too (retake undo, retake redo)")?;
        let mut undone = tidied;
        undone.insert("README.md".to_owned(), mine.as_bytes().to_vec());
        self.change(apply(Change::new(ChangeGoal::Undo { operation: None })))?;
        self.compare(&undone, "undo: the tidied project is back")?;
        self.change(apply(Change::new(ChangeGoal::Redo { operation: None })))?;
        self.compare(&wanted, "redo: and gone again")?;

        self.title("Edited and sent once more")?;
        self.prompt(story::SECOND_BETTER)?;
        let files = self.scratch.files()?;
        check(files.contains_key("notes.txt") && files.contains_key("src/total.sh"), "the second try went wrong")?;
        self.mark(GREEN, "the script is in src, and your files are where they were")?;
        self.line("")?;
        self.line("Next: `retake run -p \"…\"` in a project of yours; `retake --help` for the rest.")?;
        Ok(())
    }

    fn line(&mut self, text: &str) -> Result<()> {
        Ok(writeln!(self.ui.out, "{text}")?)
    }

    fn title(&mut self, text: &str) -> Result<()> {
        self.step += 1;
        let bold = self.paint.with(BOLD);
        Ok(writeln!(self.ui.out, "\n{bold}{}. {text}{bold:#}", self.step)?)
    }

    fn mark(&mut self, style: anstyle::Style, text: &str) -> Result<()> {
        let style = self.paint.with(style);
        Ok(writeln!(self.ui.out, "   {style}{text}{style:#}")?)
    }

    /// Says something, and shows what comes of it.
    fn prompt(&mut self, text: &str) -> Result<EntryId> {
        let cyan = self.paint.with(CYAN);
        writeln!(self.ui.out, "   {cyan}> {text}{cyan:#}")?;
        let said = self.runtime.block_on(self.handle.request(Action::prompt(vec![Part::text(text)])));
        let Reply::Said { prompt } = said.map_err(AgentError::from)? else {
            return Err(wrong("the prompt was not said").into());
        };
        loop {
            let event = self.runtime.block_on(self.events.recv()).map_err(|_| wrong("the session ended"))?;
            match &event.kind {
                EventKind::CallStarted { title, .. } => self.mark(DIM, &format!("• {title}"))?,
                EventKind::Appended { entry } => {
                    if let Body::Reply { .. } = &entry.body {
                        let said = retake_engine::session::last_words(std::slice::from_ref(entry));
                        self.mark(anstyle::Style::new(), &said)?;
                    }
                }
                EventKind::TurnEnded { reason, message, .. } if *reason != TurnEnd::Done => {
                    return Err(wrong(message.clone().unwrap_or_else(|| "the turn was interrupted".to_owned())).into());
                }
                EventKind::TurnEnded { .. } => return Ok(prompt),
                _ => {}
            }
        }
    }

    fn change(&mut self, command: impl Into<Command>) -> Result<RewindDocument> {
        let reply = self.runtime.block_on(self.handle.request(command)).map_err(AgentError::from)?;
        let Reply::Change { document } = reply else { return Err(wrong("there is no plan").into()) };
        Ok(*document)
    }

    fn show_plan(&mut self, plan: &RewindDocument) -> Result<()> {
        for file in &plan.files {
            let path = String::from_utf8_lossy(&file.path.decode().unwrap_or_default()).into_owned();
            self.mark(YELLOW, &format!("{:<9} {path}", file.action.as_deref().unwrap_or_default()))?;
        }
        let names = plan.files.iter().filter_map(|file| file.path.decode());
        check(!names.into_iter().any(|name| name == b"README.md"), "the plan would touch what you changed")?;
        self.mark(DIM, "README.md is not in it: you changed it, not the agent")?;
        for item in &plan.ledger {
            self.mark(DIM, &format!("cannot be undone, so it is told: {} {}", item.kind, item.what))?;
        }
        Ok(())
    }

    fn draft(&mut self) -> Result<String> {
        let reply = self.runtime.block_on(self.handle.request(Query::Attach { from: None }));
        let Reply::View { view } = reply.map_err(AgentError::from)? else { return Ok(String::new()) };
        let texts = view.draft.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        Ok(texts.collect())
    }

    fn compare(&mut self, wanted: &Files, what: &str) -> Result<()> {
        let found = self.scratch.files()?;
        let differing: Vec<&String> =
            wanted.keys().chain(found.keys()).filter(|name| wanted.get(*name) != found.get(*name)).collect();
        check(differing.is_empty(), &format!("these files are not as they were: {differing:?}"))?;
        self.mark(GREEN, what)
    }
}

fn check(holds: bool, what: &str) -> Result<(), DemoError> {
    if holds { Ok(()) } else { Err(wrong(what)) }
}

fn back_to(entry: EntryId) -> Change {
    Change::new(ChangeGoal::Rewind { entry, scope: Scope::Both, files: RewoundFiles::Selective, discard: Discard::No })
}

fn apply(change: Change) -> Command {
    Action::Apply { change, head_seen: None, plan_seen: None, running: retake_agent::contract::WhileRunning::Refuse }
        .into()
}
