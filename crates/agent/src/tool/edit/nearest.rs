//! What the model probably meant when its text was not found: the region that is most like it, and how the two differ.

use std::fmt::Write as _;

use crate::tool::counted;

const MAX_LINES: usize = 50_000;
/// How much of the old text is compared.
const MAX_WINDOW: usize = 60;
const MAX_SHOWN: usize = 30;
const MAX_LINE_SHOWN: usize = 300;

/// Says what is there instead of `old`.
pub(crate) fn explain(content: &[u8], old: &str) -> String {
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let wanted: Vec<&str> = old.lines().take(MAX_WINDOW).collect();
    if has_line_numbers(&wanted) {
        return "It seems to contain the line numbers that `read_file` shows; leave them out.".to_owned();
    }
    let Some((at, likeness)) = nearest(&lines, &wanted) else {
        return "Nothing in the file is like it. Read the file again with `read_file`.".to_owned();
    };
    let region = &lines[at..(at + wanted.len()).min(lines.len())];
    let mut told = match likeness {
        Likeness::ButForSpaces => format!("Only white space differs: {}. ", difference(region, &wanted, at)),
        Likeness::Some => "The nearest text is below; the file may have changed since you read it. ".to_owned(),
    };
    told.push_str("This is what the file has:\n");
    let from = at.saturating_sub(1);
    for (offset, line) in lines[from..].iter().take((wanted.len() + 2).min(MAX_SHOWN)).enumerate() {
        let line: String = line.chars().take(MAX_LINE_SHOWN).collect();
        writeln!(told, "{:>6}\t{line}", from + offset + 1).expect("a String takes everything");
    }
    told
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Likeness {
    ButForSpaces,
    Some,
}

/// Whether every line begins as `read_file` shows it.
fn has_line_numbers(wanted: &[&str]) -> bool {
    let is_numbered = |line: &&str| {
        line.split_once('\t').is_some_and(|(number, _)| {
            let number = number.trim_start();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    !wanted.is_empty() && wanted.iter().all(is_numbered)
}

/// Where the lines are most like the wanted ones.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<(usize, Likeness)> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let have: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
    let want: Vec<String> = wanted.iter().map(|line| squeezed(line)).collect();
    let score = |at: usize| -> usize { want.iter().zip(&have[at..]).map(|(want, have)| likeness(want, have)).sum() };
    let (at, best) = (0..have.len()).map(|at| (at, score(at))).max_by_key(|(at, score)| (*score, usize::MAX - at))?;
    let perfect: usize = want.iter().map(|line| likeness(line, line)).sum();
    if best == perfect && best > 0 {
        return Some((at, Likeness::ButForSpaces));
    }
    // Less than a third alike is chance.
    (best * 3 >= perfect && best > 0).then_some((at, Likeness::Some))
}

/// How much of two lines is the same, at their beginning and end. Empty lines tell little.
fn likeness(a: &str, b: &str) -> usize {
    if a == b {
        return 2 * a.len() + 1;
    }
    let ahead = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let shorter = a.len().min(b.len()) - ahead;
    let behind = a.bytes().rev().zip(b.bytes().rev()).take(shorter).take_while(|(x, y)| x == y).count();
    ahead + behind
}

/// The first line in which the white space differs.
fn difference(region: &[&str], wanted: &[&str], at: usize) -> String {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let in_words = |space: &str| {
        let (tabs, spaces) = (space.matches('\t').count(), space.matches(' ').count());
        match (tabs, spaces) {
            (0, 0) => "nothing".to_owned(),
            (0, spaces) => counted(spaces, "space"),
            (tabs, 0) => counted(tabs, "tab"),
            (tabs, spaces) => format!("{} and {}", counted(tabs, "tab"), counted(spaces, "space")),
        }
    };
    let differing = region.iter().zip(wanted).enumerate().find(|(_, (have, want))| have != want);
    match differing {
        Some((offset, (have, want))) if indent(have) != indent(want) => format!(
            "line {} is indented with {} in the file and with {} in `old`",
            at + offset + 1,
            in_words(&indent(have)),
            in_words(&indent(want))
        ),
        Some((offset, (have, want))) if have.trim_end() == want.trim_end() => {
            format!("line {} differs in the white space at its end", at + offset + 1)
        }
        Some((offset, _)) => format!("line {} differs in the white space inside", at + offset + 1),
        None => "the newline at the end is missing or too much".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_indentation_is_pointed_out() {
        let told = explain(b"fn a() {\n\tb();\n}\n", "fn a() {\n    b();\n}");
        assert!(told.contains("line 2 is indented with 1 tab in the file and with 4 spaces in `old`"), "{told}");
        assert!(told.contains("     2\t\tb();"), "{told}");
    }

    #[test]
    fn the_nearest_region_is_shown_with_its_lines() {
        let content: String = (0..100).map(|n| format!("let value_{n} = compute({n});\n")).collect();
        let told = explain(content.as_bytes(), "let value_57 = compute(58);");
        assert!(told.contains("    58\tlet value_57 = compute(57);"), "{told}");
    }

    #[test]
    fn nothing_alike_and_line_numbers_are_said() {
        assert!(explain(b"abc\n", "xyz completely different").contains("Nothing in the file is like it"));
        assert!(explain(b"", "x").contains("Nothing in the file"));
        assert!(explain(b"abc\n", "     1\tabc").contains("line numbers"));
    }
}
