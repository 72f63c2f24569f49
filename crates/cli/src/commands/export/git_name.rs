//! Names that git does not take into a work tree, because some system would take them for `.git`.
//!
//! `git fast-import` writes them all the same; then the commit cannot be checked out, and servers reject it.

use retake_engine::snapshot::NodeKind;

/// Whether git refuses a path with a part called `name`. `.git` itself, whatever its case, is one of these.
pub(super) fn is_refused(name: &[u8], kind: NodeKind) -> bool {
    // On Windows a backslash ends a name.
    let is_repository = name.split(|byte| *byte == b'\\').any(is_short_for_git) || is_git_on_mac(name);
    is_repository || kind == NodeKind::Symlink && name.eq_ignore_ascii_case(b".gitmodules")
}

/// NTFS knows `.git` as `git~1` too, drops dots and spaces at the end of a name, and names streams of a file behind a colon.
fn is_short_for_git(name: &[u8]) -> bool {
    [&b".git"[..], b"git~1"].iter().any(|git| {
        let Some((start, rest)) = name.split_at_checked(git.len()) else { return false };
        let mut rest = rest.iter().skip_while(|byte| matches!(byte, b'.' | b' '));
        start.eq_ignore_ascii_case(git) && matches!(rest.next(), None | Some(b':'))
    })
}

/// HFS+ passes over characters that cannot be seen.
fn is_git_on_mac(name: &[u8]) -> bool {
    let Ok(name) = str::from_utf8(name) else { return false };
    let is_passed_over = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen: String = name.chars().filter(|c| !is_passed_over(c)).collect();
    seen.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_system_takes_for_git_is_refused_and_nothing_else() {
        let refused = |name: &str| is_refused(name.as_bytes(), NodeKind::File);
        for name in [
            ".git",
            ".GIT",
            "git~1",
            "GIT~1",
            "git~1. ",
            ".git ...",
            ".git::$INDEX_ALLOCATION",
            "a\\.git",
            "a\\git~1\\b",
        ] {
            assert!(refused(name), "{name}");
        }
        for name in [".g\u{200c}it", "\u{feff}.Git", ".git\u{202e}"] {
            assert!(refused(name), "{name:?}");
        }
        for name in ["git", ".gitignore", ".github", "git~2", "git~10", ".git-blame", "a.git", "gi", ".gitmodules"] {
            assert!(!refused(name), "{name}");
        }
        assert!(!is_refused(b"\xff.git", NodeKind::File));
        assert!(is_refused(b".GitModules", NodeKind::Symlink));
    }
}
