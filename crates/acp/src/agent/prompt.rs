//! Saying something, stopping it, and being asked in between.

use std::sync::Arc;

use retake_agent::contract::{Action, Mentions, PermissionAnswer, Question, Reason, Reply};
use retake_agent::live::{LiveError, SentCommand};
use retake_engine::session::entry::Part;
use serde_json::{Value, json};

use super::Version;
use super::session::{PendingPrompt, Session};
use super::shape::content;
use crate::slash::choose;
use crate::wire::RpcError;

/// A prompt was not said because it was cancelled.
pub(super) fn cancelled() -> RpcError {
    RpcError::new(RpcError::CANCELLED, "the prompt was cancelled before it was said").with_reason("cancelled")
}

/// Hands a prompt in: it is answered by the pump. Prompts are said in the order in which this is called.
pub(super) async fn hand_in(session: &Session, id: Value, blocks: Vec<Value>, parts: Vec<Part>) -> SentCommand {
    let allow = session.known().permissions.allow();
    let is_all_said = content::blocks(&session.updates.root, &parts) == blocks;
    let given = (!is_all_said).then(|| (blocks, parts.clone()));
    let mut pending = session.pending.lock().await;
    let command =
        Action::Prompt { parts: parts.clone(), allow, unprotected: false, draft: None, mentions: Mentions::Leave };
    let asked = session.asker.hand_in(command).await;
    pending.push(PendingPrompt {
        request: asked.id.clone(),
        id,
        parts,
        is_taken: false,
        was_held: false,
        prompt: None,
        given,
    });
    asked
}

/// What became of a prompt that was handed in.
pub(super) enum Taken {
    /// It is said, or held, or refused, and answered by whoever has to.
    Done,
    /// The session ended before it got to it: it is not said, and not answered.
    TooLate(RpcError),
}

/// Waits until the session has taken a prompt; one that it refuses is answered here.
pub(super) async fn taken(session: &Session, asked: SentCommand) -> Taken {
    let request = asked.id.clone();
    let (error, is_late) = match asked.answer().await {
        Ok(Ok(reply)) => {
            let mut pending = session.pending.lock().await;
            if let Some(one) = pending.iter_mut().find(|one| one.request == request) {
                one.is_taken = true;
                one.was_held = matches!(reply, Reply::Held { .. });
            }
            if !session.is_over() {
                return Taken::Done;
            }
            (session.gone(&LiveError::Ended), false)
        }
        Ok(Err(refusal)) => (session.refused(&refusal), refusal.reason == Reason::Ended),
        Err(error) => (session.gone(&error), matches!(error, LiveError::Ended)),
    };
    let waiting = {
        let mut pending = session.pending.lock().await;
        let at = pending.iter().position(|one| one.request == request);
        at.map(|at| pending.remove(at))
    };
    match waiting {
        Some(waiting) if is_late && waiting.prompt.is_none() => Taken::TooLate(error),
        // If it is not there, whoever waits has been told.
        waiting => {
            if let Some(waiting) = waiting {
                session.peer.answer(waiting.id, Err(error)).await.ok();
            }
            Taken::Done
        }
    }
}

/// Stops what goes on in a session, and what waits to.
pub(super) async fn cancel(session: &Session) -> SentCommand {
    session.asker.hand_in(Action::Interrupt { turn: None }).await
}

/// Takes back one prompt that the client waits for: it is withdrawn, or its turn is stopped.
pub(super) async fn cancel_request(session: &Session, id: &Value) {
    let found = {
        let pending = session.pending.lock().await;
        pending.iter().find(|one| one.id == *id).map(|one| (one.request.clone(), one.prompt))
    };
    let Some((request, prompt)) = found else { return };
    if let Some(prompt) = prompt {
        // Refused if it has just ended, which is told next.
        session.ask(Action::Interrupt { turn: Some(prompt) }).await.ok();
        return;
    }
    if session.ask(Action::Withdraw { request: request.clone() }).await.is_err() {
        // It has just been said.
        session.ask(Action::Interrupt { turn: None }).await.ok();
        return;
    }
    session.pending.lock().await.retain(|one| one.request != request);
    let answer = match session.client.version {
        Version::V1 => Ok(json!({ "stopReason": "cancelled" })),
        Version::V2 => Err(cancelled()),
    };
    session.peer.answer(id.clone(), answer).await.ok();
}

/// Takes back all that the client waits for: others may keep the session.
pub(super) async fn cancel_all(session: &Session) {
    let waiting: Vec<Value> = session.pending.lock().await.iter().map(|one| one.id.clone()).collect();
    for id in waiting {
        cancel_request(session, &id).await;
    }
}

/// Asks the client whether a call may run, and tells the session.
pub(super) async fn ask_permission(session: Arc<Session>, question: Question) {
    let call = {
        let known = session.known();
        session.updates.call(&known.view.entries, &question.call)
    };
    let Some(call) = call else { return };
    let mut options = vec![json!({ "optionId": "allow", "name": "Allow", "kind": "allow_once" })];
    if let Some(rule) = &question.rule {
        let what = rule.prefix.as_ref().unwrap_or(&rule.tool);
        options.push(
            json!({ "optionId": "always", "name": format!("Always allow `{what}` in this session"), "kind": "allow_always" }),
        );
    }
    options.push(json!({ "optionId": "reject", "name": "Reject", "kind": "reject_once" }));
    let asked = call.asked(session.client.version, &question);
    let chosen = choose(&*session, &question.title, asked, options).await;
    let answer = match (chosen, question.rule) {
        (Ok(Some(option)), _) if option == "allow" => PermissionAnswer::Allow,
        (Ok(Some(option)), Some(rule)) if option == "always" => PermissionAnswer::AllowAlways { rule },
        (Ok(_), _) => PermissionAnswer::Deny { why: None },
        (Err(error), _) => PermissionAnswer::Deny { why: Some(format!("Nobody could be asked: {}", error.message)) },
    };
    // Refused if somebody else has answered, or nothing is asked any more.
    session.ask(Action::Answer { call: question.call, answer }).await.ok();
}
