//! Forks in a workspace of their own: the files of a point in a new directory, and what was said until then in its store.
//!
//! Entries are copied with their ids, so that both conversations tell the same. Nothing changes in the session that was forked from,
//! but that it is known to have a fork; so there is nothing to undo. If anything fails, what was made of it is removed, and nothing
//! that somebody else put there.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::params;

use super::entry::{Body, Entry, Part};
use super::fork::{ForkError, NewFork};
use super::head_target::Place;
use super::{heads, load, rows};
use crate::base::id::{EntryId, SessionId};
use crate::base::limits;
use crate::base::progress::Progress;
use crate::base::settings::Environment;
use crate::history::checkpoint::{self, Checkpoint, NewCheckpoint, Origin as PointOrigin, Purpose, RuleChanges};
use crate::history::sessions::{ForkOrigin, Sessions, Shown};
use crate::snapshot::gaps::Gap;
use crate::store::db::in_transaction;
use crate::store::{Durability, Store};
use crate::workspace::export_tree::{LaidOut, LayOutError, lay_out};
use crate::workspace::{Workspace, guard, location};

/// A fork that was made in a workspace of its own.
#[derive(Clone, Debug)]
pub struct ForkedElsewhere {
    /// The new session.
    pub session: SessionId,
    /// The new workspace.
    pub root: PathBuf,
    /// What the session is called.
    pub title: String,
    /// What is about to be said in it: the prompt, if it was forked before one.
    pub draft: Vec<Part>,
    /// The checkpoint whose files it began with.
    pub checkpoint: Checkpoint,
    /// What that could not capture, so that it is not there.
    pub gaps: Vec<Gap>,
}

impl Workspace {
    #[expect(clippy::too_many_arguments, reason = "everything that the new workspace is made of")]
    fn fill(
        &mut self,
        made: &mut Directory,
        from: SessionId,
        entry: EntryId,
        place: &Place,
        point: &Checkpoint,
        gaps: &[Gap],
        mut entries: Vec<Entry>,
        new: &NewFork,
        progress: &dyn Progress,
    ) -> Result<String, ForkError> {
        let Directory { path, handle, laid_out, .. } = made;
        lay_out(&self.store, point.snapshot, handle.as_fd(), path, laid_out, progress)?;
        let env = Environment { root: made.path.clone(), ..self.env.clone() };
        made.refuse_history(&env)?;
        made.has_store = true;
        let mut workspace = Self::open_or_create(env)?;
        // A store that was left there may still name a directory that was deleted since.
        location::write_identity(workspace.store.dir(), &made.path)?;
        if !entries.is_empty() {
            entries.push(Entry { id: new.note, parent: None, at: new.at, body: note(&made.path, gaps) });
        }
        let origin =
            ForkOrigin { session: *from.as_bytes(), entry, root: self.env.root.as_os_str().as_bytes().to_vec() };
        let title = workspace.adopt(new, &entries, place.draft.as_deref().unwrap_or_default(), &origin, progress)?;
        self.store.db().transaction(Durability::Synced, |tx| {
            tx.execute(
                "INSERT INTO forks_elsewhere (session, entry, child, root, at) VALUES (?, ?, ?, ?, ?)",
                params![
                    place.standing.seq,
                    place.entry,
                    &new.session.as_bytes()[..],
                    made.path.as_os_str().as_bytes(),
                    new.at.0
                ],
            )
            .map(drop)
            .map_err(in_transaction(tx))
        })?;
        Ok(title)
    }

