//! What a prompt consists of: text typed or read from stdin, and files beside it. All of it is taken, or nothing.

use std::io::{IsTerminal, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_engine::session::entry::Part;

use crate::agent::AgentError;

/// Largest file that can be attached.
const MAX_ATTACHMENT: u64 = 5 << 20;

/// What is said: a text, `-` for stdin, and files beside it.
pub fn parts(prompt: &str, attached: &[String]) -> anyhow::Result<Vec<Part>> {
    let mut stdin = None;
    let mut read_stdin = || -> std::io::Result<Vec<u8>> {
        if stdin.is_none() {
            let mut bytes = Vec::new();
            if !std::io::stdin().is_terminal() {
                std::io::stdin().take(MAX_ATTACHMENT + 1).read_to_end(&mut bytes)?;
            }
            stdin = Some(bytes);
        }
        Ok(stdin.clone().unwrap_or_default())
    };
    let text = match prompt {
        "-" => prompt_text(read_stdin()?)?,
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(AgentError::NoPrompt.into());
    }
    let mut parts = vec![Part::text(text)];
    for path in attached {
        let bytes = if path == "-" { read_stdin() } else { read(Path::new(path)) };
        let bytes = bytes.map_err(|err| AgentError::Attachment { path: path.clone(), why: err.to_string() })?;
        parts.push(attachment(path, bytes)?);
    }
    Ok(parts)
}

/// What was read as a prompt; all of it, or nothing.
fn prompt_text(bytes: Vec<u8>) -> Result<String, AgentError> {
    let refuse = |why: &str| AgentError::Attachment { path: "-".to_owned(), why: why.to_owned() };
    if bytes.len() as u64 > MAX_ATTACHMENT {
        return Err(refuse("it is larger than 5 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is no text"))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_ATTACHMENT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file as a part of a prompt.
fn attachment(path: &str, bytes: Vec<u8>) -> Result<Part, AgentError> {
    let refuse = |why: &str| AgentError::Attachment { path: path.to_owned(), why: why.to_owned() };
    if bytes.len() as u64 > MAX_ATTACHMENT {
        return Err(refuse("it is larger than 5 MiB"));
    }
    let image = [
        (0, &b"\x89PNG"[..], "image/png"),
        (0, &b"\xff\xd8\xff"[..], "image/jpeg"),
        (0, &b"GIF8"[..], "image/gif"),
        (8, &b"WEBPVP8"[..], "image/webp"),
    ];
    let is_at = |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(magic));
    if let Some((_, _, media_type)) = image.iter().find(|(at, magic, _)| is_at(*at, magic)) {
        return Ok(Part::Image { media_type: (*media_type).to_owned(), data: STANDARD.encode(bytes) });
    }
    let name = if path == "-" { "stdin" } else { path };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Part::File { path: name.to_owned(), text }),
        Err(_) => Err(refuse("it is neither text nor an image")),
    }
}
