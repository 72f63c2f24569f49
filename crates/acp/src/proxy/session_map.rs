//! The session map: which session and which message of the inner agent belong to which of ours. It is a file beside the log, so that it
//! survives a restart.
//!
//! Its core is what an inner session *holds*: session `X` holds the conversation exactly up to an entry. A cut then finds or makes an inner
//! session that holds what is retained; undo, redo and a load after a crash are the same. A cut inside a session is recorded here before it is
//! made, and so is a prompt: until its outcome is recorded, nothing relies on what that session holds beyond it.
//!
//! The file has one record per line; a half-written last line is ignored. It says nothing about files and decides nothing.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_engine::id::EntryId;
use retake_engine::id::{ObjectId, SessionId};
use retake_engine::plain_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long the first fact of a file may be.
const MAX_BEGUN: u64 = 64 * 1024;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tie", rename_all = "snake_case")]
pub(super) enum MapRecord {
    /// The session began.
    Begun { version: u32, outer: String, session: String },
    /// The inner agent had the session before, and is about to tell all of it.
    Importing,
    /// It has.
    Imported,
    /// The inner agent has this session, forked from another one or new.
    Inner { id: String, from: Option<String> },
    /// It was told these prompts as a transcript: they are no turns of its own.
    Told { id: String, prompts: Vec<EntryId> },
    /// It holds the conversation up to `head`.
    Holds { id: String, head: Option<EntryId> },
    /// It is about to be cut: what it holds is not known until it is said again.
    Doubt { id: String },
    /// It is about to be sent a prompt: until it is said what it holds, it may hold more than was said before.
    Prompted { id: String, prompt: EntryId },
    /// This is the inner session that speaks.
    Current { id: String },
    /// An entry is a message: `outer` to the client, `id` to the inner session.
    Message { entry: EntryId, outer: String, inner: String, id: Option<String> },
    /// An entry is not the first of the message that it is of.
    Piece { entry: EntryId, how: PieceKind },
    /// A prompt was given as these content blocks, of which its parts in the log are not all.
    Given { entry: EntryId, blocks: Vec<Value> },
    /// The snapshot before this prompt was not complete when the inner agent was asked.
    Late { entry: EntryId },
    /// The inner agent does not know of it before it is loaded, so that no list of its own has it.
    Waits { title: String, cwd: String },
}

/// What an entry is to those before it that are of the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PieceKind {
    /// It goes on.
    Adds,
    /// It takes their place.
    Replaces,
}

/// A session of the inner agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InnerSession {
    pub(super) from: Option<String>,
    told: HashSet<EntryId>,
    /// What it holds; `None` if that is not known.
    pub(super) holds: Option<Option<EntryId>>,
    /// What it may hold beyond that: this prompt and what came of it.
    pub(super) under_way: Option<EntryId>,
}

/// All that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping {
    /// The session in the log, by its id.
    pub(super) session: Option<String>,
    /// Not all that the inner agent had is in the log.
    pub(super) is_partial: bool,
    pub(super) current: String,
    pub(super) inners: HashMap<String, InnerSession>,
    outers: HashMap<EntryId, String>,
    entries: HashMap<String, Vec<EntryId>>,
    ids: HashMap<(String, EntryId), String>,
    /// Entries that are not the first of their message.
    pub(super) pieces: HashMap<EntryId, PieceKind>,
    /// Prompts as they were given, where their parts in the log do not say it all.
    pub(super) given: HashMap<EntryId, Arc<[Value]>>,
    pub(super) late: HashSet<EntryId>,
    waits: Option<(String, String)>,
}

/// The facts of a session, and the file that they are in.
#[derive(Debug)]
pub(super) struct SessionMap {
    page: Arc<MapFile>,
    pub(super) known: Arc<Mapping>,
}

/// The file, and what is on its way to it.
#[derive(Debug)]
pub(super) struct MapFile {
    file: Mutex<File>,
    waiting: Mutex<Vec<u8>>,
}

