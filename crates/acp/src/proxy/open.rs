//! Sessions that begin: their log is found or made, and from then on what is said in them is kept.
//!
//! A session whose log cannot be kept, because its directory is somebody's home, say, works all the same, without rewind; whoever asks
//! for that is told why.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use retake_agent::ids;
use retake_agent::query::in_words;
use retake_agent::workspace_thread::WorkspaceThread;
use retake_engine::checkpoint::{Origin, ResolveError};
use retake_engine::id::SessionId;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::RecoveryChoice;
use retake_engine::session::Moment;
use retake_engine::session::{NewSession, SessionKind, SessionWriter};
use retake_engine::{Durability, Workspace};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::json_edit::JsonEdits;
use super::log_writer::{LogHandle, Places, spoken};
use super::relay::{PendingKind, named};
use super::route::{MAX_WAITING, Unkept, is_within};
use super::session::ProxiedSession;
use super::session_map::{self, MapRecord, SessionMap, SessionNames};
use super::{Proxy, complain};
use crate::wire::{Message, RpcError};

/// A log that was opened.
pub(super) struct OpenedLog {
    pub(super) writer: SessionWriter,
    pub(super) session_map: SessionMap,
}

/// Where a session of the inner agent's that gets a log comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionOrigin {
    /// It has just begun.
    New,
    /// It was there before: what was said in it is still to be told.
    Before,
}

impl Proxy {
    /// The workspace thread of the workspace that a directory is in, with its root and its store.
    pub(super) async fn workspace_thread(
        self: &Arc<Self>,
        cwd: &str,
    ) -> Result<(WorkspaceThread, PathBuf, PathBuf), String> {
        let environment = (self.setup.environments)(Path::new(cwd))?;
        let root = environment.root.clone();
        let known = self.state().keepers.get(&root).cloned();
        if let Some((workspace_thread, store)) = known {
            return Ok((workspace_thread, root, store));
        }
        let opened = tokio::task::spawn_blocking(move || {
            let mut workspace = Workspace::open_or_create(environment).map_err(|error| in_words(&error))?;
            let new = ids::rewind();
            workspace
                .rewinds_mut()
                .recover(RecoveryChoice::Ask, new.after, new.at)
                .map_err(|error| in_words(&error))?;
            workspace.watch();
            let store = workspace.store_dir().to_owned();
            let (workspace_thread, thread) = WorkspaceThread::start(workspace).map_err(|error| error.to_string())?;
            Ok::<_, String>((workspace_thread, thread, store))
        });
        let (workspace_thread, thread, store) = opened.await.map_err(|error| error.to_string())??;
        self.keep_thread(thread);
        let mut state = self.state();
        // Somebody may have been quicker; one workspace thread is as good as another.
        let (workspace_thread, store) = state.keepers.entry(root.clone()).or_insert((workspace_thread, store)).clone();
        Ok((workspace_thread, root, store))
    }

