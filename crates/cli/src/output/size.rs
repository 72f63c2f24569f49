//! Sizes in bytes, as people write and read them: `64 MiB`.

use thiserror::Error;

/// Text that is no size.
#[derive(Debug, Error)]
#[error("`{0}` is not a size; write a number of bytes, or a number and a unit such as `64 MiB` or `4 GB`")]
pub struct BadSize(String);

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Reads `64 MiB`, `1.5 GB` or `4096`.
pub fn parse(text: &str) -> Result<u64, BadSize> {
    let bad = || BadSize(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    Ok(whole.checked_mul(*factor).ok_or_else(bad)? + part_of(*factor, fraction).ok_or_else(bad)?)
}

/// `factor` times the decimal fraction with these digits, rounded down.
fn part_of(factor: u64, digits: &str) -> Option<u64> {
    let scale = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    let value = u128::from(factor).checked_mul(digits.parse().ok()?)? / scale;
    u64::try_from(value).ok()
}

/// `bytes` in the largest unit that leaves at least 1, with one decimal.
pub fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let power = bytes.ilog2() / 10;
    // Tenths, rounded to nearest in integers: no float ever shows `1024.0 MiB`.
    let tenths = (u128::from(bytes) * 10 + (1 << (10 * power - 1))) >> (10 * power);
    if tenths == 10_240 && power < 6 {
        return format!("1.0 {}", units[power as usize]);
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_unit() {
        let read = ["4096", "64 MiB", "1.5 GiB", "2kb", " 7 B "].map(|text| parse(text).expect(text));
        assert_eq!(read, [4096, 64 << 20, 3 << 29, 2000, 7]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "MiB", "64 MoB", "-1", "1.2.3", "99999999999 TiB", "1. KiB", "1 000"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_fitting_unit() {
        let shown = [0, 1023, 1024, 1536, (1 << 20) - 1, 4 << 30, u64::MAX].map(human);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "4.0 GiB", "16.0 EiB"]);
    }
}
