//! Ignore rules: which names are left out.
//!
//! Rules come from `.gitignore` and `.retakeignore` in every directory, from the `.git/info/exclude` of the repository a
//! directory belongs to, from git's global excludes, and, when the workspace is a part of a repository, from the
//! `.gitignore` files above it. A directory that holds a repository of its own starts afresh: the outer `.gitignore`
//! files say nothing inside, as in git. `.retakeignore` wins over git's files, a deeper file over a higher one, a later
//! line over an earlier one.
//!
//! Matching itself is the `ignore` crate's. Rule files that cannot be read have no rules; lines that are no valid pattern
//! are skipped, as git does.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::open;
use crate::base::id::ObjectId;
use crate::base::limits;
use crate::base::path::join;
use crate::base::settings::Environment;
use crate::git::{self, tracked};

/// Version-control directories: never captured, never touched.
const VERSION_CONTROL: [&[u8]; 5] = [b".git", b".hg", b".svn", b".jj", b".sl"];

/// Whether a directory called `name` belongs to a version-control system.
pub(crate) fn is_version_control(name: &[u8]) -> bool {
    VERSION_CONTROL.contains(&name)
}

/// Whether a file called `name` holds rules.
pub(crate) fn is_rule_file(name: &[u8]) -> bool {
    name == b".gitignore" || name == b".retakeignore"
}

/// The rules of one place, for everything below it.
#[derive(Debug)]
struct Layer {
    matcher: Arc<Gitignore>,
    /// The place, relative to the workspace's root; or, for a place above the root, how the root is called from there.
    base: Base,
}

#[derive(Debug)]
enum Base {
    Inside(Vec<u8>),
    Above(Vec<u8>),
}

impl Layer {
    fn verdict(&self, path: &[u8], is_directory: bool) -> Option<Verdict> {
        let above;
        let relative = match &self.base {
            Base::Inside(base) if base.is_empty() => path,
            Base::Inside(base) => &path[base.len() + 1..],
            Base::Above(root) => {
                above = join(root, path);
                &above
            }
        };
        match self.matcher.matched(Path::new(OsStr::from_bytes(relative)), is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(Verdict::LeftOut),
            Match::Whitelist(_) => Some(Verdict::Captured),
        }
    }
}

/// What the rules say of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Captured,
    LeftOut,
}

/// The rules in force in one directory: its own and everything above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// `.gitignore` layers down from the repository's root, after its `info/exclude`; later ones win.
    git: Vec<Arc<Layer>>,
    /// `.retakeignore` layers down from the workspace's root; later ones win.
    retake: Vec<Arc<Layer>>,
    /// Git's global excludes, which are anchored in each repository anew.
    global: Option<Arc<Layer>>,
}

/// The rules from outside the workspace and the settings.
#[derive(Debug)]
pub(crate) struct Outer {
    include: Gitignore,
    top: Chain,
}

/// The rules that hold everywhere.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) outer: Arc<Outer>,
    /// Paths captured whatever the rules say.
    pub(crate) declared: BTreeSet<Vec<u8>>,
    /// Paths that a rewind touches, captured whatever the rules say. For one scan only.
    pub(crate) wanted: BTreeSet<Vec<u8>>,
    /// Paths that an agent's or a command's rule change leaves out: they stay captured until the user confirms the change.
    pub(crate) held: BTreeSet<Vec<u8>>,
    /// Hidden paths that a rewind saves before it deletes them, with all that is below them. For one scan only.
    pub(crate) saved: BTreeSet<Vec<u8>>,
    /// Hidden directories that are entered only for some of `saved`.
    pub(crate) parted: BTreeSet<Vec<u8>>,
    /// Temporary files of a rewind under way.
    pub(crate) temporary: BTreeSet<Vec<u8>>,
    root: PathBuf,
    /// What git tracks; read when it is first needed.
    tracked: OnceLock<Vec<Vec<u8>>>,
    /// Changes whenever what git tracks may have.
    index_stamp: [u64; 3],
    pub(crate) max_file: u64,
    /// The store, if it is inside the workspace; relative to the root.
    store: Option<Vec<u8>>,
    /// Changes whenever something outside the workspace does that decides what is ignored.
    pub(crate) fingerprint: ObjectId,
    /// The same, as text to keep beside a checkpoint.
    pub(crate) described: Vec<u8>,
}