    fn keep_thread(&self, thread: std::thread::JoinHandle<()>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Begins the log of a session that the inner agent calls `agent_process`.
    pub(super) async fn begin_log(
        self: &Arc<Self>,
        inner: &str,
        birth: Value,
        source: SessionOrigin,
    ) -> Result<Arc<ProxiedSession>, String> {
        let (workspace_thread, root, store) = self.workspace_thread(birth["cwd"].as_str().unwrap_or(".")).await?;
        let name = inner.to_owned();
        let (outer, opened) = ask(&workspace_thread, move |workspace| {
            let (id, at) = (ids::session(), ids::now());
            let new = NewSession { id, at, title: String::new(), kind: SessionKind::Conversation };
            workspace.sessions_mut().create(new).map_err(|error| in_words(&error))?;
            let outer = session_map::name_for(&store, &name, id).map_err(|error| error.to_string())?;
            let mut session_map = SessionMap::create(&store, &outer, id).map_err(|error| error.to_string())?;
            let begun = [
                MapRecord::Inner { id: name.clone(), from: None },
                MapRecord::Holds { id: name.clone(), head: None },
                MapRecord::Current { id: name },
            ];
            let importing = (source == SessionOrigin::Before).then_some(MapRecord::Importing);
            let written = importing.into_iter().chain(begun).try_for_each(|record| session_map.add(record));
            written.map_err(|error| error.to_string())?;
            let writer = workspace.sessions().open(id, at, &mut ids::random).map_err(|error| in_words(&error))?;
            Ok::<_, String>((outer, OpenedLog { writer, session_map }))
        })
        .await??;
        take_baseline(&workspace_thread, opened.writer.id());
        let session = self.know(outer, opened, workspace_thread, root, birth)?;
        self.own(&session, inner);
        Ok(session)
    }

    /// The inner agent has made or loaded this session of its, and it is that one's.
    pub(super) fn own(&self, session: &Arc<ProxiedSession>, inner: &str) {
        self.state().inners.insert(inner.to_owned(), Arc::clone(session));
        session.live().loaded.insert(inner.to_owned());
    }

    /// A session of the inner agent's is about to be loaded for one of ours. If that calls another one so by now, what it held is gone.
    pub(super) fn claim(&self, session: &Arc<ProxiedSession>, inner: &str) -> Result<(), RpcError> {
        let owner = self.state().inners.get(inner).cloned();
        if owner.is_some_and(|owner| !Arc::ptr_eq(&owner, session) && owner.live().loaded.contains(inner)) {
            session.record([MapRecord::Doubt { id: inner.to_owned() }]);
            return Err(RpcError::new(RpcError::NOT_FOUND, format!("the agent calls another session `{inner}`")));
        }
        self.state().inners.insert(inner.to_owned(), Arc::clone(session));
        Ok(())
    }

    /// Opens the log of a session by the name that the client has for it; `None` if there is none.
    pub(super) async fn open_log(
        self: &Arc<Self>,
        outer: &str,
        birth: Value,
    ) -> Result<Option<Arc<ProxiedSession>>, String> {
        let cwd = birth["cwd"].as_str().unwrap_or(".").to_owned();
        let Some(home) = self.home(outer, Some(&cwd)).await else { return Ok(None) };
        let (workspace_thread, root, store) = self.workspace_thread(&home.to_string_lossy()).await?;
        let (name, is_at_home) = (outer.to_owned(), is_within(Path::new(&cwd), &home));
        let opened = ask(&workspace_thread, move |workspace| {
            let Some(session_map) = SessionMap::open(&store, &name).map_err(|error| error.to_string())? else {
                // Whoever began it has not come far.
                return session_map::remove(&store, &name).map(|()| None).map_err(|error| error.to_string());
            };
            let id = session_map.known.session.clone().unwrap_or_default();
            let session = match workspace.sessions().resolve(&id) {
                Ok(session) => session,
                // Somebody has deleted it: so is what is known of it here.
                Err(ResolveError::UnknownSession { .. }) => {
                    return session_map::remove(&store, &name).map(|()| None).map_err(|error| error.to_string());
                }
                Err(error) => return Err(in_words(&error)),
            };
            if !is_at_home {
                // Elsewhere it is another one, unless the agent has something by its name that was cut off.
                return match session_map.known.current == name {
                    true => Ok(None),
                    false => Err(format!("it belongs to `{}`: load it there", home.display())),
                };
            }
            let writer = workspace.sessions().open(session.id, ids::now(), &mut ids::random);
            let writer = writer.map_err(|error| in_words(&error))?;
            if session_map.known.is_partial {
                // The inner agent was interrupted when it told what was said in it: it has to tell it anew.
                workspace.sessions_mut().delete(writer).map_err(|error| in_words(&error))?;
                return session_map::remove(&store, &name).map(|()| None).map_err(|error| error.to_string());
            }
            Ok::<_, String>(Some(OpenedLog { writer, session_map }))
        })
        .await??;
        let Some(opened) = opened else { return Ok(None) };
        take_baseline(&workspace_thread, opened.writer.id());
        let session = self.know(outer.to_owned(), opened, workspace_thread, root, birth)?;
        session.live().out_of_step = true;
        Ok(Some(session))
    }

    /// Makes a session known, and begins to take what is said in it.
    pub(super) fn know(
        self: &Arc<Self>,
        outer: String,
        opened: OpenedLog,
        workspace_thread: WorkspaceThread,
        root: PathBuf,
        birth: Value,
    ) -> Result<Arc<ProxiedSession>, String> {
        let OpenedLog { writer, session_map } = opened;
        let id = writer.id();
        let cwd = birth["cwd"].as_str().map_or_else(|| root.clone(), PathBuf::from);
        let places = Places { root, cwd };
        let log = LogHandle::start(writer, workspace_thread, places, self.name.clone(), self.setup.patience);
        let (log, thread) = log.map_err(|error| error.to_string())?;
        self.keep_thread(thread);
        let (inbox, mut said) = mpsc::channel(MAX_WAITING);
        let session = Arc::new(ProxiedSession::new(outer.clone(), id, log, session_map, inbox));
        session.live().birth = birth;
        {
            let mut state = self.state();
            state.unkept.remove(&outer);
            state.sessions.insert(outer, Arc::clone(&session));
        }
        let (proxy, weak) = (Arc::clone(self), Arc::downgrade(&session));
        tokio::spawn(async move {
            while let Some((message, line)) = said.recv().await {
                if proxy.state().is_gone {
                    return;
                }
                let Some(session) = weak.upgrade().filter(|session| proxy.is_known(session)) else {
                    // It was closed before this one's turn came.
                    let outer = named(&message).unwrap_or_default().to_owned();
                    proxy.route(&outer, message, line).await;
                    continue;
                };
                let request = match &message {
                    Message::Request { id, .. } => Some(id.clone()),
                    Message::Notification { .. } | Message::Response { .. } => None,
                };
                proxy.take_in_session(&session, message, line).await;
                request.iter().for_each(|id| session.unqueue(id));
            }
        });
        self.serve(&session);
        Ok(session)
    }

    /// Whether a session is the one that the client knows by its name.
    fn is_known(&self, session: &Arc<ProxiedSession>) -> bool {
        self.state().sessions.get(&session.outer).is_some_and(|one| Arc::ptr_eq(one, session))
    }

    /// The inner agent has begun a session for the client.
    pub(super) async fn begun(self: &Arc<Self>, birth: Value, result: Value, line: Vec<u8>) {
        let Some(inner) = result["sessionId"].as_str().map(str::to_owned) else { return self.to_client(line).await };
        let (proxy, expecting) = (Arc::clone(self), self.expect());
        // Whoever waits for the store must not hold up what others are told.
        tokio::spawn(async move {
            let begun = proxy.begin_log(&inner, birth, SessionOrigin::New).await;
            proxy.introduce(&inner, begun, result, line).await;
            expecting.end().await;
        });
    }

    /// Passes the inner agent's answer about a session that it has made on to the client, under the id that the client will use.
    pub(super) async fn introduce(
        &self,
        inner: &str,
        opened: Result<Arc<ProxiedSession>, String>,
        result: Value,
        line: Vec<u8>,
    ) {
        match opened {
            Ok(session) => {
                session.live().facts = result;
                let mut edits = JsonEdits::new(&line);
                if session.outer != inner {
                    edits.replace(&["result", "sessionId"], &Value::from(session.outer.as_str()));
                }
                self.to_client(edits.make()).await;
                self.tell_commands(&session).await;
            }
            Err(why) => {
                complain(&format!("session {inner} cannot be rewound: {why}"));
                self.state().note_unkept(inner, Unkept::Refused(why));
                self.to_client(line).await;
            }
        }
    }

    /// Tells the client the commands: a list replaces the one before it, so the inner agent's own are in it as far as they are known.
    pub(super) async fn tell_commands(&self, session: &ProxiedSession) {
        let inner = session.live().inner.clone();
        let (version, early) = {
            let mut state = self.state();
            (state.version, state.early.remove(&inner))
        };
        if let Some(early) = early {
            session.note_commands(&early);
        }
        let commands = session.commands(version);
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        self.update(session, update).await;
    }

    /// A session that we have no log of is loaded: what the inner agent tells of it is kept.
    pub(super) async fn import(self: &Arc<Self>, id: Value, birth: Value, line: Vec<u8>) {
        let inner = birth["sessionId"].as_str().unwrap_or_default().to_owned();
        match self.begin_log(&inner, birth, SessionOrigin::Before).await {
            Ok(session) => {
                session.live().is_importing = true;
                let (over, is_over) = oneshot::channel();
                self.note_request(&id, PendingKind::Import { session, over });
                self.to_agent(line).await;
                // What the client says in it meanwhile comes after what was said before; it is over also if the agent goes.
                is_over.await.ok();
            }
            Err(why) => {
                complain(&format!("session {inner} cannot be rewound: {why}"));
                self.state().note_unkept(&inner, Unkept::Refused(why));
                self.ask(&id, PendingKind::Other, line).await;
            }
        }
    }

    /// The inner agent has told all of a session that it loaded, or refuses to.
    pub(super) fn imported(self: &Arc<Self>, session: &Arc<ProxiedSession>, result: Option<&Value>) {
        let inner = {
            let mut live = session.live();
            live.is_importing = false;
            live.facts = result.cloned().unwrap_or_default();
            live.inner.clone()
        };
        if result.is_none() {
            self.forget(session);
            return drop(self.erase(session));
        }
        let (proxy, kept) = (Arc::clone(self), Arc::clone(session));
        session.log.run(move |log| {
            log.settle_import();
            let head = spoken(log.entries()).last().map(|entry| entry.id);
            kept.record([MapRecord::Holds { id: inner, head }, MapRecord::Imported]);
            proxy.runtime.spawn({
                let proxy = Arc::clone(&proxy);
                async move { proxy.tell_commands(&kept).await }
            });
        });
    }

    /// Removes the log of a session; over when it is removed.
    pub(super) fn erase(&self, session: &Arc<ProxiedSession>) -> oneshot::Receiver<()> {
        let (outer, (tell, erased)) = (session.outer.clone(), oneshot::channel());
        session.log.run(move |log| {
            log.erase(move |store| session_map::remove(store, &outer));
            tell.send(()).ok();
        });
        erased
    }

    /// Has the inner agent delete what only kept points of a session that is deleted: nobody knows of it any more.
    pub(super) fn delete_points(self: &Arc<Self>, session: &ProxiedSession) {
        let (proxy, known) = (Arc::clone(self), session.known());
        tokio::spawn(async move {
            for inner in known.inners.keys().filter(|inner| **inner != known.current) {
                // One that is gone already, or stays, is in nobody's way.
                proxy.ask_agent("session/delete", json!({ "sessionId": inner })).await.ok();
            }
        });
    }

    /// The sessions that the inner agent has, by the names that the client knows; those that only keep a point are left out.
    pub(super) fn listed(&self, params: &Value, result: &Value, line: Vec<u8>) -> Vec<u8> {
        let Some(sessions) = result["sessions"].as_array() else { return line };
        let mut stores: Vec<PathBuf> = self.state().keepers.values().map(|(_, store)| store.clone()).collect();
        let named = params["cwd"].as_str().into_iter().chain(sessions.iter().filter_map(|one| one["cwd"].as_str()));
        for environment in named.filter_map(|cwd| (self.setup.environments)(Path::new(cwd)).ok()) {
            stores.extend(Workspace::store_of(&environment.data_dir, &environment.root));
        }
        stores.sort();
        stores.dedup();
        let mut edits = JsonEdits::new(&line);
        let mut known = SessionNames::default();
        stores.iter().for_each(|store| known.read(store));
        let mut shown = Vec::new();
        let mut is_changed = false;
        for one in sessions {
            let mut one = one.clone();
            let id = one["sessionId"].as_str().unwrap_or_default().to_owned();
            match known.inners.get(&id) {
                Some(None) => {
                    is_changed = true;
                    continue;
                }
                Some(Some(outer)) if *outer != id => {
                    is_changed = true;
                    one["sessionId"] = outer.as_str().into();
                }
                _ => {}
            }
            shown.push(one);
        }
        // They are newer than most, and a list that goes on has room for them at its end.
        if result["nextCursor"].is_null() {
            let here = params["cwd"].as_str();
            let waiting = known
                .waiting
                .iter()
                .filter(|(_, _, cwd)| here.is_none_or(|here| is_within(Path::new(here), Path::new(cwd))));
            shown.extend(waiting.map(|(id, title, cwd)| json!({ "sessionId": id, "cwd": cwd, "title": title })));
            is_changed |= shown.len() > sessions.len();
        }
        if is_changed {
            edits.replace(&["result", "sessions"], &Value::Array(shown));
        }
        edits.make()
    }
}

/// Has the workspace thread do something, and does not hold up the others who wait.
pub(super) async fn ask<T: Send + 'static>(
    workspace_thread: &WorkspaceThread,
    task: impl FnOnce(&mut Workspace) -> T + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    workspace_thread.run(move |workspace| {
        tell.send(task(workspace)).ok();
    });
    told.await.map_err(|_| "the workspace was closed".to_owned())
}

/// Has the first snapshot taken; nobody waits for it but the first prompt.
fn take_baseline(workspace_thread: &WorkspaceThread, session: SessionId) {
    workspace_thread.run(move |workspace| {
        let moment = Moment { session, entry: None, origin: Origin::Turn };
        if let Err(error) =
            workspace.checkpoints_mut().take_at(moment, ids::checkpoint(), Durability::Soon, &NoProgress)
        {
            complain(&format!("the first snapshot could not be taken: {}", in_words(&error)));
        }
    });
}
