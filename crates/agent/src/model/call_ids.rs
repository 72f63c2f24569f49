//! Call ids as a provider accepts them.
//!
//! An id is whatever the model gave, unique within its reply only. Providers want them unique in the whole conversation and of few
//! kinds of characters, so an id that would be refused is told differently; which ones depends on what is before them alone.

use std::collections::{HashMap, HashSet};

use retake_engine::session::entry::{Block, CallId};

use crate::ids;

/// OpenAI refuses longer ones.
const MAX_ID: usize = 40;

/// The ids told so far, and those of the last answer.
#[derive(Default)]
pub(super) struct WireIds<'a> {
    told: HashSet<String>,
    last: HashMap<&'a str, String>,
    answers: usize,
}

impl<'a> WireIds<'a> {
    /// Takes the calls of the next answer.
    pub(super) fn enter(&mut self, blocks: &'a [Block]) {
        self.answers += 1;
        self.last.clear();
        for block in blocks {
            if let Block::Call { id: CallId(id), .. } = block {
                let wire = self.choose(id);
                self.told.insert(wire.clone());
                self.last.insert(id, wire);
            }
        }
    }

    /// The id to send for `id` of the last answer.
    pub(super) fn of(&self, id: &CallId) -> String {
        self.last.get(id.0.as_str()).cloned().unwrap_or_else(|| id.0.clone())
    }

    fn choose(&self, id: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !id.is_empty() && id.len() <= MAX_ID && id.chars().all(is_plain) && !self.told.contains(id) {
            return id.to_owned();
        }
        let plain: String = id.chars().take(MAX_ID / 2).map(|c| if is_plain(c) { c } else { '_' }).collect();
        let numbered = |n: usize| format!("{plain}_{}_{n}", self.answers);
        (0..).map(numbered).find(|wire| !self.told.contains(wire)).expect("there are more numbers than calls")
    }
}

/// A new id, for a call that came without one.
pub(super) fn mint() -> String {
    let digits: String = ids::random().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("call_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Block {
        Block::Call { id: CallId(id.into()), name: "bash".into(), arguments: "{}".into() }
    }

    #[test]
    fn good_ids_stay_and_the_others_become_good_and_unique() {
        let (one, two) = ([call("toolu_1"), call("functions.bash:0")], [call("toolu_1")]);
        let mut ids = WireIds::default();
        ids.enter(&one);
        assert_eq!(ids.of(&CallId("toolu_1".into())), "toolu_1");
        assert_eq!(ids.of(&CallId("functions.bash:0".into())), "functions_bash_0_1_0");
        ids.enter(&two);
        assert_eq!(ids.of(&CallId("toolu_1".into())), "toolu_1_2_0");
    }

    #[test]
    fn minted_ids_differ() {
        assert_ne!(mint(), mint());
    }
}
