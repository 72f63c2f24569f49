//! What a session tells, as server-sent events to one client.
//!
//! There is no queue: a piece is fetched when the one before it has been taken. A client that does not read keeps its place only until
//! the connection's own deadline; when it comes back it says which event it saw last, and goes on from there.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep;

use crate::event_buffer::Chunk;
use crate::sessions::Entered;

/// Browsers send it when they come back.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The last event when the stream began: what comes up to it is no news.
pub(crate) const NOW: HeaderName = HeaderName::from_static("x-retake-seq");
/// The first line: how long to wait before coming back, in milliseconds.
const GREETING: &[u8] = b"retry: 1000\n\n";
/// Says that the stream is there.
const HEARTBEAT: &[u8] = b":\n\n";

/// The last event that a client has seen, if it says.
pub(crate) fn last_seen(headers: &HeaderMap, from: Option<&str>) -> Option<u64> {
    let named = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok()).or(from)?;
    named.parse().ok()
}

/// Begins to tell a client what happens after event number `seen`.
pub(crate) fn begin(
    entered: Entered,
    seen: Option<u64>,
    place: OwnedSemaphorePermit,
    heartbeat: Duration,
) -> mpsc::Receiver<Bytes> {
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        tell_all(&entered, seen, &tell, heartbeat).await;
        drop(place);
    });
    told
}

async fn tell_all(entered: &Entered, mut seen: Option<u64>, tell: &mpsc::Sender<Bytes>, heartbeat: Duration) {
    let events = entered.events();
    let mut news = events.news();
    if tell.send(Bytes::from_static(GREETING)).await.is_err() {
        return;
    }
    loop {
        // Before it is looked at: what comes afterwards is news again.
        news.mark_unchanged();
        match events.read(&mut seen) {
            Chunk::More(bytes) => {
                if tell.send(bytes).await.is_err() {
                    return;
                }
            }
            Chunk::Last(bytes) => return drop(tell.send(bytes).await),
            Chunk::Nothing => tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                () = tell.closed() => return,
                () = sleep(heartbeat) => {
                    if tell.send(Bytes::from_static(HEARTBEAT)).await.is_err() {
                        return;
                    }
                }
            },
        }
    }
}
