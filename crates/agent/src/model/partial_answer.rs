//! The part of a model's answer that arrived before it was interrupted.
//!
//! A listener can stop asking at any time by dropping the future; [`PartialAnswer`] then has what is worth keeping. It never has a tool call:
//! a call that will not run must not be in the conversation.

use retake_engine::session::entry::Block;

use super::Delta;

/// Collects deltas into the blocks of an answer that may be cut.
#[derive(Clone, Debug, Default)]
pub struct PartialAnswer {
    finished: Vec<Block>,
    text: String,
    reasoning: String,
}

impl PartialAnswer {
    /// Takes the next delta.
    pub fn hear(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(text) => self.reasoning.push_str(text),
            Delta::CallBegan(_) => {}
            Delta::Finished(block) => {
                match block {
                    Block::Text { .. } => self.text.clear(),
                    Block::Reasoning { .. } => self.reasoning.clear(),
                    Block::Call { .. } => return,
                }
                self.finished.push(block.clone());
            }
        }
    }

    /// The blocks, without calls. A thought that was cut has nothing that could be given back to the provider.
    pub fn blocks(self) -> Vec<Block> {
        let mut blocks = self.finished;
        if !self.reasoning.is_empty() {
            blocks.push(Block::Reasoning { text: self.reasoning, opaque: String::new() });
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use retake_engine::session::entry::CallId;

    use super::*;

    #[test]
    fn finished_blocks_stand_for_their_pieces_and_calls_are_left_out() {
        let thought = Block::Reasoning { text: "hm".into(), opaque: "{}".into() };
        let call = Block::Call { id: CallId("1".into()), name: "bash".into(), arguments: "{}".into() };
        let mut heard = PartialAnswer::default();
        for delta in [
            Delta::Reasoning("h".into()),
            Delta::Reasoning("m".into()),
            Delta::Finished(thought.clone()),
            Delta::CallBegan("bash".into()),
            Delta::Finished(call),
            Delta::Text("I wi".into()),
            Delta::Text("ll".into()),
        ] {
            heard.hear(&delta);
        }
        assert_eq!(heard.blocks(), [thought, Block::Text { text: "I will".into() }]);
    }
}
