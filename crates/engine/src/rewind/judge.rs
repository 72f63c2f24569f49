//! The judgement on one path of a selective rewind: may it go back, or did somebody else have a hand in it?

use super::Conflict;
use super::chain::{self, InForce};
use crate::base::fault;
use crate::history::owner::rows::ChangeRow;
use crate::history::owner::{By, Certainty, ChangeKind, Verdict};
use crate::snapshot::presence::Presence;
use crate::store::tree::{Node, same};

/// Whether `chain`, the changes in force since the target, can simply be taken back. `ours` says whose changes are to be taken back,
/// which are those of `session` or of what it was forked from.
pub(super) fn judge(
    chain: &[InForce],
    ours: impl Fn(&ChangeRow) -> bool + Copy,
    session: Option<i64>,
    target: Presence,
    now: Presence,
) -> Option<Conflict> {
    let Some(now) = now.state() else { return Some(Conflict::NotCaptured) };
    let Some(target) = target.state() else { return Some(Conflict::UnknownThen) };
    if same(now.as_ref(), target.as_ref()) {
        return None;
    }
    if chain.iter().any(InForce::is_contested) {
        return Some(Conflict::Contested);
    }
    // A rule that leaves a path out does not change it.
    let changes = chain.iter().filter(|one| one.change.kind != ChangeKind::LeftOut);
    let mut others = changes.flat_map(|one| &one.makers).filter(|maker| !ours(maker) && !is_found(maker)).peekable();
    if others.peek().is_some() && !fault::seeded("bug-ignore-others") {
        let is_same = |maker: &ChangeRow| session.is_some() && maker.by.session == session;
        return Some(if others.all(is_same) { Conflict::ChangedLater } else { Conflict::ChangedByOthers });
    }
    if is_unbroken(chain, target.as_ref(), now.as_ref()) {
        return None;
    }
    // What is there now may be what our last change left: no checkpoint has captured that.
    let known = chain.iter().take_while(|one| !is_lost(one)).count();
    let (known, since) = chain.split_at(known);
    let state = known.last().map_or(target.as_ref(), |one| one.change.after.as_ref());
    let is_lost_since = !since.is_empty() && is_unbroken(known, target.as_ref(), state) && leads(since, now.as_ref());
    match is_lost_since {
        // It is as our last change left it, whatever was there in between.
        true if since.iter().all(is_lost) && same(state, now.as_ref()) => None,
        true => Some(Conflict::UncapturedSince),
        false => Some(Conflict::ChangedSince),
    }
}

/// Whether the changes lead to `now`, each from where the last one ended as far as that is known.
fn leads(since: &[InForce], now: Option<&Node>) -> bool {
    let mut state = None;
    for InForce { change, .. } in since {
        if chain::before(change).zip(state).is_some_and(|(before, state)| !same(before, state)) {
            return false;
        }
        state = chain::after(change);
    }
    state.is_none_or(|state| same(state, now))
}

/// Whether a path was only found while nobody was at work, after a time without capture: that does not tell who changed it then.
fn is_found(change: &ChangeRow) -> bool {
    change.kind == ChangeKind::Captured && change.by == By::OUTSIDE
}

/// Whether `chain` tells only that the path came to be captured, or not to be: nothing is known to have changed it.
pub(super) fn is_coverage_alone(chain: &[InForce]) -> bool {
    let is_coverage =
        |one: &InForce| matches!(one.change.kind, ChangeKind::Captured | ChangeKind::Uncovered | ChangeKind::LeftOut);
    !chain.is_empty() && chain.iter().all(is_coverage)
}

/// Whether `change` tells who changed the path. While a rule left it out or it was a gap, anybody may have.
pub(super) fn tells_author(change: &ChangeRow) -> bool {
    matches!(change.kind, ChangeKind::Changed | ChangeKind::Uncaptured)
}

/// Whether nobody knows what a change left.
fn is_lost(one: &InForce) -> bool {
    matches!(one.change.kind, ChangeKind::Uncaptured | ChangeKind::LeftOut)
}

/// Whether the changes lead from `target` to `now` without a step that nobody recorded.
pub(super) fn is_unbroken(chain: &[InForce], target: Option<&Node>, now: Option<&Node>) -> bool {
    let mut state = target;
    for InForce { change, .. } in chain {
        if change.kind != ChangeKind::Changed || !same(state, change.before.as_ref()) {
            return false;
        }
        state = change.after.as_ref();
    }
    same(state, now)
}

/// How sure it is that our changes in `chain` are ours.
pub(super) fn certainty(chain: &[InForce], ours: impl Fn(&ChangeRow) -> bool) -> Certainty {
    let mut makers = chain.iter().flat_map(|one| &one.makers);
    let presumed = makers.any(|maker| ours(maker) && maker.by.verdict == Verdict::Presumed);
    if presumed { Certainty::Presumed } else { Certainty::Certain }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::base::id::ObjectId;
    use crate::base::path::WorkspacePath;
    use crate::store::tree::NodeKind;

    fn file(content: &str) -> Option<Node> {
        let size = content.len() as u64;
        Some(Node { kind: NodeKind::File, mode: 0o644, content: ObjectId::of(content.as_bytes()), size })
    }

    fn change(session: Option<i64>, before: Option<Node>, after: Option<Node>) -> ChangeRow {
        let verdict = if session.is_some() { Verdict::Presumed } else { Verdict::Outside };
        let by = By { verdict, session, ..By::OUTSIDE };
        let path = WorkspacePath::parse(b"a").expect("plain");
        ChangeRow { checkpoint: 1, path, kind: ChangeKind::Changed, before, after, by }
    }

    fn in_force(history: &[ChangeRow]) -> Vec<InForce> {
        chain::in_force(history, 0, &BTreeSet::new())
    }

    fn known(node: Option<Node>) -> Presence {
        node.map_or(Presence::Absent, Presence::There)
    }

    #[test]
    fn only_an_unbroken_chain_of_ours_goes_back() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let ours = |change: &ChangeRow| change.by.session == Some(1);
        let verdict = |chain: &[ChangeRow], now| judge(&in_force(chain), ours, Some(1), known(one), known(now));
        let mine = [change(Some(1), one, two), change(Some(1), two, three)];
        assert_eq!(verdict(&mine, three), None);
        assert_eq!(verdict(&mine, two), Some(Conflict::ChangedSince), "somebody changed it since");
        assert_eq!(verdict(&mine, one), None, "it is there already");
        let mixed = [change(Some(1), one, two), change(None, two, three)];
        assert_eq!(verdict(&mixed, three), Some(Conflict::ChangedByOthers));
        let first = |change: &ChangeRow| change.by.operation == Some(7);
        let turn = |operation, before, after| {
            let mut change = change(Some(1), before, after);
            change.by.operation = Some(operation);
            change
        };
        let turns = [turn(7, one, two), turn(8, two, three)];
        let of = |session| judge(&in_force(&turns), first, session, known(one), known(three));
        assert_eq!(of(Some(1)), Some(Conflict::ChangedLater), "another turn");
        assert_eq!(of(Some(2)), Some(Conflict::ChangedByOthers), "a fork of that session");
        let hole = [change(Some(1), one, two), change(Some(1), three, two)];
        assert_eq!(verdict(&hole, two), Some(Conflict::ChangedSince), "a step that nobody recorded");
        let mine = in_force(&mine);
        assert_eq!(judge(&mine, ours, Some(1), Presence::Unknown, known(three)), Some(Conflict::UnknownThen));
        assert_eq!(judge(&mine, ours, Some(1), known(one), Presence::Unknown), Some(Conflict::NotCaptured));
    }
}