impl Mapping {
    fn learn(&mut self, record: MapRecord) {
        match record {
            MapRecord::Begun { session, .. } => self.session = Some(session),
            MapRecord::Importing => self.is_partial = true,
            MapRecord::Imported => self.is_partial = false,
            MapRecord::Inner { id, from } => {
                let told = from.as_ref().and_then(|from| self.inners.get(from)).map(|from| from.told.clone());
                self.inners
                    .insert(id, InnerSession { from, told: told.unwrap_or_default(), ..InnerSession::default() });
            }
            MapRecord::Told { id, prompts } => self.inners.entry(id).or_default().told.extend(prompts),
            MapRecord::Holds { id, head } => {
                let inner = self.inners.entry(id).or_default();
                (inner.holds, inner.under_way) = (Some(head), None);
            }
            MapRecord::Prompted { id, prompt } => {
                self.inners.entry(id).or_default().under_way.get_or_insert(prompt);
            }
            MapRecord::Doubt { id } => self.inners.entry(id).or_default().holds = None,
            MapRecord::Current { id } => self.current = id,
            MapRecord::Message { entry, outer, inner, id } => {
                let named = self.entries.entry(outer.clone()).or_default();
                if !named.contains(&entry) {
                    named.push(entry);
                }
                self.outers.insert(entry, outer);
                if let Some(id) = id {
                    self.ids.insert((inner, entry), id);
                }
            }
            MapRecord::Piece { entry, how } => drop(self.pieces.insert(entry, how)),
            MapRecord::Given { entry, blocks } => {
                self.given.insert(entry, blocks.into());
            }
            MapRecord::Late { entry } => {
                self.late.insert(entry);
            }
            MapRecord::Waits { title, cwd } => self.waits = Some((title, cwd)),
        }
    }

    /// What the client calls an entry.
    pub(super) fn outer(&self, entry: EntryId) -> String {
        self.outers.get(&entry).cloned().unwrap_or_else(|| entry.to_string())
    }

    /// The entries that the client calls so, all that a message was ever written as.
    pub(super) fn entries(&self, outer: &str) -> Vec<EntryId> {
        let named = self.entries.get(outer).cloned();
        named.unwrap_or_else(|| outer.parse().ok().into_iter().collect())
    }

    /// What an inner session calls an entry: as the one that it was forked from does, if nothing else is known.
    pub(super) fn inner_id(&self, inner: &str, entry: EntryId) -> Option<&str> {
        let mut at = inner;
        // Forks of forks; a circle cannot come about, but a file may say anything.
        for _ in 0..=self.inners.len() {
            if let Some(id) = self.ids.get(&(at.to_owned(), entry)) {
                return Some(id);
            }
            at = self.inners.get(at)?.from.as_deref()?;
        }
        None
    }

    /// Whether an inner session was told a prompt as a part of a transcript.
    pub(super) fn was_told(&self, inner: &str, prompt: EntryId) -> bool {
        self.inners.get(inner).is_some_and(|inner| inner.told.contains(&prompt))
    }

    /// The prompts that an inner session was told as a part of a transcript.
    pub(super) fn told(&self, inner: &str) -> Vec<EntryId> {
        self.inners.get(inner).map(|inner| inner.told.iter().copied().collect()).unwrap_or_default()
    }

    /// All names that the client knows.
    pub(super) fn outer_ids(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }
}

impl SessionMap {
    /// Those of the session that the client calls `outer`; `None` if there is none.
    pub(super) fn open(store: &Path, outer: &str) -> io::Result<Option<Self>> {
        let path = path(store, outer);
        let text = match plain_file::read(&path) {
            Ok(text) => text,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err),
        };
        let (known, _) = read(&text);
        let mut file = plain_file::open_with(OpenOptions::new().append(true), &path)?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
        Ok(known.session.is_some().then(|| Self { page: MapFile::of(file), known: Arc::new(known) }))
    }

    /// Begins those of a new session, which is written down with the first fact that is added.
    pub(super) fn create(store: &Path, outer: &str, session: SessionId) -> io::Result<Self> {
        let path = path(store, outer);
        if let Some(directory) = path.parent().filter(|directory| !directory.is_dir()) {
            std::fs::DirBuilder::new().mode(0o700).recursive(true).create(directory)?;
        }
        let file = plain_file::open_with(OpenOptions::new().create(true).append(true).mode(0o600), &path)?;
        file.set_len(0)?;
        let mut session_map = Self { page: MapFile::of(file), known: Arc::default() };
        session_map.note(MapRecord::Begun { version: 1, outer: outer.to_owned(), session: session.to_string() })?;
        Ok(session_map)
    }

    /// Adds a fact. It survives this process at once.
    pub(super) fn add(&mut self, record: MapRecord) -> io::Result<()> {
        self.note(record)?;
        self.page.write()
    }

    /// Adds a fact that is known at once and on its way to the file.
    pub(super) fn note(&mut self, record: MapRecord) -> io::Result<()> {
        let mut line = serde_json::to_vec(&record).map_err(io::Error::other)?;
        line.push(b'\n');
        lock(&self.page.waiting).append(&mut line);
        Arc::make_mut(&mut self.known).learn(record);
        Ok(())
    }

    /// The file.
    pub(super) fn page(&self) -> Arc<MapFile> {
        Arc::clone(&self.page)
    }
}

