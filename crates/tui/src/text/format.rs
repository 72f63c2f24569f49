//! Short forms of times, sizes and parts.

use retake_engine::Timestamp;
use retake_engine::session::entry::Part;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How long ago: `now`, `40s`, `12m`, `3h`, `5d`.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> String {
    match now.0.saturating_sub(at.0).max(0) {
        ms if ms < 2 * SECOND => "now".to_owned(),
        ms if ms < MINUTE => format!("{}s", ms / SECOND),
        ms if ms < HOUR => format!("{}m", ms / MINUTE),
        ms if ms < DAY => format!("{}h", ms / HOUR),
        ms => format!("{}d", ms / DAY),
    }
}

/// `340 B`, `1.2 kB`, `34 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut unit = 1;
    for name in ["B", "kB", "MB", "GB"] {
        if bytes < unit * 1_000 {
            let tenths = bytes % unit * 10 / unit;
            return match bytes / unit {
                whole if whole < 10 && unit > 1 => format!("{whole}.{tenths} {name}"),
                whole => format!("{whole} {name}"),
            };
        }
        unit *= 1_000;
    }
    format!("{} TB", bytes / unit)
}

/// What a part says, for people.
pub(crate) fn in_words(part: &Part) -> String {
    match part {
        Part::Text { text } | Part::Paste { text } => text.clone(),
        Part::File { path, .. } => format!("@{path}"),
        Part::Image { media_type, .. } => format!("[{media_type}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_short() {
        let ages = [0, 45_000, 61_000, 3 * HOUR, 49 * HOUR].map(|ms| age(Timestamp(1_000), Timestamp(1_000 + ms)));
        assert_eq!(ages, ["now", "45s", "1m", "3h", "2d"]);
        assert_eq!(age(Timestamp(9), Timestamp(1)), "now", "a clock that went back");
        let sizes = [0, 999, 1_250, 34_000_000, 2_000_000_000_000].map(size);
        assert_eq!(sizes, ["0 B", "999 B", "1.2 kB", "34 MB", "2 TB"]);
    }
}
