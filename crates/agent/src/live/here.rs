//! Listening to a session in this process.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};

use super::Told;
use crate::contract::Event;
use crate::controller::{Attached, Beginning, Handle};

/// Takes in what a session tells after event number `seen`, until it ends or nobody wants to know.
pub(super) async fn listen(
    handle: Handle,
    mut events: broadcast::Receiver<Arc<Event>>,
    mut seen: u64,
    tell: mpsc::UnboundedSender<Told>,
) {
    loop {
        let told = match events.recv().await {
            Ok(event) => vec![Told::Event(event)],
            Err(broadcast::error::RecvError::Closed) => return,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let Ok(Attached { beginning, events: again }) = handle.attach(Some(seen)).await else { return };
                events = again;
                match beginning {
                    Beginning::View(view) => vec![Told::Missed(view)],
                    Beginning::Missed(missed) => missed.into_iter().map(Told::Event).collect(),
                }
            }
        };
        for told in told {
            match &told {
                Told::Event(event) => seen = event.seq,
                Told::Missed(view) => seen = view.seq,
                Told::Over(_) => {}
            }
            if tell.send(told).is_err() {
                return;
            }
        }
    }
}
