//! The integrity check: is everything that was stored still there and unharmed?
//!
//! Reads every record once, in order. It changes nothing and reports instead of failing: what is sound stays usable.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;

use super::bundle::{self, Bundle};
use super::pack::{self, SegmentId};
use super::record::{self, Torn};
use super::tree::{self, Node, decode_aside, decode_tree};
use super::{Location, ObjectKind, Store, StoreError, content};
use crate::base::id::ObjectId;
use crate::base::progress::{Phase, Progress, Step};
use crate::base::{limits, plain_file};

/// Something in the store that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The object, or `None` when a whole segment or the database is affected.
    pub object: Option<ObjectId>,
    /// What is wrong, in words.
    pub what: String,
}

/// What a check found out.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) damage: Vec<Damage>,
    /// Objects that are there and unharmed.
    sound: HashSet<ObjectId>,
    /// Whether an object has everything it refers to, as far as somebody asked: checkpoints share most of what they need.
    whole: HashMap<ObjectId, bool>,
}

/// How far the check has come.
struct Counter<'a> {
    done: u64,
    total: u64,
    progress: &'a dyn Progress,
}

impl Counter<'_> {
    fn step(&mut self) {
        self.done += 1;
        self.progress.report(Step { phase: Phase::Checking, done: self.done, total: Some(self.total) });
    }
}

impl Store {
    /// Checks the database and every object.
    pub(crate) fn check(&self, progress: &dyn Progress) -> Result<Checked, StoreError> {
        let mut damage = self.check_database()?;
        damage.extend(self.misplaced()?);
        let mut checked = Checked { damage, sound: HashSet::new(), whole: HashMap::new() };
        let mut by_segment: BTreeMap<SegmentId, Vec<(ObjectId, Location)>> = BTreeMap::new();
        let locations = self.locations()?;
        let mut counter = Counter { done: 0, total: locations.len() as u64, progress };
        for (id, location) in locations {
            by_segment.entry(location.pack).or_default().push((id, location));
        }
        for (segment, mut rows) in by_segment {
            rows.sort_unstable_by_key(|(_, location)| location.offset);
            self.check_segment(segment, &rows, &mut checked, &mut counter);
        }
        Ok(checked)
    }

    fn check_database(&self) -> Result<Vec<Damage>, StoreError> {
        let answers: Vec<String> = self.db().read(|connection| {
            let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })?;
        let bad = answers.into_iter().filter(|answer| answer != "ok");
        Ok(bad.map(|answer| Damage { object: None, what: format!("the database: {answer}") }).collect())
    }

    /// What is in the place of the store's files and is no file. Directories are known by name: later versions may add some.
    fn misplaced(&self) -> Result<Vec<Damage>, StoreError> {
        let mut damage = Vec::new();
        for folder in ["", "packs", "windows", "sessions", "acp"] {
            let folder = self.dir.join(folder);
            let entries = match folder.read_dir() {
                Err(err) if err.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.map_err(StoreError::io("list", &folder))?,
            };
            for entry in entries {
                let path = entry.map_err(StoreError::io("list", &folder))?.path();
                let may_be_directory = folder == self.dir && !path.file_name().is_some_and(is_file_name);
                // One that is gone since it was listed is none.
                let Ok(meta) = path.metadata() else { continue };
                if let Err(err) = plain_file::check(&meta)
                    && !(meta.is_dir() && may_be_directory)
                {
                    let what = format!("`{}`: {err}; nothing else is affected, remove it", path.display());
                    damage.push(Damage { object: None, what });
                }
            }
        }
        Ok(damage)
    }

