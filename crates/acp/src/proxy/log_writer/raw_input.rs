//! Reads the paths in a tool call's `rawInput`, as far as agents agree on field names: often they are nowhere else. Pure.
//!
//! Input of another form yields no paths.

use std::collections::BTreeSet;

use serde_json::Value;

/// How deep lists of edits are looked into.
const MAX_DEPTH: usize = 3;

/// Names of a path.
const PATHS: [&str; 6] = ["path", "file_path", "filePath", "notebook_path", "notebookPath", "target_file"];

/// Names of what is run.
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "code"];

/// Names of what is written.
const TEXTS: [&str; 19] = [
    "content",
    "contents",
    "file_text",
    "fileText",
    "new_string",
    "newString",
    "new_str",
    "newStr",
    "new_text",
    "newText",
    "old_string",
    "oldString",
    "old_str",
    "oldStr",
    "old_text",
    "oldText",
    "new_source",
    "diff",
    "patch",
];

/// The paths that it names, also in lists of edits.
pub(super) fn paths(input: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(input, MAX_DEPTH, &mut |name, value| {
        if let (true, Some(path)) = (PATHS.contains(&name), value.as_str().filter(|path| !path.is_empty())) {
            found.insert(path.to_owned());
        }
    });
    found
}

/// Whether it is something to run.
pub(super) fn has_command(input: &Value) -> bool {
    COMMANDS.iter().any(|name| input.get(name).is_some_and(|value| !value.is_null()))
}

/// Whether it is something to write.
pub(super) fn has_text(input: &Value) -> bool {
    let mut found = false;
    visit(input, MAX_DEPTH, &mut |name, value| found |= TEXTS.contains(&name) && value.is_string());
    found
}

/// Shows each field of an object, and of the objects in its lists.
fn visit(value: &Value, depth: usize, look: &mut dyn FnMut(&str, &Value)) {
    let Some(fields) = value.as_object().filter(|_| depth > 0) else { return };
    for (name, value) in fields {
        look(name, value);
        value.as_array().into_iter().flatten().for_each(|one| visit(one, depth - 1, look));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_found_by_their_names_and_in_lists_of_edits() {
        let input =
            json!({ "path": "a", "edits": [{ "filePath": "b" }, "x", { "file_path": 1 }], "to": "c", "list": [["d"]] });
        assert_eq!(paths(&input), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert_eq!(paths(&json!("a")), BTreeSet::new());
    }

    #[test]
    fn what_is_given_to_read_is_nothing_to_write() {
        assert!(has_text(&json!({ "edits": [{ "newText": "" }] })) && !has_text(&json!({ "path": "a", "limit": 3 })));
        assert!(has_command(&json!({ "command": ["ls"] })) && !has_command(&json!({ "command": null })));
    }
}
