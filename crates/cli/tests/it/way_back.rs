//! What `exec`, a plan and `ops` promise about going back is what going back does.

use crate::sandbox::Sandbox;

#[test]
fn a_repository_that_a_command_made_is_named_when_it_stays() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.exec("git init -q sub; echo 2 > a").succeeds();
    s.retake(["rewind", &id, "--yes"]).succeeds().says("  sub: ").says("sub/.git");
    assert!(s.ws("sub/.git").exists());
}
