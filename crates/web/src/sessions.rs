//! The sessions that this server shows: opened in this process, or joined where another process has them open.
//!
//! Owns a slot per session. The slot's lock is held while the session is opened, joined or closed, so that only one of these runs at a time.
//! A session without clients and without a running turn is closed after a while; one in another process is left.
//!
//! An open runs to its end even if the client that asked for it disconnects: the session is then in its slot, where the next client finds it
//! and idle closing closes it. A session that cannot be opened leaves its slot empty and gives its permit back.

mod session;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use retake_agent::controller::Which;
use retake_agent::live::{FindError, FoundSession, LiveSession, NotOpened, SessionLocator};
use retake_engine::Environment;
use retake_engine::id::SessionId;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, RwLock, Semaphore};
use tokio::time::sleep;

use crate::host::{OpenedSession, Problem, SessionOpener};
use crate::limits::Limits;
pub(crate) use session::Entered;
use session::{LeaveOutcome, ServedSession};

/// The sessions.
pub(crate) struct Sessions {
    host: Arc<dyn SessionOpener>,
    environment: Environment,
    sockets: PathBuf,
    limits: Limits,
    /// How many more sessions may be open here: whoever opens one takes a share first, and the session has it until it is closed.
    free: Arc<Semaphore>,
    places: Mutex<HashMap<SessionId, Arc<SessionSlot>>>,
    /// Whether nothing is opened any more. It is read all the while something is, so that nothing is opened behind the back of `close`.
    is_closed: RwLock<bool>,
}

/// Where a session is, if it is here.
#[derive(Default)]
struct SessionSlot(AsyncMutex<Option<Arc<ServedSession>>>);

impl Sessions {
    pub(crate) fn new(
        host: Arc<dyn SessionOpener>,
        environment: Environment,
        sockets: PathBuf,
        limits: Limits,
    ) -> Self {
        let free = Arc::new(Semaphore::new(limits.sessions));
        Self { host, environment, sockets, limits, free, places: Mutex::default(), is_closed: RwLock::new(false) }
    }

