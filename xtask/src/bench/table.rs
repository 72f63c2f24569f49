//! What `bench/peers.sh` prints, as a Markdown table with ratios.

use super::peers::OURS;

const TIMED: [&str; 4] = ["first", "nothing changed", "turn", "restore"];

/// One peer's measurements on one tree.
#[derive(Debug)]
pub(super) struct Row {
    is_ours: bool,
    name: &'static str,
    /// Cells as printed: four times in microseconds, store size in KiB, wrong paths after a restore, git state changed.
    /// Fewer if the peer failed or ran out of time; the last cell then says so.
    cells: Vec<String>,
}

impl Row {
    /// Reads a line of tab-separated cells, the first of which is the peer's id.
    pub(super) fn parse(id: &str, name: &'static str, printed: &str) -> Self {
        let cells = printed.split('\t').skip(1).map(|cell| cell.trim().to_string()).collect();
        Self { is_ours: id == OURS, name, cells }
    }

    /// Milliseconds that the restore of a turn took.
    pub(super) fn restore(&self) -> Option<f64> {
        Some(self.micros(3)? / 1_000.0)
    }

    fn micros(&self, column: usize) -> Option<f64> {
        self.cells.get(column)?.parse().ok()
    }

    fn cell(&self, column: usize) -> String {
        let Some(cell) = self.cells.get(column) else { return String::new() };
        match (column, cell.parse::<u64>()) {
            (4, Ok(kib)) => format!("{:.1}", kib as f64 / 1024.0),
            (0..4, Ok(micros)) if micros < 100_000 => format!("{:.1}", micros as f64 / 1_000.0),
            (0..4, Ok(micros)) => thousands(micros / 1_000),
            _ => cell.replace('|', "\\|").replace(';', "; "),
        }
    }
}

/// All rows under their headings, times in milliseconds.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = format!("| | {} | store MB | paths wrong after restore | git state changed |\n", TIMED.join(" | "));
    text += "|---|--:|--:|--:|--:|--:|--:|---|\n";
    for row in rows {
        let cells: Vec<String> = (0..7).map(|column| row.cell(column)).collect();
        text += &format!("| {} | {} |\n", row.name, cells.join(" | "));
    }
    text
}

/// How many times faster we are than the fastest other row, column by column; `None` without rows of both kinds.
pub(super) fn verdict(rows: &[Row]) -> Option<String> {
    let ours = rows.iter().find(|row| row.is_ours)?;
    let ratio = |column: usize| {
        let others = rows.iter().filter(|row| !row.is_ours).filter_map(|row| row.micros(column));
        let fastest = others.fold(f64::INFINITY, f64::min);
        let mine = ours.micros(column)?.max(1.0);
        fastest.is_finite().then(|| format!("{} {:.1}×", TIMED[column], fastest / mine))
    };
    let ratios: Vec<String> = (0..TIMED.len()).filter_map(ratio).collect();
    (!ratios.is_empty()).then(|| format!("The fastest peer takes, of our time: {}.", ratios.join(", ")))
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if 0 < i && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_thousands_and_megabytes() {
        let row = Row::parse("zed", "Zed", "zed\t1234567000\t472999\t51140\t272\t2048\t12\trefs 1;stash 2");
        let text = table(&[row]);
        assert!(text.ends_with("| Zed | 1,234,567 | 472 | 51.1 | 0.3 | 2.0 | 12 | refs 1; stash 2 |\n"), "{text}");
    }

    #[test]
    fn a_row_cut_short_keeps_what_it_measured() {
        let row = Row::parse("roo", "Roo Code", "roo\t42436000\ttime limit of 60 s");
        let text = table(&[row]);
        assert!(text.ends_with("| Roo Code | 42,436 | time limit of 60 s |  |  |  |  |  |\n"), "{text}");
    }

    #[test]
    fn the_verdict_compares_with_the_fastest_other_row() {
        let ours = Row::parse(OURS, "Retake", "retake\t100\t10\t20\t-\t5\t-\tnone");
        let zed = Row::parse("zed", "Zed", "zed\t200\t100\t50\t70\t9\t12\tnone");
        let roo = Row::parse("roo", "Roo Code", "roo\t50\tfailed");
        let text = verdict(&[ours, zed, roo]);
        assert_eq!(
            text.as_deref(),
            Some("The fastest peer takes, of our time: first 0.5×, nothing changed 10.0×, turn 2.5×.")
        );
    }
}
