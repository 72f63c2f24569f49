//! A command is carried out, and answered in the chat.

use std::sync::Arc;

use retake_agent::contract::{
    Action, Change, ChangeGoal, Extent, Query, Reason, Refusal, Reply, SeenHead, WhileRunning,
};
use retake_agent::ids;
use retake_agent::rewind_document::RewindDocument;
use retake_engine::session::Scope;
use retake_engine::session::Target;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::text::RequestedChange;
use super::{Chat, RunningCommand, ShownList, Slash, SlashKind, conflicts, text};
use crate::extension::answer::error;
use crate::extension::backend::{AppliedChange, ChangeRequest, SessionBackend};
use crate::extension::methods::{ask, odd, rewound};
use crate::extension::{Version, last_message};
use crate::rpc_peer::Peer;
use crate::wire::RpcError;

/// How often a change is tried whose plan is overtaken before anybody can be asked.
const ATTEMPTS: usize = 5;

/// Is told, or dropped, when others need not wait for a command any more: it is over, or it asks something.
pub(crate) type Release = oneshot::Sender<()>;

/// A command while it is carried out.
pub(super) struct Running<'a> {
    chat: &'a Chat,
    stop: Arc<Notify>,
    asking: Option<Release>,
}

impl<'a> Running<'a> {
    fn begin(chat: &'a Chat, request: &Value, asking: Release) -> Self {
        let stop = Arc::new(Notify::new());
        chat.state().open.push(RunningCommand { request: request.clone(), stop: Arc::clone(&stop) });
        Self { chat, stop, asking: Some(asking) }
    }

    /// Has others go on: somebody is being asked, and may never answer.
    pub(super) fn let_others_go_on(&mut self) {
        // Nobody may be waiting.
        self.asking.take().map(|asking| asking.send(()).ok());
    }

    /// Waits until whoever typed it wants it no more.
    pub(super) async fn stopped(&self) {
        self.stop.notified().await;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.chat.state().open.retain(|open| !Arc::ptr_eq(&open.stop, &self.stop));
    }
}

/// Carries a command out that was typed as the prompt `request`, and answers in the chat.
pub(crate) async fn run(
    backend: &impl SessionBackend,
    request: Value,
    blocks: &[Value],
    slash: &Slash,
    asking: Release,
) {
    let mut running = Running::begin(backend.chat(), &request, asking);
    let exchange =
        ChatExchange { client: backend.client(), version: backend.version(), session: backend.session(), request };
    exchange.begin(blocks).await;
    let (text, stop) = match carry_out(backend, &mut running, slash).await {
        Ok(text) => (text, "end_turn"),
        Err(error) if error.code == RpcError::CANCELLED => (text::refused(&error), "cancelled"),
        Err(error) => (text::refused(&error), "end_turn"),
    };
    exchange.end(&text, stop, || backend.is_busy()).await;
}

/// Answers a command in the chat of a session that cannot be gone back in.
pub(crate) async fn refuse(exchange: &ChatExchange<'_>, blocks: &[Value], why: &str) {
    exchange.begin(blocks).await;
    let text = text::refused(&refusal(&format!("this session cannot be rewound: {why}")));
    exchange.end(&text, "end_turn", || false).await;
}

/// What is typed, and what is answered, in the chat of a session.
pub(crate) struct ChatExchange<'a> {
    pub(crate) client: &'a Peer,
    pub(crate) version: Version,
    pub(crate) session: &'a str,
    /// The prompt that it was typed as.
    pub(crate) request: Value,
}

impl ChatExchange<'_> {
    /// In version 2 a prompt is answered at once, and shown by whoever takes it.
    async fn begin(&self, blocks: &[Value]) {
        if self.version == Version::V2 {
            let said = format!("command-{}", ids::entry());
            self.client.answer(self.request.clone(), Ok(json!({ "messageId": said }))).await.ok();
            self.update(json!({ "sessionUpdate": "user_message", "messageId": said, "content": blocks })).await;
            self.update(json!({ "sessionUpdate": "state_update", "state": "running" })).await;
        }
    }

    async fn end(&self, text: &str, stop: &str, is_busy: impl Fn() -> bool) {
        let answer = format!("command-{}", ids::entry());
        let content = json!({ "type": "text", "text": text });
        self.update(json!({ "sessionUpdate": "agent_message_chunk", "messageId": answer, "content": content })).await;
        match self.version {
            Version::V1 => {
                self.client.answer(self.request.clone(), Ok(json!({ "stopReason": stop }))).await.ok();
            }
            // A turn may go on beside it.
            Version::V2 if is_busy() => {}
            Version::V2 => {
                self.update(json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": stop })).await;
            }
        }
    }

    async fn update(&self, update: Value) {
        let params = json!({ "sessionId": self.session, "update": update });
        // A client that is gone needs to be told nothing.
        self.client.notify("session/update", params).await.ok();
    }
}

