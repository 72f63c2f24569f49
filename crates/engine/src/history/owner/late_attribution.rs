//! What is said of a window with spans after it was opened: the tool that it is for, the paths that this declares, and whose, in the end,
//! the changes are that were found while not everything had been said.

use rusqlite::{Transaction, params};

use super::window::Window;
use super::{FileTime, OpenWindow, Reach, Verdict, heartbeat, rows};
use crate::base::path::WorkspacePath;
use crate::history::capture::evidence;
use crate::history::checkpoint;
use crate::history::codes::WITH_SPANS;
use crate::history::owner::Changes;
use crate::history::owner::window::Windows;
use crate::snapshot::presence::Presence;
use crate::store::db::in_transaction;
use crate::store::{Durability, StoreError};

/// What a tool does, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// It changes files, and nothing else.
    Edits,
    /// It may do more than change files.
    Command,
}

impl Changes<'_> {
    /// Those of `paths` of which the newest checkpoint does not tell what was there: the rules leave them out, or they are gaps.
    pub fn unseen(&self, paths: &[WorkspacePath]) -> Result<Vec<WorkspacePath>, StoreError> {
        let Some(newest) = checkpoint::newest(&self.0.store)? else { return Ok(paths.to_vec()) };
        let known = evidence(&self.0.store, &newest)?;
        let mut unseen = Vec::new();
        for path in paths {
            if known.at(path)? == Presence::Unknown {
                unseen.push(path.clone());
            }
        }
        Ok(unseen)
    }

    /// When `path` last changed, as the kernel noted it; `None` if that cannot be told.
    pub fn last(&self, path: &WorkspacePath) -> Result<Option<FileTime>, StoreError> {
        let Some(newest) = checkpoint::newest(&self.0.store)? else { return Ok(None) };
        heartbeat::last_change(&self.0.env.root, path, &evidence(&self.0.store, &newest)?)
    }
}

impl Windows<'_> {
    /// Says what a window with spans is open for, in the place of what was said before: the tool, and whether that runs a command, which
    /// may do more than change files.
    pub fn describe(&mut self, window: &mut Window, tool: &str, runs: Runs) -> Result<(), StoreError> {
        self.0.store.db().transaction(Durability::Soon, |tx| {
            let sql =
                &format!("UPDATE windows SET tool = ?1, everything = ?2 WHERE seq = ?3 AND everything IN {WITH_SPANS}");
            let everything = match runs {
                Runs::Edits => 2,
                Runs::Command => 3,
            };
            tx.execute(sql, params![tool, everything, window.seq]).map_err(in_transaction(tx))
        })?;
        tool.clone_into(&mut window.tool);
        Ok(())
    }

    /// Says that a tool in a window writes `paths`; its spans tell when. They are captured from now on whatever the rules say; what was
    /// there before is known only of those that are not [`unseen`](super::Changes::unseen).
    pub fn claim(&mut self, window: &Window, paths: &[WorkspacePath]) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        self.0.store.db().transaction(Durability::Soon, |tx| {
            let wrap = in_transaction(tx);
            for path in paths {
                let sql = "INSERT OR IGNORE INTO window_paths (path, window) VALUES (?, ?)";
                tx.execute(sql, params![path.as_bytes(), window.seq]).map_err(&wrap)?;
                tx.execute("INSERT OR IGNORE INTO declared (path) VALUES (?)", [path.as_bytes()]).map_err(&wrap)?;
            }
            Ok(())
        })
    }
}

/// Judges the changes that checkpoints before `before` found since a window with spans was opened, now that all is said of it: one may have
/// come before a tool was announced that was already at work, or before it declared its paths. What was contested with another session
/// stays so.
pub(crate) fn judge_again(tx: &Transaction<'_>, window: &OpenWindow, before: i64) -> Result<(), StoreError> {
    if window.reach != Reach::Spans {
        return Ok(());
    }
    let Some(since) = window.spans.iter().flatten().map(|span| span.since).min() else { return Ok(()) };
    let update = "UPDATE changes SET certainty = ?, session = ?, window = ?, operation = ? WHERE seq = ?";
    for change in rows::to_judge_again(tx, window, since, before)? {
        let verdict = match (window.claim(&change.path, Some(change.changed)), change.is_presumed_of_others) {
            (Verdict::Outside, true) => continue,
            (Verdict::Presumed, true) => Verdict::Contested,
            (verdict, _) => verdict,
        };
        if verdict as u8 == change.verdict && !change.is_presumed_of_others {
            continue;
        }
        let own = matches!(verdict, Verdict::Certain | Verdict::Presumed).then_some(window);
        let (session, seq) = (own.map(|window| window.session), own.map(|window| window.seq));
        let operation = own.and_then(|window| window.operation);
        tx.execute(update, params![verdict as u8, session, seq, operation, change.seq]).map_err(in_transaction(tx))?;
    }
    Ok(())
}
