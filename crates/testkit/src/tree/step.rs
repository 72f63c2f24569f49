//! Steps and cases as data, and the strategies that make them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::pools::{Content, DIRECTORY_MODES, FILE_MODES, RULE_LINES, When};

/// One of the things that exist when the step is carried out, by number modulo how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick(pub u16);

/// A name, out of the pool, in an existing directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub dir: Pick,
    /// The name.
    pub name: Pick,
}

/// Where a link points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkTarget {
    /// To a file that exists.
    File(Pick),
    /// To a directory that exists.
    Directory(Pick),
    /// To nothing.
    Dangling,
    /// To `/etc/passwd`.
    Absolute,
    /// To itself.
    Itself,
    /// To a directory outside the workspace.
    Outside,
}

/// What is neither file, directory nor link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
}

/// What takes another thing's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A file.
    File,
    /// A directory with a file in it.
    Directory,
    /// A dangling link.
    Link,
}

/// How a file is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// Truncated, then written.
    InPlace(Content),
    /// Written beside and renamed over, as editors save.
    ByRename(Content),
    /// A few bytes more.
    Append,
    /// One byte flipped.
    SameSize(u8),
    /// One byte flipped and the mtime put back.
    SameSizeSameTime(u8),
    /// One byte flipped in a copy that gets the old mtime and is renamed over.
    SameSizeByRename(u8),
}

/// Which rule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleName {
    /// `.gitignore`
    Git,
    /// `.retakeignore`
    Ours,
    /// `.git/info/exclude` of a repository, which is made if there is none.
    Exclude,
    /// The global excludes.
    Global,
}

/// What happens to a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleChange {
    /// Written with these lines of the pool.
    Lines(Vec<u8>),
    /// As `Lines`, with CRLF and a byte order mark.
    Windows(Vec<u8>),
    /// One line in place of the one of equal length, the mtime put back.
    SameSizeSameTime,
    /// Removed, whatever it is.
    Remove,
    /// Replaced by a directory.
    Directory,
    /// Replaced by a link to a file full of rules.
    Link,
    /// Replaced by a fifo.
    Fifo,
}

/// One thing done to a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the variant says")]
pub enum Step {
    /// Makes a file.
    File { at: Place, content: Content, mode: u32 },
    /// Makes a directory.
    Directory { at: Place, mode: u32 },
    /// Makes twenty directories in one another and a file at the end.
    Deep { at: Place },
    /// Makes a link.
    Link { at: Place, to: LinkTarget },
    /// Makes a fifo or a socket.
    Special { at: Place, what: Special },
    /// Makes, changes or removes a rule file.
    Rules { dir: Pick, name: RuleName, change: RuleChange },
    /// Makes the root's repository track a path, or no more if it does already.
    Track { what: Pick },
    /// Makes a directory a repository.
    Nest { dir: Pick },
    /// Puts a `.git` file into a directory.
    GitFile { dir: Pick },
    /// Removes a repository's `.git`.
    Unnest { which: Pick },
    /// Gives a repository's `.git` a plain name: what it holds becomes captured.
    Expose { which: Pick },
    /// Makes a version-control directory of another kind.
    OtherVersionControl { dir: Pick, which: Pick },
    /// Writes a file again.
    Write { file: Pick, how: Write },
    /// Changes a file's mode.
    FileMode { file: Pick, mode: u32 },
    /// Changes a directory's mode.
    DirectoryMode { dir: Pick, mode: u32 },
    /// Changes a file's or link's mtime.
    Touch { what: Pick, when: When },
    /// Makes a file in a directory and puts the directory's mtime back.
    Sneak { at: Place },
    /// Renames anything to anywhere, sometimes onto a file or link that exists.
    Rename { what: Pick, to: Place },
    /// Removes a directory and renames another to its place.
    Replace { dir: Pick, with: Pick },
    /// Exchanges two things in one system call.
    Exchange { one: Pick, other: Pick },
    /// Puts something else in a thing's place.
    Swap { what: Pick, into: Form },
    /// Makes a hard link.
    HardLink { file: Pick, at: Place },
    /// Makes a hard link outside the workspace.
    HardLinkOutside { file: Pick },
    /// Writes a file that has several names, through one of them.
    WriteThrough { which: Pick, how: Write },
    /// Writes a file through its name outside the workspace.
    WriteOutside { which: Pick, how: Write },
    /// Removes anything, with what it holds.
    Remove { what: Pick },
}