impl Base {
    /// How the root is called from there; empty for the root itself. No other place inside is outermost.
    fn name(&self) -> &[u8] {
        match self {
            Self::Inside(_) => b"",
            Self::Above(name) => name,
        }
    }

    fn named(name: &[u8]) -> Self {
        if name.is_empty() { Self::Inside(Vec::new()) } else { Self::Above(name.to_vec()) }
    }
}

impl Outer {
    /// The rules that [`Rules::collect`] `described`; `None` if an older version did, which left out where they are anchored.
    pub(crate) fn described(described: &[u8]) -> Option<Self> {
        let (mut include, mut top, mut at) = (Vec::new(), Chain::default(), None);
        let mut rest = described;
        while !rest.is_empty() {
            let line = rest.iter().position(|&byte| byte == b'\n')?;
            let (what, length) = str::from_utf8(&rest[..line]).ok()?.split_once(' ')?;
            let (bytes, after) = rest[line + 1..].split_at_checked(length.parse().ok()?)?;
            match what {
                "include" => include = bytes.to_vec(),
                "at" => at = Some(bytes),
                "global" => top.global = parse(bytes, Base::named(at.take()?)),
                "outer" => top.git.extend(parse(bytes, Base::named(at.take()?))),
                _ => {}
            }
            rest = after.strip_prefix(b"\n")?;
        }
        Some(Self { include: build(&include), top })
    }

    /// The rules above the workspace's root.
    pub(crate) fn top(&self) -> Chain {
        self.top.clone()
    }

    /// The rules inside `directory`, given those of its parent and its own rule files.
    pub(crate) fn descend(&self, parent: &Chain, directory: &[u8], own: &OwnRules) -> Chain {
        let mut chain = parent.clone();
        // The root's repository is among the outer files already.
        if own.repository && !directory.is_empty() {
            let exclude = own.exclude.as_deref();
            chain.git = exclude.and_then(|bytes| parse(bytes, Base::Inside(directory.to_vec()))).into_iter().collect();
            let anew =
                |global: Arc<Layer>| Layer { matcher: global.matcher.clone(), base: Base::Inside(directory.to_vec()) };
            chain.global = chain.global.map(|global| Arc::new(anew(global)));
        }
        let own_layer = |bytes: &Option<Vec<u8>>| parse(bytes.as_deref()?, Base::Inside(directory.to_vec()));
        chain.git.extend(own_layer(&own.gitignore));
        chain.retake.extend(own_layer(&own.retakeignore));
        chain
    }

    /// What the rules say of `path`, whose parent has `chain`.
    pub(crate) fn verdict(&self, chain: &Chain, path: &[u8], is_directory: bool) -> Verdict {
        let layers = chain.retake.iter().rev().chain(chain.git.iter().rev()).chain(&chain.global);
        let verdict = layers.into_iter().find_map(|layer| layer.verdict(path, is_directory));
        if verdict != Some(Verdict::LeftOut) {
            return Verdict::Captured;
        }
        let precious = !is_directory && self.include.matched(OsStr::from_bytes(path), false).is_ignore();
        if precious { Verdict::Captured } else { Verdict::LeftOut }
    }
}

