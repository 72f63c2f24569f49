//! Crashes and errors in the middle of `gc` and `purge`: every checkpoint that should be there is whole, and the next run finishes.

use std::fs;
use std::path::Path;

use retake_testkit::{Ended, Killer, Lasting};

use super::{Scene, some_files};
use crate::history::{self, History, Missing};
use crate::sandbox::{Run, Sandbox};

/// Short, so that it is stored as it is and can be looked for in the files of the store.
const SECRET: &str = "hunter2 hunter2 hunter2";

#[test]
fn gc_survives_a_crash_at_every_step() {
    let scene = outdated();
    let steps =
        Killer::new(|| scene.set_up()).crash_at_every_step(|step, ended| assert_gc_survived(&scene, step, ended));
    assert!(steps >= 20, "only {steps} steps: is one missing a fail point?");
}

#[test]
fn gc_survives_an_error_at_every_step() {
    let scene = outdated();
    fail_everywhere(&scene, |step, ended| assert_gc_survived(&scene, step, ended));
}

#[test]
fn a_purge_survives_a_crash_at_every_step() {
    let scene = leaked(After::Checkpoints);
    let steps =
        Killer::new(|| scene.set_up()).crash_at_every_step(|step, ended| assert_purge_survived(&scene, step, ended));
    assert!(steps >= 20, "only {steps} steps: is one missing a fail point?");
}

#[test]
fn a_purge_of_what_was_compressed_with_others_survives_a_crash_at_every_step() {
    let scene = leaked(After::Gc);
    let steps =
        Killer::new(|| scene.set_up()).crash_at_every_step(|step, ended| assert_purge_survived(&scene, step, ended));
    assert!(steps >= 20, "only {steps} steps: is one missing a fail point?");
}

#[test]
fn a_purge_survives_an_error_at_every_step() {
    let scene = leaked(After::Checkpoints);
    fail_everywhere(&scene, |step, ended| assert_purge_survived(&scene, step, ended));
}

fn fail_everywhere(scene: &Scene, after: impl Fn(u64, &Ended)) {
    let steps = Killer::new(|| scene.set_up()).crash_at_every_step(|_, _| {});
    for (error, lasting) in [("eio", Lasting::Once), ("eio", Lasting::FromThenOn), ("enospc", Lasting::FromThenOn)] {
        let mut refused = 0;
        Killer::new(|| scene.set_up()).fail_at_every_step(steps, error, lasting, |step, ended| {
            let Ended::Finished(output) = ended else { panic!("{error} at step {step}: {ended:?}") };
            refused += u32::from(!output.status.success());
            after(step, ended);
        });
        assert!(refused > 0, "no {error} was noticed");
    }
}

/// All checkpoints but two are too old; one of these is labelled, the other is the newest.
fn outdated() -> Scene {
    let s = Sandbox::in_memory();
    s.config("[store]\nkeep_days = 0\n");
    let mut history = History::default();
    for round in 0..4 {
        s.write("src/a", format!("round {round}\n").repeat(30)).write(format!("src/{round}"), "same\n".repeat(40));
        let id = history.checkpoint(&s);
        if round == 1 {
            s.retake(["label", &id, "kept"]).succeeds();
        }
    }
    Scene::new(s, history, &["gc", "--json"], Missing::OldestUnlabelled)
}

fn assert_gc_survived(scene: &Scene, step: u64, ended: &Ended) {
    let run = Run::from_output(ended.output().clone());
    let context = format!("step {step}: {run:?}");
    let (s, history) = (&scene.s, &scene.history);
    let before = s.everything_in_the_workspace();
    let stored = history.assert_kept(s, Missing::OldestUnlabelled);
    assert!(stored.len() == 4 || stored.len() == 2, "all that is too old goes at once: {context}");
    assert_ended_well(&run, || assert_eq!(stored.len(), 2, "{context}"));
    let denied = run.stderr.contains("nothing was changed") || run.stderr.contains("as they were");
    assert!(stored.len() == 4 || !denied, "it says that nothing went: {context}");

    s.retake(["gc"]).succeeds();
    assert_eq!(history.assert_kept(s, Missing::OldestUnlabelled).len(), 2, "{context}");
    assert_eq!(s.everything_in_the_workspace(), before, "{context}");
    goes_on(scene, &context);
}

/// What happened before a purge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Every object is a record of its own.
    Checkpoints,
    /// Small objects are compressed together.
    Gc,
}

/// A secret was captured, and another path has what must stay.
fn leaked(after: After) -> Scene {
    let s = Sandbox::in_memory();
    some_files(&s);
    s.remove("large");
    let mut history = History::default();
    for round in 0..2 {
        s.write("keys/api", format!("{SECRET} {round}")).write("keys/readme", "stays");
        history.checkpoint(&s);
    }
    s.remove("keys/api");
    history.checkpoint(&s);
    if after == After::Gc {
        s.retake(["gc"]).succeeds();
    }
    Scene::new(s, history, &["purge", "keys/api", "--yes", "--json"], Missing::None)
}

fn assert_purge_survived(scene: &Scene, step: u64, ended: &Ended) {
    let run = Run::from_output(ended.output().clone());
    let context = format!("step {step}: {run:?}");
    let s = &scene.s;
    let before = s.everything_in_the_workspace();
    let purged = scene.history.without(b"keys/api");
    // All checkpoints have it, or none has.
    let is_gone = s.retake(["show", &format!("{}:keys/api", scene.history.oldest())]).code() != Some(0);
    let kept = if is_gone { &purged } else { &scene.history };
    kept.assert_kept(s, Missing::None);
    assert_ended_well(&run, || {
        assert!(is_gone && !is_stored(&s.store()), "{context}");
    });

    // Whatever is left to do, `gc` does if the checkpoints are rewritten; else purging starts over.
    if is_gone {
        s.retake(["gc"]).succeeds();
    } else {
        s.retake(["purge", "keys/api", "--yes"]).succeeds();
    }
    assert!(!is_stored(&s.store()), "{context}");
    purged.assert_kept(s, Missing::None);
    assert_eq!(s.everything_in_the_workspace(), before, "{context}");
    goes_on(scene, &context);
}

/// A command that failed says one sentence and a hint; of one that succeeded `done` holds.
fn assert_ended_well(run: &Run, done: impl FnOnce()) {
    match run.code() {
        None => {}
        Some(0) => done(),
        Some(code) => {
            assert_eq!(code, 1, "{run:?}");
            assert!(run.stderr.starts_with("error: ") && run.stderr.contains("\nhint: "), "{run:?}");
        }
    }
}

/// The next checkpoint is taken, nothing is lying about, and the doctor finds nothing.
fn goes_on(scene: &Scene, context: &str) {
    let s = &scene.s;
    s.write("after", "the next checkpoint");
    let mut history = History::default();
    history.checkpoint(s);
    history.assert_kept(s, Missing::None);
    history::assert_no_litter(s);
    let doctor = s.retake(["doctor"]);
    assert_eq!(doctor.code(), Some(0), "{context}: {}", String::from_utf8_lossy(&doctor.stdout));
    s.remove("after");
}

/// Is the secret in any file of the store?
fn is_stored(dir: &Path) -> bool {
    fs::read_dir(dir).expect("it can be listed").any(|entry| {
        let path = entry.expect("it can be listed").path();
        let holds = |bytes: Vec<u8>| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        if path.is_dir() { is_stored(&path) } else { holds(fs::read(path).expect("it can be read")) }
    })
}
