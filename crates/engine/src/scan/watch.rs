//! The watch: in a long-lived process, the kernel tells what changed.
//!
//! Linux queues an event inside the very system call that changes something, so draining the queue after a tool has
//! returned is complete: no delay, no guess. Only directories that are captured are watched. An overflow or any doubt
//! leads back to looking at everything.
//!
//! What a watch cannot see: writes to a file through another hard link (those files are looked at each time), and stores
//! through a shared memory mapping (a limit of every tool of this kind). On other systems there is no watch and every scan
//! looks at everything.

use super::index::DirectoryId;

/// Whether a workspace is being watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// Changes are reported by the kernel.
    Watching {
        /// Directories under watch.
        directories: usize,
    },
    /// Every scan looks at everything.
    Unavailable {
        /// Why.
        reason: String,
    },
}

#[cfg(target_os = "linux")]
pub(super) use linux::Watch;
#[cfg(not(target_os = "linux"))]
pub(super) use none::Watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet, HashMap};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::io::Errno;

    use super::{DirectoryId, WatchState};
    use crate::base::path::join;
    use crate::base::{fault, limits};
    use crate::scan::examine::Work;
    use crate::scan::index::{Entry, ROOT};
    use crate::scan::list::Rematch;
    use crate::scan::stat::look;
    use crate::scan::{ScanError, Scanner, open};
    use crate::store::tree::GapKind;

    /// An inotify queue and what its watches stand for.
    #[derive(Debug)]
    pub(in crate::scan) struct Watch {
        fd: OwnedFd,
        directories: HashMap<i32, DirectoryId>,
        watches: HashMap<DirectoryId, i32>,
        limit: usize,
        /// Files with other names, whose changes may go unreported, and their inodes.
        linked: BTreeMap<(DirectoryId, Box<[u8]>), u64>,
        /// Repositories below the root: their `info/exclude` is not watched, so they are listed each time.
        repositories: BTreeSet<DirectoryId>,
        /// Inodes that were found to have other names during this scan; those names are not reported by themselves.
        relinked: BTreeSet<u64>,
        /// Something was missed: the next scan must look at everything.
        doubtful: bool,
        /// Why watching is over, if it is.
        failed: Option<String>,
    }

    impl Scanner {
        /// Starts watching. The next scan still looks at everything; those after it only at what the kernel reports.
        pub(crate) fn start_watch(&mut self) -> WatchState {
            if self.watch.is_none() {
                match self.new_watch() {
                    Ok(watch) => self.watch = Some(watch),
                    Err(reason) => return WatchState::Unavailable { reason },
                }
                for id in self.index.ids().collect::<Vec<_>>() {
                    if let Some(path) = self.index.path(id).map(<[u8]>::to_vec) {
                        self.watch_directory(id, &path);
                    }
                }
                self.find_linked();
                let repositories: Vec<_> = self.index.ids().filter(|&id| self.is_repository(id)).collect();
                repositories.into_iter().for_each(|id| self.note_repository(id, true));
            }
            self.watch_state()
        }

        /// How watching stands.
        pub(crate) fn watch_state(&self) -> WatchState {
            match &self.watch {
                Some(Watch { failed: None, watches, .. }) => WatchState::Watching { directories: watches.len() },
                Some(Watch { failed: Some(reason), .. }) => WatchState::Unavailable { reason: reason.clone() },
                None => WatchState::Unavailable { reason: "not started".to_owned() },
            }
        }

        fn new_watch(&self) -> Result<Watch, String> {
            if !self.trust.directory_times {
                return Err("changes made elsewhere on this file system are not reported".to_owned());
            }
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|err| err.to_string())?;
            let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").unwrap_or_default();
            let all: usize = text.trim().parse().unwrap_or(8192);
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a share of a small number"
            )]
            let limit = (all as f64 * limits::WATCH_SHARE) as usize;
            Ok(Watch {
                fd,
                directories: HashMap::new(),
                watches: HashMap::new(),
                limit,
                linked: BTreeMap::new(),
                relinked: BTreeSet::new(),
                repositories: BTreeSet::new(),
                doubtful: true,
                failed: None,
            })
        }

        /// Puts a directory under watch; the caller lists it afterwards.
        pub(in crate::scan) fn watch_directory(&mut self, id: DirectoryId, path: &[u8]) {
            let root = self.root.as_fd();
            let Some(watch) = self.watch.as_mut().filter(|watch| watch.failed.is_none()) else { return };
            if watch.watches.len() >= watch.limit && !watch.watches.contains_key(&id) {
                watch.give_up("too many directories for the system's limit of watches");
                return;
            }
            let Ok(fd) = open::directory(root, path) else { return };
            // Through the handle's own name, so that no path is resolved a second time.
            let by_handle = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            let events = WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::EXCL_UNLINK;
            match inotify::add_watch(&watch.fd, by_handle, events) {
                Ok(wd) => {
                    watch.directories.insert(wd, id);
                    watch.watches.insert(id, wd);
                }
                Err(Errno::NOENT | Errno::NOTDIR) => watch.doubtful = true,
                Err(err) => watch.give_up(&format!("the system refused a watch: {err}")),
            }
        }

        /// Ends a directory's watch.
        pub(in crate::scan) fn unwatch_directory(&mut self, id: DirectoryId) {
            let Some(watch) = self.watch.as_mut() else { return };
            watch.repositories.remove(&id);
            let Some(wd) = watch.watches.remove(&id) else { return };
            // A moved directory keeps its watch: it may stand for its new place already.
            if watch.directories.get(&wd) == Some(&id) {
                watch.directories.remove(&wd);
                // It fails when the directory is gone, and then there is nothing to end.
                inotify::remove_watch(&watch.fd, wd).ok();
            }
        }

        /// Notes a file that has other names.
        pub(in crate::scan) fn note_linked(&mut self, directory: DirectoryId, entry: &Entry) {
            if let Some(watch) = &mut self.watch
                && entry.gaps & GapKind::HardLink.bit() != 0
                && watch.linked.insert((directory, entry.name.clone()), entry.facts.ino) != Some(entry.facts.ino)
            {
                watch.relinked.insert(entry.facts.ino);
            }
        }

        /// Notes an ignored name of a file that has other names: these have got one more, which nothing reports.
        pub(in crate::scan) fn note_ignored_link(&mut self, entry: &Entry) {
            if let Some(watch) = &mut self.watch {
                watch.relinked.insert(entry.facts.ino);
            }
        }

        fn is_repository(&self, id: DirectoryId) -> bool {
            match self.index.open.get(&id) {
                Some(directory) => directory.flags.repository,
                None => self.index.block(id).is_some_and(|block| block.flags().repository),
            }
        }

        /// Notes whether a directory below the root holds a repository.
        pub(in crate::scan) fn note_repository(&mut self, id: DirectoryId, repository: bool) {
            let Some(watch) = &mut self.watch else { return };
            if repository && id != ROOT {
                watch.repositories.insert(id);
            } else {
                watch.repositories.remove(&id);
            }
        }

        /// Names that got another one beside them: the kernel reports only the new name.
        pub(in crate::scan) fn take_relinked(&mut self) -> Vec<(DirectoryId, Box<[u8]>)> {
            let inodes = self.watch.as_mut().map(|watch| std::mem::take(&mut watch.relinked)).unwrap_or_default();
            let mut names = Vec::new();
            if inodes.is_empty() {
                return names;
            }
            let bit = GapKind::HardLink.bit();
            let is_meant = |ino: u64, gaps: u16| inodes.contains(&ino) && gaps & bit == 0;
            for id in self.index.ids() {
                if let Some(directory) = self.index.open.get(&id) {
                    let entries = directory.entries.iter().filter(|entry| is_meant(entry.facts.ino, entry.gaps));
                    names.extend(entries.map(|entry| (id, entry.name.clone())));
                } else if let Some(block) = self.index.block(id) {
                    let entries = block.entries().enumerate();
                    let entries = entries.filter(|(_, entry)| is_meant(entry.facts().ino, entry.gaps()));
                    names.extend(entries.map(|(position, _)| (id, block.name_at(position).into())));
                }
            }
            names
        }

        fn find_linked(&mut self) {
            let bit = GapKind::HardLink.bit();
            let mut linked = BTreeMap::new();
            for id in self.index.ids() {
                if let Some(directory) = self.index.open.get(&id) {
                    let entries = directory.entries.iter().filter(|entry| entry.gaps & bit != 0);
                    linked.extend(entries.map(|entry| ((id, entry.name.clone()), entry.facts.ino)));
                } else if let Some(block) = self.index.block(id) {
                    let entries = block.entries().enumerate().filter(|(_, entry)| entry.gaps() & bit != 0);
                    let name = |position| block.name_at(position).into();
                    linked.extend(entries.map(|(position, entry)| ((id, name(position)), entry.facts().ino)));
                }
            }
            if let Some(watch) = &mut self.watch {
                watch.linked = linked;
            }
        }

        /// What changed since the last scan, as the kernel tells; by looking at everything when it cannot.
        pub(in crate::scan) fn ask_watch(&mut self) -> Result<Work, ScanError> {
            let reported = self.watch.as_mut().map(Watch::drain).unwrap_or_default();
            let sure = self.watch.as_ref().is_some_and(|watch| watch.failed.is_none() && !watch.doubtful);
            if !sure {
                if let Some(watch) = &mut self.watch {
                    watch.doubtful = false;
                }
                return self.examine();
            }
            let mut work = Work::default();
            work.names.extend(reported.into_iter().map(|(id, name)| (id, name, None)));
            self.look_at_linked(&mut work);
            let repositories = self.watch.as_ref().map(|watch| watch.repositories.clone()).unwrap_or_default();
            work.relist.extend(repositories.into_iter().map(|id| (id, Rematch::No)));
            Ok(work)
        }

        fn look_at_linked(&mut self, work: &mut Work) {
            let Some(mut linked) = self.watch.as_mut().map(|watch| std::mem::take(&mut watch.linked)) else { return };
            linked.retain(|(id, name), _| {
                let Some(directory) = self.index.path(*id) else { return false };
                let now = look(self.root(), join(directory, name));
                let known = match self.index.open.get(id) {
                    Some(directory) => directory.find(name).map(|at| directory.entries[at].facts),
                    None => self.index.block(*id).and_then(|block| block.find(name)).map(|entry| entry.facts()),
                };
                if now.ok().map(|seen| seen.facts) != known {
                    work.names.push((*id, name.clone(), None));
                }
                known.is_some()
            });
            if let Some(watch) = &mut self.watch {
                watch.linked = linked;
            }
        }
    }

    impl Watch {
        fn give_up(&mut self, reason: &str) {
            self.failed = Some(reason.to_owned());
            self.directories.clear();
            self.watches.clear();
        }

        /// Empties the queue.
        fn drain(&mut self) -> BTreeSet<(DirectoryId, Box<[u8]>)> {
            let mut reported = BTreeSet::new();
            let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
            let mut events = inotify::Reader::new(&self.fd, &mut buffer);
            loop {
                let event = match events.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    Err(_) => {
                        self.doubtful = true;
                        break;
                    }
                };
                if event.events().intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                    self.doubtful = true;
                    continue;
                }
                let Some(&id) = self.directories.get(&event.wd()) else { continue };
                match event.file_name() {
                    Some(name) => {
                        reported.insert((id, name.to_bytes().into()));
                    }
                    None if event.events().contains(ReadFlags::IGNORED) => {
                        self.directories.remove(&event.wd());
                        self.watches.remove(&id);
                    }
                    // Its parent's watch reports the rest, and the root has no watched parent.
                    None if id == ROOT => self.doubtful = true,
                    None => {}
                }
            }
            if fault::seeded("deaf-watch") { BTreeSet::new() } else { reported }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use super::{DirectoryId, WatchState};
    use crate::scan::examine::Work;
    use crate::scan::index::Entry;
    use crate::scan::{ScanError, Scanner};

    /// There is no watch.
    #[derive(Debug)]
    pub(in crate::scan) enum Watch {}

    impl Scanner {
        /// Says that there is no watch.
        pub(crate) fn start_watch(&mut self) -> WatchState {
            self.watch_state()
        }

        /// Says that there is no watch.
        pub(crate) fn watch_state(&self) -> WatchState {
            WatchState::Unavailable { reason: "watching is only available on Linux".to_owned() }
        }

        pub(in crate::scan) fn watch_directory(&mut self, _id: DirectoryId, _path: &[u8]) {}

        pub(in crate::scan) fn unwatch_directory(&mut self, _id: DirectoryId) {}

        pub(in crate::scan) fn note_linked(&mut self, _directory: DirectoryId, _entry: &Entry) {}

        pub(in crate::scan) fn note_ignored_link(&mut self, _entry: &Entry) {}

        pub(in crate::scan) fn note_repository(&mut self, _id: DirectoryId, _repository: bool) {}

        pub(in crate::scan) fn take_relinked(&mut self) -> Vec<(DirectoryId, Box<[u8]>)> {
            Vec::new()
        }

        pub(in crate::scan) fn ask_watch(&mut self) -> Result<Work, ScanError> {
            self.examine()
        }
    }
}
