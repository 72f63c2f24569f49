//! `docs/rules.md`: every rule that Retake keeps is mapped to tests, and those tests must have run and passed.
//!
//! A rule is a heading `### R1: title`, one sentence, and a list with a test per line. A test is named as `cargo test` prints it,
//! or by the end of that name (`links_are_captured_as_links` stands for `scan::links_are_captured_as_links`). The same check
//! covers the tests that ARCHITECTURE.md names.

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

/// Reads the rules of `page`; malformed ones become complaints.
pub(super) fn parse(page: &str, findings: &mut Findings) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut written = String::new();
    let lines = page.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    for (number, line) in lines.chain([(page.lines().count(), "## end")]) {
        let at = format!("docs/rules.md:{number}");
        if line.starts_with('#') {
            if let Some(rule) = rules.last().filter(|_| !written.is_empty()) {
                check_sentence(&rule.id, &at, &written, findings);
            }
            written.clear();
            let Some(id) = heading(line) else { continue };
            if rules.iter().any(|rule| rule.id == id) {
                findings.complain(format!("{at}: {id} has a second heading"));
            }
            rules.push(Rule { id: id.to_string(), tests: Vec::new() });
            written.push(' ');
        } else if let Some(rule) = rules.last_mut().filter(|_| !written.is_empty()) {
            match line.strip_prefix("- ").map(|item| item.strip_prefix('`').and_then(|item| item.strip_suffix('`'))) {
                Some(Some(test)) => rule.tests.push(test.to_string()),
                Some(None) => findings.complain(format!("{at}: `{line}` is not a test in backticks")),
                None => {
                    written.push_str(line);
                    written.push(' ');
                }
            }
        }
    }
    for rule in rules.iter().filter(|rule| rule.tests.is_empty()) {
        findings.complain(format!("docs/rules.md: {} names no test", rule.id));
    }
    if rules.is_empty() {
        findings.complain("docs/rules.md: holds no rule".to_string());
    }
    rules
}

/// Most words of a rule: whatever needs more belongs into the names of its tests.
const MAX_WORDS: usize = 40;

/// Adds a complaint unless `text` is one sentence of bearable length.
fn check_sentence(id: &str, at: &str, text: &str, findings: &mut Findings) {
    let text = text.trim();
    let words = text.split_whitespace().count();
    if text.is_empty() {
        findings.complain(format!("{at}: {id} says nothing"));
    } else if !text.ends_with('.') || text.contains(". ") {
        findings.complain(format!("{at}: {id} is not one sentence"));
    } else if MAX_WORDS < words {
        findings.complain(format!("{at}: {id} has {words} words, at most are {MAX_WORDS}"));
    }
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

/// The id in a heading such as `### R1: title`.
fn heading(line: &str) -> Option<&str> {
    let (id, title) = line.strip_prefix("### ")?.split_once(':')?;
    let digits = id.strip_prefix('R')?;
    let is_id = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    (is_id && !title.trim().is_empty()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Rules

Of what holds.

## Links

### R1: Links

Links are links.

- `links_are_kept`
- `scan::modes_are_kept`

### R2: Others

Nothing else.

- `nothing_else`

## More

A closing word. And one more.
";

    const OUTPUT: &str = "\
running 3 tests
test snapshot::links_are_kept ... ok
test scan::modes_are_kept - should panic ... ok
test nothing_else ... ok
test src/lib.rs - example (line 4) ... ok

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    fn parsed(page: &str) -> (Vec<Rule>, Findings) {
        let mut findings = Findings::default();
        let rules = parse(page, &mut findings);
        (rules, findings)
    }

    fn complaints(page: &str, evidence: &Evidence) -> Vec<String> {
        let (rules, mut findings) = parsed(page);
        check(&rules, evidence, &mut findings);
        findings.complaints
    }

    #[test]
    fn headings_with_an_id_become_rules_and_others_do_not() {
        let (rules, findings) = parsed(PAGE);
        assert_eq!(findings, Findings::default());
        let found: Vec<(&str, usize)> = rules.iter().map(|rule| (rule.id.as_str(), rule.tests.len())).collect();
        assert_eq!(found, [("R1", 2), ("R2", 1)]);
    }

    #[test]
    fn rules_whose_tests_passed_hold() {
        assert_eq!(complaints(PAGE, &Evidence::ran(OUTPUT)), [""; 0]);
    }

    #[test]
    fn a_rule_without_a_test_is_refused() {
        let (_, findings) = parsed("### R1: Links\n\nLinks are links.\n");
        assert_eq!(findings.complaints, ["docs/rules.md: R1 names no test"]);
    }

    #[test]
    fn an_item_that_is_no_test_and_a_repeated_rule_are_refused() {
        let (_, findings) = parsed("### R1: a\n\nIt holds.\n\n- by hand\n- `t`\n\n### R1: b\n\nIt holds.\n\n- `t`\n");
        assert_eq!(findings.complaints.len(), 2, "{findings:?}");
        assert!(findings.complaints[0].contains("`- by hand` is not a test"));
        assert!(findings.complaints[1].contains("R1 has a second heading"));
    }

    #[test]
    fn a_rule_is_one_sentence_of_bearable_length() {
        let complaint = |text: &str| parsed(&format!("### R1: a\n\n{text}\n\n- `t`\n")).1.complaints;
        assert_eq!(complaint("It holds."), [""; 0]);
        assert_eq!(complaint("It holds on\ntwo lines, `e.g` here."), [""; 0]);
        assert!(complaint("")[0].contains("R1 says nothing"));
        assert!(complaint("It holds. It does.")[0].contains("R1 is not one sentence"));
        assert!(complaint("It holds")[0].contains("R1 is not one sentence"));
        assert!(complaint(&format!("It holds{}.", " very".repeat(40)))[0].contains("R1 has 42 words"));
    }

    #[test]
    fn a_file_without_rules_is_refused() {
        assert_eq!(parsed("# Rules\n").1.complaints, ["docs/rules.md: holds no rule"]);
    }

    #[test]
    fn a_test_that_did_not_run_fails_its_rule() {
        let output = OUTPUT.replace("test nothing_else ... ok\n", "");
        assert_eq!(complaints(PAGE, &Evidence::ran(&output)), ["docs/rules.md: R2: test `nothing_else` did not run"]);
    }

    #[test]
    fn a_test_that_failed_or_was_skipped_fails_its_rule() {
        let output = OUTPUT.replace("nothing_else ... ok", "nothing_else ... ignored, too slow");
        assert_eq!(
            complaints(PAGE, &Evidence::ran(&output)),
            [
                "docs/rules.md: R2: test `nothing_else` ended as ignored (nothing_else)",
                "test `nothing_else` was skipped"
            ]
        );
    }

    #[test]
    fn a_name_used_twice_counts_as_its_worst_outcome() {
        for output in ["test a ... FAILED\ntest a ... ok\n", "test a ... ok\ntest a ... FAILED\n"] {
            assert_eq!(complaints("### R1: a\n\nIt holds.\n\n- `a`\n", &Evidence::ran(output)).len(), 1);
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
        assert_eq!(complaints(PAGE, &evidence), ["docs/rules.md: R2: test `nothing_else` does not exist"]);
    }
}