impl Rules {
    /// Collects the rules from outside the workspace and from the settings.
    pub(crate) fn collect(
        env: &Environment,
        declared: BTreeSet<Vec<u8>>,
        held: BTreeSet<Vec<u8>>,
        temporary: BTreeSet<Vec<u8>>,
    ) -> Self {
        let mut described = Vec::new();
        let mut note = |what: &str, bytes: &[u8]| {
            described.extend_from_slice(format!("{what} {}\n", bytes.len()).as_bytes());
            described.extend_from_slice(bytes);
            described.push(b'\n');
        };
        let include = env.settings.include.join("\n");
        note("include", include.as_bytes());
        note("max_file", env.settings.max_file.to_string().as_bytes());
        // An index of a version that left out ignore files which ignore themselves is matched again.
        note("rule_files", b"captured");
        let mut layer = |what: &str, path: &Path, base: Base| {
            let bytes = open::read_small(path)?;
            note("at", base.name());
            note(what, &bytes);
            parse(&bytes, base)
        };
        let global = env.global_excludes.as_ref().and_then(|excludes| excludes.file(&env.root));
        let global = global.and_then(|path| layer("global", &path, outermost(&env.root)));
        let mut top = Chain { global, ..Chain::default() };
        for (file, base) in outer_files(&env.root) {
            top.git.extend(layer("outer", &file, base));
        }
        let store = env.data_dir.strip_prefix(&env.root).ok().map(|path| path.as_os_str().as_bytes().to_vec());
        let fingerprint = ObjectId::of(&described);
        Self {
            outer: Arc::new(Outer { include: build(include.as_bytes()), top }),
            declared,
            wanted: BTreeSet::new(),
            held,
            saved: BTreeSet::new(),
            parted: BTreeSet::new(),
            temporary,
            root: env.root.clone(),
            tracked: OnceLock::new(),
            index_stamp: tracked::index_stamp(&env.root).unwrap_or_default(),
            max_file: env.settings.max_file,
            store,
            fingerprint,
            described,
        }
    }

    /// Whether `path` is the store, which never captures itself.
    pub(crate) fn is_store(&self, path: &[u8]) -> bool {
        self.store.as_deref() == Some(path)
    }

    /// Whether any path is captured whatever the rules say.
    pub(crate) fn has_declared(&self) -> bool {
        !self.declared.is_empty() || !self.wanted.is_empty()
    }

    pub(crate) fn is_declared(&self, path: &[u8]) -> bool {
        self.declared.contains(path) || self.wanted.contains(path)
    }

