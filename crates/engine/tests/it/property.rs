//! Random trees and random steps: every snapshot and every diff, by every scanner, against a naive full read.
//!
//! How many cases, and which: see [`cases`](crate::cases).

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use retake_testkit::Scratch;
use retake_testkit::naive::{self, Reading};
use retake_testkit::tree::{self, Case, Counts, MAX_FILE, Sandbox};

use crate::cases::{self, Tally};
use crate::compare::Verdict;
use crate::scanners::Scanners;

#[test]
fn snapshots_and_diffs_agree_with_a_full_read() {
    cases::run_all(tree::case, run_guarded);
}

impl Tally for Counts {
    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }

    fn missing(&self) -> Vec<&'static str> {
        self.missing()
    }
}

/// Runs one case; a panic of the engine becomes a report that tells the steps too.
fn run_guarded(case: &Case, counts: &mut Counts) -> Verdict {
    let scratch = Scratch::new();
    let mut sandbox = Sandbox::new(&scratch.dir("root"), &scratch.dir("outside"), counts);
    let verdict = cases::guarded(|| run(case, &scratch, &mut sandbox));
    verdict.map_err(|report| format!("{report}\nafter\n  {}", sandbox.log().join("\n  ")))
}

fn run(case: &Case, scratch: &Scratch, sandbox: &mut Sandbox<'_>) -> Verdict {
    let (root, stores) = (scratch.dir("root"), scratch.dir("stores"));
    let global_excludes = Some(sandbox.global_excludes());
    let reading = Reading { global_excludes, max_file: MAX_FILE, ..Reading::default() };
    let read = || naive::read(&root, &reading).map_err(|error| format!("ERROR: the naive read: {error}"));
    let mut scanners = Scanners::open(&root, &stores, &sandbox.global_excludes(), case.threads)?;
    for round in std::iter::once(&case.start).chain(&case.rounds) {
        for step in round {
            sandbox.apply(step);
        }
        let truth = read()?;
        sandbox.counts().add_decisions(&truth.decisions);
        sandbox.note("checkpoint");
        let is_linked = |meta: fs::Metadata| meta.is_file() && meta.nlink() > 1;
        let is_unseen = |link: &PathBuf| {
            let captured = truth.nodes.contains_key(link.as_os_str().as_bytes());
            !captured || !fs::symlink_metadata(root.join(link)).is_ok_and(is_linked)
        };
        if sandbox.take_new_links().iter().any(is_unseen) {
            // What is written through a name that is not captured, or is gone again, is reported to no one: a limit of every watch, which ends with the next full look.
            scanners.watch_anew()?;
        }
        scanners.check(&truth)?;
    }
    scanners.check_history(&read()?)
}
