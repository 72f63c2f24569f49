//! The choices that one key or one argument makes for all conflicts of a plan, and their wording.
//!
//! Offers only choices that can work for every path. The picker asks about each path on its own.

use retake_agent::rewind_document::ConflictFacts;
use retake_engine::rewind::OnConflict;

/// Whether `choice` can be made for all of `conflicts`: without conflicts any can, with some of them to stop is none.
pub fn can_be(choice: OnConflict, conflicts: &[ConflictFacts]) -> bool {
    match choice {
        OnConflict::Stop => conflicts.is_empty(),
        // To leave a path as it is works always.
        OnConflict::Keep => true,
        OnConflict::Overwrite | OnConflict::Merge => conflicts.iter().all(|one| one.choices.contains(&choice)),
    }
}

/// The keys that decide on `conflicts`: `k keeps them, o overwrites them`.
pub fn keys(conflicts: &[ConflictFacts]) -> String {
    let them = if conflicts.len() == 1 { "it" } else { "them" };
    let words =
        [(OnConflict::Keep, "k keeps"), (OnConflict::Overwrite, "o overwrites"), (OnConflict::Merge, "m merges")];
    let possible = words.into_iter().filter(|(choice, _)| can_be(*choice, conflicts));
    possible.map(|(_, words)| format!("{words} {them}")).collect::<Vec<_>>().join(", ")
}

/// The arguments of `/undo` and `/redo` that decide on `conflicts`.
pub fn arguments(verb: &str, conflicts: &[ConflictFacts]) -> String {
    let (keeps, replaces) = match conflicts.len() {
        1 => ("leaves it as it is", "replaces it"),
        _ => ("leaves them as they are", "replaces them"),
    };
    let words = [
        (OnConflict::Keep, "keep", keeps),
        (OnConflict::Overwrite, "overwrite", replaces),
        (OnConflict::Merge, "merge", "takes out only the session's changes"),
    ];
    let possible = words.into_iter().filter(|(choice, ..)| can_be(*choice, conflicts));
    possible.map(|(_, name, does)| format!("/{verb} {name} {does}")).collect::<Vec<_>>().join(", ")
}
