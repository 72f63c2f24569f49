//! `grep`: files by content.

use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use super::glob::Pattern;
use super::matches::{MatchReport, Matches, Sink};
use super::walk::{Go, start, walk};
use crate::tool::arguments::{ArgumentKind, Arguments, optional, required};
use crate::tool::run::{Stop, reading};
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared};

const MAX_CONTEXT: u64 = 20;

pub(crate) const GREP: Tool = Tool {
    name: "grep",
    description: "Searches the content of files with a regular expression (Rust syntax, as in ripgrep; escape `{`, `(`, `.` and the like to \
mean them literally). Searches line by line; binary files and files that git ignores are left out, hidden ones are not. Results come sorted \
by path and are bounded, and it is said when there is more.\n\nPrefer this to `grep` or `rg` with `bash`. Use `mode` `files` first when many \
files may match, then `content` on what is of interest. To find files by name use `glob`.",
    arguments: &[
        required("pattern", ArgumentKind::Text, "The regular expression."),
        optional(
            "path",
            ArgumentKind::Text,
            "File or directory to search, relative to the workspace. Default: the workspace.",
        ),
        optional(
            "glob",
            ArgumentKind::Text,
            "Only files that match this pattern, for example `*.rs` or `src/**/*.ts`.",
        ),
        optional(
            "context",
            ArgumentKind::Integer(0),
            "Lines to show before and after each match, 0 to 20. Default: 0.",
        ),
        optional("ignore_case", ArgumentKind::Flag, "Take upper and lower case as the same. Default: false."),
        optional(
            "mode",
            ArgumentKind::Choice(&["content", "files", "count"]),
            "`content` shows matching lines with their numbers (default), `files` only paths, `count` matching lines for each file.",
        ),
    ],
    prepare,
};

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    glob: Option<Pattern>,
    mode: MatchReport,
}

fn prepare(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let pattern = arguments.text("pattern");
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(arguments.is_set("ignore_case"))
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| {
            Output::failed(format!(
                "`{pattern}` is not a regular expression that can be searched for: {error}. It is matched line by line, and `( ) [ ] {{ }} . * + ? | ^ $ \\` have to be escaped with `\\` to be meant literally."
            ))
        })?;
    let context = usize::try_from(arguments.integer("context").unwrap_or(0).min(MAX_CONTEXT)).unwrap_or(0);
    let searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .build();
    let mode = match arguments.text("mode") {
        "files" => MatchReport::Files,
        "count" => MatchReport::Count,
        _ => MatchReport::Content,
    };
    let search =
        Search { matcher, searcher, glob: arguments.text_if_given("glob").map(Pattern::parse).transpose()?, mode };
    let real = start(bench, arguments.text_if_given("path"))?;
    let title = format!("grep {pattern}");
    let bench = bench.clone();
    let run = reading(move |stop| find(&bench, &real, search, stop));
    Ok(Prepared::new(title, Access::Reads, run))
}

fn find(bench: &ToolContext, real: &Path, mut search: Search, stop: &Stop) -> Output {
    let mut found = Matches::new(search.mode);
    walk(real, None, stop, |entry| {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file()) || (entry.depth() == 0 && real.is_file());
        let relative = entry.path().strip_prefix(real).ok().filter(|path| !path.as_os_str().is_empty());
        let relative = relative.unwrap_or_else(|| entry.path().file_name().map_or(entry.path(), Path::new));
        if is_file && search.glob.as_ref().is_none_or(|glob| glob.matches(relative)) {
            let mut sink = Sink::new(bench.places.name(entry.path()), &mut found, stop);
            // What cannot be read is passed over; what was found until then counts.
            drop(search.searcher.search_path(&search.matcher, entry.path(), &mut sink));
            sink.finish();
        }
        if found.is_full() { Go::Stop } else { Go::On }
    });
    found.tell()
}
