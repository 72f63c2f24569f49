//! A private world for one test: a home, a store and a workspace, and ways to run programs in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use retake_engine::{Breadth, Environment, Settings};
use retake_testkit::Scratch;
use serde_json::Value;

pub(crate) struct Sandbox {
    scratch: Scratch,
}

/// What a program printed and how it ended; look at it or say what was expected.
#[derive(Debug)]
pub(crate) struct Run {
    code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self::of(Scratch::on_disk())
    }

    /// Where nothing waits for a disk: for tests that run hundreds of commands.
    pub(crate) fn in_memory() -> Self {
        Self::of(Scratch::new())
    }

    fn of(scratch: Scratch) -> Self {
        for name in ["home", "ws"] {
            scratch.dir(name);
        }
        Self { scratch }
    }

    /// The canonical path of something in the sandbox.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.scratch.path().join(below)
    }

    /// The workspace and its store as the engine knows them; for reading only, since no settings of the user's are in it.
    pub(crate) fn environment(&self) -> Environment {
        Environment {
            root: self.path("ws"),
            data_dir: self.path("data"),
            global_excludes: None,
            homes: Vec::new(),
            breadth: Breadth::Guarded,
            settings: Settings::default(),
            threads: 2,
        }
    }

    /// The folder of the workspace's store.
    pub(crate) fn store(&self) -> PathBuf {
        let stores = fs::read_dir(self.path("data/workspaces")).expect("there is a store");
        let stores: Vec<PathBuf> = stores.map(|store| store.expect("it can be listed").path()).collect();
        let [store] = &stores[..] else { panic!("one workspace has these stores: {stores:?}") };
        store.clone()
    }

    /// A path in the workspace.
    pub(crate) fn ws(&self, below: impl AsRef<Path>) -> PathBuf {
        self.path("ws").join(below)
    }

    /// Writes a file of the workspace, with the directories above it.
    pub(crate) fn write(&self, below: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.ws(below);
        fs::create_dir_all(path.parent().expect("it is below the workspace")).expect("directories can be made");
        fs::write(path, content).expect("it can be written");
        self
    }

    pub(crate) fn remove(&self, below: impl AsRef<Path>) -> &Self {
        fs::remove_file(self.ws(below)).expect("it was there");
        self
    }

    pub(crate) fn chmod(&self, below: impl AsRef<Path>, mode: u32) -> &Self {
        fs::set_permissions(self.ws(below), fs::Permissions::from_mode(mode)).expect("it is ours");
        self
    }

    pub(crate) fn symlink(&self, target: &str, below: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.ws(below)).expect("it is new");
        self
    }

    /// Every path in the workspace, `.git` included, with inode, size, and times of change to content and attributes.
    pub(crate) fn everything_in_the_workspace(&self) -> BTreeMap<PathBuf, [i64; 6]> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.path("ws")];
        while let Some(path) = pending.pop() {
            let meta = fs::symlink_metadata(&path).expect("it is there");
            if meta.is_dir() {
                let children = fs::read_dir(&path).expect("it can be listed");
                pending.extend(children.map(|child| child.expect("it can be listed").path()));
            }
            let (inode, size) = (meta.ino().cast_signed(), meta.size().cast_signed());
            let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
            found.insert(path, [inode, size, times[0], times[1], times[2], times[3]]);
        }
        found
    }

    /// Writes the user's settings file.
    pub(crate) fn config(&self, text: &str) -> &Self {
        let dir = self.path("home/.config/retake");
        fs::create_dir_all(&dir).expect("directories can be made");
        fs::write(dir.join("config.toml"), text).expect("it can be written");
        self
    }

    /// A program in the workspace, in an environment that holds nothing of the developer's.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("RETAKE_DATA_DIR", self.path("data"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TZ", "UTC")
            .current_dir(self.path("ws"))
            .stdin(Stdio::null());
        command
    }

    /// `retake`, not yet started.
    pub(crate) fn retake_command(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_retake"))
    }

    #[must_use = "say what was expected"]
    pub(crate) fn retake<const N: usize>(&self, args: [&str; N]) -> Run {
        Run::of(self.retake_command().args(args))
    }

    #[must_use = "say what was expected"]
    pub(crate) fn retake_in<const N: usize>(&self, dir: impl AsRef<Path>, args: [&str; N]) -> Run {
        Run::of(self.retake_command().args(args).current_dir(dir))
    }

    /// Makes a checkpoint and returns its id.
    pub(crate) fn checkpoint(&self) -> String {
        let document = self.retake(["checkpoint", "--json"]).json();
        document["checkpoint"]["id"].as_str().expect("an id is text").to_owned()
    }

    /// A file of the workspace.
    #[track_caller]
    pub(crate) fn read(&self, below: impl AsRef<Path>) -> String {
        let path = self.ws(below);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs a shell script under `retake exec`.
    #[must_use = "say what was expected"]
    pub(crate) fn exec(&self, script: &str) -> Run {
        self.retake(["exec", "--", "sh", "-c", script])
    }

    /// Makes the workspace a git repository.
    pub(crate) fn git_init(&self) -> &Self {
        Run::of(self.command("git").args(["init", "--quiet", "-b", "main"])).succeeds();
        self
    }
}

