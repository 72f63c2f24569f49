//! What diffs look like, and that a window of one is the same as its part of the whole.

use retake_agent::diff::{DiffLine, HunkLines, Instead, LineKind};
use retake_agent::rewind_document::Bytes;

use super::*;
use crate::text::width as columns;

fn line(text: &str) -> DiffLine {
    let (sign, text) = text.split_at(1);
    let kind = match sign {
        "+" => LineKind::Added,
        "-" => LineKind::Removed,
        _ => LineKind::Same,
    };
    DiffLine { kind, text: text.to_owned() }
}

fn file(path: &str, hunks: &[((u32, u32), &[&str])]) -> FileDiff {
    let hunks: Vec<HunkLines> = hunks
        .iter()
        .map(|(start, lines)| HunkLines { start: *start, lines: lines.iter().map(|text| line(text)).collect() })
        .collect();
    let count = |kind| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count() as u32;
    let (added, removed) = (count(LineKind::Added), count(LineKind::Removed));
    FileDiff { path: Bytes::Text(path.to_owned()), added, removed, instead: None, hunks, left_out: 0, about: None }
}

fn sample() -> Vec<FileDiff> {
    let edited = file(
        "src/lib.rs",
        &[
            (
                (8, 8),
                &[
                    " fn a() {",
                    "-    let old = 1;",
                    "+    let new = 1;",
                    "+\tmore(\"a long line that has to go on below\");",
                ],
            ),
            ((99, 100), &[" }", "-gone"]),
        ],
    );
    let binary = FileDiff { instead: Some(Instead::Binary), ..file("a.png", &[]) };
    let long = FileDiff { left_out: 12_000, added: 12_000, ..file("Cargo.lock", &[]) };
    vec![edited, binary, long]
}

fn drawn(files: &[FileDiff], width: u16) -> String {
    lines(files, width, &Theme::default()).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn both_numbers_are_shown_where_there_is_room() {
    let expected = "\
src/lib.rs  +2 −2
  8   8   fn a() {
  9     −     let old = 1;
      9 +     let new = 1;
     10 +     more(\"a long line that has to go on below\");
⋯
 99 100   }
100     − gone

a.png  binary

Cargo.lock  +12000
… 12000 more lines are not shown";
    assert_eq!(drawn(&sample(), 80), expected);
}

#[test]
fn one_number_is_shown_at_forty_columns() {
    let expected = "\
src/lib.rs  +2 −2
  8   fn a() {
  9 −     let old = 1;
  9 +     let new = 1;
 10 +     more(\"a long line that has to 
      go on below\");
⋯
100   }
100 − gone";
    assert_eq!(drawn(&sample()[..1], 40), expected);
}

#[test]
fn a_window_is_a_part_of_the_whole() {
    let mut files = sample();
    files.push(file("wide", &[((0, 0), &["+漢字漢字漢字漢字漢字漢字漢字 \u{1b}[0m", " ", "-"])]));
    for width in [4, 10, 23, 40, 80] {
        let whole = lines(&files, width, &Theme::default());
        assert!(whole.iter().all(|line| columns(&line.to_string()) <= usize::from(width)), "{width}");
        let mut view = DiffView::new(files.clone());
        assert_eq!(view.height(width), whole.len(), "{width}");
        for start in 0..whole.len() + 2 {
            let end = (start + 5).min(whole.len());
            assert_eq!(
                view.window(width, &Theme::default(), start..start + 5),
                whole[start.min(end)..end],
                "{width} {start}"
            );
        }
        let starts = view.starts(width);
        assert!(whole[starts[1]].to_string().starts_with("a.p") && starts[0] == 0, "{width}");
    }
}

#[test]
fn what_cannot_be_shown_says_why() {
    let with = |why: Instead| drawn(&[FileDiff { instead: Some(why), ..file("x", &[]) }], 40);
    assert_eq!(with(Instead::TooLarge), "x  too large to compare");
    assert_eq!(with(Instead::Mode), "x  permissions only");
    let odd = FileDiff { path: Bytes::new(b"a\xffb"), ..file("", &[]) };
    assert_eq!(drawn(&[odd], 40), "a\u{fffd}b");
}
