//! Where a command runs: the directory of the workspace, the store, home directories, the settings, and git's settings.
//!
//! The engine looks up none of these itself.

mod excludes;
mod homes;
mod root;
mod settings;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use etcetera::BaseStrategy;
use retake_agent::socket;
use retake_agent::tool::TURN_MARK;
use retake_engine::{Breadth, Environment, Workspace};
use thiserror::Error;

use crate::args::GlobalArgs;
use crate::process::secrets;
use retake_agent::live::SessionLocator;
pub use settings::{AgentSettings, SettingsError};

/// Why the workspace or the store could not be located.
#[derive(Debug, Error)]
pub enum ContextError {
    #[error("cannot use the current directory")]
    CurrentDir { source: io::Error },
    #[error("cannot use `{}` as the workspace", .path.display())]
    Workspace { path: PathBuf, source: io::Error },
    #[error("cannot find the home directory, so there is no place for the store")]
    NoHome,
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// Where a command runs: the engine's environment, and the directory that paths are typed in.
#[derive(Clone, Debug)]
pub struct CommandContext {
    pub environment: Environment,
    pub current_dir: PathBuf,
    /// The session of the `retake exec` that this runs in.
    pub session: Option<String>,
    /// The prompt of the agent's turn that this runs in.
    pub turn: Option<String>,
    /// What the settings say for the agent.
    pub agent: AgentSettings,
    /// Where live sessions listen.
    pub sockets: PathBuf,
}

/// Tells a command which session it runs in, so that a `retake exec` inside it belongs to it.
pub const SESSION_VARIABLE: &str = "RETAKE_SESSION";

impl CommandContext {
    /// Where the sessions of the workspace are reached.
    pub fn reach(&self) -> SessionLocator<'_> {
        SessionLocator { environment: &self.environment, sockets: &self.sockets }
    }

    /// Looks around, reading only: environment variables, the settings file, git's user settings, `/etc/passwd`.
    pub fn find(global: &GlobalArgs) -> Result<Self, ContextError> {
        let dirs = Dirs::find();
        let data_dir = data_dir(dirs.as_ref())?;
        let current_dir = env::current_dir().map_err(|source| ContextError::CurrentDir { source })?;
        let named = global.workspace.as_deref();
        // Where it cannot be known, opening it tells why.
        let root = root::find(named, &current_dir, |dir| Workspace::exists(&data_dir, dir).unwrap_or(true));
        let root = root.canonicalize().map_err(|source| ContextError::Workspace { path: root, source })?;
        let settings::Loaded { engine: settings, agent } = settings::load(settings_file(dirs.as_ref()))?;
        let environment = Environment {
            global_excludes: Some(excludes::find(dirs.as_ref())),
            homes: homes::find(dirs.as_ref().map(|dirs| dirs.home.as_path())),
            breadth: if global.allow_broad { Breadth::AllowBroad } else { Breadth::Guarded },
            threads: thread::available_parallelism().map_or(1, usize::from),
            root,
            data_dir,
            settings,
        };
        let id = |name: &str| variable(name).and_then(|id| id.into_string().ok());
        let (session, turn) = (id(SESSION_VARIABLE), id(TURN_MARK));
        let sockets = socket::directory(variable("XDG_RUNTIME_DIR").as_deref().map(Path::new), &env::temp_dir());
        Ok(Self { environment, current_dir, session, turn, agent, sockets })
    }
}

/// The user's base directories; they are unknown when there is no home.
#[derive(Debug)]
struct Dirs {
    home: PathBuf,
    config: PathBuf,
    data: PathBuf,
}

impl Dirs {
    fn find() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(Self { home: base.home_dir().to_owned(), config: base.config_dir(), data: base.data_dir() })
    }
}

fn data_dir(dirs: Option<&Dirs>) -> Result<PathBuf, ContextError> {
    match variable("RETAKE_DATA_DIR") {
        Some(dir) => std::path::absolute(dir).map_err(|source| ContextError::CurrentDir { source }),
        None => dirs.map(|dirs| dirs.data.join("retake")).ok_or(ContextError::NoHome),
    }
}

fn settings_file(dirs: Option<&Dirs>) -> settings::SettingsFile {
    match variable("RETAKE_CONFIG") {
        Some(path) => settings::SettingsFile::Named(path.into()),
        None => dirs.map_or(settings::SettingsFile::None, |dirs| {
            settings::SettingsFile::Usual(dirs.config.join("retake/config.toml"))
        }),
    }
}

/// An environment variable; an empty one counts as unset, as the XDG specification asks.
pub fn variable(name: &str) -> Option<OsString> {
    secrets::hidden(name).or_else(|| env::var_os(name)).filter(|value| !value.is_empty())
}

/// Reads a file that need not be there or be readable: settings of other programs, which are theirs to complain about.
fn read_if_possible(path: &Path) -> Option<Vec<u8>> {
    retake_engine::plain_file::read(path).ok()
}
