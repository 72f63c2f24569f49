//! `docs/rules.md`: every rule that Retake keeps is mapped to tests, and those tests must have run and passed.
//!
//! A rule is a table row `| R1 | sentence | test, test |`. A test is named as `cargo test` prints it, or by the end of that
//! name (`links_are_captured_as_links` stands for `scan::links_are_captured_as_links`). Prose that names tests, as
//! ARCHITECTURE.md does, is held to the same.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use super::source::Source;

/// A rule and the tests that hold it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    id: String,
    tests: Vec<String>,
}

/// A backticked name in prose with at least this many underscores is a test's: nothing else is a whole sentence.
const UNDERSCORES_OF_A_TEST: usize = 3;

/// What is known about tests: how each one of a run ended, or only which exist.
#[derive(Debug)]
pub(super) enum Evidence {
    Ran(BTreeMap<String, String>),
    Written(BTreeSet<String>),
}

impl Evidence {
    /// Reads what `cargo test` printed. A name that several test binaries share counts as its worst outcome.
    pub(super) fn ran(output: &str) -> Self {
        let mut outcomes = BTreeMap::new();
        for (name, outcome) in output.lines().filter_map(outcome) {
            let known = outcomes.entry(name.to_string()).or_insert_with(|| outcome.to_string());
            if known == "ok" {
                *known = outcome.to_string();
            }
        }
        Self::Ran(outcomes)
    }

    /// Gathers the names of all functions, for when there is no run to read.
    pub(super) fn written(sources: &[Source]) -> Self {
        let mut names = BTreeSet::new();
        for line in sources.iter().flat_map(|source| source.text.lines()) {
            let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
            if let Some(rest) = line.strip_prefix("fn ") {
                names.extend(rest.split(['(', '<']).next().map(str::to_string));
            }
        }
        Self::Written(names)
    }
}

/// The name and outcome in a line such as `test scan::links_are_kept ... ok`.
fn outcome(line: &str) -> Option<(&str, &str)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let outcome = outcome.split([' ', ',']).next()?;
    matches!(outcome, "ok" | "FAILED" | "ignored").then_some((name, outcome))
}

/// Reads the rows of `table`; malformed ones become complaints.
pub(super) fn parse(table: &str, findings: &mut Findings) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for (number, line) in table.lines().enumerate() {
        let at = format!("docs/rules.md:{}", number + 1);
        let Some(cells) = cells(line).filter(|cells| is_rule_id(cells[0])) else {
            continue;
        };
        let [id, sentence, tests] = cells[..] else {
            findings.complain(format!(
                "{at}: a rule has three cells (rule, sentence, tests), this row has {}",
                cells.len()
            ));
            continue;
        };
        let tests: Vec<String> = tests
            .split([',', ' '])
            .map(|test| test.trim_matches('`').to_string())
            .filter(|test| !test.is_empty())
            .collect();
        if sentence.is_empty() {
            findings.complain(format!("{at}: {id} says nothing"));
        }
        if tests.is_empty() {
            findings.complain(format!("{at}: {id} names no test"));
        }
        if rules.iter().any(|rule| rule.id == id) {
            findings.complain(format!("{at}: {id} has a second row"));
        }
        rules.push(Rule { id: id.to_string(), tests });
    }
    if rules.is_empty() {
        findings.complain("docs/rules.md: holds no rule".to_string());
    }
    rules
}

/// The tests that `prose` names.
pub(super) fn mentioned(prose: &str) -> Vec<String> {
    let is_test = |name: &str| {
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && UNDERSCORES_OF_A_TEST <= name.matches('_').count()
    };
    let names: BTreeSet<&str> = prose.split('`').skip(1).step_by(2).filter(|name| is_test(name)).collect();
    names.into_iter().map(str::to_string).collect()
}

/// Adds a complaint for every one of `tests`, named in `place`, that `evidence` does not bear out.
pub(super) fn check_tests(place: &str, tests: &[String], evidence: &Evidence, findings: &mut Findings) {
    for test in tests {
        if let Some(problem) = problem(test, evidence) {
            findings.complain(format!("{place}: test `{test}` {problem}"));
        }
    }
}

/// Adds a complaint for every rule that `evidence` does not bear out, and for every test that was skipped.
pub(super) fn check(rules: &[Rule], evidence: &Evidence, findings: &mut Findings) {
    for Rule { id, tests } in rules {
        check_tests(&format!("docs/rules.md: {id}"), tests, evidence, findings);
    }
    if let Evidence::Ran(outcomes) = evidence {
        for (name, _) in outcomes.iter().filter(|(_, outcome)| *outcome == "ignored") {
            findings.complain(format!("test `{name}` was skipped"));
        }
    }
}

fn problem(test: &str, evidence: &Evidence) -> Option<String> {
    match evidence {
        Evidence::Ran(outcomes) => {
            let mut found = outcomes.iter().filter(|(name, _)| is_named(name, test)).peekable();
            if found.peek().is_none() {
                return Some("did not run".to_string());
            }
            found.find(|(_, outcome)| *outcome != "ok").map(|(name, outcome)| format!("ended as {outcome} ({name})"))
        }
        Evidence::Written(names) => {
            let function = test.rsplit("::").next().unwrap_or(test);
            (!names.contains(function)).then(|| "does not exist".to_string())
        }
    }
}

