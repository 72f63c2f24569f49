//! Reads a prompt: text from the arguments or stdin, and attached files. All of it is read, or the command fails.

use std::io::IsTerminal;
use std::path::Path;

use retake_agent::attachment;
use retake_engine::session::entry::Part;

use crate::agent::AgentError;
use crate::failure::Result;

/// What is said: a text, `-` for stdin, and files beside it.
pub fn parts(prompt: &str, attached: &[String]) -> Result<Vec<Part>> {
    let mut stdin = None;
    let mut read_stdin = || -> std::io::Result<Vec<u8>> {
        if stdin.is_none() {
            let typed = std::io::stdin().is_terminal();
            stdin = Some(if typed { Vec::new() } else { attachment::take(std::io::stdin())? });
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
        let refuse = |why: String| AgentError::Attachment { path: path.clone(), why };
        let (name, bytes) = match path.as_str() {
            "-" => ("stdin", read_stdin()),
            path => (path, attachment::read(Path::new(path))),
        };
        let bytes = bytes.map_err(|err| refuse(err.to_string()))?;
        parts.push(attachment::part(name, bytes).map_err(|err| refuse(err.to_string()))?);
    }
    Ok(parts)
}

/// What was read as a prompt; all of it, or nothing.
fn prompt_text(bytes: Vec<u8>) -> Result<String, AgentError> {
    let refuse = |why: &str| AgentError::Attachment { path: "-".to_owned(), why: why.to_owned() };
    if bytes.len() as u64 > attachment::MAX_BYTES {
        return Err(refuse(&attachment::NotAttachable::TooLarge.to_string()));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is no text"))
}
