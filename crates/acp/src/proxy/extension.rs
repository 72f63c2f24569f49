//! The rewind extension, and the names of the proposal for the protocol as aliases.

use std::sync::Arc;

use retake_agent::contract::{Change, ChangeGoal, Command, Refusal, Reply, Seen, WhileRunning};
use retake_agent::document::{Bytes, RewindDocument};
use retake_agent::question;
use retake_engine::session::Target;
use retake_engine::session::entry::{Body, Entry, EntryId};
use retake_engine::{Discard, Files, OnConflict, Scope};
use serde_json::{Value, json};

use super::Proxy;
use super::change::Made;
use super::relay::What;
use super::session::Session;
use super::shape::{self, Version};
use super::ties::Known;
use crate::extension::{self, error};
use crate::wire::{Message, RpcError};

/// Points in one answer.
const PAGE: usize = 200;

/// Whether a method is one of the extension.
pub(super) fn is_one(method: &str) -> bool {
    matches!(
        method,
        "_session/rewind_points"
            | "_session/rewind"
            | "session/rewind"
            | "_session/edit_prompt"
            | "session/edit_prompt"
            | "_session/undo"
            | "_session/redo"
    )
}

impl Proxy {
    /// Answers a request of the extension.
    pub(super) async fn extension(self: &Arc<Self>, session: &Arc<Session>, id: Value, method: &str, params: &Value) {
        let answer = match method {
            "_session/rewind_points" => self.points(session, params).await,
            "_session/undo" => {
                let operation = params["operation"].as_str().map(str::to_owned);
                self.carry_out(session, params, ChangeGoal::Undo { operation }).await
            }
            "_session/redo" => self.carry_out(session, params, ChangeGoal::Redo).await,
            "_session/edit_prompt" | "session/edit_prompt" => {
                return match self.edit_prompt(session, &id, method, params).await {
                    Ok(()) => {}
                    Err(error) => drop(self.client.answer(id, Err(error)).await),
                };
            }
            _ => self.rewind(session, method, params).await,
        };
        self.client.answer(id, answer).await.ok();
    }

    async fn points(&self, session: &Arc<Session>, params: &Value) -> Result<Value, RpcError> {
        let query = params["query"].as_str().map(str::to_owned);
        let (head, targets) = self.targets(session, query).await?;
        let known = session.known();
        let start = match params["cursor"].as_str() {
            None => 0,
            Some(cursor) => {
                let at = targets.iter().position(|target| target.id.to_string() == cursor);
                at.ok_or_else(|| RpcError::invalid_params("`cursor` is none that was given"))? + 1
            }
        };
        let page: Vec<Value> = targets.iter().skip(start).take(PAGE).map(|target| point(&known, target)).collect();
        let mut answer = json!({ "head": head.map(|id| known.outer(id)), "points": page });
        if targets.len() > start + PAGE {
            answer["nextCursor"] = targets[start + PAGE - 1].id.to_string().into();
        }
        Ok(answer)
    }

    /// The prompts that one can go back to, newest first, and the head.
    pub(super) async fn targets(
        &self,
        session: &Arc<Session>,
        query: Option<String>,
    ) -> Result<(Option<EntryId>, Vec<Target>), RpcError> {
        match self.question(session, Command::Targets { query }).await {
            Ok(Reply::Targets { head, targets }) => Ok((head, targets)),
            Ok(_) => Err(RpcError::new(RpcError::INTERNAL, "the answer was not understood")),
            Err(refusal) => Err(error(&refusal)),
        }
    }

    /// Has the keeper answer a question.
    pub(super) async fn question(&self, session: &Session, question: Command) -> Result<Reply, Refusal> {
        let answered = session.desk.ask(move |scribe| {
            let id = scribe.id();
            scribe.keeper().ask(move |workspace| question::answer(workspace, id, &Default::default(), question))
        });
        answered.await.unwrap_or_else(|| Err(retake_agent::socket::ended()))
    }

    async fn rewind(self: &Arc<Self>, session: &Arc<Session>, method: &str, params: &Value) -> Result<Value, RpcError> {
        let scope = scope(method, params)?;
        let goal = self.aim(session, params, scope).await?;
        self.carry_out(session, params, goal).await
    }

