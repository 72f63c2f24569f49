//! Warnings about changed ignore rules: which files are captured in spite of a rule, and which are no longer captured. The engine counts.

use retake_engine::changes::Coverage;

/// How the user confirms a rule that an agent or a command changed.
const CONFIRM: &str = "`retake checkpoint --apply-ignores` applies the rule";

/// What to tell of a checkpoint that has just been taken.
pub fn warnings(coverage: &Coverage) -> Vec<String> {
    let mut warnings = Vec::new();
    if coverage.newly_held > 0 {
        let files = files(coverage.newly_held);
        warnings.push(format!("a command changed an ignore rule that hides {files}: still captured; {CONFIRM}"));
    }
    if coverage.no_longer > 0 {
        let files = files(coverage.no_longer);
        warnings.push(format!("{files} no longer captured, because of an ignore rule; nothing was deleted"));
    }
    warnings
}

/// What to tell of the files that are held; `None` if there are none.
pub fn held(coverage: &Coverage) -> Option<String> {
    let files = files(coverage.held);
    (coverage.held > 0).then(|| format!("{files} hidden by a command's ignore rule and still captured; {CONFIRM}"))
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}
