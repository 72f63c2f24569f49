//! The layers of the engine: a module uses its own layer and those below it, never one above.
//!
//! A layer is a directory below `crates/engine/src`. Every path that begins with `crate::` or `super::` is checked, in `use`
//! declarations and in code, also in unit tests. `lib.rs` and the fuzzers' entry points stand above all layers. Methods that a higher
//! layer adds to a type of a lower one are not seen.

use std::path::Path;

use super::Findings;
use super::source::Source;

/// The directories of the engine, lowest first. A new one is put in its place here.
const LAYERS: [&str; 10] =
    ["base", "git", "store", "snapshot", "scan", "workspace", "history", "session", "rewind", "maintenance"];

/// Where the layers are.
const ROOT: &str = "crates/engine/src";

/// Files that stand above all layers.
const ABOVE: [&str; 2] = ["lib.rs", "fuzz.rs"];

/// Adds every import of a higher layer in `file` to `findings`.
pub(super) fn check(file: &Source, findings: &mut Findings) {
    let Ok(path) = file.path.strip_prefix(ROOT) else { return };
    if ABOVE.iter().any(|above| path == Path::new(above)) {
        return;
    }
    let module = module(path);
    let name = file.path.display();
    let Some(own) = module.first().and_then(|layer| rank(layer)) else {
        findings.complain(format!("{name}: is in no layer; the layers are {}", LAYERS.join(" ← ")));
        return;
    };
    let code = Code::of(&file.text);
    for (at, used) in code.paths(&module) {
        let line = code.line(at);
        match rank(&used) {
            Some(other) if other <= own => {}
            Some(_) => findings.complain(format!(
                "{name}:{line}: layer `{}` uses layer `{used}`, which is above it: move what both need to the lower one",
                LAYERS[own]
            )),
            None => findings.complain(format!(
                "{name}:{line}: layer `{}` uses `crate::{used}`, which is in no layer: name the module that owns it",
                LAYERS[own]
            )),
        }
    }
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|known| *known == layer)
}

/// The module that a file is, from the root of the crate.
fn module(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| last == "mod") {
        names.pop();
    }
    names
}

/// A file's text in which comments and texts are blank.
struct Code(String);

impl Code {
    fn of(text: &str) -> Self {
        let mut code = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let len = match first {
                '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                '"' => 1 + end_of_text(&rest[1..]),
                '\'' => character(rest),
                'r' if !code.ends_with(|before: char| before.is_alphanumeric() || before == '_') => raw_text(rest),
                _ => 0,
            };
            if len == 0 {
                code.push(first);
                rest = &rest[first.len_utf8()..];
            } else {
                code.extend(rest[..len].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
                rest = &rest[len..];
            }
        }
        Self(code)
    }

    /// The line that the byte `at` is in, counted from 1.
    fn line(&self, at: usize) -> usize {
        1 + self.0[..at].bytes().filter(|byte| *byte == b'\n').count()
    }

    /// What each path that leaves `module` leads to: the first name below the root of the crate, with where it stands.
    fn paths(&self, module: &[String]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (start, _) in self.0.match_indices("crate::") {
            if self.is_start(start) {
                found.extend(names(&self.0, start + "crate::".len()));
            }
        }
        for (start, _) in self.0.match_indices("super::") {
            if !self.is_start(start) || self.0[..start].ends_with("super::") {
                continue;
            }
            let supers = self.0[start..].split("super::").take_while(|between| between.is_empty()).count();
            let depth = module.len() + self.modules_around(start);
            // Only from the root can a path lead to another layer.
            if supers == depth {
                found.extend(names(&self.0, start + supers * "super::".len()));
            }
        }
        found.sort();
        found
    }

    /// Whether a path begins at `at`: not in the middle of a name or of another path.
    fn is_start(&self, at: usize) -> bool {
        let before = self.0[..at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || before == '_' || before == ':')
            && !self.0[..at].ends_with("pub(in ")
    }

