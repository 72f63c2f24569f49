//! The peer of a JSON-RPC connection: requests to it and their answers.
//!
//! Each request gets an id of its own. A request whose caller stops waiting is cancelled with `$/cancel_request`.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::wire::{Message, RpcError, Writer};

/// The other side.
#[derive(Clone, Debug)]
pub struct Peer {
    writer: Writer,
    /// What ids of requests begin with that are told apart from those of others; numbers if there is nothing.
    name: Option<Arc<str>>,
    open: Arc<Mutex<OpenRequests>>,
}

/// Requests that are not answered yet.
#[derive(Debug, Default)]
struct OpenRequests {
    next: u64,
    /// Whether there will be no more answers.
    is_gone: bool,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
}

/// The end of a request: takes it back if nobody waits for its answer any more.
struct Ticket<'a> {
    peer: &'a Peer,
    id: u64,
}

impl Peer {
    /// Asks over this writer; whoever reads hands the answers to [`Peer::answered`].
    pub fn new(writer: Writer) -> Self {
        Self { writer, name: None, open: Arc::default() }
    }

    /// Asks over a writer on which others ask too: the ids of its requests begin with `name`, and those of no other do.
    pub fn beside_others(writer: Writer, name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::new(writer) }
    }

    fn id(&self, number: u64) -> Value {
        self.name.as_ref().map_or_else(|| number.into(), |name| format!("{name}{number}").into())
    }

    fn number(&self, id: &Value) -> Option<u64> {
        match &self.name {
            None => id.as_u64(),
            Some(name) => id.as_str()?.strip_prefix(&**name)?.parse().ok(),
        }
    }

    /// What its messages are written with.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Tells it something.
    pub async fn notify(&self, method: &str, params: Value) -> io::Result<()> {
        self.writer.send(Message::notification(method, params)).await
    }

    /// Answers a request of its.
    pub async fn answer(&self, id: Value, outcome: Result<Value, RpcError>) -> io::Result<()> {
        self.writer.send(Message::response(id, outcome)).await
    }

    /// Asks it something and waits for the answer. If it goes away, that is an error like those that it sends.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let (tell, told) = oneshot::channel();
        let id = {
            let mut open = self.open();
            if open.is_gone {
                return Err(gone());
            }
            open.next += 1;
            let id = open.next;
            open.waiting.insert(id, tell);
            id
        };
        let _ticket = Ticket { peer: self, id };
        self.writer.send(Message::request(self.id(id), method, params)).await.map_err(|_| gone())?;
        told.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Takes an answer of its in. Whether it was to a request of ours.
    pub fn answered(&self, id: &Value, outcome: Result<Value, RpcError>) -> bool {
        let Some(number) = self.number(id) else { return false };
        let waiting = self.open().waiting.remove(&number);
        // One that comes when nobody waits any more is still nobody else's, where ids tell whose it is.
        let is_ours = waiting.is_some() || self.name.is_some();
        // Whoever has stopped waiting needs no answer.
        waiting.map(|tell| tell.send(outcome).ok());
        is_ours
    }

    /// There will be no more answers.
    pub fn hang_up(&self) {
        let mut open = self.open();
        open.is_gone = true;
        open.waiting.clear();
    }

    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.peer.open().waiting.remove(&self.id).is_none() {
            return;
        }
        let (writer, params) = (self.peer.writer.clone(), json!({ "requestId": self.peer.id(self.id) }));
        tokio::spawn(async move {
            // If the other side is gone, there is nothing to cancel.
            writer.send(Message::notification("$/cancel_request", params)).await.ok();
        });
    }
}

fn gone() -> RpcError {
    RpcError::new(RpcError::INTERNAL, "the other side has gone").with_reason("gone")
}
