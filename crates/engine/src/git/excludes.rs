//! The user's global git excludes: `core.excludesFile`, else git's usual file. git itself is never run.
//!
//! The settings files are read at every scan: a command may redirect the excludes, and a rule that hides captured files has to be noticed
//! by the checkpoint after that command. Only the files that the caller names are read, and those that they `include`; a
//! conditional `includeIf` is not followed. A file that cannot be read says nothing.
//!
//! Written by hand for one key, because gix-config would add 28 packages.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::base::plain_file;
use crate::base::settings::GlobalExcludes;

/// How deep settings files may include one another, as in git.
const MAX_INCLUDES: usize = 10;

impl GlobalExcludes {
    /// The file that holds the excludes now; it need not exist. A relative one is relative to the workspace at `root`, as git has it.
    pub(crate) fn file(&self, root: &Path) -> Option<PathBuf> {
        let configured = self.settings.iter().filter_map(|file| self.configured(file, MAX_INCLUDES)).next_back();
        match configured {
            Some(value) if value.is_empty() => None,
            Some(value) => Some(root.join(self.expand_home(&value))),
            None => self.usual.clone(),
        }
    }

    /// The last `core.excludesFile` in a settings file and those that it includes, at most `depth` deep.
    fn configured(&self, file: &Path, depth: usize) -> Option<Vec<u8>> {
        let text = plain_file::read(file).ok()?;
        let mut values = settings_in(&text).into_iter().filter_map(|setting| match setting {
            Setting::ExcludesFile(value) => Some(value),
            Setting::Include(path) => {
                let path = file.parent()?.join(self.expand_home(&path));
                // A file that includes itself has said already what it says.
                if depth == 0 || path == file { None } else { self.configured(&path, depth - 1) }
            }
        });
        values.next_back()
    }

    fn expand_home(&self, value: &[u8]) -> PathBuf {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        match (value.strip_prefix(b"~/"), &self.home) {
            (Some(below), Some(home)) => home.join(path(below)),
            _ => path(value),
        }
    }
}

/// A setting that matters here.
#[derive(Debug, PartialEq, Eq)]
enum Setting {
    /// `core.excludesFile`
    ExcludesFile(Vec<u8>),
    /// `include.path`
    Include(Vec<u8>),
}

/// The settings in a settings file of git that matter here, in order.
fn settings_in(text: &[u8]) -> Vec<Setting> {
    let mut section = Vec::new();
    let mut found = Vec::new();
    for line in logical_lines(text) {
        let mut rest = line.trim_ascii();
        if let Some(header) = rest.strip_prefix(b"[") {
            let Some(end) = header.iter().position(|&byte| byte == b']') else { continue };
            section = header[..end].trim_ascii().to_ascii_lowercase();
            rest = header[end + 1..].trim_ascii();
        }
        let Some(equals) = rest.iter().position(|&byte| byte == b'=') else { continue };
        let value = || unquoted(rest[equals + 1..].trim_ascii());
        match (section.as_slice(), rest[..equals].trim_ascii().to_ascii_lowercase().as_slice()) {
            (b"core", b"excludesfile") => found.push(Setting::ExcludesFile(value())),
            (b"include", b"path") => found.push(Setting::Include(value())),
            _ => {}
        }
    }
    found
}

/// Lines, with those that end in a backslash joined to the next.
fn logical_lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut continues = false;
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (part, more) = line.strip_suffix(b"\\").map_or((line, false), |part| (part, true));
        match lines.last_mut() {
            Some(last) if continues => last.extend_from_slice(part),
            _ => lines.push(part.to_vec()),
        }
        continues = more;
    }
    lines
}

/// A value without quotes, escapes and comment.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // Trailing blanks count only inside quotes.
    let mut keep = 0;
    let mut quoted = false;
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'#' | b';' if !quoted => break,
            b'\\' => plain.extend(bytes.next().map(escaped)),
            _ => plain.push(byte),
        }
        if quoted || !byte.is_ascii_whitespace() {
            keep = plain.len();
        }
    }
    plain.truncate(keep);
    plain
}