    fn check_segment(
        &self,
        segment: SegmentId,
        rows: &[(ObjectId, Location)],
        checked: &mut Checked,
        counter: &mut Counter<'_>,
    ) {
        let damage = &mut checked.damage;
        let path = pack::segment_path(&self.packs, segment);
        let file = match plain_file::open(&path) {
            Ok(file) => file,
            Err(err) => {
                let what = format!("`{}` with {} objects cannot be opened: {err}", path.display(), rows.len());
                damage.push(Damage { object: None, what });
                return;
            }
        };
        if let Err(torn) = pack::check_header(&file) {
            damage.push(Damage { object: None, what: format!("`{}`: {}", path.display(), torn.0) });
        }
        // Objects of one bundle come one after the other.
        let mut opened: Option<(u64, Bundle)> = None;
        for (id, at) in rows {
            counter.step();
            let problem = match opened.as_ref().filter(|(offset, _)| *offset == at.offset) {
                Some((_, bundle)) => bundle.get(*id).err().map(|torn| torn.0.to_owned()),
                None => match pack::read_record(&file, at.offset, at.len as usize) {
                    Ok(bytes) => check_record(&bytes, *id, at.offset, &mut opened).err().map(|torn| torn.0.to_owned()),
                    Err(err) => Some(format!("it cannot be read: {err}")),
                },
            };
            match problem {
                Some(problem) => damage.push(Damage {
                    object: Some(*id),
                    what: format!("object {id} in `{}`: {problem}", path.display()),
                }),
                None => drop(checked.sound.insert(*id)),
            }
        }
    }

    fn locations(&self) -> Result<HashMap<ObjectId, Location>, StoreError> {
        self.db().read(|connection| {
            let mut statement = connection.prepare("SELECT id, pack, offset, len FROM objects")?;
            let rows = statement.query_map([], |row| {
                let location = Location { pack: row.get(1)?, offset: row.get(2)?, len: row.get(3)? };
                Ok((ObjectId::from_bytes(row.get(0)?), location))
            })?;
            rows.collect()
        })
    }

    /// Whether everything that `roots` need is there and unharmed.
    pub(crate) fn is_whole(&self, roots: &[(ObjectId, ObjectKind)], checked: &mut Checked) -> Result<bool, StoreError> {
        for &(id, kind) in roots {
            if !self.is_part_whole(id, kind, checked)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_part_whole(&self, id: ObjectId, kind: ObjectKind, checked: &mut Checked) -> Result<bool, StoreError> {
        if !checked.sound.contains(&id) {
            return Ok(false);
        }
        if let Some(&known) = checked.whole.get(&id) {
            return Ok(known);
        }
        let parts: Result<Vec<(ObjectId, ObjectKind)>, _> = match kind {
            ObjectKind::Tree => {
                decode_tree(&self.read(id)?.1).map(|tree| tree.iter().map(|(_, node)| part(node)).collect())
            }
            ObjectKind::Aside => decode_aside(&self.read(id)?.1)
                .map(|aside| aside.iter().filter_map(|entry| Some((entry.child?, ObjectKind::Aside))).collect()),
            ObjectKind::Chunks => Ok(self.chunks(id)?),
            ObjectKind::Blob | ObjectKind::Rules => Ok(Vec::new()),
        };
        let whole = match parts {
            Ok(parts) => self.is_whole(&parts, checked)?,
            Err(_) => false,
        };
        checked.whole.insert(id, whole);
        Ok(whole)
    }

    /// The chunks of a large file; none if it is stored as one.
    fn chunks(&self, id: ObjectId) -> Result<Vec<(ObjectId, ObjectKind)>, StoreError> {
        let (kind, list) = self.read(id)?;
        if kind != ObjectKind::Chunks {
            return Ok(Vec::new());
        }
        Ok(content::chunk_list(id, &list)?.map(|(chunk, _)| (chunk, ObjectKind::Blob)).collect())
    }
}

/// Whether a file of the store has this name.
fn is_file_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"retake.db")
        || [&b"index"[..], b"index.lock", b"index.new", b"lock", b"workspace", b"serve.lock", b"web.key"]
            .contains(&name)
}

/// Checks the object `id` in a record; a bundle is kept in `opened`.
fn check_record(bytes: &[u8], id: ObjectId, offset: u64, opened: &mut Option<(u64, Bundle)>) -> Result<(), Torn> {
    if bundle::count(bytes).is_none() {
        return record::decode(bytes, id).map(drop);
    }
    let (_, bundle) = opened.insert((offset, bundle::decode(bytes)?));
    bundle.get(id).map(drop)
}

/// What a tree's entry needs; a large file may be in chunks.
fn part(node: &Node) -> (ObjectId, ObjectKind) {
    match node.kind {
        tree::NodeKind::Directory => (node.content, ObjectKind::Tree),
        _ if node.size >= limits::CHUNKED_FROM => (node.content, ObjectKind::Chunks),
        _ => (node.content, ObjectKind::Blob),
    }
}
