//! What is done outside the client at the user's wish: an editor, a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use retake_engine::session::entry::Part;

/// Largest file that goes along with a prompt that mentions it.
const MAX_MENTIONED: u64 = 1 << 20;

/// Has a text edited in the user's editor.
pub fn edit(editor: &str, text: &str, name: &str) -> Result<String, String> {
    let path = std::env::temp_dir().join(format!("retake-{name}.md"));
    let edited = edit_file(editor, &path, text);
    std::fs::remove_file(&path).ok();
    edited
}

fn edit_file(editor: &str, path: &Path, text: &str) -> Result<String, String> {
    let said = |what: &str, error: io::Error| format!("{what}: {error}");
    // A file that is there already may be somebody else's trap.
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| said("no file to edit", error))?;
    file.write_all(text.as_bytes()).map_err(|error| said("no file to edit", error))?;
    drop(file);
    // As a shell would have it: `code --wait`, say.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
    match status {
        Ok(status) if status.success() => std::fs::read_to_string(path).map_err(|error| said("what was edited", error)),
        Ok(status) => Err(format!("`{editor}` ended with {status}; your text is as it was")),
        Err(error) => Err(said(editor, error)),
    }
}

/// What is said, with the files below `root` that it mentions as `@path`, as they are now. What is no text of a reasonable size is only
/// mentioned: the model can look at it.
pub fn with_mentioned(root: &Path, mut parts: Vec<Part>) -> Vec<Part> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Paste { .. } | Part::File { .. } | Part::Image { .. } => None,
    });
    let mut found: Vec<(String, String)> = Vec::new();
    for word in texts.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('@')) {
        // It may end a sentence.
        let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
        let read = [word, bare].into_iter().find_map(|path| Some((path.to_owned(), text_of(root, path)?)));
        found.extend(read.filter(|(path, _)| found.iter().all(|(other, _)| other != path)));
    }
    // A prompt that is said again has brought them along, as they were then.
    parts.retain(|part| !matches!(part, Part::File { path, .. } if found.iter().any(|(other, _)| other == path)));
    parts.extend(found.into_iter().map(|(path, text)| Part::File { path, text }));
    parts
}

fn text_of(root: &Path, path: &str) -> Option<String> {
    let is_below = Path::new(path).components().all(|component| matches!(component, Component::Normal(_)));
    let path = root.join(path);
    if !is_below || !path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_MENTIONED) {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_MENTIONED).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Writes a text to a new file; one that is there already is left alone.
pub fn export(root: &Path, path: &Path, text: &str) -> Result<PathBuf, String> {
    let path = root.join(path);
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map(|()| path.clone()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{} is there already", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_through_an_editor() {
        assert_eq!(edit("sed -i s/one/two/", "one", "test-a").as_deref(), Ok("two"));
        let failed = edit("false", "one", "test-b").expect_err("it fails");
        assert!(failed.contains("as it was"), "{failed}");
    }

    #[test]
    fn mentioned_files_go_along_as_they_are_now_and_once() {
        let dir = std::env::temp_dir().join(format!("retake-mentioned-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("src")).expect("it is made");
        std::fs::write(dir.join("src/a.rs"), "new").expect("it is written");
        std::fs::write(dir.join("b"), [0xff, 0]).expect("it is written");
        let file = |text: &str| Part::File { path: "src/a.rs".into(), text: text.into() };
        let said = Part::text("see @src/a.rs, @src/a.rs and @b or @src or @../b or me@src/a.rs");
        let parts = with_mentioned(&dir, vec![said.clone(), file("old")]);
        assert_eq!(parts, [said, file("new")]);
        std::fs::remove_dir_all(&dir).expect("it goes");
    }

    #[test]
    fn nothing_is_written_over() {
        let dir = std::env::temp_dir().join(format!("retake-export-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("it is made");
        assert_eq!(export(&dir, Path::new("a"), "x"), Ok(dir.join("a")));
        assert!(export(&dir, Path::new("a"), "y").expect_err("it is refused").contains("there already"));
        assert_eq!(std::fs::read(dir.join("a")).expect("it is there"), b"x");
        std::fs::remove_dir_all(&dir).expect("it goes");
    }
}
