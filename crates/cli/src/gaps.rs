//! Gaps in words: what a checkpoint could not capture, grouped by kind.

use retake_engine::{Gap, GapKind};

use crate::words;

/// How many paths of a kind are named before the rest is counted.
#[derive(Clone, Copy, Debug)]
pub enum Detail {
    /// Enough to recognise them.
    Few,
    All,
}

/// One line per kind that occurs, with its count and paths.
pub fn lines(gaps: &[Gap], detail: Detail) -> Vec<String> {
    by_kind(gaps).into_iter().map(|(kind, paths)| line(kind, &paths, detail)).collect()
}

fn line(kind: GapKind, gaps: &[&Gap], detail: Detail) -> String {
    let shown = match detail {
        Detail::Few => gaps.len().min(3),
        Detail::All => gaps.len(),
    };
    let names: Vec<String> = gaps[..shown].iter().map(|gap| gap.path.display().to_string()).collect();
    let rest = match gaps.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} {}: {}{rest}", gaps.len(), kind.describe(), names.join(", "))
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
    words::count(gaps, "gap", "gaps")
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
            lines(&gaps, Detail::Few),
            [format!("5 {large}: big0, big1, big2 and 2 more"), format!("1 {special}: pipe")]
        );
        assert!(lines(&gaps, Detail::All)[0].ends_with("big0, big1, big2, big3, big4"));
    }
}
