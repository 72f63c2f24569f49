//! Playing a story on a real directory, with the engine and the model side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::{OperationId, SessionId};
use retake_engine::progress::NoProgress;
use retake_engine::session::NewSession;
use retake_engine::view::Side;
use retake_engine::window::{NewWindow, Reach};
use retake_engine::{Durability, Environment, GlobalExcludes, Settings, Timestamp, Workspace, WorkspacePath};
use retake_testkit::Scratch;
use retake_testkit::naive::{self, Everything, NaiveTree, Reading};
use retake_testkit::tree::{Deed, MAX_FILE, Pick, Round, Sandbox, Save, Story, Tool, Who};

use super::check;
use super::model::{By, Model, Operation, OperationIs, Path, Window, WindowState};
use super::tally::Met;
use crate::compare::{self, MISMATCH, Read, Verdict, no_error};
use crate::scanners::{environment, numbered};

/// Bytes of hidden files that a rewind saves.
pub(super) const SAVE_HIDDEN: u64 = 64 << 10;

/// A directory, the engine that looks after it, and what should be true of both.
pub(super) struct World<'a, 'b> {
    pub(super) sandbox: &'a mut Sandbox<'b>,
    pub(super) met: &'a mut Met,
    pub(super) root: PathBuf,
    env: Environment,
    pub(super) workspace: Workspace,
    pub(super) sessions: [SessionId; 2],
    pub(super) model: Model,
    /// The engine's windows that are open, with the model's number.
    pub(super) windows: Vec<(usize, retake_engine::window::Window)>,
    clock: i64,
    /// What was read of the store.
    read: Read,
}

impl<'a, 'b> World<'a, 'b> {
    /// Opens a workspace on the sandbox's empty directory.
    pub(super) fn open(
        scratch: &Scratch,
        sandbox: &'a mut Sandbox<'b>,
        met: &'a mut Met,
        threads: usize,
    ) -> Result<Self, String> {
        let root = scratch.dir("root");
        let plain = environment(&root, scratch.path().join("store"));
        let settings = Settings { max_file: MAX_FILE, save_hidden: SAVE_HIDDEN, ..plain.settings };
        let env = Environment {
            global_excludes: Some(GlobalExcludes::at(sandbox.global_excludes())),
            threads,
            settings,
            ..plain
        };
        let mut workspace = no_error("open", Workspace::open_or_create(env.clone()))?;
        let mut session = |number: i64| {
            let at = Timestamp(number);
            let id = SessionId::new(at, random(number, 1));
            no_error(
                "session",
                workspace.sessions_mut().create(NewSession {
                    id,
                    at,
                    title: "a session".to_owned(),
                    kind: retake_engine::session::SessionKind::Commands,
                }),
            )?;
            Ok::<_, String>(id)
        };
        let sessions = [session(1)?, session(2)?];
        let (model, windows, read) = (Model::default(), Vec::new(), Read::default());
        Ok(Self { sandbox, met, root, env, workspace, sessions, model, windows, clock: 2, read })
    }

    /// Plays a story to its end, and looks at everything once more.
    pub(super) fn play(&mut self, story: &Story) -> Verdict {
        self.edit(&story.start);
        self.checkpoint()?;
        for round in story.rounds.iter().flatten() {
            self.round(round)?;
        }
        self.finish()
    }

    fn round(&mut self, round: &Round) -> Verdict {
        match round {
            Round::Edit(deeds) => {
                self.met.add("round: edit");
                self.edit(deeds);
                Ok(())
            }
            Round::Checkpoint => {
                self.met.add("round: checkpoint");
                self.checkpoint()
            }
            Round::Begin { who, tool, operation } => self.begin(*who, tool, *operation),
            Round::End(which) => self.end(*which),
            Round::Lose(which) => {
                if let Some(at) = pick(*which, self.windows.len()) {
                    self.met.add("round: window lost");
                    let (number, window) = self.windows.remove(at);
                    self.sandbox.note(format!("the process of tool {number} dies"));
                    self.model.windows[number].state = WindowState::Lost;
                    drop(window);
                    self.keep_dead_tools_at_work()?;
                }
                Ok(())
            }
            Round::Rewind { aim, choice, but, only, shown } => self.rewind(*aim, *choice, *but, only, *shown).map(drop),
            Round::BackAndForth(choice) => self.back_and_forth(*choice),
            Round::Reopen => {
                self.met.add("round: reopen");
                self.sandbox.note("open anew");
                self.workspace = no_error("open again", Workspace::open(self.env.clone()))?;
                Ok(())
            }
        }
    }

