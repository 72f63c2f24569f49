//! The watch at its limits: too many events, events that never come.

use std::fs;

use retake_engine::progress::NoProgress;
use retake_engine::snapshot::GapKind;
use retake_engine::{Durability, WatchState, Workspace};
use retake_testkit::Scratch;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::scanners::{environment, numbered};

#[test]
fn an_overflowing_queue_leads_back_to_looking_at_everything() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    fs::write(root.join("file"), "before").unwrap();
    for name in ["noise-a", "noise-b"] {
        fs::write(root.join(name), "").unwrap();
    }
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    assert!(matches!(workspace.watch(), WatchState::Watching { .. }));
    workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap();
    // Equal neighbours in the queue are merged by the kernel, so two files take turns.
    let queue: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    for turn in 0..=queue / 2 {
        fs::write(root.join("noise-a"), turn.to_string()).unwrap();
        fs::write(root.join("noise-b"), turn.to_string()).unwrap();
    }
    fs::write(root.join("file"), "after!").unwrap();
    let made = workspace.checkpoints_mut().take(numbered(2), Durability::Soon, &NoProgress).unwrap();
    assert_eq!(made.changed.modified, 3);
    fs::write(root.join("file"), "again!").unwrap();
    let made = workspace.checkpoints_mut().take(numbered(3), Durability::Soon, &NoProgress).unwrap();
    assert_eq!(made.changed.modified, 1, "the watch goes on afterwards");
}

/// The kernel reports a new hard link at its new name only, and what is written through one name at that name only.
#[test]
fn what_is_written_through_another_name_is_seen_though_only_one_name_is_reported() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for name in ["linked", "plain", "other"] {
        fs::write(root.join(name), "before").unwrap();
    }
    fs::hard_link(root.join("linked"), root.join("partner")).unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    assert!(matches!(workspace.watch(), WatchState::Watching { .. }));
    let mut number = 0;
    let mut modified = |workspace: &mut Workspace| {
        number += 1;
        workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap().changed.modified
    };
    modified(&mut workspace);

    fs::hard_link(root.join("plain"), root.join("second")).unwrap();
    assert_eq!(modified(&mut workspace), 0);
    fs::write(root.join("second"), "after!").unwrap();
    assert_eq!(modified(&mut workspace), 2, "a name that was new");

    fs::remove_file(root.join("partner")).unwrap();
    fs::hard_link(root.join("other"), root.join("partner")).unwrap();
    assert_eq!(modified(&mut workspace), 0);
    fs::write(root.join("partner"), "after!").unwrap();
    assert_eq!(modified(&mut workspace), 2, "a name that had been another file's");
}

#[cfg(feature = "faults")]
mod deaf {
    use retake_engine::checkpoint::Verified;
    use retake_engine::snapshot::GapKind;
    use retake_testkit::rerun;

    use super::*;

    const ROLE: &str = "RETAKE_TEST_DEAF";

    #[test]
    fn what_the_watch_missed_becomes_a_checkpoint_and_a_gap() {
        if std::env::var_os(ROLE).is_none() {
            let name = "watching::deaf::what_the_watch_missed_becomes_a_checkpoint_and_a_gap";
            let output = rerun::test(name).env(ROLE, "1").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        fs::write(root.join("heard"), "1").unwrap();
        fs::write(root.join("missed"), "1").unwrap();
        let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
        workspace.watch();
        workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap();
        assert!(matches!(workspace.checkpoints_mut().verify(numbered(2), &NoProgress).unwrap(), Verified::Sound));

        fs::write(root.join("heard"), "22").unwrap();
        workspace.checkpoints_mut().take(numbered(3), Durability::Soon, &NoProgress).unwrap();
        fs::write(root.join("missed"), "333").unwrap();
        fail::cfg("deaf-watch", "return").unwrap();
        let made = workspace.checkpoints_mut().take(numbered(4), Durability::Soon, &NoProgress).unwrap();
        assert_eq!(made.changed.modified, 0, "the watch said nothing");
        let Verified::Missed(late) = workspace.checkpoints_mut().verify(numbered(5), &NoProgress).unwrap() else {
            panic!("not noticed")
        };
        assert_eq!(late.changed.modified, 1);
        let gaps = workspace.checkpoints().gaps(&made).unwrap();
        assert_eq!(gaps.len(), 1);
        assert_eq!((gaps[0].path.as_bytes(), gaps[0].kind), (&b"missed"[..], GapKind::Missed));
        assert!(workspace.checkpoints().gaps(&late).unwrap().is_empty());
        assert_eq!(workspace.checkpoints().all().unwrap()[1].gap_count, 1, "listings show it");
    }
}

#[test]
fn a_file_that_gets_an_ignored_name_beside_its_own_is_a_hard_link() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    fs::write(root.join(".gitignore"), "ignored\n").unwrap();
    fs::write(root.join("plain"), "before").unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    assert!(matches!(workspace.watch(), WatchState::Watching { .. }));
    let mut gaps = |number| {
        let made = workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
        let gaps = workspace.checkpoints().gaps(&made).unwrap();
        gaps.into_iter().map(|gap| (gap.path.display().to_string(), gap.kind)).collect::<Vec<_>>()
    };
    assert_eq!(gaps(1), []);
    // The link is made where no rule hides it, and trades places with an ignored file.
    fs::write(root.join("ignored"), "").unwrap();
    assert_eq!(gaps(2), []);
    fs::hard_link(root.join("plain"), root.join("other")).unwrap();
    renameat_with(CWD, root.join("other"), CWD, root.join("ignored"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!(gaps(3), [("plain".to_owned(), GapKind::HardLink)]);
}
