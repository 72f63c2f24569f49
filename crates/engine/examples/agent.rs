//! A tiny agent loop: a prompt, a reply that calls a tool, the tool, and then a rewind that takes conversation and files back together:
//! `cargo run -p retake-engine --example agent`.

mod common;

use std::fs;

use common::{Fallible, Fresh, Project};
use retake_engine::checkpoint::Origin;
use retake_engine::id::{EntryId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Files, Goal, RewindRequest};
use retake_engine::session::entry::{Block, Body, CallId, EndReason, Outcome, Part, StopReason, Usage};
use retake_engine::session::{Discard, Moment, NewEntry, NewSession, NewTurn, Scope, SessionKind};
use retake_engine::window::{NewWindow, PartOf, Reach};
use retake_engine::{Durability, WorkspacePath};

pub(crate) fn main() -> Fallible {
    let Project { mut workspace, root, _scratch } = Project::new()?;
    let mut fresh = Fresh::default();
    fs::write(root.join("main.rs"), "fn main() {}\n")?;

    let session = SessionId::new(fresh.now(), fresh.random());
    let kind = SessionKind::Conversation;
    workspace.sessions_mut().create(NewSession { id: session, at: fresh.now(), title: String::new(), kind })?;
    let mut writer = workspace.sessions().open(session, fresh.now(), &mut || [0; 10])?;

    // The turn begins with the prompt, and a checkpoint that belongs to it.
    let prompt = entry(&mut fresh, Body::Prompt { parts: vec![Part::text("Make it print hello")] });
    let (prompt_id, turn) = (prompt.id, fresh.operation());
    writer.begin_turn(NewTurn {
        operation: turn,
        at: fresh.now(),
        made_by: MadeBy::Client,
        entries: vec![prompt],
        draft: Vec::new(),
    })?;
    let moment = Moment { session, entry: Some(prompt_id), origin: Origin::Prompt };
    workspace.checkpoints_mut().take_at(moment, fresh.checkpoint(None), Durability::Soon, &NoProgress)?;

    // A model would be asked here. It answers with a call.
    let call = CallId("call-1".to_owned());
    let blocks = vec![Block::Call { id: call.clone(), name: "write".to_owned(), arguments: "{}".to_owned() }];
    let reply = Body::Reply { blocks, model: "example".to_owned(), usage: Usage::default(), stop: StopReason::Calls };
    writer.append(vec![entry(&mut fresh, reply)], Durability::Soon)?;

    // The tool says what it will write, and does it within a window of the turn.
    let window = NewWindow {
        session,
        turn: Some(prompt_id.to_string()),
        tool: "write main.rs".to_owned(),
        reach: Reach::Declared,
        declared: vec![WorkspacePath::parse(b"main.rs")?],
        operation: PartOf::Turn(turn),
    };
    let began = workspace.windows().begin(window, fresh.checkpoint(None), &NoProgress)?;
    fs::write(root.join("main.rs"), "fn main() { println!(\"hello\") }\n")?;
    workspace.windows().end(began.window, fresh.checkpoint(None), Durability::Soon, &NoProgress)?;
    let result = Body::ToolResult {
        call,
        title: "write main.rs".to_owned(),
        outcome: Outcome::Done,
        parts: vec![Part::text("Written.")],
        todos: None,
        details: None,
    };
    writer.append(vec![entry(&mut fresh, result)], Durability::Soon)?;
    let end = entry(&mut fresh, Body::Ended { reason: EndReason::Done });
    let moment = Moment { session, entry: Some(end.id), origin: Origin::Turn };
    writer.end_turn(turn, end)?;
    workspace.checkpoints_mut().take_at(moment, fresh.checkpoint(None), Durability::Soon, &NoProgress)?;

    // Back to before the prompt: the files and what was said, as one operation.
    let (scope, files, discard) = (Scope::Both, Files::Selective, Discard::No);
    let request = RewindRequest::new(Goal::Entry { session, entry: prompt_id, scope, files, discard });
    workspace.rewinds_mut().apply_in(&mut writer, &request, None, &fresh.rewind(), &NoProgress)?;
    assert_eq!(fs::read_to_string(root.join("main.rs"))?, "fn main() {}\n");
    assert!(writer.conversation().entries().is_empty());
    // The prompt is the draft now, to be changed and sent again.
    assert_eq!(writer.draft(), [Part::text("Make it print hello")]);
    Ok(())
}

fn entry(fresh: &mut Fresh, body: Body) -> NewEntry {
    NewEntry { id: EntryId::new(fresh.random()), at: fresh.now(), body }
}
