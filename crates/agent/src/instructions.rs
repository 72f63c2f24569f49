//! What the model is told to begin with.
//!
//! It becomes part of the log, so that a later version of Retake, or a later version of a file, changes nothing of what was said before.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use retake_engine::session::Conversation;
use retake_engine::session::context::RETAKE;
use retake_engine::session::entry::Body;

use crate::limits;

/// Files of the workspace that have instructions for the model.
const FILES: [&str; 1] = ["AGENTS.md"];

/// What is told of a file that is gone: it follows the words that there are instructions in it.
const GONE: &str = "(None any more: the file is gone, and what it said holds no longer.)";

/// What is to be written before the next prompt, and what people are to be told of it.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// Instructions that the conversation does not have yet, or not as they are now.
    pub(crate) bodies: Vec<Body>,
    /// Why a file of instructions is passed over.
    pub(crate) warnings: Vec<String>,
}

/// What is to be written before the next prompt.
pub(crate) fn missing(conversation: &Conversation, root: &Path) -> Missing {
    let mut missing = Missing::default();
    let general = match told(conversation, RETAKE) {
        None => Some(general(root)),
        Some(told) if !told.contains(&place(root)) => Some(moved(root)),
        Some(_) => None,
    };
    let instructions = |source: &str, text| Body::Instructions { source: source.to_owned(), text };
    missing.bodies.extend(general.map(|text| instructions(RETAKE, text)));
    for file in FILES {
        let told = told(conversation, file);
        let found = match inside(root, file) {
            Some(path) => read(&path),
            None => {
                missing
                    .warnings
                    .push(format!("`{file}` is a link that leads out of the workspace, and is not followed"));
                None
            }
        };
        let text = match found {
            Some(text) => text,
            None if told.is_some() => GONE.to_owned(),
            None => continue,
        };
        if told != Some(&text) {
            missing.bodies.push(instructions(file, text));
        }
    }
    missing
}

/// Where a file of the workspace really is; `None` if a link leads out of it.
fn inside(root: &Path, file: &str) -> Option<PathBuf> {
    let path = root.join(file);
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => real.starts_with(root).then_some(real),
        // It is not there, or leads nowhere: whoever reads it finds out.
        _ => Some(path),
    }
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

/// How the workspace is named.
fn place(root: &Path) -> String {
    format!("in the directory `{}`", root.display())
}

/// What is told when the workspace is no longer where it was said to be.
fn moved(root: &Path) -> String {
    format!(
        "The workspace was moved: you work {} now. Wherever an earlier directory of it was named, this one is meant.",
        place(root)
    )
}

fn general(root: &Path) -> String {
    format!(
        "You are a coding agent that works {} on {}. You have tools to read, search and edit files there and to run \
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
        place(root),
        std::env::consts::OS,
    )
}

#[cfg(test)]
mod tests {
    use retake_engine::Timestamp;
    use retake_engine::id::EntryId;
    use retake_engine::session::entry::Entry;

    use super::*;

    fn texts(missing: &Missing) -> Vec<&str> {
        missing
            .bodies
            .iter()
            .map(|body| match body {
                Body::Instructions { text, .. } => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn after_a_move_the_model_is_told_where_it_works() {
        let mut conversation = Conversation::default();
        let add = |conversation: &mut Conversation, bodies: Vec<Body>| {
            let mut entries = conversation.entries().to_vec();
            for body in bodies {
                let parent = entries.last().map(|entry: &Entry| entry.id);
                let number = u8::try_from(entries.len()).expect("a few");
                entries.push(Entry { id: EntryId::new([number; 10]), parent, at: Timestamp(0), body });
            }
            *conversation = Conversation::new(entries);
        };
        for (root, words) in [
            ("/old", "works in the directory `/old`"),
            ("/new", "work in the directory `/new` now"),
            ("/old", "work in the directory `/old` now"),
        ] {
            let missing = missing(&conversation, Path::new(root));
            assert_eq!(texts(&missing).len(), 1);
            assert!(texts(&missing)[0].contains(words), "{missing:?}");
            add(&mut conversation, missing.bodies);
            assert!(super::missing(&conversation, Path::new(root)).bodies.is_empty(), "once");
        }
        assert!(conversation.context().system.contains("`/new` now"), "and what was said before stays");
    }
}
