//! Entry points for the fuzzers in `fuzz/`: one function per decoder of this crate, each takes any bytes.
//!
//! A function panics when a property fails: see each.

use serde_json::{Value, json};

use crate::proxy::json_edit;
use crate::wire::{Incoming, Message, Reader};

/// The limit to a line: short, so that lines beyond it occur.
const LIMIT: usize = 256;

/// Lines of the Agent Client Protocol: the reader reports every line once and in order, a message that decodes encodes to one that decodes
/// to the same, and an edit changes one value.
pub fn acp_line(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers starts");
    let mut reader = Reader::with_limit(bytes, LIMIT);
    let mut reported = 0;
    while let Some(incoming) = runtime.block_on(reader.next()).expect("reading from memory does not fail") {
        reported += match incoming {
            Incoming::Message { line, message } => {
                check_message(&line, message);
                line.len()
            }
            Incoming::Garbage { line, .. } | Incoming::Half { line } => line.len(),
            Incoming::TooLong { bytes, .. } => bytes,
        };
    }
    assert!(reported <= bytes.len());
}

fn check_message(line: &[u8], message: Message) {
    let again = message.clone().into_line();
    assert_eq!(Message::parse(again.trim_ascii_end()).ok(), Some(message));
    let edited = json_edit::put(line, &["params", "_meta", "fuzz"], &json!(7));
    let (Ok(before), Ok(after)) = (serde_json::from_slice::<Value>(line), serde_json::from_slice::<Value>(&edited))
    else {
        return;
    };
    let taken = |mut value: Value| {
        let params = value.as_object_mut().and_then(|fields| fields.remove("params"));
        (value, params)
    };
    assert_eq!(taken(before).0, taken(after).0, "only `params` is edited");
}
