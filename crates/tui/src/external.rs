//! What the client runs or writes outside itself: an editor, a file.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| said("no file to edit", error))?;
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

/// Writes a text to a new file; one that is there already is left alone.
pub fn export(root: &Path, path: &Path, text: &str) -> Result<PathBuf, String> {
    let path = root.join(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
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
    fn nothing_is_written_over() {
        let dir = std::env::temp_dir().join(format!("retake-export-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("it is made");
        assert_eq!(export(&dir, Path::new("a"), "x"), Ok(dir.join("a")));
        assert!(export(&dir, Path::new("a"), "y").expect_err("it is refused").contains("there already"));
        assert_eq!(std::fs::read(dir.join("a")).expect("it is there"), b"x");
        std::fs::remove_dir_all(&dir).expect("it goes");
    }
}
