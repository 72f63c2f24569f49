//! The changes in force: at every moment the list of changes that made a path what it was.
//!
//! Lists are copied at every step, and each state is looked for in all earlier moments. Only Retake takes changes back: what it brings back
//! has its first authors. Anybody else who writes an earlier state has changed the path once more.

/// A state of a path, if it was captured: what is there, if anything is.
pub type State<'s, S> = Option<Option<&'s S>>;

/// Who made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// A command or a tool of an agent.
    Tool,
    /// A person, or a program that nobody knows.
    Person,
    /// An undo, a redo or a rewind.
    Retake,
}

/// One recorded change of a path.
#[derive(Debug)]
pub struct Recorded<'s, S> {
    /// What was there before it.
    pub before: State<'s, S>,
    /// What was there after it.
    pub after: State<'s, S>,
    /// Who made it.
    pub by: Hand,
    /// The operation that it is part of, if that is undone.
    pub undone: Option<usize>,
}

/// A change in force since the target.
#[derive(Debug)]
pub struct InForce<'s, S> {
    /// Its number, unless it is a return to a state from before the target.
    pub row: Option<usize>,
    /// What was there before it.
    pub before: State<'s, S>,
    /// What was there after it.
    pub after: State<'s, S>,
    /// The numbers of the changes that the state after it is made of.
    pub makers: Vec<usize>,
}

/// What made the path what it was at one moment: changes by number, each with its makers.
type List = Vec<(usize, Vec<usize>)>;

/// The changes in force of a path with this past, of which the target has seen the first `seen`.
pub fn in_force<'s, S: PartialEq>(past: &[Recorded<'s, S>], seen: usize) -> Vec<InForce<'s, S>> {
    let lists = lists(past);
    let (then, now) = (&lists[seen], &lists[past.len()]);
    let rows = |list: &List| list.iter().map(|(row, _)| *row).collect::<Vec<_>>();
    let (old, new): (List, List) = now.iter().cloned().partition(|(row, _)| *row < seen);
    let mut left = Vec::new();
    let (before, after) = (state(past, then), state(past, &old));
    if rows(&old) != rows(then) && before != after {
        // Retake went to an older state at once, whatever had happened since the target.
        let top = |list: &List| list.last().map(|(row, _)| *row);
        let by = (seen..past.len()).find(|row| top(&lists[row + 1]) == top(&old)).expect("Retake went there");
        let inherited = old.iter().filter(|(row, _)| !rows(then).contains(row)).flat_map(|(_, makers)| makers.clone());
        left.push(InForce { row: None, before, after, makers: inherited.chain([by]).collect() });
    }
    left.extend(new.into_iter().map(|(row, makers)| {
        let Recorded { before, after, .. } = past[row];
        InForce { row: Some(row), before, after, makers }
    }));
    left
}

/// The list of each moment: before the first change, and after each.
fn lists<S: PartialEq>(past: &[Recorded<'_, S>]) -> Vec<List> {
    let mut lists: Vec<List> = vec![List::new()];
    for (number, change) in past.iter().enumerate() {
        let here = lists[number].clone();
        let is_found = |list: &List| change.after.is_some() && state(past, list) == change.after;
        let below = (0..=here.len()).rev().map(|length| here[..length].to_vec()).find(is_found);
        // An undone operation that came to nothing by itself left its undo nothing to write.
        let is_its = |(row, _): &(usize, Vec<usize>)| past[*row].undone == change.undone;
        let is_void = |below: &List| change.undone.is_some() && here[below.len()..].iter().all(is_its);
        if let Some(below) = below.clone().filter(is_void) {
            lists.push(below);
            continue;
        }
        let earlier = below.or_else(|| lists.iter().rev().find(|list| is_found(list)).cloned());
        let next = match (change.by, earlier) {
            (Hand::Retake, Some(earlier)) => earlier,
            (by, earlier) => {
                let mut makers = vec![number];
                // A command that brings a person's state again, out of git's stash, say, has not written it.
                if let (Hand::Tool, Some((_, theirs))) = (by, earlier.as_ref().and_then(|list| list.last())) {
                    makers.extend(theirs.iter().filter(|row| past[**row].by == Hand::Person));
                }
                [here, vec![(number, makers)]].concat()
            }
        };
        lists.push(next);
    }
    lists
}

/// The state that a list led to.
fn state<'s, S>(past: &[Recorded<'s, S>], list: &List) -> State<'s, S> {
    match list.last() {
        Some((row, _)) => past[*row].after,
        None => past.first().and_then(|first| first.before),
    }
}
