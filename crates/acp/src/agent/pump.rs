//! The pump of a session: what it tells becomes updates and answers, in the order in which it was told.

mod catch_up;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use retake_agent::contract::{Event, EventKind, Question, State, TurnEnd};
use retake_agent::live::{Listener, LiveError, Notification as Heard};
use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, CallId, EndReason, Entry, StopReason, Usage};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Version;
use super::prompt;
use super::session::{Delivered, PumpTask, ReplayExtent, Session};
use super::shape::update::{self, PromptSource};
use crate::extension;
use crate::extension::backend::SessionBackend;
use crate::wire::RpcError;

/// How often the output of a call is told while it runs: all that is kept of it is told each time.
const OUTPUT_PAUSE: Duration = Duration::from_millis(200);

/// Tells the client of a session until it is over, `news` first: how it stands, if that may not be what the client knows.
pub(super) async fn run(
    session: Arc<Session>,
    mut told: Listener,
    mut errands: mpsc::Receiver<PumpTask>,
    news: Option<Box<View>>,
) {
    let view = session.known().view.clone();
    let mut pump = Pump { session, questions: HashMap::new(), outputs: HashMap::new() };
    match news {
        None => view.questions.iter().for_each(|question| pump.ask(question)),
        Some(news) => pump.resync(news).await,
    }
    loop {
        tokio::select! {
            biased;
            heard = told.next() => match heard {
                Heard::Event(event) => pump.take(&event).await,
                Heard::Missed(view) => pump.resync(view).await,
                Heard::Over(error) => return pump.finish(&error).await,
            },
            errand = errands.recv() => match errand {
                Some(PumpTask::Replay { extent, done }) => {
                    pump.replay(extent).await;
                    // Whoever has stopped waiting needs no word.
                    done.send(()).ok();
                }
                Some(PumpTask::Leave) | None => return pump.finish(&LiveError::Ended).await,
            },
        }
    }
}

/// The prompt whose turn runs.
pub(super) fn running(view: &View) -> Option<EntryId> {
    let is_prompt = |entry: &&Entry| matches!(entry.body, Body::Prompt { .. });
    let busy = view.state == State::Running || !view.questions.is_empty();
    busy.then(|| view.entries.iter().rfind(is_prompt).map(|entry| entry.id)).flatten()
}

struct Pump {
    session: Arc<Session>,
    /// What the client is being asked.
    questions: HashMap<CallId, AbortHandle>,
    /// When the output of a call was last told.
    outputs: HashMap<CallId, Instant>,
}

impl Pump {
    async fn take(&mut self, event: &Event) {
        let said = self.note_prompt(event).await;
        let mut updates = {
            let known = self.session.known();
            self.session.updates.of_event(&known.view, event, said)
        };
        let cut = match &event.kind {
            EventKind::HeadMoved { .. } => Some(self.session.known().view.clone()),
            _ => None,
        };
        {
            let mut known = self.session.known();
            known.view.apply(event);
            if let EventKind::CallOutput { call, .. } = &event.kind
                && self.outputs.get(call).is_none_or(|last| last.elapsed() > OUTPUT_PAUSE)
            {
                updates.extend(self.session.updates.output(&known.view, call));
                self.outputs.insert(call.clone(), Instant::now());
            }
        }
        for update in updates {
            self.session.update(update).await;
        }
        if let Some(before) = cut {
            self.tell_of_cut(&before, Goes::Back).await;
        }
        self.follow(event).await;
        let operation = match &event.kind {
            EventKind::HeadMoved { operation, .. } => operation.clone(),
            _ => self.session.how_far().operation,
        };
        let told = Delivered::of(&self.session.known().view, operation);
        self.session.tell_how_far(told);
    }

    /// Finds out whose prompt it is that was said, and answers the one who waits for that.
    async fn note_prompt(&mut self, event: &Event) -> PromptSource {
        let EventKind::Appended { entry } = &event.kind else { return PromptSource::Elsewhere };
        if !matches!(entry.body, Body::Prompt { .. }) {
            return PromptSource::Elsewhere;
        }
        let mut pending = self.session.pending.lock().await;
        let ours = pending.iter().position(|one| Some(one.request.as_str()) == event.request.as_deref());
        let Some(at) = ours else { return PromptSource::Elsewhere };
        pending[at].prompt = Some(entry.id);
        if let Some(given) = pending[at].given.take() {
            self.session.known().given.insert(entry.id, given);
        }
        if self.session.client.version == Version::V2 {
            let id = pending.remove(at).id;
            drop(pending);
            self.session.peer.answer(id, Ok(json!({ "messageId": entry.id.to_string() }))).await.ok();
        }
        PromptSource::Here
    }