    fn place(&self, session: SessionId) -> Arc<SessionSlot> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry(session).or_default())
    }

    fn all(&self) -> Vec<(SessionId, Arc<SessionSlot>)> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().map(|(session, place)| (*session, Arc::clone(place))).collect()
    }

    /// The session with this whole id, if it is open or joined here: nobody has to be asked whether it is there.
    pub(crate) fn named(&self, id: &str) -> Option<SessionId> {
        let is_shown = |place: &SessionSlot| {
            place.0.try_lock().is_ok_and(|shown| shown.as_ref().is_some_and(|shown| !shown.is_over()))
        };
        let found = self.all().into_iter().find(|(session, place)| session.to_string() == id && is_shown(place));
        found.map(|(session, _)| session)
    }

    /// The way into a session, which is there.
    pub(crate) async fn enter(self: &Arc<Self>, session: SessionId) -> Result<Entered, Problem> {
        let sessions = Arc::clone(self);
        to_the_end(async move { sessions.enter_here(session).await }).await
    }

    /// Opens a new session.
    pub(crate) async fn open_new(self: &Arc<Self>) -> Result<SessionId, Problem> {
        let sessions = Arc::clone(self);
        to_the_end(async move { sessions.open_new_here().await }).await
    }

    async fn enter_here(&self, session: SessionId) -> Result<Entered, Problem> {
        let is_closed = self.is_closed.read().await;
        let place = self.place(session);
        let mut shown = place.0.lock().await;
        if let Some(shown) = shown.as_ref().filter(|shown| !shown.is_over()) {
            return Ok(Entered::new(shown));
        }
        // What has ended is put in order before it is opened again.
        if let Some(over) = shown.take() {
            over.finish().await;
        }
        if *is_closed {
            return Err(stopping());
        }
        let found = self.find(session).await?;
        let entered = Entered::new(&found);
        *shown = Some(found);
        Ok(entered)
    }

    async fn open_new_here(&self) -> Result<SessionId, Problem> {
        let is_closed = self.is_closed.read().await;
        if *is_closed {
            return Err(stopping());
        }
        let shown = self.open(Which::New).await?;
        let session = shown.session();
        *self.place(session).0.lock().await = Some(shown);
        Ok(session)
    }

    /// Joins a session if another process has it open, else opens it here.
    async fn find(&self, session: SessionId) -> Result<Arc<ServedSession>, Problem> {
        let reach = SessionLocator { environment: &self.environment, sockets: &self.sockets };
        let open = || async {
            self.open(Which::Existing(session)).await.map_err(|problem| match problem.is_taken {
                true => NotOpened::Taken(problem),
                false => NotOpened::Failed(problem),
            })
        };
        match reach.find(session, open).await {
            Ok(FoundSession::Opened(shown)) => Ok(shown),
            Ok(FoundSession::Joined(view, live)) => Ok(ServedSession::joined(session, *view, live, &self.limits)),
            Err(FindError::Open(problem)) => Err(problem),
            Err(FindError::Join(error)) => Err(Problem::new(503, error.to_string())),
        }
    }

    async fn open(&self, which: Which) -> Result<Arc<ServedSession>, Problem> {
        let share = self.make_room().await?;
        let host = Arc::clone(&self.host);
        let opened = tokio::task::spawn_blocking(move || host.open(which)).await;
        let OpenedSession { handle, finish } = opened.map_err(|err| Problem::failed(err.to_string()))??;
        match LiveSession::here(handle.clone()).await {
            Ok((view, live)) => Ok(ServedSession::opened(&handle, (finish, share), *view, live, &self.limits)),
            Err(error) => {
                tokio::task::spawn_blocking(move || {
                    finish();
                    drop(share);
                });
                Err(Problem::failed(error.to_string()))
            }
        }
    }

    /// A share for one more session. If there is none, sessions are closed until there is: those first that nobody has looked at for longest.
    async fn make_room(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let free = || Arc::clone(&self.free).try_acquire_owned().ok();
        if let Some(share) = free() {
            return Ok(share);
        }
        for place in self.unused() {
            self.leave(&place, Duration::ZERO).await;
            // Somebody else may have been faster.
            if let Some(share) = free() {
                return Ok(share);
            }
        }
        let message = format!("{} sessions are open here already, and something goes on in each", self.limits.sessions);
        Err(Problem::new(503, message).hint("close a tab, or stop what runs in one of them"))
    }

    /// Where the sessions are that are open here and nobody looks at, longest ago first.
    fn unused(&self) -> Vec<Arc<SessionSlot>> {
        let unused_for = |place: &SessionSlot| {
            // One that is being opened or closed just now is not one to be closed.
            let shown = place.0.try_lock().ok()?;
            shown.as_ref().filter(|shown| shown.is_here())?.unused_for()
        };
        let places = self.all().into_iter();
        let mut unused: Vec<_> = places.filter_map(|(_, place)| Some((unused_for(&place)?, place))).collect();
        unused.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        unused.into_iter().map(|(_, place)| place).collect()
    }

    /// Closes a session that nobody has looked at for so long.
    async fn leave(&self, place: &SessionSlot, unused: Duration) -> LeaveOutcome {
        let Ok(mut shown) = place.0.try_lock() else { return LeaveOutcome::No };
        let Some(one) = shown.as_ref() else { return LeaveOutcome::Yes };
        if !one.is_over() && one.unused_for().is_none_or(|time| time < unused) {
            return LeaveOutcome::No;
        }
        let left = one.leave().await;
        if left == LeaveOutcome::Yes {
            *shown = None;
        }
        left
    }

    /// Looks now and then for sessions that nobody looks at; never ends.
    pub(crate) async fn tidy(&self) {
        loop {
            sleep((self.limits.unused / 4).max(Duration::from_millis(10))).await;
            for (session, place) in self.all() {
                if self.leave(&place, self.limits.unused).await == LeaveOutcome::No {
                    continue;
                }
                drop(place);
                let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
                // Somebody may be on the way in.
                if places.get(&session).is_some_and(|place| Arc::strong_count(place) == 1) {
                    places.remove(&session);
                }
            }
        }
    }

    /// Does something with a session that is open nowhere; it is closed first if it is open here and nothing goes on in it.
    pub(crate) async fn while_closed<T: Send + 'static>(
        self: &Arc<Self>,
        session: SessionId,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let sessions = Arc::clone(self);
        to_the_end(async move { sessions.while_closed_here(session, work).await }).await
    }

    async fn while_closed_here<T>(
        &self,
        session: SessionId,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let place = self.place(session);
        let mut shown = place.0.lock().await;
        if let Some(one) = shown.as_ref() {
            if !one.is_here() && !one.is_over() {
                return Err(Problem::taken("the session is open in another process").hint("close it there first"));
            }
            if one.leave().await == LeaveOutcome::No {
                return Err(Problem::new(409, "a turn or a job is running in the session").hint("stop it first"));
            }
            *shown = None;
        }
        work.await
    }

    /// Closes all sessions that are open here, whatever goes on in them.
    pub(crate) async fn close(&self) {
        *self.is_closed.write().await = true;
        for (_, place) in self.all() {
            if let Some(shown) = place.0.lock().await.take() {
                shown.finish().await;
            }
        }
    }
}

/// Does something to its end, though nobody may wait for it any more.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.map_err(|err| Problem::failed(err.to_string()))?
}

fn stopping() -> Problem {
    Problem::new(503, "the server is stopping")
}
