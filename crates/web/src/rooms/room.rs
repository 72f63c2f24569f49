//! One session that this server shows.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use retake_agent::contract::{Outcome, Request, Response};
use retake_agent::controller::{Closing, Handle};
use retake_agent::live::{Answer, Asker, Listener, Live, Told};
use retake_agent::view::View;
use retake_engine::id::SessionId;
use tokio::sync::OwnedSemaphorePermit;

use crate::host::Problem;
use crate::limits::Limits;
use crate::mirror::Mirror;

/// A session that is shown.
pub(crate) struct Room {
    session: SessionId,
    asker: Asker,
    mirror: Arc<Mirror>,
    served: Option<Served>,
    users: Mutex<Users>,
    /// Requests that wait for their answers.
    asked: Mutex<HashSet<String>>,
}

/// A session that this process has open.
struct Served {
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
pub(super) enum Left {
    Yes,
    /// Something goes on in it.
    No,
}

impl Room {
    /// One that was opened here.
    pub(super) fn opened(handle: &Handle, finish: Finish, view: View, live: Live, limits: &Limits) -> Arc<Self> {
        let served = Served { handle: handle.clone(), finish: Mutex::new(Some(finish)) };
        Self::new(handle.session(), view, live, Some(served), limits)
    }

    /// One that another process has open.
    pub(super) fn joined(session: SessionId, view: View, live: Live, limits: &Limits) -> Arc<Self> {
        Self::new(session, view, live, None, limits)
    }

    fn new(session: SessionId, view: View, live: Live, served: Option<Served>, limits: &Limits) -> Arc<Self> {
        let mirror = Arc::new(Mirror::new(view, limits));
        // It holds no way to ask, so that whoever leaves last ends it.
        tokio::spawn(listen(live.told, Arc::clone(&mirror)));
        let users = Mutex::new(Users { count: 0, last: Instant::now() });
        Arc::new(Self { session, asker: live.asker, mirror, served, users, asked: Mutex::default() })
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    pub(super) fn is_here(&self) -> bool {
        self.served.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.mirror.is_over()
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
    pub(super) async fn leave(&self) -> Left {
        let Some(served) = &self.served else { return Left::Yes };
        if self.is_over() {
            self.finish().await;
            return Left::Yes;
        }
        if self.mirror.is_busy() || served.handle.close_if_idle().await == Closing::Busy {
            return Left::No;
        }
        self.finish().await;
        Left::Yes
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

async fn listen(mut told: Listener, mirror: Arc<Mirror>) {
    loop {
        let one = told.next().await;
        let is_last = matches!(one, Told::Over(_));
        mirror.take(one);
        if is_last {
            return;
        }
    }
}

/// Somebody looks at a session, which stays open meanwhile.
pub(crate) struct Entered(Arc<Room>);

impl Entered {
    pub(super) fn new(room: &Arc<Room>) -> Self {
        room.users().count += 1;
        Self(Arc::clone(room))
    }

    /// What its clients are told.
    pub(crate) fn mirror(&self) -> &Mirror {
        &self.0.mirror
    }

    /// Has a request carried out.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, Problem> {
        let asking = Asking::begin(&self.0, &request.id)?;
        let answer = self.0.asker.hand_in_as(request).await.numbered_answer().await;
        let Answer { result, seq } = answer.map_err(|error| Problem::new(503, error.to_string()))?;
        Ok(Response { id: asking.id.clone(), outcome: result.map_or_else(Outcome::Refused, Outcome::Ok), seq })
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
struct Asking<'a> {
    room: &'a Room,
    id: String,
}

impl<'a> Asking<'a> {
    fn begin(room: &'a Room, id: &str) -> Result<Self, Problem> {
        let mut asked = room.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.insert(id.to_owned()) {
            let message = "a request with this id waits for its answer already";
            return Err(Problem::new(409, message).hint("choose ids that nobody else chooses, such as a UUID"));
        }
        Ok(Self { room, id: id.to_owned() })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.room.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