/// A directory to start with and what is done to it between checkpoints.
#[derive(Debug, Clone)]
pub struct Case {
    /// Makes the tree of the first checkpoint.
    pub start: Vec<Step>,
    /// Steps, with a checkpoint after each group.
    pub rounds: Vec<Vec<Step>>,
    /// How many threads the scanner may use.
    pub threads: usize,
}

/// Any case: mostly a bit of everything, sometimes nothing but changes that only a careful scanner sees.
pub fn case() -> impl Strategy<Value = Case> {
    let mixed = vec(vec(prop_oneof![6 => change(), 3 => create(), 2 => rules()], 1..=5), 1..=3);
    let sly = vec(vec(prop_oneof![8 => sly(), 1 => change(), 1 => rules()], 1..=2), 3..=6);
    let start = vec(prop_oneof![5 => create(), 2 => rules()], 0..=18);
    let rounds = prop_oneof![2 => mixed, 1 => sly];
    (start, rounds, 1..=2usize).prop_map(|(start, rounds, threads)| Case { start, rounds, threads })
}

pub(super) fn pick() -> impl Strategy<Value = Pick> {
    any::<u16>().prop_map(Pick)
}

pub(super) fn place() -> impl Strategy<Value = Place> {
    (pick(), pick()).prop_map(|(dir, name)| Place { dir, name })
}

pub(super) fn content() -> BoxedStrategy<Content> {
    prop_oneof![
        20 => Just(Content::Empty),
        120 => any::<u8>().prop_map(Content::Text),
        50 => (any::<u8>(), 1..=400u16).prop_map(|(seed, length)| Content::Binary(seed, length)),
        2 => any::<u8>().prop_map(Content::Large),
        2 => Just(Content::OverLimit),
    ]
    .boxed()
}

pub(super) fn create() -> BoxedStrategy<Step> {
    let target = prop_oneof![
        pick().prop_map(LinkTarget::File),
        pick().prop_map(LinkTarget::Directory),
        select(&[LinkTarget::Dangling, LinkTarget::Absolute, LinkTarget::Itself, LinkTarget::Outside][..]),
    ];
    prop_oneof![
        12 => (place(), content(), select(FILE_MODES)).prop_map(|(at, content, mode)| Step::File { at, content, mode }),
        8 => (place(), select(DIRECTORY_MODES)).prop_map(|(at, mode)| Step::Directory { at, mode }),
        4 => (place(), target).prop_map(|(at, to)| Step::Link { at, to }),
        1 => place().prop_map(|at| Step::Deep { at }),
        1 => (place(), select(&[Special::Fifo, Special::Socket][..])).prop_map(|(at, what)| Step::Special { at, what }),
        1 => pick().prop_map(|dir| Step::Nest { dir }),
        1 => pick().prop_map(|dir| Step::GitFile { dir }),
        1 => (pick(), pick()).prop_map(|(dir, which)| Step::OtherVersionControl { dir, which }),
        1 => (pick(), place()).prop_map(|(file, at)| Step::HardLink { file, at }),
        1 => pick().prop_map(|file| Step::HardLinkOutside { file }),
    ]
    .boxed()
}