    /// What an event means beside its update.
    async fn follow(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Appended { entry } => match &entry.body {
                Body::Prompt { .. } => {
                    self.session.known().running = Some(entry.id);
                    self.session.state("running", Map::new()).await;
                }
                // What the turn was stopped for is told only after that.
                Body::Ended { reason: EndReason::Interrupted } => {
                    let running = self.session.known().running;
                    if let Some(prompt) = running {
                        self.end_turn(prompt, event.request.as_deref(), &TurnResult::cancelled()).await;
                    }
                }
                _ => {}
            },
            EventKind::PermissionAsked { question } => {
                self.ask(question);
                self.session.state("requires_action", Map::new()).await;
            }
            EventKind::PermissionSettled { call, .. } => {
                if let Some(asking) = self.questions.remove(call) {
                    asking.abort();
                }
                if self.questions.is_empty() && self.session.is_busy() {
                    self.session.state("running", Map::new()).await;
                }
            }
            EventKind::TurnEnded { prompt, reason, message, usage, .. } => {
                self.outputs.clear();
                let ending = self.ending(*reason, message.as_deref(), *usage);
                self.end_turn(*prompt, event.request.as_deref(), &ending).await;
            }
            EventKind::Returned => self.give_back(event.request.as_deref()).await,
            EventKind::ModelChanged { model, .. } => {
                self.session.learn_model(model);
                let options = self.session.options();
                self.session.update(json!({ "sessionUpdate": "config_option_update", "configOptions": options })).await;
            }
            EventKind::Warning { text } => self.notice("warning", text).await,
            EventKind::Retrying { message, .. } => self.notice("warning", &format!("trying again: {message}")).await,
            _ => {}
        }
    }

    async fn notice(&self, severity: &str, text: &str) {
        match self.session.client.shows_notices {
            true => {
                self.session.update(json!({ "sessionUpdate": "notice", "severity": severity, "title": text })).await
            }
            false => (self.session.warn)(text),
        }
    }

    /// Asks the client whether a call may run. Somebody else may answer first.
    fn ask(&mut self, question: &Question) {
        let asking = tokio::spawn(prompt::ask_permission(Arc::clone(&self.session), question.clone()));
        self.questions.insert(question.call.clone(), asking.abort_handle());
    }

    /// Tells that history was cut, to a client that wants to know, and what follows it now.
    async fn tell_of_cut(&mut self, before: &View, goes: Goes) {
        for (_, asking) in self.questions.drain() {
            asking.abort();
        }
        let (now, todos) = {
            let known = self.session.known();
            (known.view.entries.clone(), known.view.todos())
        };
        let same = before.entries.iter().zip(&now).take_while(|(before, now)| before.id == now.id).count();
        let lost = before.coming.entry.is_some() || before.entries[same..].iter().any(extension::is_message);
        // Whoever cannot be told that something is gone would see it twice when it comes back.
        if self.session.client.knows_rewind || !lost && goes == Goes::On {
            if lost {
                self.truncated(extension::last_message(&now[..same])).await;
            }
            for update in self.session.updates.replay(&now[..same], &now[same..]) {
                self.session.update(update).await;
            }
        }
        if todos != before.todos() {
            self.session.update(self.session.updates.plan(&todos)).await;
        }
    }

    async fn truncated(&self, last: Option<EntryId>) {
        let last = last.map(|id| id.to_string());
        let (method, params) = extension::truncated(self.session.client.version, &self.session.id, last.as_deref());
        self.session.peer.notify(method, params).await.ok();
    }

    fn ending(&self, reason: TurnEnd, message: Option<&str>, usage: Usage) -> TurnResult {
        let last_stop = self.session.known().view.entries.iter().rev().find_map(|entry| match &entry.body {
            Body::Reply { stop, .. } => Some(*stop),
            _ => None,
        });
        let stop = match (reason, last_stop) {
            (TurnEnd::Interrupted, _) => "cancelled",
            (TurnEnd::RoundLimit, _) => "max_turn_requests",
            (TurnEnd::Failed, _) => "error",
            (TurnEnd::Done, Some(StopReason::Length)) => "max_tokens",
            (TurnEnd::Done, Some(StopReason::Refused)) => "refusal",
            (TurnEnd::Done, _) => "end_turn",
        };
        TurnResult { stop, message: message.map(str::to_owned), usage: Some(usage) }
    }

    /// Answers the one who waits for a turn, and tells that nothing goes on any more. Only the first time.
    async fn end_turn(&mut self, prompt: EntryId, request: Option<&str>, ending: &TurnResult) {
        let waiting = {
            let mut pending = self.session.pending.lock().await;
            let is_it = |one: &super::session::PendingPrompt| {
                one.prompt == Some(prompt) || request.is_some_and(|request| one.request == request)
            };
            pending.iter().position(is_it).map(|at| pending.remove(at))
        };
        if let Some(waiting) = waiting {
            self.session.peer.answer(waiting.id, ending.answer(prompt)).await.ok();
        }
        let ended = self.session.known().running.take_if(|running| *running == prompt);
        if ended.is_some() {
            self.session.state("idle", ending.idle()).await;
        }
    }

    /// A prompt that was held is not said after all.
    async fn give_back(&self, request: Option<&str>) {
        let waiting = {
            let mut pending = self.session.pending.lock().await;
            let at = pending.iter().position(|one| Some(one.request.as_str()) == request);
            at.map(|at| pending.remove(at))
        };
        if let Some(waiting) = waiting {
            let answer = match self.session.client.version {
                Version::V1 => Ok(json!({ "stopReason": "cancelled" })),
                Version::V2 => Err(prompt::cancelled()),
            };
            self.session.peer.answer(waiting.id, answer).await.ok();
        }
    }

    /// Tells how the session stands.
    async fn replay(&mut self, extent: ReplayExtent) {
        let view = self.session.known().view.clone();
        let updates = match extent {
            ReplayExtent::Everything => self.session.updates.replay_all(&view),
            ReplayExtent::State => self.session.updates.standing(&view),
        };
        for update in updates {
            self.session.update(update).await;
        }
        let state = match (view.questions.is_empty(), self.session.is_busy()) {
            (false, _) => "requires_action",
            (true, true) => "running",
            (true, false) => "idle",
        };
        self.session.state(state, Map::new()).await;
    }

    /// The session is over: nobody waits any longer.
    async fn finish(self, error: &LiveError) {
        let told = Delivered { is_over: true, ..self.session.how_far() };
        self.session.tell_how_far(told);
        for (_, asking) in self.questions {
            asking.abort();
        }
        // What the session has not taken is not said, and whoever handed it in is about to know.
        let waiting: Vec<_> = self.session.pending.lock().await.extract_if(.., |one| one.is_taken).collect();
        for waiting in waiting {
            self.session.peer.answer(waiting.id, Err(self.session.gone(error))).await.ok();
        }
    }
}

