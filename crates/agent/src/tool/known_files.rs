//! Which files the model knows, by what it still sees of the conversation. Reads the disk only to follow links.

use std::collections::HashMap;
use std::path::PathBuf;

use retake_engine::session::Conversation;
use retake_engine::session::context::Message;
use retake_engine::session::entry::{Block, Outcome, Part};
use serde_json::Value;

use super::file::ShownContent;
use super::path::PathResolver;

/// What the conversation shows of each file, by its real path: the last word counts. Whether that is still true, the disk tells.
pub(super) fn told(places: &PathResolver, conversation: &Conversation) -> HashMap<PathBuf, ShownContent> {
    let context = conversation.context();
    let mut told = HashMap::new();
    for pair in context.messages.windows(2) {
        let [Message::Assistant { blocks, .. }, Message::Results { results }] = pair else { continue };
        for block in blocks.iter() {
            let Block::Call { id, name, arguments } = block else { continue };
            let result = results.iter().find(|result| *result.call == *id && result.outcome == Outcome::Done);
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let heard = result.and_then(|result| hear(name, &arguments, &result.parts));
            let path = arguments.get("path").and_then(Value::as_str).and_then(|path| places.to_read(path).ok());
            told.extend(path.zip(heard));
        }
    }
    told
}

fn hear(tool: &str, arguments: &Value, parts: &[Part]) -> Option<ShownContent> {
    match (tool, parts) {
        ("read_file", [Part::Text { text }]) => Some(ShownContent::Read(text.clone())),
        ("write_file", _) => Some(ShownContent::Wrote(arguments.get("content")?.as_str()?.to_owned())),
        _ => None,
    }
}
