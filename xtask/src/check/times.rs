//! How long steps and tests took: kept for the next run, which begins with the slowest, and printed at the end.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::runner::Outcome;
use crate::shell::root;

/// How many of the slowest tests are printed.
const SLOWEST: usize = 10;

fn kept() -> PathBuf {
    root().join("target/test-times.json")
}

/// The times that the browser's tests have left since `start`: `[{"name": …, "seconds": …}]`.
fn browser(start: SystemTime) -> Vec<(String, f64)> {
    let path = root().join("target/browser-times.json");
    let is_new = fs::metadata(&path).and_then(|facts| facts.modified()).is_ok_and(|time| time >= start);
    let text = if is_new { fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    parse(&text)
}

/// The times of the last run by the names of tests; nothing if there was none.
pub(super) fn last() -> HashMap<String, f64> {
    fs::read_to_string(kept()).map(|text| parse(&text).into_iter().collect()).unwrap_or_default()
}

/// Keeps the times of a run for the next one.
pub(super) fn keep(outcomes: &[Outcome]) -> Result<()> {
    let all: Vec<Value> = outcomes.iter().map(|one| json!({ "name": one.test, "seconds": one.seconds })).collect();
    fs::write(kept(), serde_json::to_string_pretty(&all)?).with_context(|| format!("cannot write {}", kept().display()))
}

/// The slowest tests of a run that began at `start`, the browser's among them, as text.
pub(super) fn slowest(outcomes: &[Outcome], start: SystemTime) -> String {
    let mut all: Vec<(String, f64)> = outcomes.iter().map(|one| (one.test.clone(), one.seconds)).collect();
    all.extend(browser(start).into_iter().map(|(name, seconds)| (format!("browser {name}"), seconds)));
    table(all)
}

fn table(mut all: Vec<(String, f64)>) -> String {
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut text = String::new();
    for (name, seconds) in all.iter().take(SLOWEST) {
        writeln!(text, "{seconds:>8.1} s  {name}").expect("a string takes everything");
    }
    text
}

/// The names and seconds in a list of times; what is none is passed over.
fn parse(text: &str) -> Vec<(String, f64)> {
    let all: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    all.iter().filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["seconds"].as_f64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_anything_else_is_passed_over() {
        let text = r#"[{"name": "a", "seconds": 1.5}, {"name": "b"}, 7, {"name": "c", "seconds": 2}]"#;
        assert_eq!(parse(text), [("a".to_owned(), 1.5), ("c".to_owned(), 2.0)]);
        assert_eq!(parse("not there"), []);
    }

    #[test]
    fn the_slowest_come_first_and_ten_are_enough() {
        let all: Vec<(String, f64)> = (0..12).map(|n| (format!("t{n}"), f64::from(n))).collect();
        let table = table(all);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[9]), (10, "    11.0 s  t11", "     2.0 s  t2"));
    }
}
