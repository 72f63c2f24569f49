//! Content blocks, and the parts of prompts and results that they stand for.

use std::path::Path;

use retake_agent::attachment;
use retake_engine::session::entry::Part;
use serde_json::{Value, json};

use crate::wire::RpcError;

/// A text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The parts that a prompt's blocks are. A link to a file of this machine becomes the file, if it can be shown to a model.
pub(crate) fn parts(blocks: &[Value]) -> Result<Vec<Part>, RpcError> {
    blocks.iter().map(part).collect()
}

fn part(block: &Value) -> Result<Part, RpcError> {
    let field = |name: &str| {
        let value = block.get(name).and_then(Value::as_str);
        value.ok_or_else(|| RpcError::invalid_params(format!("a content block lacks `{name}`")))
    };
    match field("type")? {
        "text" => Ok(Part::text(field("text")?)),
        "image" => Ok(Part::Image { media_type: field("mimeType")?.to_owned(), data: field("data")?.to_owned() }),
        "resource_link" => Ok(linked(field("uri")?, field("name")?)),
        "resource" => embedded(block.get("resource").unwrap_or(&Value::Null)),
        other => Err(RpcError::invalid_params(format!("content of type `{other}` is not supported"))),
    }
}

/// What a link leads to; the link itself, where that cannot be shown.
fn linked(uri: &str, name: &str) -> Part {
    let path = file_path(uri);
    let content = path.as_deref().filter(|path| Path::new(path).is_file());
    let content = content.and_then(|path| attachment::read(Path::new(path)).ok().map(|bytes| (path, bytes)));
    let part = content.and_then(|(path, bytes)| attachment::part(path, bytes).ok());
    part.unwrap_or_else(|| Part::text(format!("[{name}]({})", path.as_deref().unwrap_or(uri))))
}

fn embedded(resource: &Value) -> Result<Part, RpcError> {
    let field = |name: &str| resource.get(name).and_then(Value::as_str);
    let uri = field("uri").ok_or_else(|| RpcError::invalid_params("an embedded resource lacks `uri`"))?;
    let name = file_path(uri).unwrap_or_else(|| uri.to_owned());
    match (field("text"), field("blob"), field("mimeType")) {
        (Some(text), ..) => Ok(Part::File { path: name, text: text.to_owned() }),
        (None, Some(data), Some(media_type)) if media_type.starts_with("image/") => {
            Ok(Part::Image { media_type: media_type.to_owned(), data: data.to_owned() })
        }
        _ => Err(RpcError::invalid_params(format!("`{uri}` is neither text nor an image"))),
    }
}

/// The path that a `file:` address names.
fn file_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['#', '?']).next().unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let coded = after.get(..2).filter(|_| *first == b'%').and_then(|two| str::from_utf8(two).ok());
        match coded.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// The address of a file.
fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// The blocks that parts are.
pub(crate) fn blocks(root: &Path, parts: &[Part]) -> Vec<Value> {
    let block = |part: &Part| match part {
        Part::Text { text: said } | Part::Paste { text: said } => text(said),
        Part::File { path, text } => {
            let uri = file_uri(&root.join(path).to_string_lossy());
            json!({ "type": "resource", "resource": { "uri": uri, "text": text } })
        }
        Part::Image { media_type, data } => json!({ "type": "image", "mimeType": media_type, "data": data }),
    };
    parts.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_file_is_its_path_and_back() {
        let path = "/a b/\u{e9}#%.txt";
        assert_eq!(file_path(&file_uri(path)).as_deref(), Some(path));
        assert_eq!(file_path("file:///a.rs#L1:20").as_deref(), Some("/a.rs"));
        assert_eq!(file_path("https://example.org/"), None);
    }

    #[test]
    fn blocks_become_parts_and_what_cannot_is_named() {
        let blocks = [
            text("hello"),
            json!({ "type": "resource", "resource": { "uri": "file:///x/a.txt", "text": "one" } }),
            json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }),
            json!({ "type": "resource_link", "uri": "https://example.org/x", "name": "x" }),
        ];
        let parts = parts(&blocks).expect("they are parts");
        assert_eq!(parts[0], Part::text("hello"));
        assert_eq!(parts[1], Part::File { path: "/x/a.txt".into(), text: "one".into() });
        assert_eq!(parts[3], Part::text("[x](https://example.org/x)"));
        assert!(super::parts(&[json!({ "type": "audio" })]).expect_err("it is none").message.contains("audio"));
    }
}
