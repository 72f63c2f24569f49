//! The draft, and prompts that are queued while a turn runs.
//!
//! The draft is stored with the session, so a crash loses neither. A queued prompt that cannot start goes back into the draft.

use retake_engine::session::entry::Part;
use retake_engine::session::joined;

use super::publish::in_words;
use super::{Controller, QueuedPrompt, Terms, refusal};
use crate::contract::{EventKind, Reason, Refusal, Reply};
use crate::limits;

impl Controller {
    /// Keeps a prompt until the turn has ended; `left` is still about to be said.
    pub(super) fn hold(&mut self, parts: Vec<Part>, left: Vec<Part>, terms: Terms) -> Result<Reply, Refusal> {
        if limits::MAX_HELD <= self.held.len() {
            return Err(refusal(Reason::Running, "a turn is running, and too many prompts are held already"));
        }
        let request = self.publisher.request.clone();
        self.held.push_back(QueuedPrompt { request: request.clone(), parts, terms });
        self.store_draft(left).inspect_err(|_| drop(self.held.pop_back()))?;
        let count = self.held.len();
        self.publish(EventKind::Held { count });
        Ok(Reply::Held { count, request })
    }

    /// Takes a prompt back that is held: it is not said, and not about to be.
    pub(super) fn withdraw(&mut self, request: &str) -> Result<Reply, Refusal> {
        let is_it = |held: &QueuedPrompt| held.request.as_deref() == Some(request);
        let Some(at) = self.held.iter().rposition(is_it) else {
            return Err(refusal(Reason::NotFound, "no prompt of this request is held; it may have been said already"));
        };
        let held = self.held.remove(at).expect("it was found there");
        if let Err(refusal) = self.store_draft(self.draft.clone()) {
            self.held.insert(at, held);
            return Err(refusal);
        }
        let count = self.held.len();
        self.publish(EventKind::Held { count });
        Ok(Reply::Done)
    }

    /// Says what was held first; whatever the user is about to say stays.
    pub(super) fn say_held(&mut self) {
        let Some(QueuedPrompt { request, parts, terms }) = self.held.pop_front() else { return };
        let count = self.held.len();
        self.publish(EventKind::Held { count });
        self.publisher.request = request;
        if let Err(refusal) = self.begin_turn(parts.clone(), self.draft.clone(), terms) {
            self.publish(EventKind::Warning { text: refusal.message });
            self.publish(EventKind::Returned);
            self.store_draft(joined([parts, self.draft.clone()])).ok();
            self.return_held();
        }
    }

    /// Makes held prompts what the user is about to say, before whatever that is.
    pub(super) fn return_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let draft = self.with_held(self.draft.clone());
        let returned = std::mem::take(&mut self.held);
        self.store_draft(draft).ok();
        self.publish(EventKind::Held { count: 0 });
        // Whoever waits for its turn waits in vain.
        let asking = self.publisher.request.take();
        for held in returned {
            self.publisher.request = held.request;
            self.publish(EventKind::Returned);
        }
        self.publisher.request = asking;
    }

    /// Goes on with what an operation has made the stored draft, which was `before`, and with what would be lost by that.
    pub(super) fn take_draft(&mut self, before: &[Part], lost: Vec<Part>) {
        let stored = self.writer().draft().to_vec();
        if stored == before || lost.is_empty() {
            self.draft = stored;
            return self.publish_draft();
        }
        self.store_draft(joined([stored, lost])).ok();
    }

    pub(super) fn set_draft(&mut self, parts: Vec<Part>) -> Result<Reply, Refusal> {
        self.store_draft(parts)?;
        Ok(Reply::Done)
    }

    pub(super) fn store_draft(&mut self, parts: Vec<Part>) -> Result<(), Refusal> {
        let stored = self.with_held(parts.clone());
        self.writer_mut().set_draft(stored).map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.draft = parts;
        self.publish_draft();
        Ok(())
    }

    /// What is held, and then `draft`.
    pub(super) fn with_held(&self, draft: Vec<Part>) -> Vec<Part> {
        joined(self.held.iter().map(|held| held.parts.clone()).chain([draft]))
    }
}
