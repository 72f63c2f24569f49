//! Forks: sessions that begin with what was said in another one.
//!
//! An editor forks through its agent, and the log follows. Whoever asks in the chat forks the log at any place, and the inner agent makes
//! a session of its own that holds just that, if it can without a word being said; else it is told the transcript when the fork is loaded.

use std::path::PathBuf;
use std::sync::Arc;

use retake_agent::contract::{Reason, Refusal};
use retake_agent::ids;
use retake_agent::query::{in_words, refusal};
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::session::entry::Entry;
use serde_json::Value;

use super::Proxy;
use super::log_writer::spoken;
use super::open::{OpenedLog, SessionOrigin, ask};
use super::session::ProxiedSession;
use super::session_map::{self, MapRecord, Mapping, SessionMap};

/// A log that was forked.
struct Forked {
    session: SessionId,
    title: String,
    entries: Vec<Entry>,
    /// All that was ever said in the one that it was forked from.
    all: Vec<Entry>,
    root: PathBuf,
}

/// A session of the inner agent that was forked from another of its.
pub(super) struct Child {
    pub(super) id: String,
    pub(super) from: String,
    pub(super) head: EntryId,
}

impl Proxy {
    /// Begins a session from an entry of another: before it if it is a prompt, else after it. It is there to be loaded, under the name
    /// that is returned.
    pub(super) async fn fork(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        entry: EntryId,
    ) -> Result<String, Refusal> {
        let _alone = session.changing.lock().await;
        let failed = |why: String| refusal(Reason::Failed, format!("the session is not forked: {why}"));
        let found = session.log.ask(|log| (log.workspace_thread().clone(), log.root().to_owned())).await;
        let (workspace_thread, root) = found.ok_or_else(retake_agent::socket::ended)?;
        let from = session.id;
        let forked = ask(&workspace_thread, move |workspace| {
            let new = ids::fork(MadeBy::Client);
            let forked =
                workspace.sessions_mut().fork(from, entry, &new, &NoProgress).map_err(|error| in_words(&error))?;
            let writer = workspace.sessions().open(forked.session, ids::now(), &mut ids::random);
            let entries = writer.map_err(|error| in_words(&error))?.conversation().entries().to_vec();
            let all = workspace.sessions().all_entries(from).map_err(|error| in_words(&error))?;
            Ok::<_, String>(Forked { session: forked.session, title: forked.title, entries, all, root })
        });
        let forked = forked.await.and_then(|forked| forked).map_err(failed)?;
        let child = self.fork_inner(session, &forked.entries, &forked.all).await;
        let known = session.known();
        let named = ask(&workspace_thread, move |workspace| {
            forked.note(workspace.store_dir(), &known, child).map_err(|error| error.to_string())
        });
        named.await.and_then(|named| named).map_err(failed)
    }

    /// The inner agent has forked a session for the client: so does the log.
    pub(super) async fn forked(
        self: &Arc<Self>,
        parent: &Arc<ProxiedSession>,
        mut birth: Value,
        result: Value,
        line: Vec<u8>,
    ) {
        let Some(inner) = result["sessionId"].as_str().map(str::to_owned) else { return self.to_client(line).await };
        if birth["cwd"].is_null() {
            birth["cwd"] = parent.live().birth["cwd"].clone();
        }
        let (proxy, expecting, parent) = (Arc::clone(self), self.expect(), Arc::clone(parent));
        tokio::spawn(async move {
            let forked = proxy.fork_log(&parent, &inner, birth).await;
            proxy.introduce(&inner, forked, result, line).await;
            expecting.end().await;
        });
    }

