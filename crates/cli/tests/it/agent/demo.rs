//! `retake demo`, without a terminal.

use crate::sandbox::Sandbox;

#[test]
fn the_tour_is_taken_without_a_key_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let before = std::fs::read_dir(sandbox.path("ws")).expect("a directory").count();
    let tmp = sandbox.path("tmp");
    std::fs::create_dir(&tmp).expect("a directory");
    let mut command = sandbox.retake_command();
    command.env("TMPDIR", &tmp).env_remove("RETAKE_MODEL").arg("demo");
    let run = crate::sandbox::Run::of(&mut command).succeeds();
    let text = String::from_utf8(run.stdout).expect("it is text");
    for said in ["it prints 15", "recreate  notes.txt", "byte for byte", "undo: the tidied project is back", "redo:"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    assert_eq!(std::fs::read_dir(&tmp).expect("a directory").count(), 0, "its directory is gone");
    assert_eq!(std::fs::read_dir(sandbox.path("ws")).expect("a directory").count(), before);
    assert!(!sandbox.path("home/.local/share/retake").exists(), "the user's own store is not touched");
}

#[test]
#[cfg(feature = "faults")]
fn a_restore_that_does_not_restore_fails_it() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.retake_command();
    command.env("FAILPOINTS", "bug-undo-skips-a-path=return").arg("demo");
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert!(said.contains("not as they were"), "{said}");
}
