//! Times, as people and JSON get them.

use jiff::tz::TimeZone;
use retake_engine::Timestamp;

/// `at` in UTC as RFC 3339, for JSON.
pub fn rfc3339(at: Timestamp) -> String {
    instant(at).to_string()
}

/// `at` in the user's time zone, to the second.
pub fn local(at: Timestamp) -> String {
    instant(at).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// How long ago `at` was, in one unit; the date where that says more, as for a point made before the clock was put back.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let seconds = now.0.saturating_sub(at.0).div_euclid(1000);
    match seconds {
        -5..5 => "just now".to_owned(),
        5..MINUTE => ago(seconds, "second"),
        MINUTE..HOUR => ago(seconds / MINUTE, "minute"),
        HOUR..DAY => ago(seconds / HOUR, "hour"),
        _ if (DAY..30 * DAY).contains(&seconds) => ago(seconds / DAY, "day"),
        _ => instant(at).to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string(),
    }
}

fn ago(count: i64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

/// The nearest time that can be written down: a damaged clock must not make a listing fail.
fn instant(at: Timestamp) -> jiff::Timestamp {
    let bound = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp(1_750_000_000_000);

    fn age_after(seconds: i64) -> String {
        age(NOON, Timestamp(NOON.0 + seconds * 1000))
    }

    #[test]
    fn ages_use_one_unit() {
        let ages = [0, 30, 60, 7_199, 86_400 * 2].map(age_after);
        assert_eq!(ages, ["just now", "30 seconds ago", "1 minute ago", "1 hour ago", "2 days ago"]);
    }

    #[test]
    fn old_and_future_times_are_dates() {
        assert!(age_after(86_400 * 31).starts_with("2025-06-1"));
        assert!(age_after(-3_600).starts_with("2025-06-1"));
    }

    #[test]
    fn json_times_are_utc_and_never_fail() {
        assert_eq!(rfc3339(NOON), "2025-06-15T15:06:40Z");
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999-"));
        assert!(rfc3339(Timestamp(i64::MIN)).starts_with("-00"));
    }
}