impl Run {
    #[must_use = "say what was expected"]
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from_output(command.output().expect("the program starts"))
    }

    #[must_use = "say what was expected"]
    pub(crate) fn from_output(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("talk is UTF-8");
        assert!(!stderr.contains("panicked at"), "{stderr}");
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }

    /// Its exit code; `None` if a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.code
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "stderr: {}", self.stderr);
        self
    }

    /// It ended with `code`, said why, and printed no data.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stderr: {}", self.stderr);
        assert!(self.stderr.starts_with("error: "), "stderr: {}", self.stderr);
        assert_eq!(self.stderr.matches("error: ").count(), 1, "stderr: {}", self.stderr);
        assert_eq!(self.stdout, b"", "stdout of a failure");
        self
    }

    /// It was refused until the user decides, said why, and printed one JSON document that tells what there is to decide.
    #[track_caller]
    pub(crate) fn refused_with_json(self) -> Value {
        assert_eq!(self.code, Some(3), "stderr: {}", self.stderr);
        assert!(self.stderr.starts_with("error: "), "stderr: {}", self.stderr);
        let document: Value = serde_json::from_slice(&self.stdout).expect("it is one JSON document");
        assert_eq!(document["version"], 1);
        assert_eq!((&document["applied"], &document["operation"]), (&Value::Bool(false), &Value::Null));
        document
    }

    /// It ended with `code` and said why, both as text and as one JSON document, whose `error` is returned.
    #[track_caller]
    pub(crate) fn fails_with_json(self, code: i32) -> Value {
        assert_eq!(self.code, Some(code), "stderr: {}", self.stderr);
        let document: Value = serde_json::from_slice(&self.stdout).expect("it is one JSON document");
        assert_eq!(document["version"], 1);
        let error = document["error"].clone();
        self.says(&format!("error: {}\n", error["message"].as_str().expect("a message is text")));
        error
    }

    /// Its data, which is text.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        String::from_utf8(self.succeeds().stdout).expect("it is text")
    }

    /// Its data, which is one JSON document of version 1.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let document: Value = serde_json::from_slice(&self.succeeds().stdout).expect("it is one JSON document");
        assert_eq!(document["version"], 1);
        document
    }

    /// The id of the checkpoint that it printed as JSON, if it came to that.
    pub(crate) fn announced(&self) -> Option<String> {
        let document: Value = serde_json::from_slice(&self.stdout).ok()?;
        document["checkpoint"]["id"].as_str().map(str::to_owned)
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "`{text}` is not in: {}", self.stderr);
        self
    }
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}
