//! Continues after the pump has missed events, because the session published more than is kept.
//!
//! Compares the session's view with what the client was sent, and sends the difference. Prompts whose answers were among the missed events
//! are answered, so that no request of the client stays open.

use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::session::entry::Body;
use serde_json::{Map, json};

use super::{Goes, Pump, ended_in, running};
use crate::agent::Version;
use crate::agent::session::{Delivered, PendingPrompt};

impl Pump {
    /// Tells the client what differs, and answers what was answered meanwhile.
    pub(super) async fn resync(&mut self, view: Box<View>) {
        let before = std::mem::replace(&mut self.session.known().view, *view);
        self.tell_of_cut(&before, Goes::On).await;
        let now = self.session.known().view.clone();
        let mut begun: Vec<EntryId> = self.session.known().running.into_iter().collect();
        begun.extend(self.claim(&before, &now).await);
        let runs = running(&now);
        for prompt in begun {
            if Some(prompt) != self.session.known().running {
                self.session.known().running = Some(prompt);
                self.session.state("running", Map::new()).await;
            }
            if runs != Some(prompt) {
                self.end_turn(prompt, None, &ended_in(&now, prompt)).await;
            }
        }
        if now.held == 0 {
            self.give_back_unheard().await;
        }
        now.questions.iter().for_each(|question| self.ask(question));
        self.session.tell_how_far(Delivered::of(&now, None));
    }

    /// Finds the prompts of this client that were said meanwhile, oldest first. By what they say: the events with their requests are gone.
    async fn claim(&self, before: &View, now: &View) -> Vec<EntryId> {
        let mut pending = self.session.pending.lock().await;
        let mut begun = Vec::new();
        let same = before.entries.iter().zip(&now.entries).take_while(|(before, now)| before.id == now.id).count();
        for entry in &now.entries[same..] {
            let Body::Prompt { parts } = &entry.body else { continue };
            if let Some(one) = pending.iter_mut().find(|one| one.prompt.is_none() && one.parts == *parts) {
                one.prompt = Some(entry.id);
                begun.push(entry.id);
            }
        }
        let answered = |one: &PendingPrompt| one.prompt.is_some_and(|prompt| begun.contains(&prompt));
        if self.session.client.version == Version::V2 {
            for one in pending.extract_if(.., |one| answered(one)) {
                let message = one.prompt.map(|prompt| prompt.to_string());
                self.session.peer.answer(one.id, Ok(json!({ "messageId": message }))).await.ok();
            }
        }
        begun
    }

    /// Nothing is held any more, so what was held and not said will not be.
    async fn give_back_unheard(&self) {
        let unheard: Vec<String> = {
            let pending = self.session.pending.lock().await;
            let is_it = |one: &&PendingPrompt| one.was_held && one.prompt.is_none();
            pending.iter().filter(is_it).map(|one| one.request.clone()).collect()
        };
        for request in unheard {
            self.give_back(Some(&request)).await;
        }
    }
}