    /// How many modules within the file the byte `at` is in.
    fn modules_around(&self, at: usize) -> usize {
        let mut open: Vec<bool> = Vec::new();
        let before = &self.0[..at];
        for (brace, _) in before.match_indices(['{', '}']) {
            if before[brace..].starts_with('}') {
                open.pop();
                continue;
            }
            let head = before[..brace].trim_end().rsplit([';', '}', '{']).next().unwrap_or_default();
            let mut words = head.split_whitespace().rev();
            words.next();
            open.push(words.next() == Some("mod"));
        }
        open.iter().filter(|is_module| **is_module).count()
    }
}

/// The names that stand at `at`: one, or those in braces, each up to the next `::`.
fn names(code: &str, at: usize) -> Vec<(usize, String)> {
    let name = |at: usize| {
        let rest = &code[at..];
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        (len > 0).then(|| (at, rest[..len].to_owned()))
    };
    if !code[at..].starts_with('{') {
        return name(at).into_iter().collect();
    }
    let (mut depth, mut found) = (0, Vec::new());
    for (offset, c) in code[at..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(c, '{' | ',') {
            let next = at + offset + 1;
            let gap = code[next..].len() - code[next..].trim_start().len();
            found.extend(name(next + gap));
        }
    }
    found
}

/// How long a text is that has begun, with the quote that ends it.
fn end_of_text(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// How long the raw text is that `rest` begins with; 0 if it is none.
fn raw_text(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let open = 1 + hashes;
    if !rest[open..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    rest[open + 1..].find(&end).map_or(rest.len(), |at| open + 1 + at + end.len())
}

/// How long the character is that `rest` begins with; 0 if it is a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 3),
        Some((_, _)) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(&Source { path: Path::new(ROOT).join(path), text: text.into() }, &mut findings);
        findings.complaints
    }

    #[test]
    fn an_import_from_a_layer_above_is_named_with_both_layers_file_and_line() {
        let found =
            complaints("store/live.rs", "//! A doc.\n\nuse crate::base::id::ObjectId;\nuse crate::rewind::intent;\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("crates/engine/src/store/live.rs:4: layer `store` uses layer `rewind`"),
            "{found:?}"
        );
    }

    #[test]
    fn imports_from_the_same_layer_and_from_those_below_are_fine() {
        let text = "use super::entry;\nuse crate::session::rows;\nuse crate::{base::id, history::checkpoint};\nuse std::fmt;\n";
        assert_eq!(complaints("session/writer.rs", text), Vec::<String>::new());
        assert_eq!(complaints("lib.rs", "pub use crate::rewind::Plan;\n"), Vec::<String>::new());
    }

    #[test]
    fn every_way_to_write_a_path_is_seen() {
        let lines = |text: &str| -> Vec<String> {
            let found = complaints("snapshot/diff.rs", text);
            found.iter().map(|one| one.split(':').nth(1).unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(lines("use crate::{\n    base::id,\n    scan::{open, stat},\n};\n"), ["3"]);
        assert_eq!(lines("use super::super::scan::open;\n"), ["1"]);
        assert_eq!(lines("fn f() {\n    crate::scan::open::root();\n}\n"), ["2"]);
        assert_eq!(lines("mod tests {\n    use super::super::super::scan;\n}\n"), ["2"]);
        assert_eq!(lines("mod tests {\n    use super::super::gaps;\n}\n"), Vec::<String>::new());
        assert_eq!(
            lines("pub(in crate::scan) fn f() {}\n// crate::scan\nconst A: &str = \"crate::scan\";\n"),
            Vec::<String>::new()
        );
        assert_eq!(lines("const A: &str = r#\"a \"b\"#;\nuse crate::scan;\n"), ["2"]);
        assert_eq!(lines("fn f<'a>(c: char) -> bool { c == '\"' }\nuse crate::scan;\n"), ["2"]);
    }

    #[test]
    fn what_is_in_no_layer_is_refused() {
        assert!(complaints("take.rs", "//! A doc.\n")[0].contains("is in no layer"));
        assert!(
            complaints("store/mod.rs", "use crate::Workspace;\n")[0]
                .contains(":1: layer `store` uses `crate::Workspace`")
        );
    }
}
