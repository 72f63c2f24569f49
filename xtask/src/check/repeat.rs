//! The same run many times, and a table of how each ended.

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use anyhow::{Result, bail};

use super::load::Busy;
use super::options::{Load, Options};
use super::suite::Suite;
use super::{Report, page, whole};
use crate::shell::root;

/// One run.
struct Row {
    run: u32,
    load: Load,
    seconds: f64,
    /// `Err` with the names of what failed.
    result: Result<(), Vec<String>>,
}

/// Runs what `options` name as often as they say, then fails if any run did.
pub(super) fn repeat(options: &Options, times: u32) -> Result<()> {
    let chosen = if options.filters.is_empty() { None } else { Some(Chosen::find(options)?) };
    let mut rows = Vec::new();
    for run in 1..=times {
        let start = Instant::now();
        let busy = Busy::start(options.load);
        let report = match &chosen {
            None => whole(options.extent),
            Some(chosen) => chosen.run()?,
        };
        drop(busy);
        let result = match report.error {
            None => Ok(()),
            Some(error) if report.failed.is_empty() => Err(vec![format!("{error:#}")]),
            Some(_) => Err(report.failed),
        };
        rows.push(Row { run, load: options.load, seconds: start.elapsed().as_secs_f64(), result });
        println!("{}", line(&rows[rows.len() - 1]));
    }
    println!("\n{}", table(&rows));
    match rows.iter().filter(|row| row.result.is_err()).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {times} runs failed"),
    }
}

/// The tests that filters name.
pub(super) struct Chosen {
    suite: Suite,
    /// Filters that name tests of the browser, and the files that have such tests.
    browser: Vec<String>,
    files: Vec<String>,
}

impl Chosen {
    pub(super) fn find(options: &Options) -> Result<Self> {
        let suite = Suite::build(options.extent)?.only(&options.filters);
        let pages = page_tests()?;
        let names = |test: &PageTest, filter: &String| test.name.contains(filter.as_str());
        let browser: Vec<String> =
            options.filters.iter().filter(|filter| pages.iter().any(|test| names(test, filter))).cloned().collect();
        let mut files: Vec<String> = pages
            .iter()
            .filter(|test| browser.iter().any(|filter| names(test, filter)))
            .map(|test| test.file.clone())
            .collect();
        files.dedup();
        let nowhere = |filter: &&String| !suite.has(filter) && !browser.contains(filter);
        if let Some(filter) = options.filters.iter().find(nowhere) {
            bail!("no test has `{filter}` in its name");
        }
        Ok(Self { suite, browser, files })
    }

    pub(super) fn run(&self) -> Result<Report> {
        let mut report = self.suite.run()?;
        if !self.browser.is_empty() {
            let mut args: Vec<&str> = self.files.iter().map(String::as_str).collect();
            args.extend(self.browser.iter().flat_map(|name| ["--only", name]));
            if let Err(error) = page::browser(&args) {
                report.failed.extend(page::failed_tests()?.into_iter().map(|name| format!("browser {name}")));
                report.error.get_or_insert(error);
            }
        }
        Ok(report)
    }
}

/// A test of the browser.
struct PageTest {
    file: String,
    name: String,
}

fn page_tests() -> Result<Vec<PageTest>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root().join("crates/web/page/tests"))? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file.ends_with(".test.mjs") {
            let names = names_in(&fs::read_to_string(&path)?);
            all.extend(names.into_iter().map(|name| PageTest { file: file.clone(), name }));
        }
    }
    Ok(all)
}

/// The names in lines such as `test('a fork is a session of its own', async (t) => {`.
fn names_in(source: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix("test(")?;
        let quote = rest.chars().next().filter(|first| ['\'', '"', '`'].contains(first))?;
        Some(rest[1..].split_once(quote)?.0.to_owned())
    };
    source.lines().filter_map(name).collect()
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from("| run | load | result | seconds | failed |\n|---|---|---|---|---|\n");
    for row in rows {
        writeln!(text, "{}", line(row)).expect("a string takes everything");
    }
    text
}

fn line(row: &Row) -> String {
    let load = match row.load {
        Load::Quiet => "quiet",
        Load::Busy => "busy",
    };
    let (result, failed) = match &row.result {
        Ok(()) => ("ok", String::new()),
        Err(failed) => ("FAILED", failed.join(", ")),
    };
    format!("| {} | {load} | {result} | {:.1} | {failed} |", row.run, row.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_browser_tests_are_read_from_their_sources() {
        let source = "import test from 'node:test';\ntest('a fork is one', async (t) => {\n  const test = 'no';\n  test(name);\n";
        assert_eq!(names_in(source), ["a fork is one"]);
    }

    #[test]
    fn the_table_has_a_row_for_each_run_with_what_failed() {
        let rows = [
            Row { run: 1, load: Load::Busy, seconds: 12.34, result: Ok(()) },
            Row { run: 2, load: Load::Quiet, seconds: 5.0, result: Err(vec!["a b".to_owned(), "c".to_owned()]) },
        ];
        let table = table(&rows);
        assert!(table.ends_with("| 1 | busy | ok | 12.3 |  |\n| 2 | quiet | FAILED | 5.0 | a b, c |\n"), "{table}");
    }
}
