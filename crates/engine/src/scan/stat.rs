//! What the file system says about a path, reduced to what the scan compares.
//!
//! Also owns the judgement of file systems: which keep the times of directories, and how finely they tell time.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use crate::base::fault;

/// The facts that change when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    /// Type and permission bits.
    pub(crate) mode: u32,
}

/// What a `stat` tells beyond [`Facts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) facts: Facts,
    pub(crate) dev: u64,
    pub(crate) links: u64,
    pub(crate) uid: u32,
}

impl Facts {
    pub(crate) fn file_type(&self) -> FileType {
        #[allow(clippy::unnecessary_cast, reason = "the mode's type differs between systems")]
        FileType::from_raw_mode(self.mode as _)
    }

    pub(crate) fn permissions(&self) -> u16 {
        #[allow(clippy::cast_possible_truncation, reason = "twelve bits are left")]
        let bits = (self.mode & 0o7777) as u16;
        if fault::seeded("bug-drop-mode-bit") { bits & !0o020 } else { bits }
    }
}

/// Looks at `path` below `dir` without following a link.
pub(crate) fn look<P: rustix::path::Arg>(dir: impl AsFd, path: P) -> Result<Seen, Errno> {
    rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| seen(&stat))
}

/// The facts in a `stat`.
#[allow(
    clippy::useless_conversion,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    clippy::unnecessary_cast,
    reason = "field types differ between systems"
)]
pub(crate) fn seen(stat: &Stat) -> Seen {
    let time = |seconds: i64, nanos: i64| {
        let time = seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
        // A coarse file system, for tests: racy cases become frequent whatever the kernel does.
        if fault::seeded("coarse-clock") { time - time.rem_euclid(COARSE_TEST_NS) } else { time }
    };
    Seen {
        facts: Facts {
            ino: stat.st_ino as u64,
            size: stat.st_size as u64,
            mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            mode: stat.st_mode as u32,
        },
        dev: stat.st_dev as u64,
        links: stat.st_nlink as u64,
        uid: stat.st_uid as u32,
    }
}

/// The step of the clock that the fail point `coarse-clock` simulates.
const COARSE_TEST_NS: i64 = 10_000_000;

/// How far a file system's times can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    /// A directory's times move whenever an entry is added or removed.
    pub(crate) directory_times: bool,
    /// Two writes further apart than this never share a timestamp.
    pub(crate) granularity_ns: i64,
    /// A write after somebody looked at a file's times never shares a timestamp with one before.
    pub(crate) fine_grained: bool,
}

/// The judgement of the file system that holds `root`.
pub(crate) fn trust(root: impl AsFd) -> Trust {
    let (known, fine_grained) = file_system(root);
    let coarse = fault::seeded("coarse-clock");
    let granularity_ns = if coarse {
        2 * COARSE_TEST_NS
    } else if known {
        // Kernels stamp files with a clock that ticks every 1 to 10 ms.
        20_000_000
    } else {
        // FAT counts in two seconds, and a server's clock may run apart from ours.
        3_000_000_000
    };
    Trust { directory_times: known, granularity_ns, fine_grained: fine_grained && !coarse }
}

/// Whether the file system keeps directory times, and whether it tells times finely.
#[cfg(target_os = "linux")]
fn file_system(root: impl AsFd) -> (bool, bool) {
    // ext2-4, xfs, btrfs, tmpfs
    const FINE: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];
    // overlayfs, f2fs, zfs, bcachefs
    const KNOWN: [u32; 4] = [0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the magic numbers have 32 bits")]
    let Ok(kind) = rustix::fs::fstatfs(root).map(|fs| fs.f_type as u32) else { return (false, false) };
    let fine = FINE.contains(&kind);
    (fine || KNOWN.contains(&kind), fine && kernel_is_fine_grained())
}

#[cfg(not(target_os = "linux"))]
fn file_system(_root: impl AsFd) -> (bool, bool) {
    // APFS keeps both; network volumes on macOS are not told apart here.
    (true, true)
}

/// Linux 6.13 brought timestamps that are fine wherever somebody looks ("multigrain").
#[cfg(target_os = "linux")]
fn kernel_is_fine_grained() -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_str().unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(13))
}

/// Now, by the clock that the kernel stamps files with.
pub(crate) fn file_clock() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::RealtimeCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Realtime;
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}

impl Trust {
    /// Waits until a change from now on would get another timestamp than `ctime`.
    pub(crate) fn wait_until_settled(&self, ctime: i64) {
        let wait = ctime.saturating_add(self.granularity_ns).saturating_sub(file_clock());
        // A time from the future never settles; waiting for it would not help.
        if (1..=2 * self.granularity_ns).contains(&wait) {
            std::thread::sleep(std::time::Duration::from_nanos(wait.unsigned_abs()));
        }
    }

    /// Whether something last changed at `ctime` and examined at `examined` could have changed again without a trace.
    pub(crate) fn is_racy(&self, ctime: i64, examined: i64) -> bool {
        !fault::seeded("bug-skip-racy-check") && ctime >= examined - self.granularity_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_clearly_older_than_its_examination_is_settled() {
        let trust = Trust { directory_times: true, granularity_ns: 20, fine_grained: true };
        assert!(trust.is_racy(1000, 1000));
        assert!(trust.is_racy(980, 1000));
        assert!(trust.is_racy(2000, 1000), "a time in the future settles nothing");
        assert!(!trust.is_racy(979, 1000));
    }
}