/// In which way a conversation became another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    /// By a rewind, an undo or a redo.
    Back,
    /// It may only have gone on.
    On,
}

/// How a turn ended.
struct TurnResult {
    stop: &'static str,
    message: Option<String>,
    usage: Option<Usage>,
}

impl TurnResult {
    fn cancelled() -> Self {
        Self { stop: "cancelled", message: None, usage: None }
    }

    /// What went wrong, if something did.
    fn error(&self) -> Option<RpcError> {
        let text = self.message.clone().unwrap_or_else(|| "the turn failed".to_owned());
        (self.stop == "error").then(|| RpcError::new(RpcError::INTERNAL, text).with_reason("turn_failed"))
    }

    /// The answer to the prompt, in version 1.
    fn answer(&self, prompt: EntryId) -> Result<Value, RpcError> {
        if let Some(error) = self.error() {
            return Err(error.with("messageId", prompt.to_string()));
        }
        let meta = json!({ "retake": { "messageId": prompt.to_string() } });
        let mut answer = json!({ "stopReason": self.stop, "_meta": meta });
        if let Some(usage) = &self.usage {
            answer["usage"] = update::tokens(usage);
        }
        Ok(answer)
    }

    /// What is told with the state, in version 2.
    fn idle(&self) -> Map<String, Value> {
        let mut more = Map::new();
        more.insert("stopReason".into(), self.stop.into());
        if let Some(error) = self.error() {
            more.insert("error".into(), json!({ "code": error.code, "message": error.message }));
        }
        if let Some(usage) = &self.usage {
            more.insert("usage".into(), update::tokens(usage));
        }
        more
    }
}

/// How a turn ended, from how the session stands now.
fn ended_in(view: &View, prompt: EntryId) -> TurnResult {
    let turn = view.entries.iter().skip_while(|entry| entry.id != prompt);
    let reason = turn.skip(1).find_map(|entry| match &entry.body {
        Body::Ended { reason } => Some(reason),
        _ => None,
    });
    let (stop, message) = match reason {
        Some(EndReason::Done) => ("end_turn", None),
        Some(EndReason::Failed { message }) => ("error", Some(message.clone())),
        Some(EndReason::RoundLimit) => ("max_turn_requests", None),
        Some(EndReason::Interrupted) | None => ("cancelled", None),
    };
    TurnResult { stop, message, usage: None }
}
