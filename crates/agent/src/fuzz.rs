//! Entry points for the fuzzers in `fuzz/`: one function per decoder of this crate, each takes any bytes.
//!
//! A function panics when a property fails: see each.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract::{Event, Outgoing, Request, Response};
use crate::model::sse::Sse;

/// Server-sent events: the pieces in which bytes arrive do not change the events.
pub fn sse(bytes: &[u8]) {
    let Some((&size, stream)) = bytes.split_first() else { return };
    let whole = events([stream]);
    assert_eq!(events(stream.chunks(usize::from(size).max(1))), whole);
    let held: usize = whole.iter().map(String::len).sum();
    // A byte that is no UTF-8 becomes U+FFFD, which takes three.
    assert!(held <= 3 * stream.len(), "{} bytes stand for {held}", stream.len());
}

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut sse = Sse::default();
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(sse.push(piece).expect("no input of a fuzzer is too long"));
    }
    events.extend(sse.finish());
    events
}

/// The client contract: a document that decodes encodes to one that decodes to the same.
pub fn contract_json(bytes: &[u8]) {
    check::<Request>(bytes);
    check::<Response>(bytes);
    check::<Event>(bytes);
    check::<Outgoing>(bytes);
}

fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
    let again = serde_json::to_vec(&value).expect("it is JSON");
    let reread = serde_json::from_slice::<T>(&again);
    assert_eq!(reread.ok().as_ref(), Some(&value), "{}", String::from_utf8_lossy(&again));
}