    /// Takes the first checkpoint of a workspace together with a conversation that began in another one. Returns its title.
    fn adopt(
        &mut self,
        new: &NewFork,
        entries: &[Entry],
        draft: &[Part],
        origin: &ForkOrigin,
        progress: &dyn Progress,
    ) -> Result<String, ForkError> {
        let title = std::cell::RefCell::new(String::new());
        let origin = serde_json::to_string(origin).expect("bytes and ids serialise");
        let purpose = Purpose {
            origin: PointOrigin::Checkpoint,
            session: None,
            entry: None,
            note: Some(format!("fork {}", new.session.short())),
            own: None,
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|tx, seq| {
                let (id, handle) = (new.session.as_bytes(), new.session.to_string());
                tx.execute(
                    "INSERT INTO sessions (id, handle, at, title, kind, origin) VALUES (?, ?, ?, '', ?, ?)",
                    params![&id[..], handle, new.at.0, Shown::Yes as u8, origin],
                )
                .map_err(in_transaction(tx))?;
                let session = tx.last_insert_rowid();
                let mut head = None;
                for entry in entries {
                    head = Some(rows::insert(tx, session, head, entry)?);
                }
                rows::move_head(tx, session, None, head)?;
                rows::set_draft(tx, session, draft)?;
                head.map_or(Ok(()), |head| checkpoint::pair(tx, head, seq))?;
                *title.borrow_mut() = heads::retitle(tx, session, head)?;
                Ok(())
            },
        };
        let checkpoint = NewCheckpoint { id: new.checkpoint, at: new.at, label: None };
        self.take(&checkpoint, &purpose, Durability::Synced, progress)?;
        Ok(title.into_inner())
    }
}

impl Sessions<&mut Workspace> {
    /// Like [`fork`](Sessions::fork), with the files of that point in the new directory `directory`, which becomes a workspace. It must not
    /// exist, or be empty. No version control is made there.
    pub fn fork_to_directory(
        &mut self,
        from: SessionId,
        entry: EntryId,
        directory: &Path,
        new: &NewFork,
        progress: &dyn Progress,
    ) -> Result<ForkedElsewhere, ForkError> {
        let _shared = self.0.store.share()?;
        let place = self.0.place(from, entry)?;
        let point = place.point.map(|seq| checkpoint::by_seq(&self.0.store, seq)).transpose()?.flatten();
        let point = point.ok_or(ForkError::FilesGone { entry })?;
        let gaps = self.0.checkpoints().gaps(&point)?;
        let entries = self.0.store.db().read(|connection| load::chain(connection, place.to))?;
        let mut made = Directory::make(&self.0.env, directory)?;
        match self.0.fill(&mut made, from, entry, &place, &point, &gaps, entries, new, progress) {
            Ok(title) => {
                let (session, root) = (new.session, made.keep());
                let draft = place.draft.unwrap_or_default();
                Ok(ForkedElsewhere { session, root, title, draft, checkpoint: point, gaps })
            }
            Err(err) => {
                made.unmake(&self.0.env.data_dir);
                Err(err)
            }
        }
    }
}

/// What the model is told: it is somewhere else, and not everything came along.
fn note(root: &Path, gaps: &[Gap]) -> Body {
    let gaps = gaps.iter().filter(|gap| gap.kind.is_uncaptured());
    let about: Vec<String> = gaps.map(|gap| heads::name(&gap.path)).collect();
    let mut text = format!(
        "This conversation was forked from here into the new workspace {}. The files that were captured are as they were here. Ignored \
         files, such as build results and installed packages, and version control did not come along; look before you rely on them.",
        root.display()
    );
    if !about.is_empty() {
        text.push_str(" Neither did these:");
        about.iter().take(limits::MAX_NOTED_FILES).for_each(|name| text.push_str(&format!("\n- {name}")));
        if limits::MAX_NOTED_FILES < about.len() {
            text.push_str(&format!("\n- and {} more", about.len() - limits::MAX_NOTED_FILES));
        }
    }
    Body::Note { about, text }
}

/// An empty directory that is to become a workspace.
struct Directory {
    path: PathBuf,
    handle: std::os::fd::OwnedFd,
    /// Whether it was made for this.
    is_new: bool,
    laid_out: LaidOut,
    /// Whether its store was made for this.
    has_store: bool,
}