/// Whether `wanted` is the test's name or the end of it, whole modules at a time.
fn is_named(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted).is_some_and(|front| front.is_empty() || front.ends_with("::"))
}

/// The cells of a table row, trimmed; `None` for any other line.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

fn is_rule_id(cell: &str) -> bool {
    cell.strip_prefix('R').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
# Rules
| rule | what holds | tests |
|---|---|---|
| R1 | Links are links. | `links_are_kept`, `scan::modes_are_kept` |
| R2 | Nothing else. | `nothing_else` |
";

    const OUTPUT: &str = "\
running 3 tests
test snapshot::links_are_kept ... ok
test scan::modes_are_kept - should panic ... ok
test nothing_else ... ok
test src/lib.rs - example (line 4) ... ok

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    fn parsed(table: &str) -> (Vec<Rule>, Findings) {
        let mut findings = Findings::default();
        let rules = parse(table, &mut findings);
        (rules, findings)
    }

    fn complaints(table: &str, evidence: &Evidence) -> Vec<String> {
        let (rules, mut findings) = parsed(table);
        check(&rules, evidence, &mut findings);
        findings.complaints
    }

    #[test]
    fn rows_become_rules_and_headings_do_not() {
        let (rules, findings) = parsed(TABLE);
        assert_eq!(findings, Findings::default());
        let found: Vec<(&str, usize)> = rules.iter().map(|rule| (rule.id.as_str(), rule.tests.len())).collect();
        assert_eq!(found, [("R1", 2), ("R2", 1)]);
    }

    #[test]
    fn rules_whose_tests_passed_hold() {
        assert_eq!(complaints(TABLE, &Evidence::ran(OUTPUT)), [""; 0]);
    }

    #[test]
    fn a_rule_without_a_test_is_refused() {
        let (_, findings) = parsed("| R1 | Links are links. | |\n");
        assert_eq!(findings.complaints, ["docs/rules.md:1: R1 names no test"]);
    }

    #[test]
    fn a_row_with_a_wrong_number_of_cells_and_a_repeated_rule_are_refused() {
        let (_, findings) = parsed("| R1 | a | `t` |\n| R2 | b |\n| R1 | c | `t` |\n");
        assert_eq!(findings.complaints.len(), 2, "{findings:?}");
        assert!(findings.complaints[0].contains("has 2"));
        assert!(findings.complaints[1].contains("second row"));
    }

    #[test]
    fn a_file_without_rules_is_refused() {
        assert_eq!(parsed("# Rules\n").1.complaints, ["docs/rules.md: holds no rule"]);
    }

    #[test]
    fn a_test_that_did_not_run_fails_its_rule() {
        let output = OUTPUT.replace("test nothing_else ... ok\n", "");
        assert_eq!(complaints(TABLE, &Evidence::ran(&output)), ["docs/rules.md: R2: test `nothing_else` did not run"]);
    }

    #[test]
    fn a_test_that_failed_or_was_skipped_fails_its_rule() {
        let output = OUTPUT.replace("nothing_else ... ok", "nothing_else ... ignored, too slow");
        assert_eq!(
            complaints(TABLE, &Evidence::ran(&output)),
            [
                "docs/rules.md: R2: test `nothing_else` ended as ignored (nothing_else)",
                "test `nothing_else` was skipped"
            ]
        );
    }

    #[test]
    fn a_name_used_twice_counts_as_its_worst_outcome() {
        for output in ["test a ... FAILED\ntest a ... ok\n", "test a ... ok\ntest a ... FAILED\n"] {
            assert_eq!(complaints("| R1 | a | a |", &Evidence::ran(output)).len(), 1);
        }
    }

    #[test]
    fn only_whole_module_names_may_be_left_out() {
        assert!(is_named("scan::links_are_kept", "links_are_kept"));
        assert!(is_named("scan::links_are_kept", "scan::links_are_kept"));
        assert!(!is_named("scan::symlinks_are_kept", "links_are_kept"));
    }

    #[test]
    fn prose_names_tests_among_other_code() {
        let prose = "The `index` of `max_file_size` is a cache (`a_lost_index_changes_nothing`, `cargo xtask test`).";
        assert_eq!(mentioned(prose), ["a_lost_index_changes_nothing"]);
    }

    #[test]
    fn without_a_run_a_function_of_that_name_is_enough() {
        let text = "//! x\n#[test]\nfn links_are_kept() {}\nasync fn modes_are_kept<T>() {}\n// fn nothing_else\n";
        let evidence = Evidence::written(&[Source { path: "a.rs".into(), text: text.into() }]);
        assert_eq!(complaints(TABLE, &evidence), ["docs/rules.md: R2: test `nothing_else` does not exist"]);
    }
}