async fn carry_out(
    backend: &impl SessionBackend,
    running: &mut Running<'_>,
    slash: &Slash,
) -> Result<String, RpcError> {
    let words: Vec<&str> = slash.words.iter().map(String::as_str).collect();
    let (argument, scope) = (words.first().copied(), words.get(1).copied());
    match (slash.kind, argument) {
        (SlashKind::Rewind, None) => list(backend).await,
        (SlashKind::Rewind, Some(argument)) => go_back(backend, running, argument, scope).await,
        (SlashKind::Undo, _) => {
            change(backend, running, ChangeGoal::Undo { operation: None }, None, &RequestedChange::Undo).await
        }
        (SlashKind::Redo, _) => {
            change(backend, running, ChangeGoal::Redo { operation: None }, None, &RequestedChange::Redo).await
        }
        (SlashKind::Checkpoints, _) => match ask(backend, Query::Checkpoints).await? {
            Reply::Checkpoints { checkpoints } => Ok(text::checkpoints(&checkpoints)),
            _ => Err(odd()),
        },
        (SlashKind::Label, argument) => label(backend, argument, words.get(1..).unwrap_or_default()).await,
        (SlashKind::Fork, argument) => fork(backend, argument).await,
        (SlashKind::Summarize, argument) => summarize(backend, argument).await,
    }
}

/// Shows the prompts that one can go back to.
async fn list(backend: &impl SessionBackend) -> Result<String, RpcError> {
    let shown = targets(backend).await?;
    let text =
        text::list(&shown.targets, &backend.chat().name(SlashKind::Rewind), |prompt| backend.snapshot_of(prompt));
    backend.chat().state().shown = Some(shown);
    Ok(text)
}

async fn targets(backend: &impl SessionBackend) -> Result<ShownList, RpcError> {
    match ask(backend, Query::Targets { query: None }).await? {
        Reply::Targets { head, targets } => Ok(ShownList { head, targets }),
        _ => Err(odd()),
    }
}

/// The prompt that a number of the list that was shown, or an id, means, and where the head was then.
async fn find(backend: &impl SessionBackend, argument: &str) -> Result<(Target, SeenHead), RpcError> {
    let ShownList { head, targets } = targets(backend).await?;
    if let Some(number) = number(argument) {
        let rewind = backend.chat().name(SlashKind::Rewind);
        let shown = backend.chat().state().shown.clone();
        let Some(shown) = shown else {
            return Err(refusal(&format!("no list was shown yet, so the number means nothing; `/{rewind}` shows one")));
        };
        if shown.head != head {
            let text = "the conversation has moved on since the list was shown";
            return Err(refusal(&format!("{text}; `/{rewind}` shows it anew")));
        }
        let found = shown.targets.into_iter().find(|target| target.number == number);
        let found = found.ok_or_else(|| refusal(&format!("the list that was shown has no number {number}")))?;
        return Ok((found, SeenHead { head }));
    }
    let is_it =
        |target: &Target| target.id.to_string().starts_with(argument) || backend.entries(argument).contains(&target.id);
    let mut found = targets.into_iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(found), None) => Ok((found, SeenHead { head })),
        (Some(_), Some(_)) => Err(refusal(&format!("`{argument}` is the beginning of several ids"))),
        (None, _) => {
            let rewind = backend.chat().name(SlashKind::Rewind);
            Err(refusal(&format!("no prompt has the id `{argument}`; `/{rewind}` lists them")))
        }
    }
}

/// What is short and nothing but digits is a number; an id may be digits too.
fn number(argument: &str) -> Option<u64> {
    let digits = argument.trim_end_matches('.');
    digits.parse().ok().filter(|_| argument.len() < 8)
}

fn refusal(text: &str) -> RpcError {
    RpcError::invalid_params(text)
}

async fn go_back(
    backend: &impl SessionBackend,
    running: &mut Running<'_>,
    argument: &str,
    scope: Option<&str>,
) -> Result<String, RpcError> {
    let scope = match scope {
        None | Some("both") => Scope::Both,
        Some("code" | "files") => Scope::Code,
        Some("conversation") => Scope::Conversation,
        Some(other) => return Err(refusal(&format!("`{other}` is neither `code` nor `conversation` nor `both`"))),
    };
    let (target, seen) = find(backend, argument).await?;
    if !target.has_files && scope != Scope::Conversation {
        let rewind = backend.chat().name(SlashKind::Rewind);
        let instead = format!("`/{rewind} {argument} conversation` takes back the conversation alone");
        return Err(refusal(&format!("the files of that moment are not kept; {instead}")));
    }
    let deed = RequestedChange::Rewind { point: format!("before prompt {}, \"{}\"", target.number, target.text) };
    change(backend, running, rewound(target.id, scope), Some(seen), &deed).await
}

