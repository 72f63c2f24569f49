//! BENCHMARKS.md: prose by hand, numbers by machine.
//!
//! A measured part stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; writing replaces that part and nothing else.

use std::fs;
use std::io;

use anyhow::{Context, Result};

use crate::shell::root;

const OPENING: &str = "\
# Benchmarks

Measured by `cargo xtask bench`, which rewrites the parts between the markers. Compare rows, not runs: machines differ.
";

/// Puts `body` in the place of the part called `name`, or at the end if there is none.
pub(super) fn write(name: &str, body: &str) -> Result<()> {
    let path = root().join("BENCHMARKS.md");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => OPENING.to_string(),
        Err(err) => return Err(err).context("cannot read BENCHMARKS.md"),
    };
    fs::write(&path, replaced(&text, name, body)).context("cannot write BENCHMARKS.md")?;
    println!("part `{name}` of BENCHMARKS.md is written");
    Ok(())
}

fn replaced(text: &str, name: &str, body: &str) -> String {
    let begin = format!("<!-- {name}:begin -->");
    let end = format!("<!-- {name}:end -->");
    let part = format!("{begin}\n{}\n{end}", body.trim());
    match (text.find(&begin), text.find(&end)) {
        (Some(from), Some(to)) if from < to => format!("{}{part}{}", &text[..from], &text[to + end.len()..]),
        _ => format!("{}\n\n{part}\n", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_part_goes_to_the_end() {
        assert_eq!(replaced("# B\n", "a", "1"), "# B\n\n<!-- a:begin -->\n1\n<!-- a:end -->\n");
    }

    #[test]
    fn only_the_named_part_is_replaced() {
        let text = replaced(&replaced("# B\n", "a", "1"), "b", "2");
        let again = replaced(&text, "a", "3\n");
        assert_eq!(again, text.replace("\n1\n", "\n3\n"));
    }
}
