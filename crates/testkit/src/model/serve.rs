//! The server behind a scripted model: takes connections, checks requests and gives out the answers.

use std::collections::{HashMap, VecDeque};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use super::answer::{Answer, How, StreamStep};
use super::http::{Connection, Incoming, Sent, Split};
use super::received::{Received, Wire};
use super::{anthropic, check, openai, responses};

/// How long a test waits for something that should happen at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Makes an answer of the request.
pub(super) type Answerer = Box<dyn Fn(&Received) -> Answer + Send + Sync>;

/// What the server and the test share.
pub(super) struct Shared {
    state: Mutex<ServerState>,
    changed: Condvar,
    answerer: Option<Answerer>,
    stopping: AtomicBool,
}

#[derive(Default)]
pub(super) struct ServerState {
    pub(super) queue: VecDeque<Answer>,
    pub(super) received: Vec<Received>,
    /// How many were received before those that are kept.
    pub(super) forgotten: usize,
    pub(super) hurries: bool,
    pub(super) tolerates: bool,
    pub(super) complaints: Vec<String>,
    pub(super) hang_ups: usize,
    pub(super) connections: usize,
    pub(super) split: Split,
    pub(super) issued: Issued,
}

/// What the server gave out and wants back: for each call, the model it was given as and what that had thought.
#[derive(Default)]
pub(super) struct Issued {
    pub(super) thoughts: HashMap<String, (String, String)>,
}

impl Shared {
    pub(super) fn new(answerer: Option<Answerer>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), answerer, stopping: AtomicBool::new(false) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `find` finds something; panics if it does not in time.
    pub(super) fn wait_until<T>(&self, what: &str, find: impl Fn(&ServerState) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        loop {
            if let Some(found) = find(&state) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what}: {} requests, {:?}", state.received.len(), state.complaints);
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn stop(&self, port: u16) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(("127.0.0.1", port)));
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn change(&self, change: impl FnOnce(&mut ServerState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Checks and records the request, and finds what to answer.
    fn answer(&self, incoming: Incoming) -> (Received, Answer) {
        let received = Received::new(incoming);
        let checked = {
            let state = &mut *self.lock();
            let checked = if state.hurries { Ok(()) } else { check::check(&received, &state.issued) };
            match checked {
                Err(refusal) if state.tolerates && refusal.status != check::NOT_THERE => {
                    state.complaints.push(refusal.why);
                    Ok(())
                }
                checked => checked,
            }
        };
        let answer = match (checked, &self.answerer) {
            (Err(refusal), _) => Err(refusal),
            (Ok(()), Some(answerer)) => Ok(answerer(&received)),
            (Ok(()), None) => self.lock().queue.pop_front().ok_or_else(|| check::Refusal::surprise(&received)),
        };
        self.change(|state| {
            if state.hurries {
                state.forgotten += state.received.len();
                state.received.clear();
            }
            state.received.push(received.clone());
            if let Err(refusal) = &answer {
                state.complaints.push(refusal.why.clone());
            }
        });
        let answer = answer.unwrap_or_else(|refusal| {
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": refusal.why}});
            Answer::default().fails_with(refusal.status, &error.to_string())
        });
        (received, answer)
    }
}

/// Takes connections until the model is dropped.
pub(super) fn accept_in_background(listener: TcpListener, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if shared.is_stopping() {
                return;
            }
            let Ok(stream) = stream else { continue };
            shared.change(|state| state.connections += 1);
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                // An error is a client that has gone; what matters of that is counted.
                if let Ok(mut connection) = Connection::new(stream)
                    && serve(&shared, &mut connection).is_err()
                {
                    shared.change(|state| state.hang_ups += 1);
                }
            });
        }
    });
}

fn serve(shared: &Shared, connection: &mut Connection) -> std::io::Result<()> {
    while let Some(incoming) = connection.read()? {
        let (received, answer) = shared.answer(incoming);
        if let Some(gate) = &answer.gate
            && !gate.pass(|| connection.is_gone())
        {
            shared.change(|state| state.hang_ups += 1);
            return Ok(());
        }
        let sent = match &answer.how {
            How::HangUp => {
                connection.close();
                Sent::Cut
            }
            How::Failure { status, body } => {
                connection.send(*status, &answer.headers, body)?;
                Sent::Whole
            }
            How::Raw(events) => {
                let steps = events.split_inclusive("\n\n").map(|event| StreamStep::Event(event.to_owned())).collect();
                let split = shared.lock().split;
                connection.stream(&answer.headers, steps, answer.cut_after, split)?
            }
            How::Stream => {
                let steps = {
                    let state = &mut *shared.lock();
                    let model = if state.hurries { "in-a-hurry" } else { received.model() };
                    match received.wire() {
                        Wire::Anthropic => anthropic::steps(&answer, model),
                        Wire::OpenAi => openai::steps(&answer, model, &mut state.issued),
                        Wire::Responses => responses::steps(&answer, model),
                    }
                };
                let split = shared.lock().split;
                connection.stream(&answer.headers, steps, answer.cut_after, split)?
            }
        };
        match sent {
            Sent::Whole => {}
            Sent::Cut => return Ok(()),
            Sent::Gone => {
                shared.change(|state| state.hang_ups += 1);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// An id that no other answer of any run has.
pub(super) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    format!("{prefix}{:x}x{:x}", now, COUNT.fetch_add(1, Ordering::Relaxed))
}