impl Directory {
    /// Makes sure that there is an empty directory at `path` that may become a workspace beside that of `env`.
    fn make(env: &Environment, path: &Path) -> Result<Self, ForkError> {
        // A slash at the end would follow a link.
        let path = &path.components().collect::<PathBuf>();
        let bad = |why| ForkError::BadDirectory { path: path.clone(), why };
        let failed = |what, source| ForkError::Write { what, path: path.clone(), source };
        let is_there = match fs::symlink_metadata(path) {
            Ok(meta) if !meta.is_dir() => return Err(bad("it is there and is not a directory")),
            Ok(_) => true,
            Err(err) if err.kind() == io::ErrorKind::NotFound => false,
            Err(err) => return Err(failed("look at", err)),
        };
        let name = path.file_name().ok_or_else(|| bad("it has no name of its own"))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let real = parent.canonicalize().map_err(|err| failed("make a directory at", err))?.join(name);
        let root = env.root.canonicalize().unwrap_or_else(|_| env.root.clone());
        if real.starts_with(&root) {
            return Err(bad("it is inside the workspace, which would capture it"));
        }
        for above in real.ancestors().skip(1) {
            if location::exists(&env.data_dir, above)? {
                return Err(bad("it is inside another workspace, which would capture it"));
            }
        }
        if real.starts_with(&env.data_dir) {
            return Err(bad("it is inside Retake's own data directory"));
        }
        if let Some(why) = guard::too_broad(&real, &env.homes, env.breadth) {
            return Err(bad(why));
        }
        if !is_there {
            fs::create_dir(&real).map_err(|err| failed("create", err))?;
        }
        let handle = fs::File::open(&real).map_err(|err| failed("open", err))?;
        // Of two that are given one directory, the second finds it taken. Not every file system can tell; there it finds files that
        // it did not make.
        if matches!(handle.try_lock(), Err(fs::TryLockError::WouldBlock)) {
            return Err(bad("another fork is being made there"));
        }
        let made = Self {
            path: real,
            handle: handle.into(),
            is_new: !is_there,
            laid_out: LaidOut::default(),
            has_store: false,
        };
        match made.check(env) {
            Ok(()) => Ok(made),
            Err(err) => {
                made.unmake(&env.data_dir);
                Err(err)
            }
        }
    }

    fn check(&self, env: &Environment) -> Result<(), ForkError> {
        self.refuse_history(env)?;
        let read = fs::read_dir(&self.path);
        let mut entries = read.map_err(|source| ForkError::Write { what: "read", path: self.path.clone(), source })?;
        match entries.next() {
            Some(_) => Err(self.bad("it is not empty; if a fork was cut short there, delete what it has left")),
            None => Ok(()),
        }
    }

    /// Refuses a place that has checkpoints. A store without any is what a fork that was cut short has left.
    fn refuse_history(&self, env: &Environment) -> Result<(), ForkError> {
        if !location::exists(&env.data_dir, &self.path)? {
            return Ok(());
        }
        let store = Store::open(&location::store_dir(&env.data_dir, &self.path), env.settings.budget)?;
        match checkpoint::newest(&store)? {
            Some(_) => Err(self.bad("there is a history of that place already")),
            None => Ok(()),
        }
    }

    fn bad(&self, why: &'static str) -> ForkError {
        ForkError::BadDirectory { path: self.path.clone(), why }
    }

    fn keep(self) -> PathBuf {
        self.path
    }

    /// Removes what was made, and nothing else.
    fn unmake(self, data_dir: &Path) {
        // What cannot be removed is in a directory that the user named, and the failure names it.
        self.laid_out.take_back(self.handle.as_fd());
        if self.is_new {
            fs::remove_dir(&self.path).ok();
        }
        if self.has_store {
            fs::remove_dir_all(location::store_dir(data_dir, &self.path)).ok();
        }
    }
}

impl From<LayOutError> for ForkError {
    fn from(err: LayOutError) -> Self {
        match err {
            LayOutError::Store(err) => Self::Store(err),
            LayOutError::Write { what, path, source } => Self::Write { what, path, source },
            LayOutError::Cancelled => Self::Cancelled,
        }
    }
}
