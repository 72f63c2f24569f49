//! The changes in force, from a path's whole past: at every moment the list of changes that made the path what it was.
//!
//! Lists are copied at every step, and each state is looked for in all earlier moments.

use retake_testkit::naive::{NaiveKind, NaiveNode};

use super::model::{By, Happening, Row};

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
type State<'r> = Option<Option<&'r NaiveNode>>;

/// What made the path what it was at one moment: rows by number, each with its makers.
type List = Vec<(usize, Vec<usize>)>;

/// The changes in force of the path with this past, of which the target has seen the first `seen` rows.
pub(super) fn in_force<'r>(past: &[&'r Row], seen: usize) -> Vec<Step<'r>> {
    let lists = lists(past);
    let (then, now) = (&lists[seen], &lists[past.len()]);
    let rows = |list: &[(usize, Vec<usize>)]| list.iter().map(|(row, _)| *row).collect::<Vec<_>>();
    let (old, new): (List, List) = now.iter().cloned().partition(|(row, _)| *row < seen);
    let makers = |rows: Vec<usize>| rows.into_iter().map(|row| past[row]).collect::<Vec<_>>();
    let mut steps = Vec::new();
    if rows(&old) != rows(then) {
        // Something went to an older state at once, whatever had happened since the target.
        let (from, to) = (state(past, then), state(past, &old));
        let top = |list: &List| list.last().map(|(row, _)| *row);
        let by = (seen..past.len()).find(|row| top(&lists[row + 1]) == top(&old)).expect("it went there");
        let inherited = old.iter().filter(|(row, _)| !rows(then).contains(row)).flat_map(|(_, makers)| makers.clone());
        let makers = makers(inherited.chain([by]).collect());
        let happening = if from.is_some() { Happening::Changed } else { Happening::Captured };
        if from != to {
            steps.push(Step { happening, before: from.flatten(), after: to.flatten(), makers });
        }
    }
    steps.extend(new.into_iter().map(|(row, by)| {
        let Row { happening, before, after, .. } = past[row];
        Step { happening: *happening, before: before.as_ref(), after: after.as_ref(), makers: makers(by) }
    }));
    steps
}

/// The list of each moment: before the first row, and after each.
fn lists(past: &[&Row]) -> Vec<List> {
    let mut lists: Vec<List> = vec![List::new()];
    for (number, row) in past.iter().enumerate() {
        let here = lists[number].clone();
        let found = after(row);
        let is_found = |list: &List| found.is_some() && state(past, list) == found;
        let below = (0..=here.len()).rev().map(|length| here[..length].to_vec()).find(is_found);
        let earlier = lists.iter().rev().find(|list| is_found(list)).cloned();
        let is_outside = |row: &usize| past[*row].by == By::Outside;
        let next = if let Some(mut below) = below {
            let others = here[below.len()..].iter().any(|(_, makers)| !makers.iter().all(is_outside));
            if let Some((_, makers)) = below.last_mut().filter(|_| row.by == By::Outside && others) {
                makers.push(number);
            }
            below
        } else if let (By::Retake(_), Some(earlier)) = (row.by, &earlier) {
            earlier.clone()
        } else {
            let mut makers = vec![number];
            if let (By::Window { .. }, Some((_, theirs))) = (row.by, earlier.as_ref().and_then(|list| list.last())) {
                makers.extend(theirs.iter().copied().filter(is_outside));
            }
            [here, vec![(number, makers)]].concat()
        };
        lists.push(next);
    }
    lists
}

/// The state that a list led to.
fn state<'r>(past: &[&'r Row], list: &List) -> State<'r> {
    match list.last() {
        Some((row, _)) => after(past[*row]),
        None => past.first().and_then(|row| {
            let is_known = !matches!(row.happening, Happening::Captured | Happening::Uncovered);
            is_known.then_some(row.before.as_ref())
        }),
    }
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