    /// Changes whenever another set of paths may be captured although the rules leave them out.
    pub(crate) fn kept_stamp(&self) -> ObjectId {
        let mut bytes = self.index_stamp.map(u64::to_le_bytes).concat();
        for path in self.held.iter().chain(&self.saved).chain(&self.wanted) {
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        ObjectId::of(&bytes)
    }

    /// Whether `path`, which the rules leave out, is captured all the same; of a directory, whether something below it is.
    pub(crate) fn keeps(&self, path: &[u8], is_directory: bool) -> bool {
        let own = self.is_declared(path) || self.is_saved(path);
        match is_directory {
            true => {
                own || contains_below(&self.declared, path)
                    || contains_below(&self.wanted, path)
                    || contains_below(&self.held, path)
                    || contains_below(&self.saved, path)
                    || self.tracks_below(path)
            }
            false => own || self.held.contains(path) || self.is_tracked(path),
        }
    }

    /// Whether a rewind saves `path` before it deletes it.
    pub(crate) fn is_saved(&self, path: &[u8]) -> bool {
        let is_at_or_above = |saved: &Vec<u8>| match path.strip_prefix(saved.as_slice()) {
            Some(rest) => rest.is_empty() || rest[0] == b'/',
            None => false,
        };
        !self.saved.is_empty() && self.saved.iter().any(is_at_or_above)
    }

    fn tracked(&self) -> &[Vec<u8>] {
        self.tracked.get_or_init(|| tracked::tracked(&self.root))
    }

    /// Whether git tracks `path`, and so does not ignore it.
    fn is_tracked(&self, path: &[u8]) -> bool {
        tracked::contains(self.tracked(), path)
    }

    /// Whether git tracks something below the directory `path`.
    fn tracks_below(&self, path: &[u8]) -> bool {
        tracked::contains_below(self.tracked(), path)
    }
}

/// Whether one of `paths` is below the directory `path`.
fn contains_below(paths: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let prefix = join(path, b"");
    paths.range(prefix.clone()..).next().is_some_and(|next| next.starts_with(&prefix))
}

/// The rule files of one directory.
#[derive(Debug, Default)]
pub(crate) struct OwnRules {
    /// It holds a repository.
    pub(crate) repository: bool,
    /// The repository's `info/exclude`, but for the root's.
    pub(crate) exclude: Option<Vec<u8>>,
    pub(crate) gitignore: Option<Vec<u8>>,
    pub(crate) retakeignore: Option<Vec<u8>>,
}

impl OwnRules {
    /// Differs when anything in them does.
    pub(crate) fn hash(&self) -> ObjectId {
        let mut bytes = vec![u8::from(self.repository)];
        for file in [&self.gitignore, &self.retakeignore, &self.exclude] {
            bytes.push(u8::from(file.is_some()));
            bytes.extend_from_slice(&(file.as_ref().map_or(0, Vec::len) as u64).to_le_bytes());
            bytes.extend_from_slice(file.as_deref().unwrap_or_default());
        }
        ObjectId::of(&bytes)
    }
}

/// Where the rules of the repository around `root` are anchored; at the root itself without one.
fn outermost(root: &Path) -> Base {
    let name = git::top_level(root).and_then(|top| Some(root.strip_prefix(top).ok()?.as_os_str().as_bytes().to_vec()));
    match name {
        Some(name) if !name.is_empty() => Base::Above(name),
        _ => Base::Inside(Vec::new()),
    }
}

/// Git's files outside the workspace that have a say in it, weakest first.
fn outer_files(root: &Path) -> Vec<(PathBuf, Base)> {
    let Some(top) = git::top_level(root) else { return Vec::new() };
    let from = |place: &Path| {
        let name = root.strip_prefix(place).expect("the top level is above the root");
        if name.as_os_str().is_empty() {
            Base::Inside(Vec::new())
        } else {
            Base::Above(name.as_os_str().as_bytes().to_vec())
        }
    };
    let exclude = git::exclude_file(&top).map(|path| (path, from(&top)));
    // The root's own file is read by the scan.
    let mut places: Vec<&Path> = root.ancestors().skip(1).take_while(|place| place.starts_with(&top)).collect();
    places.reverse();
    let above = places.into_iter().map(|place| (place.join(".gitignore"), from(place)));
    exclude.into_iter().chain(above).collect()
}

fn parse(bytes: &[u8], base: Base) -> Option<Arc<Layer>> {
    let matcher = build(bytes);
    (!matcher.is_empty()).then(|| Arc::new(Layer { matcher: Arc::new(matcher), base }))
}

pub(crate) fn build(bytes: &[u8]) -> Gitignore {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut builder = GitignoreBuilder::new("");
    if bytes.len() as u64 <= limits::MAX_RULE_FILE {
        for line in bytes.split(|&b| b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Ok(line) = str::from_utf8(line) {
                // A line that is no pattern has no effect in git either.
                drop(builder.add_line(None, &as_git_means(line)));
            }
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// A line in which the matcher's own ideas are taken back: git knows no `{a,b}`, but it knows `[[:upper:]]`.
fn as_git_means(line: &str) -> String {
    const CLASSES: [(&str, &str); 7] = [
        ("[:upper:]", "A-Z"),
        ("[:lower:]", "a-z"),
        ("[:digit:]", "0-9"),
        ("[:alpha:]", "A-Za-z"),
        ("[:alnum:]", "A-Za-z0-9"),
        ("[:xdigit:]", "0-9A-Fa-f"),
        ("[:space:]", " \t"),
    ];
    let line = CLASSES.iter().fold(line.to_owned(), |line, (class, range)| line.replace(class, range));
    let mut plain = String::with_capacity(line.len());
    let mut escaped = false;
    for c in line.chars() {
        if matches!(c, '{' | '}') && !escaped {
            plain.push('\\');
        }
        escaped = c == '\\' && !escaped;
        plain.push(c);
    }
    plain
}
