//! The property tests in processes of their own: with a file system whose clock is coarse, and with bugs that it has to notice.
//!
//! Needs the feature `faults`, which compiles the switches in.

use std::process::{Command, Output};

use retake_testkit::rerun;

use crate::cases;
use crate::compare::MISMATCH;

const PROPERTY: &str = "property::snapshots_and_diffs_agree_with_a_full_read";
const REWINDS: &str = "rewind_property::rewinds_do_what_a_naive_model_says_and_nothing_else";

/// Cases within which a seeded bug has to be noticed.
const CASES: &str = "1000";

#[test]
fn a_coarse_clock_hides_no_change() {
    let whole = retake_testkit::cases(cases::USUAL);
    // Below a thousand the property test does not ask for every kind of thing.
    let output = property().env("RETAKE_COARSE", "1").env("RETAKE_CASES", (whole / 4).to_string()).output();
    let output = output.expect("the test binary runs");
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_dropped_mode_bit_is_noticed() {
    assert_noticed(property().env("RETAKE_SEEDED_BUG", "bug-drop-mode-bit"));
}

#[test]
fn a_missed_rename_is_noticed() {
    assert_noticed(property().env("RETAKE_SEEDED_BUG", "bug-miss-rename"));
}

#[test]
fn a_skipped_racy_check_is_noticed() {
    // With a coarse clock, because a recent kernel gives every write that someone looked for a time of its own.
    assert_noticed(property().env("RETAKE_SEEDED_BUG", "bug-skip-racy-check").env("RETAKE_COARSE", "1"));
}

#[test]
fn an_overwritten_change_of_somebody_else_is_noticed() {
    assert_noticed(rewinds().env("RETAKE_SEEDED_BUG", "bug-ignore-others"));
}

#[test]
fn a_deletion_without_proof_of_absence_is_noticed() {
    assert_noticed(rewinds().env("RETAKE_SEEDED_BUG", "bug-delete-unproven"));
}

#[test]
fn an_overwritten_change_of_a_person_is_noticed() {
    assert_noticed(rewinds().env("RETAKE_SEEDED_BUG", "bug-ignore-yours"));
}

#[test]
fn a_forgotten_mode_is_noticed() {
    assert_noticed(rewinds().env("RETAKE_SEEDED_BUG", "bug-forget-mode"));
}

#[test]
fn an_undo_that_skips_a_path_is_noticed() {
    assert_noticed(rewinds().env("RETAKE_SEEDED_BUG", "bug-undo-skips-a-path"));
}

fn property() -> Command {
    test(PROPERTY)
}

fn rewinds() -> Command {
    test(REWINDS)
}

fn test(name: &str) -> Command {
    let mut command = rerun::test(name);
    for variable in ["RETAKE_CASES", "RETAKE_SEED", "RETAKE_COARSE", "RETAKE_SEEDED_BUG", "FAILPOINTS"] {
        command.env_remove(variable);
    }
    command
}

/// Expects the property test to fail, and for the right reason: a wrong answer of the engine's, neither an error nor a panic.
fn assert_noticed(property: &mut Command) {
    let output = property.env("RETAKE_CASES", CASES).output().expect("the test binary runs");
    let text = text(&output);
    assert!(!output.status.success(), "not noticed in {CASES} cases:\n{text}");
    assert!(text.contains(MISMATCH), "failed, but not by a mismatch:\n{text}");
    assert!(!text.contains("PANIC:") && !text.contains("ERROR:"), "failed, but not only by a mismatch:\n{text}");
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
