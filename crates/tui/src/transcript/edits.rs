//! What a call of an edit tool changed, from what the model wrote: the file itself may be another one by now.

use retake_agent::diff::{DiffLine, FileDiff, HunkLines, LineKind};
use retake_agent::rewind_document::Bytes;
use retake_engine::session::entry::Details;
use serde_json::Value;

/// Larger replacements are not compared line by line.
const MAX_COMPARED: usize = 250_000;

/// What a call changed.
pub(super) struct ChangedText {
    pub(super) diff: FileDiff,
    /// Whether the same was done in other places of the file, which the diff does not show.
    pub(super) is_everywhere: bool,
}

/// The change that a call of `tool` with these arguments made; `None` if it is no edit, or the arguments are not what they should be.
pub(super) fn of_call(tool: &str, arguments: &str, details: Option<&Details>) -> Option<ChangedText> {
    if !matches!(tool, "edit_file" | "multi_edit" | "write_file") {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let path = arguments.get("path")?.as_str()?;
    let numbers = match details {
        Some(Details::Edited { lines }) => lines.as_slice(),
        _ => &[],
    };
    let hunks = match tool {
        "write_file" => vec![written(arguments.get("content")?.as_str()?)],
        "edit_file" => edited(&[replacement(&arguments)?], numbers),
        _ => edited(&arguments.get("edits")?.as_array()?.iter().map(replacement).collect::<Option<Vec<_>>>()?, numbers),
    };
    let count = |kind| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count();
    let (added, removed) = (count(LineKind::Added), count(LineKind::Removed));
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let path = Bytes::Text(path.to_owned());
    let (added, removed) = (number(added), number(removed));
    let is_all = |edit: &Value| edit.get("replace_all").and_then(Value::as_bool) == Some(true);
    let is_everywhere = is_all(&arguments) || arguments["edits"].as_array().is_some_and(|all| all.iter().any(is_all));
    Some(ChangedText {
        diff: FileDiff { path, added, removed, instead: None, hunks, left_out: 0, about: None },
        is_everywhere,
    })
}

fn replacement(arguments: &Value) -> Option<(&str, &str)> {
    Some((arguments.get("old")?.as_str()?, arguments.get("new")?.as_str()?))
}

fn written(content: &str) -> HunkLines {
    let lines = content.lines().map(|line| DiffLine { kind: LineKind::Added, text: line.to_owned() });
    HunkLines { start: (1, 1), lines: lines.collect() }
}

/// A hunk for each replacement, where it was made first.
fn edited(edits: &[(&str, &str)], numbers: &[u32]) -> Vec<HunkLines> {
    let hunk = |(old, new): &(&str, &str), line: u32| HunkLines { start: (line, line), lines: compare(old, new) };
    match edits.len() == numbers.len() {
        true => edits.iter().zip(numbers).map(|(edit, line)| hunk(edit, *line)).collect(),
        // Nobody knows where.
        false => edits.iter().map(|edit| hunk(edit, 0)).collect(),
    }
}

/// The lines of `old` and `new`: what they have in common once.
fn compare(old: &str, new: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lead = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let trail = old[lead..].iter().rev().zip(new[lead..].iter().rev()).take_while(|(old, new)| old == new).count();
    let mut lines = Vec::new();
    let mut add = |kind: LineKind, text: &str| lines.push(DiffLine { kind, text: text.to_owned() });
    old[..lead].iter().for_each(|line| add(LineKind::Same, line));
    let (gone, come) = (&old[lead..old.len() - trail], &new[lead..new.len() - trail]);
    let common = common(gone, come);
    let (mut from, mut to) = (0, 0);
    for (before, after) in common.into_iter().chain([(gone.len(), come.len())]) {
        gone[from..before].iter().for_each(|line| add(LineKind::Removed, line));
        come[to..after].iter().for_each(|line| add(LineKind::Added, line));
        if let Some(line) = gone.get(before) {
            add(LineKind::Same, line);
        }
        (from, to) = ((before + 1).min(gone.len()), (after + 1).min(come.len()));
    }
    old[old.len() - trail..].iter().for_each(|line| add(LineKind::Same, line));
    lines
}

/// The longest sequence of lines that both have, as pairs of where they are.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len() * new.len() > MAX_COMPARED {
        return Vec::new();
    }
    let columns = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * columns + j] = match old[i] == new[j] {
                true => lengths[(i + 1) * columns + j + 1] + 1,
                false => lengths[(i + 1) * columns + j].max(lengths[i * columns + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * columns + j] >= lengths[i * columns + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(old: &str, new: &str) -> String {
        let sign = |kind| match kind {
            LineKind::Same => ' ',
            LineKind::Added => '+',
            LineKind::Removed => '-',
        };
        compare(old, new).iter().map(|line| format!("{}{}\n", sign(line.kind), line.text)).collect()
    }

    #[test]
    fn lines_that_stay_are_told_from_those_that_change() {
        assert_eq!(drawn("a\nb\nc\n", "a\nx\nc\n"), " a\n-b\n+x\n c\n");
        assert_eq!(drawn("a\nb\nc\nd\ne", "b\nx\nd\ny"), "-a\n b\n-c\n+x\n d\n-e\n+y\n");
        assert_eq!(drawn("", "a"), "+a\n");
        assert_eq!(drawn("a\na", "a"), " a\n-a\n");
        assert_eq!(drawn("same", "same"), " same\n");
    }

    #[test]
    fn numbers_come_from_what_is_known_of_the_edit() {
        let edits = r#"{"path":"a.rs","edits":[{"old":"x","new":"y"},{"old":"p","new":"q\nr"}]}"#;
        let details = Details::Edited { lines: vec![4, 9] };
        let made = of_call("multi_edit", edits, Some(&details)).expect("an edit");
        assert_eq!((made.diff.added, made.diff.removed, made.is_everywhere), (3, 2, false));
        assert_eq!(made.diff.hunks.iter().map(|hunk| hunk.start).collect::<Vec<_>>(), [(4, 4), (9, 9)]);
        let unknown = of_call("multi_edit", edits, None).expect("an edit");
        assert_eq!(unknown.diff.hunks[0].start, (0, 0));
        let all =
            of_call("edit_file", r#"{"path":"a","old":"x","new":"y","replace_all":true}"#, None).expect("an edit");
        assert!(all.is_everywhere);
        assert!(of_call("edit_file", "{\"path\":", None).is_none() && of_call("bash", "{}", None).is_none());
    }
}
