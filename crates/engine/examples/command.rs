//! Wraps a command in a window, so that what it changes is attributed to it and can be undone alone:
//! `cargo run -p retake-engine --example command`.

mod common;

use std::fs;
use std::process::Command;

use common::{Fallible, Fresh, Project};
use retake_engine::Durability;
use retake_engine::changes::Owner;
use retake_engine::id::SessionId;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Goal, RewindRequest};
use retake_engine::session::{NewSession, SessionKind};
use retake_engine::window::{NewWindow, PartOf, Reach};

pub(crate) fn main() -> Fallible {
    let Project { mut workspace, root, _scratch } = Project::new()?;
    let mut fresh = Fresh::default();
    fs::write(root.join("mine.txt"), "by hand\n")?;

    let session = SessionId::new(fresh.now(), fresh.random());
    let kind = SessionKind::Commands;
    workspace.sessions_mut().create(NewSession { id: session, at: fresh.now(), title: "sh".to_owned(), kind })?;

    // The window takes a checkpoint before the command and one after it.
    let operation = fresh.operation();
    let window = NewWindow {
        session,
        turn: None,
        tool: "sh: make it".to_owned(),
        reach: Reach::Everything,
        declared: Vec::new(),
        operation: PartOf::Own(operation),
    };
    let began = workspace.windows().begin(window, fresh.checkpoint(None), &NoProgress)?;
    let status = Command::new("sh").args(["-c", "echo made > made.txt"]).current_dir(&root).status()?;
    assert!(status.success());
    let after = workspace.windows().end(began.window, fresh.checkpoint(None), Durability::Synced, &NoProgress)?;

    let changes = workspace.changes().between(&began.before, Some(&after))?;
    assert!(matches!(&changes[0].owner, Owner::Session { session: by, .. } if *by == session));

    // Later edits of others stay when the command is undone.
    fs::write(root.join("mine.txt"), "by hand, later\n")?;
    let undo = RewindRequest::new(Goal::Undo { operation: Some(operation), session: None });
    workspace.rewinds_mut().apply(&undo, None, &fresh.rewind(), &NoProgress)?;
    assert!(!root.join("made.txt").exists());
    assert_eq!(fs::read_to_string(root.join("mine.txt"))?, "by hand, later\n");
    Ok(())
}