pub(super) fn rules() -> BoxedStrategy<Step> {
    let count = u8::try_from(RULE_LINES.len()).expect("a small pool");
    let lines = || vec(0..count, 1..=4);
    let change = prop_oneof![
        10 => lines().prop_map(RuleChange::Lines),
        1 => lines().prop_map(RuleChange::Windows),
        6 => Just(RuleChange::SameSizeSameTime),
        3 => Just(RuleChange::Remove),
        1 => Just(RuleChange::Directory),
        1 => Just(RuleChange::Link),
        1 => Just(RuleChange::Fifo),
    ];
    let name = prop_oneof![
        5 => Just(RuleName::Git),
        3 => Just(RuleName::Ours),
        1 => Just(RuleName::Exclude),
        1 => Just(RuleName::Global),
    ];
    let rules = (pick(), name, change).prop_map(|(dir, name, change)| Step::Rules { dir, name, change });
    prop_oneof![4 => rules, 1 => pick().prop_map(|what| Step::Track { what })].boxed()
}

fn write() -> BoxedStrategy<Write> {
    prop_oneof![
        2 => content().prop_map(Write::InPlace),
        2 => content().prop_map(Write::ByRename),
        2 => Just(Write::Append),
        1 => any::<u8>().prop_map(Write::SameSize),
        2 => any::<u8>().prop_map(Write::SameSizeSameTime),
        1 => any::<u8>().prop_map(Write::SameSizeByRename),
    ]
    .boxed()
}

/// Changes that leave sizes, and often times, as they were.
fn sly() -> BoxedStrategy<Step> {
    let same_size = || {
        prop_oneof![
            3 => any::<u8>().prop_map(Write::SameSize),
            3 => any::<u8>().prop_map(Write::SameSizeSameTime),
            1 => any::<u8>().prop_map(Write::SameSizeByRename),
        ]
    };
    prop_oneof![
        8 => (pick(), same_size()).prop_map(|(file, how)| Step::Write { file, how }),
        2 => (pick(), same_size()).prop_map(|(which, how)| Step::WriteThrough { which, how }),
        1 => (pick(), same_size()).prop_map(|(which, how)| Step::WriteOutside { which, how }),
        2 => (pick(), pick()).prop_map(|(one, other)| Step::Exchange { one, other }),
        2 => place().prop_map(|at| Step::Sneak { at }),
        1 => (pick(), select(FILE_MODES)).prop_map(|(file, mode)| Step::FileMode { file, mode }),
    ]
    .boxed()
}

pub(super) fn change() -> BoxedStrategy<Step> {
    let when = select(&[When::Past, When::Future, When::Today][..]);
    let form = select(&[Form::File, Form::Directory, Form::Link][..]);
    prop_oneof![
        8 => (pick(), write()).prop_map(|(file, how)| Step::Write { file, how }),
        2 => (pick(), select(FILE_MODES)).prop_map(|(file, mode)| Step::FileMode { file, mode }),
        2 => (pick(), select(DIRECTORY_MODES)).prop_map(|(dir, mode)| Step::DirectoryMode { dir, mode }),
        2 => (pick(), when).prop_map(|(what, when)| Step::Touch { what, when }),
        1 => place().prop_map(|at| Step::Sneak { at }),
        9 => (pick(), place()).prop_map(|(what, to)| Step::Rename { what, to }),
        3 => (pick(), pick()).prop_map(|(dir, with)| Step::Replace { dir, with }),
        2 => (pick(), pick()).prop_map(|(one, other)| Step::Exchange { one, other }),
        8 => (pick(), form).prop_map(|(what, into)| Step::Swap { what, into }),
        2 => (pick(), place()).prop_map(|(file, at)| Step::HardLink { file, at }),
        2 => (pick(), write()).prop_map(|(which, how)| Step::WriteThrough { which, how }),
        2 => (pick(), write()).prop_map(|(which, how)| Step::WriteOutside { which, how }),
        4 => pick().prop_map(|what| Step::Remove { what }),
        1 => pick().prop_map(|which| Step::Unnest { which }),
        1 => pick().prop_map(|which| Step::Expose { which }),
    ]
    .boxed()
}
