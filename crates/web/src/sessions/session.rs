//! One session that this server shows: its event buffer, its clients, and the requests that wait for answers.
//!
//! It is closed by [`Sessions`](super::Sessions), and only if no client is left and no turn runs.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use retake_agent::contract::{Request, RequestOutcome, Response};
use retake_agent::controller::{Closing, Handle};
use retake_agent::live::{Asker, Listener, LiveAnswer, LiveSession, Notification};
use retake_agent::view::View;
use retake_engine::id::SessionId;
use tokio::sync::OwnedSemaphorePermit;

use crate::event_buffer::EventBuffer;
use crate::host::Problem;
use crate::limits::Limits;

/// A session that is shown.
pub(crate) struct ServedSession {
    session: SessionId,
    asker: Asker,
    events: Arc<EventBuffer>,
    served: Option<LocalSession>,
    users: Mutex<Users>,
    /// Requests that wait for their answers.
    asked: Mutex<HashSet<String>>,
}

/// A session that this process has open.
struct LocalSession {
    handle: Handle,
    finish: Mutex<Option<Finish>>,
}

/// What closes a session, and its share of those that may be open at a time.
type Finish = (Box<dyn FnOnce() + Send>, OwnedSemaphorePermit);

struct Users {
    count: usize,
    last: Instant,
}

/// Whether a session was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaveOutcome {
    Yes,
    /// Something goes on in it.
    No,
}

impl ServedSession {
    /// One that was opened here.
    pub(super) fn opened(handle: &Handle, finish: Finish, view: View, live: LiveSession, limits: &Limits) -> Arc<Self> {
        let served = LocalSession { handle: handle.clone(), finish: Mutex::new(Some(finish)) };
        Self::new(handle.session(), view, live, Some(served), limits)
    }

    /// One that another process has open.
    pub(super) fn joined(session: SessionId, view: View, live: LiveSession, limits: &Limits) -> Arc<Self> {
        Self::new(session, view, live, None, limits)
    }

    fn new(
        session: SessionId,
        view: View,
        live: LiveSession,
        served: Option<LocalSession>,
        limits: &Limits,
    ) -> Arc<Self> {
        let events = Arc::new(EventBuffer::new(view, limits));
        // It holds no way to ask, so that whoever leaves last ends it.
        tokio::spawn(listen(live.told, Arc::clone(&events)));
        let users = Mutex::new(Users { count: 0, last: Instant::now() });
        Arc::new(Self { session, asker: live.asker, events, served, users, asked: Mutex::default() })
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    pub(super) fn is_here(&self) -> bool {
        self.served.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.events.is_over()
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long nobody has looked at it; `None` if somebody does.
    pub(super) fn unused_for(&self) -> Option<Duration> {
        let users = self.users();
        (users.count == 0).then(|| users.last.elapsed())
    }

    /// Leaves it, and closes it if it is open here, unless something goes on in it.
    pub(super) async fn leave(&self) -> LeaveOutcome {
        let Some(served) = &self.served else { return LeaveOutcome::Yes };
        if self.is_over() {
            self.finish().await;
            return LeaveOutcome::Yes;
        }
        if self.events.is_busy() || served.handle.close_if_idle().await == Closing::Busy {
            return LeaveOutcome::No;
        }
        self.finish().await;
        LeaveOutcome::Yes
    }

    /// Closes it, if it is open here, and waits until everything is stored.
    pub(super) async fn finish(&self) {
        let Some(served) = &self.served else { return };
        let finish = served.finish.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((finish, share)) = finish {
            // A thread that panicked has ended too.
            tokio::task::spawn_blocking(finish).await.ok();
            drop(share);
        }
    }
}

async fn listen(mut told: Listener, events: Arc<EventBuffer>) {
    loop {
        let one = told.next().await;
        let is_last = matches!(one, Notification::Over(_));
        events.take(one);
        if is_last {
            return;
        }
    }
}

/// Somebody looks at a session, which stays open meanwhile.
pub(crate) struct Entered(Arc<ServedSession>);

impl Entered {
    pub(super) fn new(shown: &Arc<ServedSession>) -> Self {
        shown.users().count += 1;
        Self(Arc::clone(shown))
    }

    /// What its clients are told.
    pub(crate) fn events(&self) -> &EventBuffer {
        &self.0.events
    }

    /// Has a request carried out.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, Problem> {
        let asking = ReservedId::begin(&self.0, &request.id)?;
        let answer = self.0.asker.hand_in_as(request).await.numbered_answer().await;
        let LiveAnswer { result, seq } = answer.map_err(|error| Problem::new(503, error.to_string()))?;
        Ok(Response {
            id: asking.id.clone(),
            outcome: result.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok),
            seq,
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut users = self.0.users();
        users.count -= 1;
        users.last = Instant::now();
    }
}

/// A request that waits for its answer: no other one has its id.
struct ReservedId<'a> {
    shown: &'a ServedSession,
    id: String,
}

impl<'a> ReservedId<'a> {
    fn begin(shown: &'a ServedSession, id: &str) -> Result<Self, Problem> {
        let mut asked = shown.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.insert(id.to_owned()) {
            let message = "a request with this id waits for its answer already";
            return Err(Problem::new(409, message).hint("choose ids that nobody else chooses, such as a UUID"));
        }
        Ok(Self { shown, id: id.to_owned() })
    }
}

impl Drop for ReservedId<'_> {
    fn drop(&mut self) {
        self.shown.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
