//! The self-test notices what it is there to notice.

use super::*;
use crate::base::progress::{Phase, Progress, Step};
use crate::maintenance::Footprint;

/// Does to the repository, while a checkpoint is taken, what Retake never does.
struct Meddling(PathBuf);

impl Progress for Meddling {
    fn report(&self, step: Step) {
        if step.phase == Phase::Listing {
            fs::write(self.0.join(".git/index"), "touched").expect("it can be written");
        }
    }
}

#[test]
fn a_repository_that_changes_during_the_self_test_is_noticed() {
    let mut s = Scene::new();
    let new = s.next(1);
    let tested = s.workspace.maintenance_mut().self_test(new, &NoProgress).expect("a checkpoint can be taken");
    assert_eq!(tested, Footprint::NoRepository);
    fs::create_dir(s.root.join(".git")).expect("it is new");
    fs::write(s.root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("it is new");
    let new = s.next(2);
    let tested = s.workspace.maintenance_mut().self_test(new, &NoProgress).expect("a checkpoint can be taken");
    assert_eq!(tested, Footprint::Untouched { files: 2 });
    let new = s.next(3);
    let meddling = Meddling(s.root.clone());
    let tested = s.workspace.maintenance_mut().self_test(new, &meddling).expect("a checkpoint can be taken");
    let git = s.root.join(".git");
    assert_eq!(tested, Footprint::Touched { paths: vec![git.join("index")] });
}

#[test]
fn what_others_can_read_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let mut s = Scene::new();
    s.checkpoint(1, b"x");
    assert!(s.workspace.maintenance().exposed().expect("it can be listed").is_empty());
    let packs = s.workspace.store_dir().join("packs");
    fs::set_permissions(&packs, fs::Permissions::from_mode(0o750)).expect("it is ours");
    assert_eq!(s.workspace.maintenance().exposed().expect("it can be listed"), [packs]);
    assert!(s.workspace.maintenance().index_agrees(&NoProgress).expect("it can be scanned"));
}