    async fn fork_log(
        self: &Arc<Self>,
        parent: &ProxiedSession,
        inner: &str,
        birth: Value,
    ) -> Result<Arc<ProxiedSession>, String> {
        let known = parent.known();
        let due = parent.live().due;
        let held = known.inners.get(&known.current).filter(|inner| inner.under_way.is_none());
        let held = held.and_then(|inner| inner.holds);
        let is_known = held.is_some();
        let entries = parent.log.ask(|log| log.entries().to_vec()).await.unwrap_or_default();
        let Some(head) = spoken(&entries).last().map(|entry| entry.id) else {
            return self.begin_log(inner, birth, SessionOrigin::New).await;
        };
        let (workspace_thread, root, store) = self.workspace_thread(birth["cwd"].as_str().unwrap_or(".")).await?;
        let (from, name) = (parent.id, inner.to_owned());
        let (outer, opened) = ask(&workspace_thread, move |workspace| {
            let new = ids::fork(MadeBy::Client);
            let forked =
                workspace.sessions_mut().fork(from, head, &new, &NoProgress).map_err(|error| in_words(&error))?;
            let outer = session_map::name_for(&store, &name, forked.session).map_err(|error| error.to_string())?;
            let mut session_map =
                SessionMap::create(&store, &outer, forked.session).map_err(|error| error.to_string())?;
            // It holds what the one holds that it was forked from; what that has not heard comes with the next prompt.
            let holds = held.map(|head| MapRecord::Holds { id: name.clone(), head });
            let all = names(&known, &entries).into_iter().chain(inner_records(&known, &entries, &name, &known.current));
            let written = all.chain(holds).try_for_each(|record| session_map.add(record));
            written.map_err(|error| error.to_string())?;
            let writer = workspace.sessions().open(forked.session, ids::now(), &mut ids::random);
            Ok::<_, String>((outer, OpenedLog { writer: writer.map_err(|error| in_words(&error))?, session_map }))
        })
        .await??;
        let session = self.know(outer, opened, workspace_thread, root, birth)?;
        self.own(&session, inner);
        let mut live = session.live();
        live.due = due;
        live.out_of_step = !is_known;
        drop(live);
        Ok(session)
    }
}

impl Forked {
    /// Writes down what is known of it, so that it can be loaded; the name that the client has for it.
    fn note(&self, store: &std::path::Path, known: &Mapping, child: Option<Child>) -> std::io::Result<String> {
        let outer = match &child {
            Some(child) => session_map::name_for(store, &child.id, self.session)?,
            None => self.session.to_string(),
        };
        let mut session_map = SessionMap::create(store, &outer, self.session)?;
        names(known, &self.entries).into_iter().try_for_each(|record| session_map.add(record))?;
        match child {
            Some(Child { id, from, head }) => {
                inner_records(known, &self.entries, &id, &from)
                    .into_iter()
                    .try_for_each(|record| session_map.add(record))?;
                session_map.add(MapRecord::Holds { id, head: Some(head) })?;
            }
            None => {
                let cwd = self.root.to_string_lossy().into_owned();
                session_map.add(MapRecord::Waits { title: self.title.clone(), cwd })?;
            }
        }
        session_map.page().sync()?;
        Ok(outer)
    }
}

/// What the client calls the entries, and how prompts were given.
fn names(known: &Mapping, entries: &[Entry]) -> Vec<MapRecord> {
    let named = entries.iter().map(|entry| MapRecord::Message {
        entry: entry.id,
        outer: known.outer(entry.id),
        inner: String::new(),
        id: None,
    });
    let given = entries.iter().filter_map(|entry| {
        let blocks = known.given.get(&entry.id)?;
        Some(MapRecord::Given { entry: entry.id, blocks: blocks.to_vec() })
    });
    let pieces = entries
        .iter()
        .filter_map(|entry| Some(MapRecord::Piece { entry: entry.id, how: *known.pieces.get(&entry.id)? }));
    let late = entries.iter().filter(|entry| known.late.contains(&entry.id));
    named.chain(pieces).chain(given).chain(late.map(|entry| MapRecord::Late { entry: entry.id })).collect()
}

/// That `agent_process`, which was forked from `from`, is the one that speaks, and what it calls the entries.
fn inner_records(known: &Mapping, entries: &[Entry], inner: &str, from: &str) -> Vec<MapRecord> {
    let id = || inner.to_owned();
    let named = entries.iter().filter_map(|entry| {
        let called = known.inner_id(from, entry.id)?.to_owned();
        Some(MapRecord::Message { entry: entry.id, outer: known.outer(entry.id), inner: id(), id: Some(called) })
    });
    let begun = [
        MapRecord::Inner { id: id(), from: None },
        MapRecord::Told { id: id(), prompts: known.told(from) },
        MapRecord::Current { id: id() },
    ];
    begun.into_iter().chain(named).collect()
}
