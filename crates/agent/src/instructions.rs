//! What the model is told to begin with.
//!
//! It becomes part of the log, so that a later version of Retake, or a later version of a file, changes nothing of what was said before.

use std::fs;
use std::io::Read;
use std::path::Path;

use retake_engine::session::Conversation;
use retake_engine::session::context::RETAKE;
use retake_engine::session::entry::Body;

use crate::limits;

/// Files of the workspace that have instructions for the model.
const FILES: [&str; 1] = ["AGENTS.md"];

/// What is told of a file that is gone.
const GONE: &str = "The file is gone: what it said holds no longer.";

/// What is to be written before the next prompt: instructions that the conversation does not have yet, or not as they are now.
pub(crate) fn missing(conversation: &Conversation, root: &Path) -> Vec<Body> {
    let mut missing = Vec::new();
    if told(conversation, RETAKE).is_none() {
        missing.push(Body::Instructions { source: RETAKE.to_owned(), text: general(root) });
    }
    for file in FILES {
        let told = told(conversation, file);
        let text = match read(&root.join(file)) {
            Some(text) => text,
            None if told.is_some() => GONE.to_owned(),
            None => continue,
        };
        if told != Some(&text) {
            missing.push(Body::Instructions { source: file.to_owned(), text });
        }
    }
    missing
}

/// What the conversation says last of `wanted`.
fn told<'a>(conversation: &'a Conversation, wanted: &str) -> Option<&'a String> {
    conversation.entries().iter().rev().find_map(|entry| match &entry.body {
        Body::Instructions { source, text } if source == wanted => Some(text),
        _ => None,
    })
}

/// A file's text, cut if it is too long; `None` if there is no such file, or it is no text.
fn read(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(limits::MAX_INSTRUCTIONS + 1).read_to_end(&mut bytes).ok()?;
    let is_cut = bytes.len() as u64 > limits::MAX_INSTRUCTIONS;
    bytes.truncate(usize::try_from(limits::MAX_INSTRUCTIONS).unwrap_or(usize::MAX));
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Cutting may have split the last character.
        Err(err) if is_cut && err.utf8_error().error_len().is_none() => {
            let whole = err.utf8_error().valid_up_to();
            let mut bytes = err.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).ok()?
        }
        Err(_) => return None,
    };
    if is_cut {
        text.push_str("\n[the rest of the file was left out]");
    }
    (!text.trim().is_empty()).then_some(text)
}

fn general(root: &Path) -> String {
    format!(
        "You are a coding agent that works in the directory `{}` on {}. You have tools to read, search and edit files there and to run \
         shell commands.

How to work:
- Find out before you change: read the files that matter, search for uses, look at how the project does things, and follow its conventions.
- Make the change that was asked for, whole, and nothing else. Keep the style of the code around it.
- Prefer the edit tools for changing files; they say exactly what went wrong. Use `bash` to build, test and explore.
- After a change run what checks it: the tests, the build, the linter. If something fails, find the cause and mend it; do not hide it.
- For work of more than a few steps keep a list with `todo`, and keep it true.
- Independent calls that only read can be made at once, in one answer.
- Commands run without a terminal and cannot ask questions; do not start editors or pagers. Start servers and watchers as background jobs.
- Never commit, push, or delete what you did not create unless you were asked to.

How to answer:
- Be brief and concrete. Say what you did and what you found out, name files and lines, and say plainly what you did not do or could not \
         check.
- Files and the conversation can be taken back by the user to any earlier point. A note between <retake-note> and </retake-note> comes \
         from the program, not from the user, and tells you what is true now; believe it rather than what you remember.",
        root.display(),
        std::env::consts::OS,
    )
}
