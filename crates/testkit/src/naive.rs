//! A naive full read of a directory: what a snapshot of it has to hold, worked out with no cache, no index and no cleverness.
//!
//! It reads everything each time and decides what is captured from SPEC's words alone. Files are opened by name below a directory handle,
//! so paths may be of any length. It fails on the first thing that it cannot read: the trees of these tests are readable.

mod everything;
pub mod force;
mod known;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

pub use everything::{Everything, Shape, Thing, everything};
pub use known::Known;
pub use rules::{RuleFile, Verdict};

const VERSION_CONTROL: [&[u8]; 5] = [b".git", b".hg", b".svn", b".jj", b".sl"];
const INCLUDE: [&[u8]; 3] = [b".env", b".env.*", b"*.local"];

/// What kind of thing is captured at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NaiveKind {
    /// A regular file.
    File,
    /// A symbolic link, as a link.
    Symlink,
    /// A directory.
    Directory,
}

/// One captured path.
#[derive(Clone, PartialEq, Eq)]
pub struct NaiveNode {
    /// What it is.
    pub kind: NaiveKind,
    /// Its permission bits, 07777; none for a link, whose bits mean nothing and differ between systems.
    pub mode: u16,
    /// A file's bytes, a link's target, nothing for a directory.
    pub content: Vec<u8>,
}

/// Why a path is not, or not wholly, in the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NaiveGap {
    /// A socket, fifo or device.
    Special,
    /// A file over the size limit.
    TooLarge,
    /// A file that has other names too.
    HardLink,
}

/// Everything that a snapshot of a directory holds, by path relative to the root.
pub type NaiveNodes = BTreeMap<Vec<u8>, NaiveNode>;

/// What one read of a directory found.
#[derive(Debug, Clone, Default)]
pub struct NaiveTree {
    /// What is captured.
    pub nodes: NaiveNodes,
    /// What is not captured, or not wholly.
    pub gaps: BTreeSet<(Vec<u8>, NaiveGap)>,
    /// Paths that exist and are not captured: ignored, version control, gaps without content. What is below them was not looked at.
    pub left_out: BTreeSet<Vec<u8>>,
    /// Directories that were entered only for what is tracked or declared below them.
    pub partly: BTreeSet<Vec<u8>>,
    /// Paths that were looked for whatever the rules say.
    pub sought: BTreeSet<Vec<u8>>,
    /// Paths that were captured before and were not there, although they are not read because of the rules.
    pub absent: BTreeSet<Vec<u8>>,
    /// Captured paths that the rules leave out.
    pub helped: BTreeSet<Vec<u8>>,
    /// Directories that a rule left out.
    pub directories_left_out: BTreeSet<Vec<u8>>,
    /// The inodes of directories.
    pub inodes: BTreeMap<Vec<u8>, u64>,
    /// What is below directories that a rule left out, and whether it is a directory.
    pub hidden: BTreeMap<Vec<u8>, bool>,
    /// Version-control directories.
    pub version_control: BTreeSet<Vec<u8>>,
    /// The rules that lie in each directory that was entered.
    own: BTreeMap<Vec<u8>, OwnRules>,
    /// Global excludes.
    global: Option<Vec<u8>>,
    /// Which rules really decided something.
    pub decisions: Decisions,
}

/// How often each rule about what is captured decided something in one read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decisions {
    /// Paths left out by an ignore rule.
    pub ignored: u64,
    /// Ignored files captured all the same because they are on the include list.
    pub included: u64,
    /// Paths that a negated rule took back in.
    pub kept: u64,
    /// Directories below the root at which the rules start afresh.
    pub boundaries: u64,
    /// Version-control directories passed over.
    pub version_control: u64,
    /// Ignored files captured because the root's repository tracks them.
    pub tracked: u64,
    /// Ignore files captured although a rule ignores them.
    pub rule_files: u64,
}

/// How to read: the inputs besides the directory itself.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Global excludes; need not exist.
    pub global_excludes: Option<PathBuf>,
    /// Files over this many bytes are gaps.
    pub max_file: u64,
    /// Is this what git alone would say: no `.retakeignore`, no include list?
    pub dialect: Dialect,
    /// Paths that are captured whatever the rules and the limit say; of a directory, that it is there.
    pub declared: BTreeSet<Vec<u8>>,
    /// Paths that are captured whatever the rules say.
    pub held: BTreeSet<Vec<u8>>,
    /// Paths that are captured with all that is below them, whatever the rules and the limit say.
    pub saved: BTreeSet<Vec<u8>>,
}

/// Whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Git's and Retake's.
    Retake,
    /// Git's alone, for comparison with git.
    Git,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            global_excludes: None,
            max_file: 64 << 20,
            dialect: Dialect::Retake,
            declared: BTreeSet::new(),
            held: BTreeSet::new(),
            saved: BTreeSet::new(),
        }
    }
}

/// Reads all that is captured of the directory `root`.
pub fn read(root: &Path, reading: &Reading) -> io::Result<NaiveTree> {
    let global = match &reading.global_excludes {
        Some(path) if path.is_file() => Some(std::fs::read(path)?),
        _ => None,
    };
    let tracked = match (reading.dialect, std::fs::read(root.join(".git/index"))) {
        (Dialect::Retake, Ok(index)) => names_in_index(&index),
        _ => BTreeSet::new(),
    };
    let sought = reading.declared.union(&reading.held).cloned().collect();
    let tree = NaiveTree { sought, global, ..NaiveTree::default() };
    let mut reader = Reader { reading, tracked, tree };
    let directory = rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    reader.directory(&directory, b"", &Scope::default(), Entered::ForAll)?;
    Ok(reader.tree)
}

/// What differs between two reads: by path, what was there and what is.
pub fn diff<'a>(
    before: &'a NaiveNodes,
    after: &'a NaiveNodes,
) -> BTreeMap<&'a [u8], (Option<&'a NaiveNode>, Option<&'a NaiveNode>)> {
    let paths: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let sides = paths.into_iter().map(|path| (path.as_slice(), (before.get(path), after.get(path))));
    sides.filter(|(_, (before, after))| before != after).collect()
}

/// The rules in force in one directory.
#[derive(Debug, Clone, Default)]
struct Scope {
    /// `.gitignore` files from the nearest repository boundary down.
    git: Vec<RuleFile>,
    /// `.retakeignore` files from the root down.
    retake: Vec<RuleFile>,
    /// `info/exclude` of the repository, then the global excludes.
    base: Vec<RuleFile>,
}

/// The rules that lie in one directory.
#[derive(Debug, Clone, Default)]
struct OwnRules {
    is_repository: bool,
    exclude: Option<Vec<u8>>,
    gitignore: Option<Vec<u8>>,
    retakeignore: Option<Vec<u8>>,
}

impl Scope {
    /// The rules in the directory `path`, in which `own` lie.
    fn descend(&self, path: &[u8], own: &OwnRules, global: Option<&[u8]>) -> Self {
        let mut scope = self.clone();
        let parse = |text: &[u8]| RuleFile::parse(text, path);
        if path.is_empty() || own.is_repository {
            scope.git.clear();
            scope.base = own.exclude.as_deref().into_iter().chain(global).map(parse).collect();
        }
        scope.git.extend(own.gitignore.as_deref().map(parse));
        scope.retake.extend(own.retakeignore.as_deref().map(parse));
        scope
    }

    /// Ours decide before git's, the deeper file before the higher one, and git's own before what applies to the whole repository.
    fn verdict(&self, path: &[u8], is_directory: bool) -> Option<Verdict> {
        let ours = self.retake.iter().rev();
        ours.chain(self.git.iter().rev()).chain(&self.base).find_map(|file| file.verdict(path, is_directory))
    }
}

struct Reader<'a> {
    reading: &'a Reading,
    /// What the root's repository tracks.
    tracked: BTreeSet<Vec<u8>>,
    tree: NaiveTree,
}

/// Why a directory is looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// It is captured.
    ForAll,
    /// It is ignored, but something below it is tracked or declared, and only that is captured.
    ForTracked,
    /// It is left out: not at all.
    Not,
}