impl MapFile {
    fn of(file: File) -> Arc<Self> {
        Arc::new(Self { file: Mutex::new(file), waiting: Mutex::default() })
    }

    /// Writes what is on its way: it survives this process then.
    pub(super) fn write(&self) -> io::Result<()> {
        let mut file = lock(&self.file);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        file.write_all(&waiting)
    }

    /// Makes all that was added survive a loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.write()?;
        lock(&self.file).sync_data()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the client is to call a session that the inner agent has just made: as that does, unless the client knows another one by it. That
/// one is not got at so; nor does it get at the new one, because what the agent called so before is gone.
pub(super) fn name_for(store: &Path, inner: &str, session: SessionId) -> io::Result<String> {
    match SessionMap::open(store, inner)? {
        Some(mut older) => {
            older.add(MapRecord::Doubt { id: inner.to_owned() })?;
            Ok(session.to_string())
        }
        None => Ok(inner.to_owned()),
    }
}

/// Whether the client knows a session by this name already.
pub(super) fn exists(store: &Path, outer: &str) -> bool {
    path(store, outer).exists()
}

/// What lists of sessions have to know.
#[derive(Debug, Default)]
pub(super) struct SessionNames {
    /// The sessions of the inner agent that belong to ours, each with the name that the client has for it; `None` for those that only
    /// keep a point to go back to.
    pub(super) inners: HashMap<String, Option<String>>,
    /// Those that the inner agent does not know of: name, title and directory.
    pub(super) waiting: Vec<(String, String, String)>,
}

impl SessionNames {
    /// Adds the sessions of a store.
    pub(super) fn read(&mut self, store: &Path) {
        let Ok(files) = std::fs::read_dir(store.join("acp")) else { return };
        for file in files.flatten() {
            let Ok(text) = plain_file::read(&file.path()) else { continue };
            let (known, outer) = read(&text);
            if let (Some(outer), Some((title, cwd)), true) = (&outer, known.waits, known.inners.is_empty()) {
                self.waiting.push((outer.clone(), title, cwd));
            }
            for (id, inner) in known.inners {
                let name = (id == known.current).then(|| outer.clone()).flatten();
                // One that may have become another's is theirs.
                if inner.holds.is_some() || !self.inners.contains_key(&id) {
                    self.inners.insert(id, name);
                }
            }
        }
    }
}

/// What clients call the sessions of a store, each with its id in the log. Only the beginning of each file is read.
pub fn names(store: &Path) -> Vec<(String, String)> {
    let Ok(files) = std::fs::read_dir(store.join("acp")) else { return Vec::new() };
    let begun = |path: PathBuf| {
        let mut line = Vec::new();
        BufReader::new(plain_file::open(&path).ok()?).take(MAX_BEGUN).read_until(b'\n', &mut line).ok()?;
        match serde_json::from_slice(&line).ok()? {
            MapRecord::Begun { outer, session, .. } => Some((outer, session)),
            _ => None,
        }
    };
    files.flatten().filter_map(|file| begun(file.path())).collect()
}

fn read(text: &[u8]) -> (Mapping, Option<String>) {
    let (mut known, mut name) = (Mapping::default(), None);
    for record in text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
        if let MapRecord::Begun { outer, .. } = &record {
            name = Some(outer.clone());
        }
        known.learn(record);
    }
    (known, name)
}

/// Forgets a session.
pub(super) fn remove(store: &Path, outer: &str) -> io::Result<()> {
    match std::fs::remove_file(path(store, outer)) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

fn path(store: &Path, outer: &str) -> PathBuf {
    store.join("acp").join(format!("{}.jsonl", ObjectId::of(outer.as_bytes())))
}
