//! The repository's own rules, checked like code: module docs, file length, banned marks, the engine's layers, dependency count,
//! rules and tests.
//!
//! Every complaint is collected before the run fails, so that one run shows all there is to fix.

mod documents;
mod layers;
mod rules;
mod source;

use std::fs;
use std::io;

use anyhow::{Context, Result, bail};

use crate::check::test_output;
use crate::shell::root;

/// Most packages that Cargo.lock may hold. Raising it needs a sentence in the commit.
const MAX_PACKAGES: usize = 370;

/// What a check found: complaints fail the run, warnings and notes are only shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    complaints: Vec<String>,
    warnings: Vec<String>,
}

impl Findings {
    fn complain(&mut self, text: String) {
        self.complaints.push(text);
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }
}

/// Checks the whole repository.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let mut findings = Findings::default();
    let sources = source::read_all(&root)?;
    for file in &sources {
        source::check(file, &mut findings);
        layers::check(file, &mut findings);
    }
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    check_packages(&lock, MAX_PACKAGES, &mut findings);

    let page = fs::read_to_string(root.join("docs/rules.md")).context("cannot read docs/rules.md")?;
    let rules = rules::parse(&page, &mut findings);
    let evidence = match fs::read_to_string(test_output()) {
        Ok(output) => rules::Evidence::ran(&output),
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            println!("note: no test run to read, so tidy only looks whether the tests that documents name exist");
            rules::Evidence::written(&sources)
        }
        Err(err) => return Err(err).context("cannot read the output of the last test run"),
    };
    rules::check(&rules, &evidence, &mut findings);
    let prose = fs::read_to_string(root.join("ARCHITECTURE.md")).context("cannot read ARCHITECTURE.md")?;
    rules::check_tests("ARCHITECTURE.md", &rules::mentioned(&prose), &evidence, &mut findings);

    documents::check(&root, &documents::read_all(&root)?, &mut findings);

    for warning in &findings.warnings {
        println!("warning: {warning}");
    }
    for complaint in &findings.complaints {
        println!("tidy: {complaint}");
    }
    if !findings.complaints.is_empty() {
        bail!("tidy found {} problem(s)", findings.complaints.len());
    }
    println!("tidy: {} source files, {} rules, no problems", sources.len(), rules.len());
    Ok(())
}

fn check_packages(lock: &str, cap: usize, findings: &mut Findings) {
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    if cap < count {
        findings.complain(format!(
            "Cargo.lock holds {count} packages, the cap is {cap} (MAX_PACKAGES in xtask/src/tidy.rs)"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_over_the_cap_is_named_with_both_numbers() {
        let lock = "[[package]]\nname = \"a\"\n\n[[package]]\nname = \"b\"\n";
        let mut findings = Findings::default();
        check_packages(lock, 2, &mut findings);
        assert_eq!(findings, Findings::default());
        check_packages(lock, 1, &mut findings);
        assert!(findings.complaints[0].contains("2 packages, the cap is 1"));
    }
}
