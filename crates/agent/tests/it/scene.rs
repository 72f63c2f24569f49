//! A scene: a workspace, a scripted model over real HTTP, and a live session between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use retake_agent::contract::{
    Action, Change, ChangeGoal, Command, Event, EventKind, PermissionAnswer, Query, Question, Refusal, Reply, State,
    TurnEnd, WhileRunning,
};
use retake_agent::controller::{self, Attached, Beginning, Handle, Opened, SessionSetup, Unprotected, Which};
use retake_agent::model::{Model, ModelRefused, ModelSettings, Models};
use retake_agent::permission::{Allowed, Mode, Policy};
use retake_agent::rewind_document::RewindDocument;
use retake_agent::tool::{Jobs, Shell, Toolbox};
use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::operation::MadeBy;
use retake_engine::rewind::Files;
use retake_engine::session::entry::Part;
use retake_engine::session::{Conversation, Target};
use retake_engine::session::{Discard, Scope};
use retake_engine::{Breadth, Environment, Settings, Workspace};
use retake_testkit::model::{Received, ScriptedModel};
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

/// How long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How the model is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    OpenAi,
}

pub struct Scene {
    pub model: ScriptedModel,
    pub dir: tempfile::TempDir,
    wire: Wire,
    mode: Mode,
    runtime: Arc<Runtime>,
    open: Option<Live>,
    session: Option<SessionId>,
    settings: Settings,
    unprotected: Unprotected,
    explores: bool,
    window: Option<u64>,
}

struct Live {
    opened: Opened,
    events: broadcast::Receiver<Arc<Event>>,
    view: View,
    /// Everything that was told.
    told: Vec<Arc<Event>>,
}

impl Scene {
    pub fn new() -> Self {
        Self::with(Wire::Anthropic)
    }

