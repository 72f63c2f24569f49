//! The integrity check: is everything that was stored still there and unharmed?
//!
//! Reads every record once, in order. It changes nothing and reports instead of failing: what is sound stays usable.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;

use super::pack::{self, SegmentId};
use super::{Location, Store, StoreError, record};
use crate::ObjectId;

/// Something in the store that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The object, or `None` when a whole segment or the database is affected.
    pub object: Option<ObjectId>,
    /// What is wrong, in words.
    pub what: String,
}

impl Store {
    /// Checks the database and every object.
    pub(crate) fn check(&self) -> Result<Vec<Damage>, StoreError> {
        let mut damage = self.check_database()?;
        let mut by_segment: BTreeMap<SegmentId, Vec<(ObjectId, Location)>> = BTreeMap::new();
        for (id, location) in self.locations()? {
            by_segment.entry(location.pack).or_default().push((id, location));
        }
        for (segment, mut rows) in by_segment {
            rows.sort_unstable_by_key(|(_, location)| location.offset);
            self.check_segment(segment, &rows, &mut damage);
        }
        Ok(damage)
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

    fn check_segment(&self, segment: SegmentId, rows: &[(ObjectId, Location)], damage: &mut Vec<Damage>) {
        let path = pack::segment_path(&self.packs, segment);
        let file = match File::open(&path) {
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
        for (id, at) in rows {
            let bytes = pack::read_record(&file, at.offset, at.len as usize);
            let problem = match bytes {
                Ok(bytes) => record::decode(&bytes, *id).err().map(|torn| torn.0.to_owned()),
                Err(err) => Some(format!("it cannot be read: {err}")),
            };
            if let Some(problem) = problem {
                damage.push(Damage {
                    object: Some(*id),
                    what: format!("object {id} in `{}`: {problem}", path.display()),
                });
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

    /// Which of `objects` a checkpoint needs, and which objects it needs that are not there at all.
    pub(crate) fn affected(
        &self,
        roots: &[(ObjectId, super::Kind)],
        damaged: &HashSet<ObjectId>,
    ) -> Result<bool, StoreError> {
        let reachable = self.reachable(roots)?;
        for id in &reachable {
            if damaged.contains(id) || !self.contains(id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
