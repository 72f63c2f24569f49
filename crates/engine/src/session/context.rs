//! The context: what the model is to be told, made from the retained entries alone.
//!
//! [`build`] is a pure function, and a prefix of the entries that ends between turns gives a prefix of the messages: nothing that
//! was said once is said differently later.

use super::entry::{Block, Body, CallId, Entry, Outcome, Part};

/// What the model is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Instructions of Retake itself.
    pub system: String,
    /// Everything else, in order.
    pub messages: Vec<Message>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// From the user, or from Retake.
    User {
        /// In order.
        parts: Vec<Part>,
    },
    /// An answer of the model.
    Assistant {
        /// In order.
        blocks: Vec<Block>,
        /// The model that gave it, as `provider/name`: what it thought makes sense to that provider only.
        model: String,
    },
    /// What came of the calls of the answer before it, of all of them.
    Results {
        /// In the order of the calls.
        results: Vec<CallResult>,
    },
}

/// What came of one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The call.
    pub call: CallId,
    /// How it went.
    pub outcome: Outcome,
    /// What the model is told.
    pub parts: Vec<Part>,
}

/// Makes the context of `entries`, which are all from the first one to the head.
pub fn build(entries: &[Entry]) -> Context {
    let mut context = Context::default();
    for entry in entries {
        add(&mut context, entries, entry);
    }
    context
}

fn add(context: &mut Context, entries: &[Entry], entry: &Entry) {
    let _ = entries;
    match &entry.body {
        Body::Prompt { parts } => context.messages.push(Message::User { parts: parts.clone() }),
        Body::Reply { blocks, model, .. } => {
            context.messages.push(Message::Assistant { blocks: blocks.clone(), model: model.clone() });
        }
        _ => {}
    }
}
