//! Takes a checkpoint, changes files, goes back to it, and undoes that: `cargo run -p retake-engine --example checkpoint`.

mod common;

use std::fs;

use common::{Fallible, Fresh, Project};
use retake_engine::Durability;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Goal, OnConflict, RewindRequest};

pub(crate) fn main() -> Fallible {
    let Project { mut workspace, root, _scratch } = Project::new()?;
    let mut fresh = Fresh::default();
    fs::write(root.join("notes.txt"), "as it was\n")?;
    let start = workspace.checkpoints_mut().take(fresh.checkpoint(Some("start")), Durability::Synced, &NoProgress)?;

    fs::write(root.join("notes.txt"), "something else\n")?;
    fs::write(root.join("new.txt"), "was not there\n")?;

    // A plan tells what would be done, and writes nothing.
    let mut request = RewindRequest::new(Goal::Exact { checkpoint: start.id, session: None });
    // No tool made these changes, so they may be a person's, and replacing them has to be asked for.
    request.on_yours = OnConflict::Overwrite;
    let plan = workspace.rewinds().plan(&request, &NoProgress)?;
    assert_eq!(plan.paths.len(), 2);

    let applied = workspace.rewinds_mut().apply(&request, Some(&plan.fingerprint()), &fresh.rewind(), &NoProgress)?;
    assert_eq!(fs::read_to_string(root.join("notes.txt"))?, "as it was\n");
    assert!(!root.join("new.txt").exists());

    // Every rewind is an operation that can be undone.
    let undo = RewindRequest::new(Goal::Undo { operation: applied.operation, session: None });
    workspace.rewinds_mut().apply(&undo, None, &fresh.rewind(), &NoProgress)?;
    assert_eq!(fs::read_to_string(root.join("notes.txt"))?, "something else\n");
    assert!(root.join("new.txt").exists());
    Ok(())
}