    /// What the parameters aim at.
    async fn aim(&self, session: &Session, params: &Value, scope: Scope) -> Result<ChangeGoal, RpcError> {
        match (params["toMessageId"].as_str(), params["beforeMessageId"].as_str()) {
            (None, Some(id)) => {
                let entry = self.message(session, id).await?;
                refuse_if_no_prompt(&entry, id)?;
                Ok(rewound(entry.id, scope))
            }
            (Some(id), None) => {
                let entry = self.message(session, id).await?;
                Ok(match entry.body {
                    Body::Prompt { .. } => ChangeGoal::KeepPrompt { prompt: entry.id, scope, files: Files::Selective },
                    _ => rewound(entry.id, scope),
                })
            }
            (Some(_), Some(_)) => {
                Err(RpcError::invalid_params("`toMessageId` and `beforeMessageId` exclude each other")
                    .with_reason("ambiguous_target"))
            }
            (None, None) => Err(RpcError::invalid_params("either `toMessageId` or `beforeMessageId` is needed")
                .with_reason("no_target")),
        }
    }

    /// A retained message by the name that the client has for it.
    async fn message(&self, session: &Session, id: &str) -> Result<Entry, RpcError> {
        let unknown = || {
            RpcError::new(RpcError::NOT_FOUND, format!("there is no message `{id}` in this conversation"))
                .with_reason("unknown_message_id")
                .with("messageId", id)
        };
        let entry = session.known().entry(id).ok_or_else(unknown)?;
        let found = session
            .desk
            .ask(move |scribe| scribe.entries().iter().find(|one| one.id == entry).cloned())
            .await
            .flatten();
        found.ok_or_else(unknown)
    }

