//! The user's global git excludes: `core.excludesFile`, else git's usual file. git itself is never run.
//!
//! Only the system's and the user's own git settings are read, and `include`s in them are not followed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Dirs, read_if_possible, variable};

/// The file to read excludes from; it need not exist. A relative one is relative to the workspace, as git has it.
pub fn find(dirs: Option<&Dirs>, root: &Path) -> Option<PathBuf> {
    let configured =
        config_files(dirs).iter().filter_map(|file| excludes_file_in(&read_if_possible(file)?)).next_back();
    match configured {
        Some(value) if value.is_empty() => None,
        Some(value) => Some(root.join(expand_home(&value, dirs))),
        None => dirs.map(|dirs| dirs.config.join("git/ignore")),
    }
}

/// git's settings files, weakest first.
fn config_files(dirs: Option<&Dirs>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if variable("GIT_CONFIG_NOSYSTEM").is_none() {
        files.push(PathBuf::from("/etc/gitconfig"));
    }
    match (variable("GIT_CONFIG_GLOBAL"), dirs) {
        (Some(global), _) => files.push(global.into()),
        (None, Some(dirs)) => files.extend([dirs.config.join("git/config"), dirs.home.join(".gitconfig")]),
        (None, None) => {}
    }
    files
}

fn expand_home(value: &[u8], dirs: Option<&Dirs>) -> PathBuf {
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    match (value.strip_prefix(b"~/"), dirs) {
        (Some(below), Some(dirs)) => dirs.home.join(path(below)),
        _ => path(value),
    }
}

/// The last `core.excludesFile` in a git settings file.
fn excludes_file_in(text: &[u8]) -> Option<Vec<u8>> {
    let mut in_core = false;
    let mut found = None;
    for line in logical_lines(text) {
        let mut rest = line.trim_ascii();
        if let Some(header) = rest.strip_prefix(b"[") {
            let Some(end) = header.iter().position(|&byte| byte == b']') else { continue };
            in_core = header[..end].trim_ascii().eq_ignore_ascii_case(b"core");
            rest = header[end + 1..].trim_ascii();
        }
        let Some(equals) = rest.iter().position(|&byte| byte == b'=') else { continue };
        if in_core && rest[..equals].trim_ascii().eq_ignore_ascii_case(b"excludesfile") {
            found = Some(unquoted(rest[equals + 1..].trim_ascii()));
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
        excludes_file_in(text.as_bytes()).map(|value| String::from_utf8(value).expect("the tests use UTF-8"))
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
        let dirs = Dirs { home: "/home/ann".into(), config: "/c".into(), data: "/d".into() };
        assert_eq!(expand_home(b"~/ignore", Some(&dirs)), Path::new("/home/ann/ignore"));
        assert_eq!(expand_home(b"/abs", Some(&dirs)), Path::new("/abs"));
    }
}
