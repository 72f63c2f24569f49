//! Step two of a scan: directories that changed are listed, names are classified, rules applied.
//!
//! Everything the disk shows is looked at afresh; what the index knows is reused only where the facts are equal. After
//! this step each entry that must be read is marked unsettled.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use super::examine::Work;
use super::index::{Directory, DirectoryId, Entry, EntryKind, ROOT};
use super::rules::{Chain, OwnRules, Rules, Verdict, is_rule_file, is_version_control};
use super::stat::{Seen, look, seen};
use super::{Phase, Progress, ScanError, Scanner, Step, open};
use crate::path::join;
use crate::snapshot::tree::GapKind;
use crate::{ObjectId, fault, git, limits};

/// Whether known names have to be matched against the rules again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rematch {
    No,
    Yes,
}

/// Listing in progress.
struct Listing<'a> {
    rules: &'a Rules,
    /// When the scan began, by the clock that stamps files.
    started: i64,
    queue: BTreeMap<DirectoryId, Rematch>,
    /// Directories that were not where they should be.
    missing: BTreeSet<DirectoryId>,
    listed: u64,
    progress: &'a dyn Progress,
}

impl Listing<'_> {
    fn relist(&mut self, id: DirectoryId, rematch: Rematch) {
        let entry = self.queue.entry(id).or_insert(rematch);
        *entry = rematch.max(*entry);
    }
}

impl Scanner {
    /// Looks into everything in `work`, and into what that brings up.
    pub(super) fn list(
        &mut self,
        work: Work,
        rules: &Rules,
        started: i64,
        progress: &dyn Progress,
    ) -> Result<(), ScanError> {
        let mut listing = Listing { rules, started, queue: work.relist, missing: BTreeSet::new(), listed: 0, progress };
        for (id, name, seen) in work.names {
            // A directory that is listed anyway looks at all its names.
            if !listing.queue.contains_key(&id) && self.index.contains(id) {
                self.look_again(id, &name, seen, &mut listing);
            }
        }
        self.drain(&mut listing)?;
        for (id, name) in self.take_relinked() {
            self.look_again(id, &name, None, &mut listing);
        }
        self.drain(&mut listing)
    }

    fn drain(&mut self, listing: &mut Listing<'_>) -> Result<(), ScanError> {
        while let Some((id, rematch)) = listing.queue.pop_first() {
            if listing.progress.cancelled() {
                return Err(ScanError::Cancelled);
            }
            if self.index.contains(id) {
                self.list_directory(id, rematch, listing)?;
            }
        }
        Ok(())
    }

    /// Looks at one name of a directory whose other names are as they were.
    fn look_again(&mut self, id: DirectoryId, name: &[u8], known: Option<Seen>, listing: &mut Listing<'_>) {
        if is_rule_file(name) || is_version_control(name) {
            listing.relist(id, Rematch::No);
            return;
        }
        let Some(directory) = self.index.path(id) else { return };
        let path = join(directory, name);
        let now = match known {
            Some(seen) => Ok(seen),
            None => self.look_beneath(directory, name),
        };
        let old = self.index.open(id).and_then(|directory| {
            let position = directory.find(name)?;
            Some(directory.entries.remove(position))
        });
        let settled = old
            .as_ref()
            .zip(now.as_ref().ok())
            .is_some_and(|(old, now)| old.kind != EntryKind::Ignored && old.facts.file_type() == now.facts.file_type());
        let (rematch, chain) = match settled {
            true => (Rematch::No, Chain::default()),
            false => (Rematch::Yes, self.chain(id, listing.rules)),
        };
        let entry =
            now.ok().and_then(|seen| self.classify(id, &path, name, seen, old.as_ref(), rematch, &chain, listing));
        if let Some(old) = old.filter(|old| old.kind == EntryKind::Directory)
            && entry.as_ref().is_none_or(|entry| entry.kind != EntryKind::Directory || entry.child != old.child)
        {
            self.remove_directory(old.child);
        }
        let Some(directory) = self.index.open(id) else { return };
        directory.flags.stale = true;
        if let Some(entry) = entry {
            let position = directory.entries.partition_point(|other| other.name < entry.name);
            directory.entries.insert(position, entry);
        }
    }

    fn look_beneath(&self, directory: &[u8], name: &[u8]) -> Result<Seen, Errno> {
        let fd = open::directory(self.root(), directory)?;
        look(&fd, name)
    }