    async fn edit_prompt(
        self: &Arc<Self>,
        session: &Arc<Session>,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<(), RpcError> {
        let scope = scope(method, params)?;
        let message = params["messageId"].as_str().unwrap_or_default();
        let blocks = params["content"].as_array().filter(|blocks| !blocks.is_empty()).cloned();
        let blocks = blocks.ok_or_else(|| RpcError::invalid_params("`content` has to be a list of content blocks"))?;
        if scope == Scope::Code {
            return Err(RpcError::invalid_params("`scope` has to be `conversation` or `both`"));
        }
        let entry = self.message(session, message).await?;
        refuse_if_no_prompt(&entry, message)?;
        self.carry_out(session, params, rewound(entry.id, scope)).await?;
        let preface = self.say(session, &blocks).await?;
        let mut prompt: Vec<Value> = preface.map(|text| shape::text_block(&text)).into_iter().collect();
        prompt.extend(blocks.iter().cloned());
        let inner = session.live().inner.clone();
        let request = Message::request(id.clone(), "session/prompt", json!({ "sessionId": inner, "prompt": prompt }));
        self.tell_edited(session, &blocks).await;
        self.note_request(id, What::Edited { session: Arc::clone(session) });
        self.to_agent(request.into_line()).await;
        Ok(())
    }

    /// Tells the client the new prompt; in version 2 the inner agent does.
    async fn tell_edited(&self, session: &Session, blocks: &[Value]) {
        let (prompt, version) = (session.live().prompt, self.state().version);
        if let (Version::V1, Some(prompt)) = (version, prompt) {
            let id = session.known().outer(prompt);
            for block in blocks {
                let update = json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": block });
                self.update(session, update).await;
            }
        }
    }

    /// Makes a change, or only works out what it would do.
    async fn carry_out(
        self: &Arc<Self>,
        session: &Arc<Session>,
        params: &Value,
        goal: ChangeGoal,
    ) -> Result<Value, RpcError> {
        let change = wish(params, goal)?;
        let seen = self.seen(session, params).await?;
        if params["dryRun"] == true {
            let planned = self.question(session, Command::Plan { change }).await;
            let Reply::Change { document } = planned.map_err(|refusal| error(&refusal))? else {
                return Err(RpcError::new(RpcError::INTERNAL, "the answer was not understood"));
            };
            let to = document.conversation.as_ref().map(|conversation| conversation.to);
            let retained = session
                .desk
                .ask(move |scribe| {
                    let entries = scribe.entries();
                    let end = to.map_or(Some(entries.len()), |to| {
                        to.map_or(Some(0), |to| entries.iter().position(|entry| entry.id == to).map(|at| at + 1))
                    });
                    entries[..end.unwrap_or(entries.len())].to_vec()
                })
                .await;
            return Ok(answer(&session.known(), &document, &retained.unwrap_or_default()));
        }
        let running = match params["interrupt"] == false {
            true => WhileRunning::Refuse,
            false => WhileRunning::Interrupt,
        };
        let made = self.change(session, change, seen, running).await.map_err(|refusal| error(&refusal))?;
        let Made { document, strategy, retained } = made;
        let mut answer = answer(&session.known(), &document, &retained);
        if let Some(strategy) = strategy {
            answer["_meta"] = json!({ "retake": { "strategy": strategy } });
        }
        Ok(answer)
    }

    /// Where the client saw the head: as it was told it with the points, or its last message.
    async fn seen(&self, session: &Session, params: &Value) -> Result<Option<Seen>, RpcError> {
        let Some(expected) = params.get("expectedHead") else { return Ok(None) };
        let entries = session.desk.ask(|scribe| scribe.entries().to_vec()).await.unwrap_or_default();
        let (head, last, known) =
            (entries.last().map(|entry| entry.id), shape::last_message(&entries), session.known());
        let is_it = match expected.as_str() {
            None => last.is_none(),
            Some(text) => {
                [head, last].into_iter().flatten().any(|id| known.outer(id) == text || id.to_string() == text)
            }
        };
        match is_it {
            true => Ok(Some(Seen { head })),
            false => Err(RpcError::invalid_params("the conversation has moved on since; nothing was changed")
                .with_reason("stale_head")),
        }
    }
}

fn point(known: &Known, target: &Target) -> Value {
    let files = &target.files;
    let at = jiff::Timestamp::from_millisecond(target.at.0).map_or_else(|_| String::new(), |at| at.to_string());
    let mut point = json!({
        "messageId": known.outer(target.id),
        "index": target.number,
        "at": at,
        "text": target.text,
        "files": { "added": files.added, "modified": files.modified, "deleted": files.deleted },
        "eligible": true,
    });
    if let Some(label) = &target.label {
        point["label"] = label.as_str().into();
    }
    if !target.has_files {
        point["reason"] = "only the conversation can go back: the files of that moment are not kept".into();
    } else if known.late.contains(&target.id) {
        point["reason"] = LATE.into();
    }
    point
}

/// What is said of a point whose snapshot was late.
pub(super) const LATE: &str =
    "its snapshot was not complete when the agent began: what it changed first may be missing";

/// What a client wants changed, beside the goal.
fn wish(params: &Value, goal: ChangeGoal) -> Result<Change, RpcError> {
    let paths: Vec<String> = match &params["paths"] {
        Value::Null => Vec::new(),
        paths => serde_json::from_value(paths.clone())
            .map_err(|_| RpcError::invalid_params("`paths` has to be a list of paths"))?,
    };
    let on_conflict = match &params["onConflict"] {
        Value::Null => OnConflict::Stop,
        choice => serde_json::from_value(choice.clone())
            .map_err(|_| RpcError::invalid_params("`onConflict` has to be `stop`, `keep`, `overwrite` or `merge`"))?,
    };
    Ok(Change {
        paths: paths.into_iter().map(Bytes::Text).collect(),
        on_conflict,
        across_branches: params["acrossBranches"] == true,
        ..Change::new(goal)
    })
}

fn scope(method: &str, params: &Value) -> Result<Scope, RpcError> {
    match &params["scope"] {
        Value::Null if method.starts_with('_') => Ok(Scope::Both),
        Value::Null => Ok(Scope::Conversation),
        scope => serde_json::from_value(scope.clone())
            .map_err(|_| RpcError::invalid_params("`scope` has to be `conversation`, `code` or `both`")),
    }
}

pub(super) fn rewound(entry: EntryId, scope: Scope) -> ChangeGoal {
    ChangeGoal::Rewind { entry, scope, files: Files::Selective, discard: Discard::No }
}

fn refuse_if_no_prompt(entry: &Entry, id: &str) -> Result<(), RpcError> {
    match entry.body {
        Body::Prompt { .. } => Ok(()),
        _ => Err(RpcError::invalid_params(format!("`{id}` is no message of the user"))
            .with_reason("not_a_user_message")
            .with("messageId", id)),
    }
}

fn answer(known: &Known, document: &RewindDocument, retained: &[Entry]) -> Value {
    extension::answer(document, shape::last_message(retained).map(|id| known.outer(id)).as_deref(), shape::blocks)
}