/// Makes a change and tells what was done. Conflicts are decided by the user, and only for the files that they were asked about, as those
/// were then: what is another by the time of the answer is asked anew.
async fn change(
    backend: &impl SessionBackend,
    running: &mut Running<'_>,
    goal: ChangeGoal,
    head_seen: Option<SeenHead>,
    deed: &RequestedChange,
) -> Result<String, RpcError> {
    let before = last_message(&backend.standing().await.entries);
    let anew = |head_seen| ChangeRequest {
        change: Change::new(goal.clone()),
        head_seen,
        plan_seen: None,
        running: WhileRunning::Interrupt,
    };
    let mut wanted = anew(head_seen);
    let mut attempts = 0;
    let made = loop {
        let refusal = match backend.apply(wanted.clone()).await {
            Ok(made) => break made,
            Err(refusal) => refusal,
        };
        match undecided(&refusal) {
            Undecided::Asked(plan) => {
                let head = targets(backend).await?.head;
                let Some(choices) = conflicts::decide(backend, running, plan, deed).await? else {
                    return Ok("Nothing was changed, as you wished.".to_owned());
                };
                wanted = anew(Some(SeenHead { head }));
                wanted.change.choices = choices;
                wanted.plan_seen.clone_from(&plan.fingerprint);
            }
            Undecided::Nothing if attempts < ATTEMPTS => {
                attempts += 1;
                wanted = anew(wanted.head_seen);
            }
            Undecided::Nothing | Undecided::Hopeless => return Err(error(backend.session(), &refusal)),
        }
    };
    let AppliedChange { document, warnings, .. } = made;
    let is_cut = before != last_message(&backend.standing().await.entries);
    let back = match goal {
        // Another undo would take back what was done before that.
        ChangeGoal::Undo { .. } => format!("`/{}` does it again.", backend.chat().name(SlashKind::Redo)),
        _ => format!("`/{}` takes this back.", backend.chat().name(SlashKind::Undo)),
    };
    let is_none = document.operation.is_none() && document.conversation_moved.is_none();
    let done = match deed {
        RequestedChange::Undo if is_none => "Nothing was undone".to_owned(),
        deed => deed.done(),
    };
    Ok(text::done(&document, &done, is_cut, &warnings, &back))
}

/// What has to be decided after a refusal.
enum Undecided<'a> {
    /// What becomes of the conflicts of this plan.
    Asked(&'a RewindDocument),
    /// Nothing any more: what there was to decide is gone.
    Nothing,
    /// Nothing that could be decided here would help.
    Hopeless,
}

fn undecided(refusal: &Refusal) -> Undecided<'_> {
    let Some(plan) = refusal.document.as_deref() else { return Undecided::Hopeless };
    let can_go_ahead = plan.branch.is_none() && plan.blocked.is_empty();
    match refusal.reason {
        Reason::Conflicts | Reason::StalePlan if !can_go_ahead => Undecided::Hopeless,
        Reason::Conflicts | Reason::StalePlan if !plan.conflicts.is_empty() => Undecided::Asked(plan),
        Reason::StalePlan => Undecided::Nothing,
        _ => Undecided::Hopeless,
    }
}

async fn fork(backend: &impl SessionBackend, argument: Option<&str>) -> Result<String, RpcError> {
    let entry = match argument {
        Some(argument) => find(backend, argument).await?.0.id,
        None => {
            let last = crate::extension::last_target(&backend.standing().await.entries);
            last.ok_or_else(|| refusal("nothing was said yet, so there is nothing to fork"))?
        }
    };
    let fork = backend.fork(entry).await.map_err(|refusal| error(backend.session(), &refusal))?;
    Ok(text::forked(&fork))
}

/// Names the point before a prompt, or takes its name away.
async fn label(backend: &impl SessionBackend, argument: Option<&str>, words: &[&str]) -> Result<String, RpcError> {
    let Some(argument) = argument else {
        return Err(refusal(
            "name a prompt by its number or id, then the label; without a label, the one that it has goes",
        ));
    };
    let (target, _) = find(backend, argument).await?;
    let label = Some(words.join(" ")).filter(|label| !label.is_empty());
    ask(backend, Action::Label { prompt: target.id, label: label.clone() }).await?;
    Ok(text::labelled(&target, label.as_deref()))
}

async fn summarize(backend: &impl SessionBackend, argument: Option<&str>) -> Result<String, RpcError> {
    let extent = match argument {
        Some(argument) => Extent::UpTo { entry: find(backend, argument).await?.0.id },
        None => Extent::All,
    };
    match ask(backend, Action::Summarise { extent, instructions: None }).await? {
        Reply::Summarised { summary: Some(summary) } => {
            Ok(text::summarised(&summary.text, &backend.chat().name(SlashKind::Undo)))
        }
        _ => Ok("There is nothing to summarise.".to_owned()),
    }
}
