//! The names, modes, contents and rule lines that random trees are made of.
//!
//! Pools are small on purpose: paths have to meet again for a rename to hit something, and a rule has to have something to match.

use super::kinds::Happened;

/// Names for files, directories and links. None of them is a rule file or version control: those have steps of their own.
pub(super) const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"a.o",
    b"b.o",
    b"c.txt",
    b"main.rs",
    b"build",
    b"src",
    b"lib",
    b".env",
    b".env.prod",
    b"x.local",
    b"-rf",
    b"with  space",
    b"trail ",
    b"new\nline",
    b"quo'te\"s",
    b"\xff\xfe\x80.o",
    b"\xc3\xa9",
    b"e\xcc\x81",
    b"#hash",
    b"!bang",
    b"*",
    b"back\\slash",
    b"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
      nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
];

/// The kind of odd name that `name` is, if it is one.
pub(super) fn oddity(name: &[u8]) -> Option<Happened> {
    Some(match name {
        b"new\nline" => Happened::NameNewline,
        b"-rf" => Happened::NameDash,
        b"with  space" => Happened::NameSpace,
        b"quo'te\"s" => Happened::NameQuotes,
        b"\xff\xfe\x80.o" => Happened::NameNotUtf8,
        b".env" => Happened::NameEnv,
        b"x.local" => Happened::NameLocal,
        b"\xc3\xa9" => Happened::NameComposed,
        b"e\xcc\x81" => Happened::NameDecomposed,
        long if long.len() == 200 => Happened::NameLong,
        _ => return None,
    })
}

/// Modes for files.
pub(super) const FILE_MODES: &[u32] = &[0o644, 0o644, 0o600, 0o755, 0o4755, 0o444, 0o664];
/// Modes for directories.
pub(super) const DIRECTORY_MODES: &[u32] = &[0o755, 0o755, 0o700, 0o1777];

/// The line for rule files that ignores everything.
pub(super) const EVERYTHING: u8 = 10;

/// Lines for rule files. Several differ in one letter, so that a changed rule file can keep its size.
pub(super) const RULE_LINES: &[&[u8]] = &[
    b"*.o",
    b"*.a",
    b"!a.o",
    b"!b.o",
    b"a",
    b"b",
    b"!a",
    b"!b",
    b"/a",
    b"/b",
    b"*",
    b"!*/",
    b"build/",
    b"!build/",
    b"/build",
    b"src/",
    b"!src",
    b"src/*.o",
    b"lib/a",
    b"/src/b",
    b"**/lib",
    b"lib/**",
    b"src/**/a",
    b"?",
    b".env",
    b".env*",
    b"*.local",
    b"!x.local",
    b"c.*",
    b"main.rs  ",
    b"trail\\ ",
    b"\\#hash",
    b"\\!bang",
    b"\\*",
    b"# a comment",
    b"# not UTF-8: caf\xe9",
    b"",
    b"\xc3\xa9",
    b".gitignore",
    b"n*",
    b"a/",
    b"b/",
];

/// What is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Empty,
    /// A few lines; the number makes them differ.
    Text(u8),
    /// Any bytes, NUL and broken UTF-8 among them: seed and length.
    Binary(u8, u16),
    /// A megabyte and a half of noise.
    Large(u8),
    /// A hole that is larger than the limit.
    OverLimit,
}

/// The file size limit that the property test sets: small enough to be crossed, large enough for large files.
pub const MAX_FILE: u64 = 3 << 20;

impl Content {
    /// The bytes; not for [`Content::OverLimit`], which is a hole.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::Empty | Self::OverLimit => Vec::new(),
            Self::Text(n) if n % 5 == 0 => format!("line {n}\r\nno final newline").into_bytes(),
            Self::Text(n) if n % 5 == 1 => [b"\xc4\xe3\xba\xc3 GB18030 ".as_slice(), &[b'0' + n % 10], b"\n"].concat(),
            Self::Text(n) => format!("line {n}\n").repeat(usize::from(n % 7) + 1).into_bytes(),
            Self::Binary(seed, length) => noise(seed, usize::from(length)),
            Self::Large(seed) => noise(seed, 3 << 19),
        }
    }

    pub(super) fn happened(self) -> Happened {
        match self {
            Self::Empty => Happened::EmptyFile,
            Self::Text(_) => Happened::TextFile,
            Self::Binary(..) => Happened::BinaryFile,
            Self::Large(_) => Happened::LargeFile,
            Self::OverLimit => Happened::OverLimit,
        }
    }
}

/// A time to set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Long ago.
    Past,
    /// After every scan of this run.
    Future,
    /// A whole second close to now.
    Today,
}

impl When {
    pub(super) fn seconds(self) -> i64 {
        match self {
            Self::Past => 1_000_000_000,
            Self::Future => 4_000_000_000,
            Self::Today => {
                let since = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
                i64::try_from(since.as_secs()).expect("a clock before the end of time")
            }
        }
    }
}

fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
