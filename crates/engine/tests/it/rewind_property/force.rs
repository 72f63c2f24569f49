//! The changes in force of the model's rows, and whose they are.

use retake_testkit::naive::force::{self, Hand, InForce, Recorded};
use retake_testkit::naive::{NaiveKind, NaiveNode};

use super::model::{By, Happening, Model, Row};

/// A change in force since the target.
#[derive(Debug, Clone)]
pub(super) struct Step<'r> {
    pub(super) happening: Happening,
    pub(super) before: Option<&'r NaiveNode>,
    pub(super) after: Option<&'r NaiveNode>,
    /// The rows that the state after it is made of.
    pub(super) makers: Vec<&'r Row>,
}

impl Step<'_> {
    pub(super) fn is_persons(&self) -> bool {
        self.makers.iter().any(|row| row.by == By::Outside)
    }
}

/// A state, if it was captured.
type State<'r> = force::State<'r, NaiveNode>;

/// The changes in force of the path with this past, of which the target has seen the first `seen` rows.
pub(super) fn in_force<'r>(model: &Model, past: &[&'r Row], seen: usize) -> Vec<Step<'r>> {
    let recorded = |row: &&'r Row| {
        let by = match row.by {
            By::Retake(_) => Hand::Retake,
            By::Outside => Hand::Person,
            By::Contested | By::Window { .. } => Hand::Tool,
        };
        let undone = model.operation_of(row.by).filter(|operation| model.operations[*operation].is_undone);
        Recorded { before: before(row), after: after(row), by, undone }
    };
    let recorded: Vec<Recorded<'r, NaiveNode>> = past.iter().map(recorded).collect();
    let step = |one: InForce<'r, NaiveNode>| {
        let jumped = if one.before.is_some() { Happening::Changed } else { Happening::Captured };
        let happening = one.row.map_or(jumped, |row| past[row].happening);
        let makers = one.makers.iter().map(|row| past[*row]).collect();
        Step { happening, before: one.before.flatten(), after: one.after.flatten(), makers }
    };
    force::in_force(&recorded, seen).into_iter().map(step).collect()
}

/// The state before a row.
fn before(row: &Row) -> State<'_> {
    let is_known = !matches!(row.happening, Happening::Captured | Happening::Uncovered);
    is_known.then_some(row.before.as_ref())
}

/// The state after a row.
pub(super) fn after(row: &Row) -> State<'_> {
    let is_known = !matches!(row.happening, Happening::Uncaptured | Happening::LeftOut);
    is_known.then_some(row.after.as_ref())
}

/// Whether the steps lead from `target` to `now`, each from where the last one ended.
pub(super) fn leads(steps: &[Step<'_>], target: Option<&NaiveNode>, now: Option<&NaiveNode>) -> bool {
    let ends = steps.iter().map(|step| step.after);
    let starts = steps.iter().map(|step| step.before);
    let is_whole = steps.iter().all(|step| step.happening == Happening::Changed);
    is_whole && std::iter::once(target).chain(ends).eq(starts.chain([now]))
}

/// Whether a person made what the steps led to, or a part of it.
pub(super) fn is_yours(steps: &[Step<'_>], now: Option<&NaiveNode>) -> bool {
    let Some(last) = steps.last() else { return false };
    if now.is_none() || last.is_persons() {
        return last.is_persons();
    }
    let is_gone = |at: usize| steps[at + 1..].iter().any(|later| is_replaced(&steps[at], later));
    (0..steps.len()).any(|at| steps[at].is_persons() && !is_gone(at))
}

/// Whether nothing of what `step` made is left after `later`.
fn is_replaced(step: &Step<'_>, later: &Step<'_>) -> bool {
    if matches!(later.happening, Happening::Uncaptured | Happening::LeftOut) {
        return false;
    }
    let (Some(made), Some(left)) = (step.after, later.after) else { return true };
    if made.kind != left.kind {
        return true;
    }
    let has_set_mode = step.before.is_some_and(|before| before.kind == made.kind && before.mode != made.mode);
    if has_set_mode && made.mode == left.mode {
        return false;
    }
    let lines = |node: &NaiveNode| -> Vec<Vec<u8>> {
        let lines = node.content.split(|byte| *byte == b'\n').map(|line| line.trim_ascii().to_vec());
        lines.filter(|line| !line.is_empty()).collect()
    };
    let is_text =
        |node: &NaiveNode| node.content.len() <= 1 << 20 && !node.content.iter().take(8_000).any(|byte| *byte == 0);
    match made.kind {
        NaiveKind::Directory => has_set_mode,
        NaiveKind::Symlink => made.content != left.content,
        NaiveKind::File => {
            let rest = lines(left);
            is_text(made) && is_text(left) && !lines(made).iter().any(|line| rest.contains(line))
        }
    }
}
