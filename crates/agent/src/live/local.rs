//! Listens to a session in this process.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};

use super::Notification;
use crate::contract::Event;
use crate::controller::{Attached, Beginning, Handle};

/// Takes in what a session tells after event number `seen`, until it ends or nobody wants to know.
pub(super) async fn listen(
    handle: Handle,
    mut events: broadcast::Receiver<Arc<Event>>,
    mut seen: u64,
    tell: mpsc::UnboundedSender<Notification>,
) {
    loop {
        let told = match events.recv().await {
            Ok(event) => vec![Notification::Event(event)],
            Err(broadcast::error::RecvError::Closed) => return,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let Ok(Attached { beginning, events: again }) = handle.attach(Some(seen)).await else { return };
                events = again;
                match beginning {
                    Beginning::View(view) => vec![Notification::Missed(view)],
                    Beginning::Missed(missed) => missed.into_iter().map(Notification::Event).collect(),
                }
            }
        };
        for told in told {
            match &told {
                Notification::Event(event) => seen = event.seq,
                Notification::Missed(view) => seen = view.seq,
                Notification::Over(_) => {}
            }
            if tell.send(told).is_err() {
                return;
            }
        }
    }
}