impl Reader<'_> {
    fn directory(&mut self, directory: &OwnedFd, path: &[u8], outer: &Scope, entered: Entered) -> io::Result<()> {
        let names = names(directory)?;
        let scope = self.scope(directory, &names, path, outer)?;
        for name in &names {
            let stat = rustix::fs::statat(directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if is_directory && VERSION_CONTROL.contains(&name.as_slice()) {
                self.tree.decisions.version_control += 1;
                self.tree.version_control.insert(below(path, name));
                self.tree.left_out.insert(below(path, name));
                continue;
            }
            let path = below(path, name);
            if is_directory {
                self.tree.inodes.insert(path.clone(), stat.st_ino);
            }
            let why = self.decide(&scope, &path, name, &stat, entered);
            if why == Entered::Not {
                if is_directory {
                    self.tree.directories_left_out.insert(path.clone());
                    self.look_below(directory, name, &path)?;
                }
                self.tree.left_out.insert(path);
            } else {
                if why == Entered::ForTracked {
                    self.tree.helped.insert(path.clone());
                }
                self.entry(directory, &path, name, &stat, &scope, why)?;
            }
        }
        Ok(())
    }

    /// Notes what is in the hidden directory `name`, which is at `path`.
    fn look_below(&mut self, parent: &OwnedFd, name: &[u8], path: &[u8]) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        for name in names(&directory)? {
            let stat = rustix::fs::statat(&directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            let path = below(path, &name);
            self.tree.hidden.insert(path.clone(), is_directory);
            if is_directory {
                self.tree.inodes.insert(path.clone(), stat.st_ino);
                if VERSION_CONTROL.contains(&name.as_slice()) {
                    self.tree.version_control.insert(path.clone());
                }
                self.look_below(&directory, &name, &path)?;
            }
        }
        Ok(())
    }

    fn scope(&mut self, directory: &OwnedFd, names: &[Vec<u8>], path: &[u8], outer: &Scope) -> io::Result<Scope> {
        let is_repository = names.iter().any(|name| name == b".git");
        self.tree.decisions.boundaries += u64::from(is_repository && !path.is_empty());
        let own = OwnRules {
            is_repository,
            exclude: if is_repository { rule_text(directory, b".git/info/exclude")? } else { None },
            gitignore: rule_text(directory, b".gitignore")?,
            retakeignore: match self.reading.dialect {
                Dialect::Retake => rule_text(directory, b".retakeignore")?,
                Dialect::Git => None,
            },
        };
        let scope = outer.descend(path, &own, self.tree.global.as_deref());
        self.tree.own.insert(path.to_vec(), own);
        Ok(scope)
    }

    fn decide(&mut self, scope: &Scope, path: &[u8], name: &[u8], stat: &Stat, parent: Entered) -> Entered {
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if parent == Entered::ForAll {
            // Ignore files are captured whatever they ignore.
            if self.reading.dialect == Dialect::Retake && !is_directory && is_rule_file(name) {
                self.tree.decisions.rule_files += u64::from(scope.verdict(path, false) == Some(Verdict::Ignored));
                return Entered::ForAll;
            }
            match scope.verdict(path, is_directory) {
                None => return Entered::ForAll,
                Some(Verdict::Kept) => {
                    self.tree.decisions.kept += 1;
                    return Entered::ForAll;
                }
                Some(Verdict::Ignored) => {}
            }
            let is_included = INCLUDE.iter().any(|glob| rules::matches(glob, name, true));
            if self.reading.dialect == Dialect::Retake && !is_directory && is_included {
                self.tree.decisions.included += 1;
                return Entered::ForAll;
            }
        }
        let is_among = |paths: &BTreeSet<Vec<u8>>| {
            if is_directory {
                let below = [path, b"/"].concat();
                paths.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below))
            } else {
                paths.contains(path)
            }
        };
        if is_among(&self.tracked) {
            self.tree.decisions.tracked += 1;
            return Entered::ForTracked;
        }
        let declared = &self.reading.declared;
        if is_among(declared)
            || declared.contains(path)
            || is_among(&self.reading.held)
            || self.is_saved(path)
            || is_among(&self.reading.saved)
        {
            return Entered::ForTracked;
        }
        self.tree.decisions.ignored += 1;
        Entered::Not
    }

    fn is_saved(&self, path: &[u8]) -> bool {
        let is_in = |saved: &Vec<u8>| path == saved || path.starts_with(&[saved.as_slice(), b"/"].concat());
        self.reading.saved.iter().any(is_in)
    }

    fn entry(
        &mut self,
        parent: &OwnedFd,
        path: &[u8],
        name: &[u8],
        stat: &Stat,
        scope: &Scope,
        entered: Entered,
    ) -> io::Result<()> {
        let (kind, content) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
                if entered == Entered::ForTracked {
                    self.tree.partly.insert(path.to_vec());
                }
                self.directory(&directory, path, scope, entered)?;
                (NaiveKind::Directory, Vec::new())
            }
            FileType::Symlink => (NaiveKind::Symlink, rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes()),
            FileType::RegularFile => {
                if stat.st_nlink > 1 {
                    self.tree.gaps.insert((path.to_vec(), NaiveGap::HardLink));
                }
                let is_too_large = u64::try_from(stat.st_size).is_ok_and(|size| size > self.reading.max_file);
                if is_too_large && !self.reading.declared.contains(path) && !self.is_saved(path) {
                    self.tree.gaps.insert((path.to_vec(), NaiveGap::TooLarge));
                    self.tree.left_out.insert(path.to_vec());
                    return Ok(());
                }
                (NaiveKind::File, read_file(parent, name)?)
            }
            _ => {
                self.tree.gaps.insert((path.to_vec(), NaiveGap::Special));
                self.tree.left_out.insert(path.to_vec());
                return Ok(());
            }
        };
        let mode = match kind {
            NaiveKind::Symlink => 0,
            _ => u16::try_from(stat.st_mode & 0o7777).expect("twelve bits fit"),
        };
        self.tree.nodes.insert(path.to_vec(), NaiveNode { kind, mode, content });
        Ok(())
    }
}