    /// Gives tools that died a last sign of life far ahead: the model knows no time, so whatever changes until the next checkpoint is
    /// theirs, however slow this machine is.
    fn keep_dead_tools_at_work(&self) -> Verdict {
        let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(24 * 60 * 60);
        let windows = self.workspace.store_dir().join("windows");
        for entry in no_error("list windows", std::fs::read_dir(windows))? {
            let file = std::fs::File::options().write(true).open(no_error("list windows", entry)?.path());
            no_error("touch a window", file.and_then(|file| file.set_modified(ahead)))?;
        }
        Ok(())
    }

    fn edit(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            match deed {
                Deed::Step(step) => drop(self.sandbox.apply(step)),
                Deed::Save(spot, save) => {
                    if let Some(path) = self.sandbox.spot(*spot) {
                        self.sandbox.save(&path, *save);
                    }
                }
            }
        }
    }

    pub(super) fn naive(&self, declared: &BTreeSet<Path>, saved: &BTreeSet<Path>) -> Result<NaiveTree, String> {
        let global_excludes = Some(self.sandbox.global_excludes());
        let (declared, held, saved) = (declared.clone(), self.model.held.clone(), saved.clone());
        let reading = Reading { global_excludes, max_file: MAX_FILE, declared, held, saved, ..Reading::default() };
        naive::read(&self.root, &reading).map_err(|error| format!("ERROR: the naive read: {error}"))
    }

    /// What a checkpoint has to hold now, after an operation to the point `target` if there was one. Paths that a tool's rule leaves out
    /// stay captured.
    pub(super) fn look(&mut self, target: Option<usize>, wanted: &BTreeSet<Path>) -> Result<NaiveTree, String> {
        let none = BTreeSet::new();
        let declared = self.model.declared.union(wanted).cloned().collect();
        let tree = self.naive(&declared, &none)?;
        let held = self.model.to_hold(&tree, target, &self.everything()?);
        if held.is_empty() {
            return Ok(tree);
        }
        self.met.add("change: held");
        self.model.held.extend(held);
        self.naive(&declared, &none)
    }

    pub(super) fn everything(&self) -> Result<Everything, String> {
        naive::everything(&self.root).map_err(|error| format!("ERROR: reading everything: {error}"))
    }

    pub(super) fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    fn checkpoint(&mut self) -> Verdict {
        let new = numbered(self.tick());
        let taken = no_error("checkpoint", self.workspace.checkpoints_mut().take(new, Durability::Soon, &NoProgress))?;
        self.sandbox.note(format!("checkpoint {}", self.model.points.len()));
        let tree = self.look(None, &BTreeSet::new())?;
        self.record(&taken, None, tree, None, &BTreeMap::new(), BTreeSet::new()).map(drop)
    }

    /// Takes a checkpoint into the model, after comparing it with what is there.
    pub(super) fn record(
        &mut self,
        taken: &Checkpoint,
        session: Option<Who>,
        tree: NaiveTree,
        own: Option<(&BTreeSet<Path>, usize)>,
        created: &BTreeMap<Path, By>,
        wanted: BTreeSet<Path>,
    ) -> Result<usize, String> {
        let what = format!("checkpoint {}", self.model.points.len());
        compare::tree_but(&what, &self.workspace, &Side::Stored(taken.snapshot), &tree.nodes, &mut self.read)?;
        // The checkpoint after an operation is taken while what was displaced still has its temporary name, which may be one more
        // name of a file that stays; every other checkpoint has to tell the gaps exactly.
        if own.is_none() {
            compare::gaps(&what, &self.workspace, taken, &tree)?;
        }
        Ok(self.model.record(taken.id, session, tree, own, created, wanted))
    }

    fn begin(&mut self, who: Who, tool: &Tool, is_operation: bool) -> Verdict {
        let saves: Vec<(PathBuf, Save)> = match tool {
            Tool::Shell => Vec::new(),
            Tool::Editor(saves) => {
                saves.iter().filter_map(|(spot, save)| Some((self.sandbox.spot(*spot)?, *save))).collect()
            }
        };
        let declared: BTreeSet<Path> = saves.iter().map(|(path, _)| path.as_os_str().as_bytes().to_vec()).collect();
        let number = self.model.windows.len();
        let everything = *tool == Tool::Shell;
        self.met.add(if everything { "round: shell begins" } else { "round: editor begins" });
        if self.model.windows.iter().any(|window| window.state != WindowState::Closed && window.who != who) {
            self.met.add("round: windows of both overlap");
        }
        let at = Timestamp(self.tick());
        let operation = is_operation.then(|| OperationId::new(at, random(at.0, 2)));
        let window = NewWindow {
            session: self.sessions[who as usize],
            turn: None,
            tool: format!("tool {number}"),
            reach: if everything { Reach::Everything } else { Reach::Declared },
            declared: declared.iter().map(|path| parse(path)).collect(),
            operation: operation.map_or(retake_engine::window::PartOf::Nothing, retake_engine::window::PartOf::Own),
        };
        let new = numbered(self.tick());
        let shown: Vec<_> = declared.iter().map(|path| path.escape_ascii().to_string()).collect();
        let point = self.model.points.len();
        self.sandbox.note(format!("tool {number} of {who:?} begins at point {point}: {shown:?}"));
        let began = no_error("begin", self.workspace.windows().begin(window, new, &NoProgress))?;
        self.model.declared.extend(declared.iter().cloned());
        let tree = self.look(None, &BTreeSet::new())?;
        let opened = self.record(&began.before, Some(who), tree, None, &BTreeMap::new(), BTreeSet::new())?;
        let operation = operation.map(|id| {
            let is = OperationIs::Exec;
            let session = Some(who);
            let operation = Operation {
                id,
                session,
                is,
                before: opened,
                after: None,
                reverses: None,
                is_done: false,
                is_undone: false,
            };
            self.model.operations.push(operation);
            self.model.operations.len() - 1
        });
        self.model.windows.push(Window {
            who,
            everything,
            declared,
            operation,
            opened,
            state: WindowState::Open,
            closed: None,
        });
        self.windows.push((number, began.window));
        for (path, save) in saves {
            self.sandbox.save(&path, save);
        }
        Ok(())
    }

    fn end(&mut self, which: Pick) -> Verdict {
        let Some(at) = pick(which, self.windows.len()) else { return Ok(()) };
        self.met.add("round: window ends");
        let (number, window) = self.windows.remove(at);
        self.sandbox.note(format!("tool {number} ends at point {}", self.model.points.len()));
        let new = numbered(self.tick());
        let after = no_error("end", self.workspace.windows().end(window, new, Durability::Soon, &NoProgress))?;
        let tree = self.look(None, &BTreeSet::new())?;
        let point =
            self.record(&after, Some(self.model.windows[number].who), tree, None, &BTreeMap::new(), BTreeSet::new())?;
        self.model.close(number, point);
        Ok(())
    }

    fn finish(&mut self) -> Verdict {
        while !self.windows.is_empty() {
            self.end(Pick(0))?;
        }
        check::log(&self.workspace, &self.model)?;
        check::attribution(&self.workspace, &self.model, &self.sessions, self.met)?;
        if let Some(operation) = no_error("interrupted", self.workspace.rewinds().interrupted())? {
            return Err(format!("{MISMATCH}: left unfinished: {operation:?}"));
        }
        let integrity = no_error("check", self.workspace.maintenance().check())?;
        if !integrity.damage.is_empty() || !integrity.affected.is_empty() {
            return Err(format!("{MISMATCH}: the store is damaged: {integrity:?}"));
        }
        let now = no_error("current", self.workspace.current(&NoProgress))?;
        let tree = self.naive(&self.model.declared, &BTreeSet::new())?;
        compare::tree("what is there now", &self.workspace, &Side::Now(&now), &tree.nodes)
    }
}

pub(super) fn pick(which: Pick, of: usize) -> Option<usize> {
    usize::from(which.0).checked_rem(of)
}

pub(super) fn parse(path: &[u8]) -> WorkspacePath {
    WorkspacePath::parse(path).expect("a path below the root")
}

pub(super) fn random(seed: i64, kind: u8) -> [u8; 10] {
    let mut random = [kind; 10];
    random[..8].copy_from_slice(&seed.to_be_bytes());
    random
}
