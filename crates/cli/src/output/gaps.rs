//! Gaps in words: what a checkpoint could not capture, grouped by kind.

use retake_engine::snapshot::{Gap, GapKind};

use crate::output::messages;

/// Paths of a kind that are enough to recognise them.
const FEW: usize = 3;

/// How many paths of a kind are named; the rest is counted.
#[derive(Clone, Copy, Debug)]
pub enum Detail {
    Few,
    All,
}

/// A line for each kind that occurs, with its count, and below it the paths.
pub fn lines(gaps: &[Gap], detail: Detail) -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, gaps) in by_kind(gaps) {
        let shown = match detail {
            Detail::Few => gaps.len().min(FEW),
            Detail::All => gaps.len(),
        };
        lines.push(format!("  {} {}", gaps.len(), kind.describe()));
        lines.extend(gaps[..shown].iter().map(|gap| format!("    {}", gap.path.display())));
        if shown < gaps.len() {
            lines.push(format!("    … and {} more", gaps.len() - shown));
        }
    }
    lines
}

/// The gaps of each kind, kinds in the order of their first gap.
fn by_kind(gaps: &[Gap]) -> Vec<(GapKind, Vec<&Gap>)> {
    let mut groups: Vec<(GapKind, Vec<&Gap>)> = Vec::new();
    for gap in gaps {
        match groups.iter_mut().find(|(kind, _)| *kind == gap.kind) {
            Some((_, group)) => group.push(gap),
            None => groups.push((gap.kind, vec![gap])),
        }
    }
    groups
}

/// `1 gap`, `2 gaps`.
pub fn count(gaps: u64) -> String {
    messages::count(gaps, "gap", "gaps")
}

#[cfg(test)]
mod tests {
    use retake_engine::WorkspacePath;

    use super::*;

    fn gap(path: &str, kind: GapKind) -> Gap {
        Gap { path: WorkspacePath::parse(path.as_bytes()).expect("it is plain"), kind }
    }

    #[test]
    fn kinds_are_grouped_and_long_lists_cut() {
        let mut gaps: Vec<Gap> = (0..5).map(|n| gap(&format!("big{n}"), GapKind::TooLarge)).collect();
        gaps.insert(1, gap("pipe", GapKind::Special));
        let (large, special) = (GapKind::TooLarge.describe(), GapKind::Special.describe());
        assert_eq!(
            lines(&gaps, Detail::Few).join("\n"),
            format!("  5 {large}\n    big0\n    big1\n    big2\n    … and 2 more\n  1 {special}\n    pipe")
        );
        assert_eq!(lines(&gaps, Detail::All).len(), 8);
    }
}
