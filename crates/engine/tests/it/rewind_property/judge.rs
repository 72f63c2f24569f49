//! The judgement on one path, from everything that happened to it since the target: may it go back, and what if not?

use retake_engine::Conflict;
use retake_testkit::naive::{Known, NaiveKind, NaiveNode};
use retake_testkit::tree::Who;

use super::model::{By, Happening, Row};

/// Why a path cannot simply go back, if it cannot.
pub(super) fn judge(
    chain: &[&Row],
    is_ours: &dyn Fn(&Row) -> bool,
    session_of: &dyn Fn(&Row) -> Option<Who>,
    target: Known<'_>,
    now: Known<'_>,
) -> Option<Conflict> {
    let Some(now) = now.state() else { return Some(Conflict::NotCaptured) };
    let Some(target) = target.state() else { return Some(Conflict::UnknownThen) };
    if now == target {
        return None;
    }
    if chain.iter().any(|row| row.by == By::Contested) {
        return Some(Conflict::Contested);
    }
    // A rule that leaves a path out does not change it.
    let changes = chain.iter().filter(|row| row.happening != Happening::LeftOut);
    let (ours, others): (Vec<&Row>, Vec<&Row>) = changes.partition(|row| is_ours(row));
    if !others.is_empty() {
        let session = ours.first().and_then(|row| session_of(row));
        let is_same = session.is_some() && others.iter().all(|row| session_of(row) == session);
        return Some(if is_same { Conflict::ChangedLater } else { Conflict::ChangedByOthers });
    }
    let leads = |chain: &[&Row], to: Option<&NaiveNode>| {
        let ends = chain.iter().map(|row| row.after.as_ref());
        let starts = chain.iter().map(|row| row.before.as_ref());
        let is_whole = chain.iter().all(|row| row.happening == Happening::Changed);
        is_whole && std::iter::once(target).chain(ends).eq(starts.chain([to]))
    };
    if leads(chain, now) {
        return None;
    }
    let is_lost = |row: &&Row| matches!(row.happening, Happening::Uncaptured | Happening::LeftOut);
    let lost = chain.iter().rev().take_while(|row| is_lost(row)).count();
    let known = &chain[..chain.len() - lost];
    let last = known.last().map_or(target, |row| row.after.as_ref());
    Some(if lost > 0 && leads(known, last) { Conflict::UncapturedSince } else { Conflict::ChangedSince })
}

/// What is left of `now` without our changes, the newest of which goes first; of what we deleted, what was there before that. How three
/// texts merge is not what is tested here.
pub(super) fn merge(chain: &[&Row], is_ours: &dyn Fn(&Row) -> bool, now: Option<&NaiveNode>) -> Option<NaiveNode> {
    let is_file = |node: &NaiveNode| node.kind == NaiveKind::File && node.content.len() <= 1 << 20;
    let is_binary = |bytes: &[u8]| bytes.iter().take(8_000).any(|byte| *byte == 0);
    let mut chain = chain.to_vec();
    let start = match now {
        Some(now) => now,
        None => {
            let deletion = chain.pop()?;
            let is_ours = is_ours(deletion) && deletion.after.is_none() && deletion.happening == Happening::Changed;
            deletion.before.as_ref().filter(|_| is_ours)?
        }
    };
    let mut content = is_file(start).then(|| start.content.clone())?;
    for row in chain.iter().rev().filter(|row| is_ours(row)) {
        let (before, after) = row.before.as_ref().zip(row.after.as_ref())?;
        if row.happening != Happening::Changed || !is_file(before) || !is_file(after) {
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
    let is_other = now.is_none_or(|now| now.content != content);
    is_other.then(|| NaiveNode { content, ..start.clone() })
}