fn is_rule_file(name: &[u8]) -> bool {
    name == b".gitignore" || name == b".retakeignore"
}

impl NaiveTree {
    /// Whether an ignore rule left out `path`, or a directory above it, and that was there.
    pub fn is_left_out(&self, path: &[u8]) -> bool {
        if self.absent.contains(path) {
            return false;
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut in_partly = false;
        for prefix in slashes.chain([path.len()]).map(|end| &path[..end]) {
            let is_gap = self.gaps.iter().any(|(gap, kind)| gap == prefix && *kind != NaiveGap::HardLink);
            match self.nodes.get(prefix) {
                Some(node) if node.kind == NaiveKind::Directory => in_partly |= self.partly.contains(prefix),
                Some(_) => return false,
                None if self.left_out.contains(prefix) => return !is_gap,
                None => return in_partly && !self.sought.contains(path),
            }
        }
        false
    }

    /// Paths that `last` captured and that are not there any more, although this read did not look where they were.
    pub fn gone_since(&self, last: &Self) -> BTreeSet<Vec<u8>> {
        let is_there = |path: &Vec<u8>| self.left_out.contains(path) || self.hidden.contains_key(path);
        let is_gone =
            |path: &&Vec<u8>| !self.nodes.contains_key(*path) && self.known(path) == Known::Unknown && !is_there(path);
        last.nodes.keys().filter(is_gone).cloned().collect()
    }

    /// Names that a rule left out, and directories that were entered only in part.
    pub fn names_left_out(&self) -> impl Iterator<Item = &Vec<u8>> {
        let is_gap = |path: &Vec<u8>| self.gaps.iter().any(|(gap, kind)| gap == path && *kind != NaiveGap::HardLink);
        self.left_out.iter().filter(move |path| !is_gap(path)).chain(&self.partly)
    }

    /// Whether the rules of this read leave out `path`, which is there `now`, or a directory above it. What is in the repositories below
    /// the root is as it is `now`.
    pub fn would_leave_out(&self, path: &[u8], is_directory: bool, now: &Self) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let own = |directory: &[u8]| {
            let then = self.own.get(directory).cloned().unwrap_or_default();
            let now = now.own.get(directory).cloned().unwrap_or_default();
            if directory.is_empty() {
                return then;
            }
            OwnRules { is_repository: now.is_repository, exclude: now.exclude, ..then }
        };
        let mut scope = Scope::default().descend(b"", &own(b""), self.global.as_deref());
        for prefix in slashes.chain([path.len()]).map(|end| &path[..end]) {
            let is_directory = is_directory || prefix.len() < path.len();
            let name = prefix.rsplit(|&byte| byte == b'/').next().unwrap_or(prefix);
            let is_included = !is_directory && INCLUDE.iter().any(|glob| rules::matches(glob, name, true));
            let is_ignored = scope.verdict(prefix, is_directory) == Some(Verdict::Ignored);
            if is_ignored && !is_included && (is_directory || !is_rule_file(name)) {
                return true;
            }
            scope = scope.descend(prefix, &own(prefix), self.global.as_deref());
        }
        false
    }
}

/// The names in an index file of git's, version 2.
fn names_in_index(index: &[u8]) -> BTreeSet<Vec<u8>> {
    const FIXED: usize = 62;
    let mut names = BTreeSet::new();
    let mut rest = &index[12..];
    for _ in 0..u32::from_be_bytes(index[8..12].try_into().expect("four bytes")) {
        let length = rest[FIXED..].iter().position(|&b| b == 0).expect("names end with a zero");
        names.insert(rest[FIXED..FIXED + length].to_vec());
        rest = &rest[(FIXED + length) / 8 * 8 + 8..];
    }
    names
}

/// The path of `name` in the directory `path`, which is empty for the root.
fn below(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}

fn names(directory: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// The text of a rule file, if it is a regular file: git does not follow a link here, and a directory or a fifo holds no rules.
fn rule_text(directory: &OwnedFd, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            read_file(directory, name).map(Some)
        }
        _ => Ok(None),
    }
}

fn read_file(parent: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

impl std::fmt::Debug for NaiveNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.content[..self.content.len().min(40)];
        write!(f, "{:?} {:04o} {} bytes \"{}\"", self.kind, self.mode, self.content.len(), shown.escape_ascii())
    }
}
