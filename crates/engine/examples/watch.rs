//! Watches a directory, so that each checkpoint costs only what changed: `cargo run -p retake-engine --example watch`.

mod common;

use std::fs;

use common::{Fallible, Fresh, Project};
use retake_engine::checkpoint::Verified;
use retake_engine::progress::NoProgress;
use retake_engine::view::Side;
use retake_engine::{Durability, WatchState};

pub(crate) fn main() -> Fallible {
    let Project { mut workspace, root, _scratch } = Project::new()?;
    let mut fresh = Fresh::default();
    // Without a watch everything still works: then each checkpoint looks at every path.
    if let WatchState::Unavailable { .. } = workspace.watch() {
        return Ok(());
    }
    let mut before = workspace.checkpoints_mut().take(fresh.checkpoint(None), Durability::Soon, &NoProgress)?;
    for number in 1..=3 {
        fs::write(root.join(format!("{number}.txt")), "new\n")?;
        let now = workspace.checkpoints_mut().take(fresh.checkpoint(None), Durability::Soon, &NoProgress)?;
        let changes = workspace.diff(&Side::Stored(before.snapshot), &Side::Stored(now.snapshot))?;
        assert_eq!(changes[0].path.display().to_string(), format!("{number}.txt"));
        before = now;
    }

    // In an idle moment: did the watch miss anything? And let the checkpoints survive power loss.
    let verified = workspace.checkpoints_mut().verify(fresh.checkpoint(None), &NoProgress)?;
    assert!(matches!(verified, Verified::Sound));
    workspace.sync()?;
    Ok(())
}
