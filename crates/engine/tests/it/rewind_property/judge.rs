//! The judgement on one path, from everything that happened to it since the target: may it go back, and what if not?

use retake_engine::rewind::Conflict;
use retake_testkit::naive::{Known, NaiveKind, NaiveNode};
use retake_testkit::tree::Who;

use super::force::{Step, leads};
use super::model::{By, Happening, Row};

/// Why a path cannot simply go back, if it cannot. `session` is whose operation it is.
pub(super) fn judge(
    chain: &[Step<'_>],
    is_ours: &dyn Fn(&Row) -> bool,
    session_of: &dyn Fn(&Row) -> Option<Who>,
    session: Option<Who>,
    target: Known<'_>,
    now: Known<'_>,
) -> Option<Conflict> {
    let Some(now) = now.state() else { return Some(Conflict::NotCaptured) };
    let Some(target) = target.state() else { return Some(Conflict::UnknownThen) };
    if now == target {
        return None;
    }
    if chain.iter().flat_map(|step| &step.makers).any(|row| row.by == By::Contested) {
        return Some(Conflict::Contested);
    }
    // A rule that leaves a path out does not change it.
    let changes = chain.iter().filter(|step| step.happening != Happening::LeftOut);
    let others: Vec<&Row> =
        changes.flat_map(|step| step.makers.clone()).filter(|row| !is_ours(row) && !is_found(row)).collect();
    if !others.is_empty() {
        let is_same = session.is_some() && others.iter().all(|row| session_of(row) == session);
        return Some(if is_same { Conflict::ChangedLater } else { Conflict::ChangedByOthers });
    }
    if leads(chain, target, now) {
        return None;
    }
    let is_lost = |step: &Step<'_>| matches!(step.happening, Happening::Uncaptured | Happening::LeftOut);
    let first = chain.iter().position(is_lost).unwrap_or(chain.len());
    let (known, since) = chain.split_at(first);
    let last = known.last().map_or(target, |step| step.after);
    match !since.is_empty() && leads(known, target, last) && leads_through(since, now) {
        // It is as our last change left it, whatever was there in between.
        true if since.iter().all(is_lost) && now == last => None,
        true => Some(Conflict::UncapturedSince),
        false => Some(Conflict::ChangedSince),
    }
}

/// Whether nobody was at work when the path came to be captured: nobody knows who changed it before.
fn is_found(row: &Row) -> bool {
    row.happening == Happening::Captured && row.by == By::Outside
}

/// Whether the steps end at `now` and no two of them contradict each other.
fn leads_through(since: &[Step<'_>], now: Option<&NaiveNode>) -> bool {
    let ends = since.iter().map(|step| {
        let is_lost = matches!(step.happening, Happening::Uncaptured | Happening::LeftOut);
        (!is_lost).then_some(step.after)
    });
    let starts = since.iter().skip(1).map(|step| {
        let is_found = matches!(step.happening, Happening::Captured | Happening::Uncovered);
        (!is_found).then_some(step.before)
    });
    let starts = starts.chain([Some(now)]);
    ends.zip(starts).all(|(end, start)| end.zip(start).is_none_or(|(end, start)| end == start))
}

/// What is left of `now` without our changes, the newest of which goes first; of what we deleted, what was there before that. How three
/// texts merge is not what is tested here. Nothing is merged if nothing is ours.
pub(super) fn merge(
    chain: &[Step<'_>],
    is_ours: &dyn Fn(&Step<'_>) -> bool,
    now: Option<&NaiveNode>,
) -> Option<NaiveNode> {
    let is_file = |node: &NaiveNode| node.kind == NaiveKind::File && node.content.len() <= 1 << 20;
    let is_binary = |bytes: &[u8]| bytes.iter().take(8_000).any(|byte| *byte == 0);
    let mut chain = chain.to_vec();
    let start = match now {
        Some(now) => now,
        None => {
            let deletion = chain.pop()?;
            let is_ours = is_ours(&deletion) && deletion.after.is_none() && deletion.happening == Happening::Changed;
            deletion.before.filter(|_| is_ours)?
        }
    };
    let mut content = is_file(start).then(|| start.content.clone())?;
    let mut is_touched = now.is_none();
    for step in chain.iter().rev().filter(|step| is_ours(step)) {
        is_touched = true;
        let (before, after) = step.before.zip(step.after)?;
        if step.happening != Happening::Changed || !is_file(before) || !is_file(after) {
            return None;
        }
        if before.content == after.content {
            continue;
        }
        if is_binary(&before.content) || is_binary(&after.content) || is_binary(&content) {
            return None;
        }
        content = diffy::merge_bytes(&after.content, &content, &before.content).ok()?;
    }
    is_touched.then(|| NaiveNode { content, ..start.clone() })
}
