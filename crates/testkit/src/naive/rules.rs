//! A small matcher for ignore rules, written from gitignore(5) and checked against git itself in `tests/matcher.rs`.
//!
//! It knows what the generator writes: comments, `!`, a leading or inner `/`, a trailing `/`, `*`, `?`, `**` as a whole component,
//! backslash escapes, trailing spaces, CRLF and a byte order mark. Character classes it does not know and takes literally.

/// The rules of one file, for paths below the directory they are anchored in.
#[derive(Debug, Clone, Default)]
pub struct RuleFile {
    /// Length of that directory's path including its final slash; 0 for the root.
    base: usize,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    glob: Vec<u8>,
    negated: bool,
    only_directories: bool,
    /// Matched against the whole path below the base rather than the last name.
    anchored: bool,
}

/// What a rule file says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Leave it out.
    Ignored,
    /// A negated rule takes it back in.
    Kept,
}

impl RuleFile {
    /// Reads the rules in `text`; `dir` is the directory they are anchored in, relative to the root, empty for the root itself.
    pub fn parse(text: &[u8], dir: &[u8]) -> Self {
        let base = if dir.is_empty() { 0 } else { dir.len() + 1 };
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        Self { base, rules: text.split(|&b| b == b'\n').filter_map(Rule::parse).collect() }
    }

    /// The last rule that matches `path`, a path relative to the root.
    pub fn verdict(&self, path: &[u8], is_directory: bool) -> Option<Verdict> {
        let below = &path[self.base..];
        let rule = self.rules.iter().rev().find(|rule| rule.matches(below, is_directory))?;
        Some(if rule.negated { Verdict::Kept } else { Verdict::Ignored })
    }
}

impl Rule {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut glob = without_trailing_spaces(line);
        if glob.is_empty() || glob[0] == b'#' {
            return None;
        }
        let negated = glob[0] == b'!';
        if negated {
            glob = &glob[1..];
        }
        let only_directories = glob.ends_with(b"/");
        if only_directories {
            glob = &glob[..glob.len() - 1];
        }
        let anchored = glob.contains(&b'/');
        let glob = glob.strip_prefix(b"/").unwrap_or(glob);
        (!glob.is_empty()).then(|| Self { glob: glob.to_vec(), negated, only_directories, anchored })
    }

    fn matches(&self, below: &[u8], is_directory: bool) -> bool {
        if self.only_directories && !is_directory {
            return false;
        }
        let name = below.rsplit(|&b| b == b'/').next().unwrap_or(below);
        matches(&self.glob, if self.anchored { below } else { name }, true)
    }
}

/// Does `glob`, of the rule language or a plain file name pattern, match all of `text`?
///
/// `starts` tells whether `glob` begins a path component, where alone `**` has its meaning.
pub(super) fn matches(glob: &[u8], text: &[u8], starts: bool) -> bool {
    match glob {
        [] => text.is_empty(),
        [b'*', b'*'] if starts => !text.is_empty(),
        [b'*', b'*', b'/', rest @ ..] if starts => {
            let tails = text.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &text[at + 1..]);
            std::iter::once(text).chain(tails).any(|tail| matches(rest, tail, true))
        }
        [b'*', rest @ ..] => {
            let span = text.iter().position(|&b| b == b'/').unwrap_or(text.len());
            (0..=span).any(|taken| matches(rest, &text[taken..], false))
        }
        [b'?', rest @ ..] => text.first().is_some_and(|&b| b != b'/') && matches(rest, &text[1..], false),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
            text.first() == Some(byte) && matches(rest, &text[1..], *byte == b'/')
        }
    }
}

fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = line.len();
    while end > 0 && line[end - 1] == b' ' && !(end > 1 && line[end - 2] == b'\\') {
        end -= 1;
    }
    &line[..end]
}
