//! The sessions of the fake agent: a file each.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// A prompt and what was answered.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What the user said, blocks one after another.
    pub user: String,
    /// Its id.
    pub user_id: String,
    /// The answer.
    pub answer: String,
    /// Its id.
    pub answer_id: String,
}

/// All sessions.
pub(super) struct Sessions {
    directory: PathBuf,
    next: AtomicU64,
    /// Every process numbers from 1, whatever there is.
    same_ids: bool,
}

impl Sessions {
    pub(super) fn new(directory: &Path, same_ids: bool) -> Self {
        Self { directory: directory.to_owned(), next: AtomicU64::new(1), same_ids }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn id(&self, kind: &str) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.same_ids {
            return format!("{kind}-{number}");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos();
        format!("{kind}-{:x}-{now:x}-{number}", std::process::id())
    }

    pub(super) fn renumber(&self, turn: &mut Turn) {
        turn.user_id = self.id("u");
        turn.answer_id = self.id("m");
    }

    pub(super) fn create(&self, turns: &[Turn]) -> String {
        let id = self.id("s");
        self.store(&id, turns);
        id
    }

    pub(super) fn store(&self, id: &str, turns: &[Turn]) {
        let turns: Vec<Value> =
            turns.iter().map(|turn| json!([turn.user, turn.user_id, turn.answer, turn.answer_id])).collect();
        let path = self.directory.join(format!("{id}.session"));
        std::fs::write(path, Value::Array(turns).to_string()).expect("the directory is writable");
    }

    /// Whether it was there.
    pub(super) fn remove(&self, id: &str) -> bool {
        std::fs::remove_file(self.directory.join(format!("{id}.session"))).is_ok()
    }

    pub(super) fn turns(&self, id: &str) -> Option<Vec<Turn>> {
        let text = std::fs::read_to_string(self.directory.join(format!("{id}.session"))).ok()?;
        let turns: Vec<[String; 4]> = serde_json::from_str(&text).expect("it was written here");
        let turn = |[user, user_id, answer, answer_id]: [String; 4]| Turn { user, user_id, answer, answer_id };
        Some(turns.into_iter().map(turn).collect())
    }

    pub(super) fn all(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.directory).expect("it is there");
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let mut ids: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".session")?.to_owned())).collect();
        ids.sort();
        ids
    }
}
