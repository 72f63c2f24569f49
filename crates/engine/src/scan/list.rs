//! Step two of a scan: directories that changed are listed, names are classified, rules applied.
//!
//! Everything the disk shows is looked at afresh; what the index knows is reused only where the facts are equal. After
//! this step each entry that must be read is marked unsettled.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::dir_listing::{self, Listed};
use super::examine::Work;
use super::index::{Directory, DirectoryId, Entry, EntryKind, ROOT};
use super::rules::{Chain, Rules, Verdict, is_rule_file, is_version_control};
use super::stat::{Seen, look};
use super::{ScanError, Scanner, open};
use crate::base::fault;
use crate::base::id::ObjectId;
use crate::base::path::join;
use crate::base::progress::{Phase, Progress, Step};
use crate::store::tree::GapKind;

/// Directories that are read ahead.
const ROUND: usize = 1_024;
/// Directories that make a thread worth its while.
const STRIDE: usize = 16;

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

    /// Lists what is queued, a round at a time: directories are read ahead on all threads, then taken over one by one.
    fn drain(&mut self, listing: &mut Listing<'_>) -> Result<(), ScanError> {
        while !listing.queue.is_empty() {
            if listing.progress.cancelled() {
                return Err(ScanError::Cancelled);
            }
            let queued = std::iter::from_fn(|| listing.queue.pop_first());
            let queued = queued.filter(|(id, _)| self.index.contains(*id)).take(ROUND).collect::<Vec<_>>();
            let mut round = Vec::with_capacity(queued.len());
            for (id, rematch) in queued {
                let path = self.index.path(id).unwrap_or_default().to_vec();
                // Whatever happens after the watch is on will be reported, whatever was before is listed.
                self.watch_directory(id, &path);
                round.push((id, rematch, path));
            }
            let listed = self.read_directories(&round);
            for ((id, rematch, path), listed) in round.into_iter().zip(listed) {
                // What this round brought up may have moved it, and then it is queued again.
                if self.index.path(id) == Some(&path) {
                    self.update_directory(id, &path, rematch, listed, listing)?;
                }
            }
        }
        Ok(())
    }

    fn read_directories(&self, round: &[(DirectoryId, Rematch, Vec<u8>)]) -> Vec<Result<Listed, Errno>> {
        let read = |(_, _, path): &(DirectoryId, Rematch, Vec<u8>)| Listed::read(&self.root_path, self.root(), path);
        let share = round.len().div_ceil(self.threads).max(STRIDE);
        std::thread::scope(|scope| {
            let mut shares = round.chunks(share);
            let own = shares.next().unwrap_or_default();
            let others: Vec<_> =
                shares.map(|share| scope.spawn(move || share.iter().map(read).collect::<Vec<_>>())).collect();
            let mut listed: Vec<_> = own.iter().map(read).collect();
            for thread in others {
                listed.extend(thread.join().expect("listing does not panic"));
            }
            listed
        })
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

    /// Brings a directory's entries in step with what was listed.
    fn update_directory(
        &mut self,
        id: DirectoryId,
        path: &[u8],
        rematch: Rematch,
        listed: Result<Listed, Errno>,
        listing: &mut Listing<'_>,
    ) -> Result<(), ScanError> {
        let Listed { now, names, own } = match listed {
            // A file system was mounted over it: that is its parent's affair.
            Ok(listed) if listed.now.dev != self.root_dev => return self.cannot_list(id, Errno::NOENT, listing),
            Ok(listed) => listed,
            Err(err) => return self.cannot_list(id, err, listing),
        };
        let own_hash = own.hash();
        self.chains.remove(&id);
        let parent = self.index.place(id).map_or(ROOT, |(parent, _)| parent);
        let above = if id == ROOT { listing.rules.outer.top() } else { self.chain(parent, listing.rules) };
        let chain = listing.rules.outer.descend(&above, path, &own);
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
        self.update_entries(id, path, names, old, rematch, &chain, listing);
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
        names: Vec<(Box<[u8]>, Seen)>,
        old: Vec<Entry>,
        rematch: Rematch,
        chain: &Chain,
        listing: &mut Listing<'_>,
    ) {
        let mut entries = Vec::with_capacity(names.len());
        let mut old = old.into_iter().peekable();
        for (name, now) in names {
            // Both lists are sorted: whatever sorts before this name is gone.
            while let Some(gone) = old.next_if(|entry| entry.name < name) {
                self.forget_entry(&gone);
            }
            let known = old.next_if(|entry| entry.name == name);
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

    /// Decides what a name is. `None` for what is never listed: the temporary files of a rewind.
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
        let rules = listing.rules;
        if rules.temporary.contains(path) {
            return None;
        }
        let same_type = old.is_some_and(|old| old.facts.file_type() == file_type);
        let left_out = match old {
            Some(old) if same_type && rematch == Rematch::No => old.left_out,
            // It is never entered, and yet it is there: its absence from the snapshot proves nothing.
            _ if is_directory && is_version_control(name) => true,
            _ => {
                // A file of rules is captured whatever it ignores: a rule that hides itself could not be taken back.
                let is_captured_rule_file = !is_directory && is_rule_file(name);
                rules.is_store(path)
                    || self.index.open(parent).is_some_and(|directory| directory.flags.declared_only)
                    || (!is_captured_rule_file && rules.outer.verdict(chain, path, is_directory) == Verdict::LeftOut)
            }
        };
        // These are captured whatever their size.
        let declared = !is_directory && (rules.is_declared(path) || rules.is_saved(path));
        let enterable = is_directory && !is_version_control(name) && !rules.is_store(path);
        let kept = !is_directory && left_out && rules.keeps(path, false);
        let kept_below = enterable && left_out && rules.keeps(path, true);
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
            let is_news = old.is_none_or(|old| old.facts != now.facts);
            if is_news && file_type == FileType::RegularFile && now.links > 1 {
                self.note_ignored_link(&entry);
            }
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
            _ => rules.outer.top(),
        };
        let own = dir_listing::own_rules(&self.root_path, self.root(), &path);
        let chain = rules.outer.descend(&above, &path, &own);
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