    /// Lists a directory and brings its entries in step.
    fn list_directory(
        &mut self,
        id: DirectoryId,
        rematch: Rematch,
        listing: &mut Listing<'_>,
    ) -> Result<(), ScanError> {
        let Some(path) = self.index.path(id).map(<[u8]>::to_vec) else { return Ok(()) };
        // Whatever happens after the watch is on will be reported, whatever was before is listed.
        self.watch_directory(id, &path);
        let fd = match open::directory(self.root(), &path) {
            Ok(fd) => fd,
            Err(err) => return self.cannot_list(id, err, listing),
        };
        let (now, names) = match (rustix::fs::fstat(&fd), names(&fd)) {
            (Ok(stat), Ok(names)) => (seen(&stat), names),
            (Err(err), _) | (_, Err(err)) => return self.cannot_list(id, err, listing),
        };
        if now.dev != self.root_dev {
            // A file system was mounted over it: that is its parent's affair.
            return self.cannot_list(id, Errno::NOENT, listing);
        }
        let own = own_rules(&self.root_path, self.root(), &path, &names);
        let own_hash = hash_own(&own);
        self.chains.remove(&id);
        let parent = self.index.place(id).map_or(ROOT, |(parent, _)| parent);
        let above = if id == ROOT { listing.rules.top() } else { self.chain(parent, listing.rules) };
        let chain = listing.rules.descend(&above, &path, &own);
        self.chains.insert(id, chain.clone());
        let Some(directory) = self.index.open(id) else { return Ok(()) };
        let rematch = if directory.rules == own_hash { rematch } else { Rematch::Yes };
        if fault::seeded("bug-miss-rename") && names.len() == directory.entries.len() {
            return Ok(());
        }
        // The parent's tree holds this directory's mode and what could not be read of it.
        self.mark_stale(parent);
        let Some(directory) = self.index.open(id) else { return Ok(()) };
        let old = std::mem::take(&mut directory.entries);
        directory.rules = own_hash;
        directory.flags.repository = own.repository;
        self.note_repository(id, own.repository);
        let Some(directory) = self.index.open(id) else { return Ok(()) };
        directory.flags.unreadable = false;
        directory.flags.stale = true;
        directory.facts = now.facts;
        let unsettled = self.trust.is_racy(now.facts.ctime, listing.started);
        self.update_entries(id, &path, &fd, names, old, rematch, &chain, listing);
        if let Some(directory) = self.index.open(id) {
            directory.flags.unsettled = unsettled;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one listing's particulars")]
    fn update_entries(
        &mut self,
        id: DirectoryId,
        path: &[u8],
        fd: &OwnedFd,
        names: Vec<Box<[u8]>>,
        old: Vec<Entry>,
        rematch: Rematch,
        chain: &Chain,
        listing: &mut Listing<'_>,
    ) {
        let mut entries = Vec::with_capacity(names.len());
        let mut old = old.into_iter().peekable();
        for name in names {
            // Both lists are sorted: whatever sorts before this name is gone.
            while let Some(gone) = old.next_if(|entry| entry.name < name) {
                self.forget_entry(&gone);
            }
            let known = old.next_if(|entry| entry.name == name);
            let Ok(now) = look(fd, &*name) else {
                known.iter().for_each(|entry| self.forget_entry(entry));
                continue;
            };
            let child_path = join(path, &name);
            let entry = self.classify(id, &child_path, &name, now, known.as_ref(), rematch, chain, listing);
            if let Some(known) = known
                && entry.as_ref().is_none_or(|entry| entry.kind != EntryKind::Directory || entry.child != known.child)
            {
                self.forget_entry(&known);
            }
            entries.extend(entry);
        }
        old.for_each(|gone| self.forget_entry(&gone));
        listing.listed += entries.len() as u64;
        listing.progress.report(Step { phase: Phase::Listing, done: listing.listed, total: None });
        if let Some(directory) = self.index.open(id) {
            directory.entries = entries;
        }
    }

    fn forget_entry(&mut self, entry: &Entry) {
        if entry.kind == EntryKind::Directory {
            self.remove_directory(entry.child);
        }
    }

    fn remove_directory(&mut self, id: DirectoryId) {
        for gone in self.index.remove(id) {
            self.chains.remove(&gone);
            self.unwatch_directory(gone);
        }
    }

    /// Decides what a name is. `None` for what is never listed: version-control directories.
    #[allow(clippy::too_many_arguments, reason = "all that decides it")]
    fn classify(
        &mut self,
        parent: DirectoryId,
        path: &[u8],
        name: &[u8],
        now: Seen,
        old: Option<&Entry>,
        rematch: Rematch,
        chain: &Chain,
        listing: &mut Listing<'_>,
    ) -> Option<Entry> {
        let file_type = now.facts.file_type();
        let is_directory = file_type == FileType::Directory;
        if is_directory && is_version_control(name) {
            return None;
        }
        let rules = listing.rules;
        let same_type = old.is_some_and(|old| old.facts.file_type() == file_type);
        let left_out = match old {
            Some(old) if same_type && rematch == Rematch::No => old.left_out,
            _ => {
                rules.is_store(path)
                    || self.index.open(parent).is_some_and(|directory| directory.flags.declared_only)
                    || rules.verdict(chain, path, is_directory) == Verdict::LeftOut
            }
        };
        let declared = !is_directory && rules.is_declared(path);
        let kept = !is_directory && left_out && (declared || rules.is_tracked(path));
        let kept_below = is_directory && left_out && (rules.declares_below(path) || rules.tracks_below(path));
        let mut entry = Entry {
            name: name.into(),
            kind: EntryKind::Ignored,
            unsettled: false,
            unread: true,
            left_out,
            gaps: 0,
            child: 0,
            facts: now.facts,
            content: ObjectId::default(),
        };
        if left_out && !kept && !kept_below {
            return Some(entry);
        }
        self.gaps_of(&mut entry, now, declared, rules);
        entry.kind = match file_type {
            _ if entry.gaps & uncaptured() != 0 => EntryKind::Gap,
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => EntryKind::Symlink,
            FileType::Directory => EntryKind::Directory,
            _ => EntryKind::Gap,
        };
        match entry.kind {
            EntryKind::Directory => {
                self.classify_directory(parent, path, &mut entry, old, rematch, kept_below, listing)
            }
            EntryKind::File | EntryKind::Symlink => reuse_content(&mut entry, old),
            EntryKind::Ignored | EntryKind::Gap => {}
        }
        self.note_linked(parent, &entry);
        Some(entry)
    }

    #[allow(clippy::too_many_arguments, reason = "all that decides it")]
    fn classify_directory(
        &mut self,
        parent: DirectoryId,
        path: &[u8],
        entry: &mut Entry,
        old: Option<&Entry>,
        rematch: Rematch,
        declared_only: bool,
        listing: &mut Listing<'_>,
    ) {
        let known = old.filter(|old| old.kind == EntryKind::Directory && old.facts.ino == entry.facts.ino);
        let child = known.and_then(|old| {
            let directory = self.index.open.get(&old.child);
            let (facts, flags) = match directory {
                Some(directory) => (directory.facts, directory.flags),
                None => self.index.block(old.child).map(|block| (block.facts(), block.flags()))?,
            };
            Some((old.child, facts, flags))
        });
        match child {
            Some((id, facts, flags)) => {
                entry.child = id;
                if rematch == Rematch::Yes || facts != entry.facts || flags.declared_only != declared_only {
                    let again = if flags.declared_only == declared_only { rematch } else { Rematch::Yes };
                    listing.relist(id, again);
                }
            }
            None => {
                // The old directory's number is only freed afterwards, so the new one cannot be mistaken for it.
                entry.child = self.index.add(Directory::new(parent, path.to_vec(), entry.facts));
                listing.relist(entry.child, Rematch::Yes);
            }
        }
        if let Some(directory) = self.index.open(entry.child) {
            directory.flags.declared_only = declared_only;
        }
    }

    /// Everything about a path that keeps it from being captured exactly, as far as `stat` tells.
    fn gaps_of(&self, entry: &mut Entry, now: Seen, declared: bool, rules: &Rules) {
        let mut gap = |on: bool, kind: GapKind| entry.gaps |= if on { kind.bit() } else { 0 };
        let file_type = now.facts.file_type();
        let regular = file_type == FileType::RegularFile;
        let known = regular || matches!(file_type, FileType::Symlink | FileType::Directory);
        gap(!known, GapKind::Special);
        gap(now.dev != self.root_dev, GapKind::OtherFilesystem);
        gap(regular && now.facts.size > rules.max_file && !declared, GapKind::TooLarge);
        gap(regular && now.links > 1, GapKind::HardLink);
        gap(known && now.uid != self.euid, GapKind::ForeignOwner);
    }

    /// A directory that cannot be listed is a gap, unless it is simply gone.
    fn cannot_list(&mut self, id: DirectoryId, err: Errno, listing: &mut Listing<'_>) -> Result<(), ScanError> {
        if id == ROOT {
            return Err(ScanError::Root { root: self.root_path.clone(), source: err.into() });
        }
        let gone = matches!(err, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
        if gone && listing.missing.insert(id) {
            // Its parent decides what has become of it, and lists it again if it is back.
            let parent = self.index.place(id).map_or(ROOT, |(parent, _)| parent);
            listing.relist(parent, Rematch::No);
            return Ok(());
        }
        let Some(directory) = self.index.open(id) else { return Ok(()) };
        let entries = std::mem::take(&mut directory.entries);
        directory.flags.unreadable = true;
        directory.flags.stale = true;
        if let Ok(now) = look(self.root.as_fd(), OsStr::from_bytes(self.index.path(id).unwrap_or_default()))
            && let Some(directory) = self.index.open(id)
        {
            directory.facts = now.facts;
        }
        entries.iter().for_each(|entry| self.forget_entry(entry));
        let parent = self.index.place(id).map_or(ROOT, |(parent, _)| parent);
        self.mark_stale(parent);
        Ok(())
    }

    fn mark_stale(&mut self, id: DirectoryId) {
        if let Some(directory) = self.index.open(id) {
            directory.flags.stale = true;
        }
    }

    /// The rules in force in a directory, read from disk on first use in a scan.
    fn chain(&mut self, id: DirectoryId, rules: &Rules) -> Chain {
        if let Some(chain) = self.chains.get(&id) {
            return chain.clone();
        }
        let path = self.index.path(id).unwrap_or_default().to_vec();
        let above = match self.index.place(id) {
            Some((parent, _)) if id != ROOT => self.chain(parent, rules),
            _ => rules.top(),
        };
        let names = open::directory(self.root(), &path).and_then(|fd| rule_names(&fd)).unwrap_or_default();
        let own = own_rules(&self.root_path, self.root(), &path, &names);
        let chain = rules.descend(&above, &path, &own);
        self.chains.insert(id, chain.clone());
        chain
    }
}

/// Takes over what is known of the content, and decides whether it must be read.
fn reuse_content(entry: &mut Entry, old: Option<&Entry>) {
    let same = old.filter(|old| old.kind == entry.kind && old.facts == entry.facts && !old.unread);
    match same {
        Some(old) => {
            entry.content = old.content;
            entry.unread = false;
            entry.unsettled = old.unsettled;
            entry.gaps |= old.gaps & GapKind::ExtendedAttributes.bit();
        }
        None => entry.unsettled = true,
    }
}

/// Gap bits that mean that the path has no content in the snapshot.
fn uncaptured() -> u16 {
    GapKind::ALL.into_iter().filter(|kind| kind.is_uncaptured()).map(GapKind::bit).sum()
}

/// All names in a directory, in byte order.
fn names(fd: &OwnedFd) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.into());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The names in a directory that matter for rules.
fn rule_names(fd: &OwnedFd) -> Result<Vec<Box<[u8]>>, Errno> {
    let candidates: [&[u8]; 3] = [b".git", b".gitignore", b".retakeignore"];
    Ok(candidates.into_iter().filter(|name| look(fd, *name).is_ok()).map(Box::from).collect())
}

fn own_rules(root_path: &std::path::Path, root: BorrowedFd<'_>, path: &[u8], names: &[Box<[u8]>]) -> OwnRules {
    let has = |name: &[u8]| names.binary_search_by(|other| (**other).cmp(name)).is_ok();
    let read = |name: &[u8]| {
        if !has(name) {
            return None;
        }
        let file = open::file(root, &join(path, name)).ok()?;
        let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
        let mut bytes = Vec::new();
        file.take(limits::MAX_RULE_FILE).read_to_end(&mut bytes).ok()?;
        (meta.len() <= limits::MAX_RULE_FILE).then_some(bytes)
    };
    let place = root_path.join(OsStr::from_bytes(path));
    let repository = has(b".git") && git::is_repository(&place);
    // The root's is among the rules from outside.
    let exclude = if repository && !path.is_empty() { git::exclude_file(&place) } else { None };
    OwnRules {
        repository,
        exclude: exclude.and_then(|path| open::read_small(&path)),
        gitignore: read(b".gitignore"),
        retakeignore: read(b".retakeignore"),
    }
}

fn hash_own(own: &OwnRules) -> ObjectId {
    let mut bytes = vec![u8::from(own.repository)];
    for file in [&own.gitignore, &own.retakeignore, &own.exclude] {
        bytes.push(u8::from(file.is_some()));
        bytes.extend_from_slice(&(file.as_ref().map_or(0, Vec::len) as u64).to_le_bytes());
        bytes.extend_from_slice(file.as_deref().unwrap_or_default());
    }
    ObjectId::of(&bytes)
}
