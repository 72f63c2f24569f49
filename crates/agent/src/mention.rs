//! Files that a prompt mentions as `@path`: they are shown to the model beside it.
//!
//! What is no file of the workspace, an address such as `me@example.org` or a name such as `@Override`, is left alone, and so is a file
//! that cannot be attached: the words stay as they were typed in any case, and the model can still read the file itself.

use std::collections::BTreeSet;
use std::path::Path;

use retake_engine::session::entry::Part;

use crate::attachment;
use crate::tool::PathResolver;

/// What may stand before an `@` that begins a mention, besides white space.
const BEFORE: [char; 8] = ['(', '[', '{', '<', '"', '\'', '`', ','];
/// What may follow a path without being a part of it.
const AFTER: [char; 13] = [')', ']', '}', '>', '"', '\'', '`', ',', '.', ';', ':', '!', '?'];

/// Appends the files that the texts among `parts` mention, in the order in which they are mentioned, each once and none that is there
/// already.
///
/// A path is relative to the workspace at `root` and ends at white space; in quotes, as in `@"a name.txt"`, it may contain some.
pub fn attach(root: &Path, mut parts: Vec<Part>) -> Vec<Part> {
    let places = PathResolver::new(root);
    let mut attached: BTreeSet<String> = parts.iter().filter_map(path_of).collect();
    let texts: Vec<String> = parts.iter().filter_map(text_of).collect();
    for mentioned in texts.iter().flat_map(|text| mentions(text)) {
        let Some(name) = mentioned.iter().find_map(|path| file(&places, path)) else { continue };
        if !attached.insert(name.clone()) {
            continue;
        }
        let content = attachment::read(&places.root().join(&name)).ok();
        let part = content.and_then(|bytes| attachment::part(&name, bytes).ok());
        // An image does not tell its path.
        parts.extend(part.filter(|part| !parts.contains(part)));
    }
    parts
}

fn path_of(part: &Part) -> Option<String> {
    match part {
        Part::File { path, .. } => Some(path.clone()),
        Part::Text { .. } | Part::Paste { .. } | Part::Image { .. } => None,
    }
}

fn text_of(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::Paste { .. } | Part::File { .. } | Part::Image { .. } => None,
    }
}

/// The path below the root of the file that `given` names; `None` if it is no file inside the workspace.
fn file(places: &PathResolver, given: &str) -> Option<String> {
    let real = places.to_read(given).ok()?;
    // A link that leads nowhere is no file; a pipe would be waited for.
    let is_file = std::fs::metadata(&real).is_ok_and(|metadata| metadata.is_file());
    let below = real.strip_prefix(places.root()).ok()?.to_str()?;
    is_file.then(|| below.to_owned())
}

/// What each mention in `text` may mean, the longest path first.
fn mentions(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let begins = |(at, _): &(usize, &str)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|before| before.is_whitespace() || BEFORE.contains(&before))
    };
    text.match_indices('@').filter(begins).map(|(at, _)| candidates(&text[at + 1..]))
}

/// What the path at the beginning of `rest` may be: quotes end it, else white space does, and what follows a sentence may not be meant.
fn candidates(rest: &str) -> Vec<&str> {
    if let Some((path, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        return vec![path];
    }
    let mut path = rest.split(char::is_whitespace).next().unwrap_or_default();
    let mut candidates = vec![path];
    while let Some(shorter) = path.strip_suffix(AFTER) {
        candidates.push(shorter);
        path = shorter;
    }
    candidates.retain(|path| !path.is_empty());
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_begins_a_word_and_ends_before_punctuation() {
        let found = |text: &'static str| mentions(text).map(|all| all.join(" ")).collect::<Vec<_>>();
        assert_eq!(found("see @a.txt, (@b/c.rs)."), ["a.txt, a.txt", "b/c.rs). b/c.rs) b/c.rs"]);
        assert_eq!(found("@\"a b.txt\" and @\"c"), ["a b.txt", "\"c"]);
        assert_eq!(found("me@example.org a@b"), [""; 0]);
        assert_eq!(found("@ @\n@"), ["", "", ""]);
    }
}