    pub fn with(wire: Wire) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("w")).expect("a workspace");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        Self {
            model: ScriptedModel::start(),
            dir,
            wire,
            mode: Mode::Headless(Allowed::All),
            runtime: Arc::new(runtime),
            open: None,
            session: None,
            settings: Settings::default(),
            unprotected: Unprotected::Ask,
            explores: false,
            window: None,
        }
    }

    /// The model has `checkpoint` and `rewind`.
    pub fn exploring(mut self) -> Self {
        self.explores = true;
        self
    }

    /// The model can read so many tokens.
    pub fn with_window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// The user is asked.
    pub fn interactive(mut self) -> Self {
        self.mode = Mode::Interactive;
        self
    }

    pub fn allowing(mut self, allowed: Allowed) -> Self {
        self.mode = Mode::Headless(allowed);
        self
    }

    pub fn with_settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub fn unprotected(mut self) -> Self {
        self.unprotected = Unprotected::Allow;
        self
    }

    /// Another session in the same workspace, with a model of its own.
    pub fn beside(&self) -> (ScriptedModel, Opened, SessionId) {
        let (model, opened) = self.open_beside(Which::New);
        let session = opened.handle.session();
        (model, opened, session)
    }

    /// A session in the same workspace, with a model of its own.
    pub fn open_beside(&self, which: Which) -> (ScriptedModel, Opened) {
        let model = ScriptedModel::start();
        let opened = self.open_with(&model, which);
        (model, opened)
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    pub fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    /// A person, or another program, writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root().join(path)).ok()
    }

    /// All files: `a.txt: one\n`.
    pub fn files(&self) -> String {
        let mut lines = Vec::new();
        collect(&self.root(), &self.root(), &mut lines);
        lines.sort();
        lines.concat()
    }

    pub fn environment(&self) -> Environment {
        Environment {
            root: self.root(),
            data_dir: self.dir.path().join("data"),
            global_excludes: None,
            homes: Vec::new(),
            breadth: Breadth::Guarded,
            settings: self.settings.clone(),
            threads: 2,
        }
    }

    /// The engine, beside the session.
    pub fn workspace(&self) -> Workspace {
        Workspace::open_or_create(self.environment()).expect("the workspace opens")
    }

    fn open_with(&self, model: &ScriptedModel, which: Which) -> Opened {
        let _inside = self.runtime.enter();
        let (jobs, ended) = Jobs::new();
        let setup = SessionSetup {
            environment: self.environment(),
            which,
            model: self.model_at(model),
            models: models_at(model.url()),
            policy: Policy { mode: self.mode, ..Policy::default() },
            unprotected: self.unprotected,
            made_by: MadeBy::Client,
            tools: (Toolbox::new(&self.root(), Shell::default(), jobs).with_checkpoints(self.explores), ended),
        };
        controller::open(setup).expect("the session opens")
    }

    fn model_at(&self, model: &ScriptedModel) -> Model {
        let name = match self.wire {
            Wire::Anthropic => "anthropic/scripted",
            Wire::OpenAi => "openai/scripted",
        };
        let mut settings = ModelSettings::parse(name, Some(&model.url()), |_| None).expect("settings");
        settings.context = self.window;
        Model::new(settings).expect("a model")
    }

    pub fn start(mut self) -> Self {
        self.reopen();
        self
    }

    /// Opens the session again.
    pub fn reopen(&mut self) {
        let which = self.session.map_or(Which::New, Which::Existing);
        let opened = self.open_with(&self.model, which);
        self.session = Some(opened.handle.session());
        let Attached { beginning, events } =
            self.runtime.block_on(opened.handle.attach(None)).expect("a client can attach");
        let Beginning::View(view) = beginning else { panic!("a newcomer gets everything") };
        self.open = Some(Live { opened, events, view: *view, told: Vec::new() });
    }

    /// Closes the session and opens it again, as after the program was ended.
    pub fn restart(&mut self) {
        self.close();
        self.reopen();
    }

    /// Closes the session and opens another one.
    pub fn enter(&mut self, session: SessionId) {
        self.close();
        self.session = Some(session);
        self.reopen();
    }

    pub fn close(&mut self) {
        let Some(live) = self.open.take() else { return };
        self.runtime.block_on(live.opened.handle.request(Action::Close)).expect("it closes");
        live.opened.served.join().expect("the controller ends in good order");
    }

    /// Waits for the end of a session that somebody closed.
    pub fn join(&mut self) {
        let Some(live) = self.open.take() else { return };
        live.opened.served.join().expect("the controller ends in good order");
    }

    fn live(&self) -> &Live {
        self.open.as_ref().expect("the session is open")
    }

    fn live_mut(&mut self) -> &mut Live {
        self.open.as_mut().expect("the session is open")
    }

    pub fn session(&self) -> SessionId {
        self.session.expect("the session is open")
    }

    pub fn handle(&self) -> Handle {
        self.live().opened.handle.clone()
    }

    pub fn runtime(&self) -> Arc<Runtime> {
        Arc::clone(&self.runtime)
    }

    pub fn request(&self, command: impl Into<Command>) -> Result<Reply, Refusal> {
        self.runtime.block_on(self.live().opened.handle.request(command))
    }

    /// Says something without waiting for anything.
    pub fn say(&mut self, text: &str) -> EntryId {
        match self.request(Action::prompt(vec![Part::text(text)])).expect("it can be said") {
            Reply::Said { prompt } => prompt,
            other => panic!("not said: {other:?}"),
        }
    }

    /// Says something and waits for the end of the turn.
    pub fn prompt(&mut self, text: &str) -> EntryId {
        let prompt = self.say(text);
        let (reason, _) = self.until_ended(prompt);
        assert_eq!(reason, TurnEnd::Done, "{:#?}\n{:?}", self.told().last(), self.model.complaints());
        prompt
    }

    /// Waits for the end of a turn; returns why it ended and the model's last words.
    pub fn until_ended(&mut self, wanted: EntryId) -> (TurnEnd, String) {
        let event = self.until(|kind| matches!(kind, EventKind::TurnEnded { prompt, .. } if *prompt == wanted));
        match event {
            EventKind::TurnEnded { reason, text, .. } => (reason, text),
            _ => unreachable!(),
        }
    }

    /// Waits for an event, and shows all that come until then.
    pub fn until(&mut self, mut wanted: impl FnMut(&EventKind) -> bool) -> EventKind {
        let runtime = Arc::clone(&self.runtime);
        let live = self.live_mut();
        loop {
            let next = runtime.block_on(async { tokio::time::timeout(PATIENCE, live.events.recv()).await });
            let event = next
                .unwrap_or_else(|_| panic!("it never came; last: {:#?}", live.told.last()))
                .expect("no event is missed");
            assert_eq!(event.seq, live.view.seq + 1, "events follow one another");
            live.view.apply(&event);
            live.told.push(Arc::clone(&event));
            if wanted(&event.kind) {
                return event.kind.clone();
            }
        }
    }

    /// Takes in whatever has come.
    pub fn catch_up(&mut self) {
        let live = self.live_mut();
        while let Ok(event) = live.events.try_recv() {
            live.view.apply(&event);
            live.told.push(event);
        }
    }

    /// What a client shows after it has seen everything.
    pub fn view(&mut self) -> View {
        self.catch_up();
        self.live().view.clone()
    }

    pub fn told(&mut self) -> Vec<EventKind> {
        self.catch_up();
        self.live().told.iter().map(|event| event.kind.clone()).collect()
    }

    /// The requests that events came of.
    pub fn requests_of(&mut self, wanted: impl Fn(&EventKind) -> bool) -> Vec<Option<String>> {
        self.catch_up();
        self.live().told.iter().filter(|event| wanted(&event.kind)).map(|event| event.request.clone()).collect()
    }

    pub fn state(&mut self) -> State {
        self.view().state
    }

    pub fn change(&mut self, goal: ChangeGoal) -> Result<RewindDocument, Refusal> {
        self.apply(Change::new(goal), WhileRunning::Refuse)
    }

    pub fn apply(&mut self, change: Change, running: WhileRunning) -> Result<RewindDocument, Refusal> {
        match self.request(Action::Apply { change, head_seen: None, plan_seen: None, running })? {
            Reply::Change { document } => Ok(*document),
            other => panic!("no document: {other:?}"),
        }
    }

    pub fn rewind(&mut self, entry: EntryId, scope: Scope) -> RewindDocument {
        self.change(rewind_goal(entry, scope)).expect("the rewind is made")
    }

    pub fn undo(&mut self) -> RewindDocument {
        self.change(ChangeGoal::Undo { operation: None }).expect("the undo is made")
    }

    pub fn redo(&mut self) -> RewindDocument {
        self.change(ChangeGoal::Redo { operation: None }).expect("the redo is made")
    }

    pub fn targets(&self) -> Vec<Target> {
        match self.request(Query::Targets { query: None }).expect("targets are listed") {
            Reply::Targets { targets, .. } => targets,
            other => panic!("no targets: {other:?}"),
        }
    }

    /// The text of what the user is about to say.
    pub fn draft(&mut self) -> String {
        let texts = self.view().draft.into_iter().map(|part| match part {
            Part::Text { text } | Part::Paste { text } => text,
            other => format!("{other:?}"),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The conversation as it is on disk.
    pub fn stored(&self) -> Conversation {
        self.workspace().sessions().conversation(self.session()).expect("it is stored")
    }

    /// Everything that every client may rely on: what is shown is what is stored, and what the model would be sent is made of it.
    pub fn check(&mut self) {
        let (view, newcomers) = loop {
            let again = self.runtime.block_on(self.handle().attach(None)).expect("a client can attach");
            let Beginning::View(fresh) = again.beginning else { panic!("a newcomer gets everything") };
            let view = self.view();
            // Snapshots may end at any time.
            if view.seq == fresh.seq {
                break (view, *fresh);
            }
        };
        assert_eq!(newcomers, view, "a newcomer sees the same");
        assert_eq!(view.entries, self.stored().entries(), "a client shows what is stored");
        if view.held == 0 {
            let stored = self.workspace().sessions().draft(self.session()).expect("a draft");
            assert_eq!(view.draft, stored, "the draft is the stored one");
        }
    }

    /// What the model would be sent next, without cache marks.
    pub fn context(&self) -> String {
        self.context_of(&self.handle())
    }

    /// What the model would be sent next in another session.
    pub fn context_of(&self, handle: &Handle) -> String {
        match self.runtime.block_on(handle.request(Query::Context)).expect("the context is told") {
            Reply::Context { body } => without_marks(&body),
            other => panic!("no context: {other:?}"),
        }
    }

    /// The same, made from nothing but what is on disk.
    pub fn stored_context(&self) -> String {
        let _inside = self.runtime.enter();
        let toolbox = Toolbox::new(&self.root(), Shell::default(), Jobs::new().0).with_checkpoints(self.explores);
        let request = self.model_at(&self.model).request(&self.stored().context(), &toolbox.specs());
        without_marks(request.body())
    }

    /// Interrupts the turn and waits for its end.
    pub fn interrupt(&mut self, prompt: EntryId) {
        self.request(Action::Interrupt { turn: None }).expect("it can be interrupted");
        let (reason, _) = self.until_ended(prompt);
        assert_eq!(reason, TurnEnd::Interrupted);
    }

    /// Waits until the user is asked, and gives the question.
    pub fn until_asked(&mut self) -> Question {
        match self.until(|kind| matches!(kind, EventKind::PermissionAsked { .. })) {
            EventKind::PermissionAsked { question } => question,
            _ => unreachable!(),
        }
    }

    pub fn answer(&mut self, question: &Question, answer: PermissionAnswer) {
        self.request(Action::Answer { call: question.call.clone(), answer }).expect("it can be answered");
    }

    /// Says something in another session and waits for the end of the turn.
    pub fn say_beside(&self, handle: &Handle, text: &str) {
        self.runtime.block_on(async {
            let mut events = handle.attach(None).await.expect("a client can attach").events;
            let said = handle.request(Action::prompt(vec![Part::text(text)])).await.expect("it can be said");
            let Reply::Said { prompt: said } = said else { panic!("not said: {said:?}") };
            loop {
                let event =
                    tokio::time::timeout(PATIENCE, events.recv()).await.expect("it ends").expect("no event is missed");
                if matches!(&event.kind, EventKind::TurnEnded { prompt, .. } if *prompt == said) {
                    return;
                }
            }
        });
    }

    /// The newest request, as a text.
    pub fn last_request(&self) -> Received {
        self.model.last_request()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
    }
}

/// Models that a session can be told to ask: all of the two providers at `url`, but for one that there is no key for.
fn models_at(url: String) -> Models {
    Models::new(move |name| {
        let place = (name != "anthropic/elsewhere").then_some(url.as_str());
        let refused = |message: String| ModelRefused { message, hint: Some("name another".to_owned()) };
        let mut settings = ModelSettings::parse(name, place, |_| None).map_err(|err| refused(err.to_string()))?;
        settings.context = Some(1_000_000);
        Model::new(settings).map_err(|err| refused(err.to_string()))
    })
}

fn without_marks(body: &str) -> String {
    body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

pub fn rewind_goal(entry: EntryId, scope: Scope) -> ChangeGoal {
    ChangeGoal::Rewind { entry, scope, files: Files::Selective, discard: Discard::No }
}

fn collect(root: &Path, dir: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, lines);
        } else {
            let name = path.strip_prefix(root).expect("below the root").display().to_string();
            lines.push(format!("{name}: {}", fs::read_to_string(&path).unwrap_or_else(|_| "(not text)\n".to_owned())));
        }
    }
}