fn escaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'b' => 0x08,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<String> {
        settings_in(text.as_bytes()).into_iter().next_back().map(|setting| match setting {
            Setting::ExcludesFile(value) => String::from_utf8(value).expect("the tests use UTF-8"),
            Setting::Include(path) => panic!("an include of {path:?}"),
        })
    }

    #[test]
    fn the_key_is_found_in_any_case_and_only_in_core() {
        assert_eq!(value("[Core]\n\tExcludesFile = ~/ignore\n").as_deref(), Some("~/ignore"));
        assert_eq!(value("[core] excludesfile=/x").as_deref(), Some("/x"));
        assert_eq!(value("[alias]\nexcludesFile = /x\n"), None);
        assert_eq!(value("[core \"sub\"]\nexcludesFile = /x\n"), None);
    }

    #[test]
    fn the_last_value_wins() {
        assert_eq!(value("[core]\nexcludesFile = /a\n[user]\n[core]\nexcludesFile = /b\n").as_deref(), Some("/b"));
    }

    #[test]
    fn quotes_escapes_and_comments_are_understood() {
        assert_eq!(value("[core]\nexcludesFile = \"/a b#c \" ; why\n").as_deref(), Some("/a b#c "));
        assert_eq!(value("[core]\nexcludesFile = /a\\\\b # why\n").as_deref(), Some("/a\\b"));
        assert_eq!(value("[core]\r\nexcludesFile = /a\\\n/b\r\n").as_deref(), Some("/a/b"));
        assert_eq!(value("[core]\n# excludesFile = /x\n"), None);
    }

    #[test]
    fn the_home_directory_is_expanded() {
        let excludes = GlobalExcludes { home: Some("/home/ann".into()), ..GlobalExcludes::default() };
        assert_eq!(excludes.expand_home(b"~/ignore"), Path::new("/home/ann/ignore"));
        assert_eq!(excludes.expand_home(b"/abs"), Path::new("/abs"));
    }

    #[test]
    fn included_settings_count_where_they_are_included() {
        let dir = tempfile::tempdir().expect("temp dir");
        let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("write");
        let excludes = GlobalExcludes {
            settings: vec![dir.path().join("config")],
            home: Some(dir.path().to_owned()),
            ..GlobalExcludes::at("/usual")
        };
        put("more", "[core]\nexcludesFile = /more\n[include]\npath = \"deepest\"\n");
        put("config", "[include]\n\tpath = more\n");
        assert_eq!(excludes.file(dir.path()).as_deref(), Some(Path::new("/more")));
        put("deepest", "[core] excludesFile = /deepest");
        assert_eq!(excludes.file(dir.path()).as_deref(), Some(Path::new("/deepest")));
        put("config", "[include]\npath = ~/more\n[core]\nexcludesFile = /after\n");
        assert_eq!(excludes.file(dir.path()).as_deref(), Some(Path::new("/after")), "a later value wins");
        put("config", "[core]\nexcludesFile = /before\n[include]\npath = config\npath = missing\n");
        assert_eq!(excludes.file(dir.path()).as_deref(), Some(Path::new("/before")), "a circle ends");
    }

    #[test]
    fn the_settings_are_read_every_time() {
        let dir = tempfile::tempdir().expect("temp dir");
        let settings = dir.path().join("config");
        let excludes = GlobalExcludes { settings: vec![settings.clone()], ..GlobalExcludes::at("/usual") };
        assert_eq!(excludes.file(dir.path()).as_deref(), Some(Path::new("/usual")));
        std::fs::write(&settings, "[core]\nexcludesFile = /other\n").expect("write");
        assert_eq!(excludes.file(dir.path()).as_deref(), Some(Path::new("/other")));
        std::fs::write(&settings, "[core]\nexcludesFile =\n").expect("write");
        assert_eq!(excludes.file(dir.path()), None, "an empty value switches them off");
    }
}
