//! Why a plan is refused, and what can be done about it: only choices that can work for the paths it is about.

use retake_engine::{Conflict, OnConflict, Plan, PlannedPath};

use super::preview::{BLOCKED, choice_name, choices};
use crate::quote;
use crate::ui::MAX_NAMED;
use crate::words;

/// Everything that keeps `plan` from being carried out, and what can be done about it, as the lines of a hint.
pub fn why_refused(plan: &Plan) -> String {
    let mut lines = Vec::new();
    let (yours, stopping): (Vec<&PlannedPath>, Vec<&PlannedPath>) = plan
        .paths
        .iter()
        .filter(|path| path.stops())
        .partition(|path| path.conflict == Some(Conflict::Yours) && path.choice == OnConflict::Stop);
    if !yours.is_empty() {
        lines.push(decision_on_yours(&yours));
        lines.extend(yours.iter().take(MAX_NAMED).map(|path| format!("  {}", quote::name(path.path.as_bytes()))));
        if MAX_NAMED < yours.len() {
            lines.push(format!("  … and {} more", yours.len() - MAX_NAMED));
        }
    }
    if !stopping.is_empty() {
        lines.push(decision(&stopping));
        for path in stopping.iter().take(MAX_NAMED) {
            let names: Vec<&str> = choices(path).into_iter().map(choice_name).collect();
            let why = path.why().unwrap_or_default();
            let why = quote::one_line(&why);
            lines.push(format!("  {}: {why} ({})", quote::name(path.path.as_bytes()), names.join(", ")));
        }
        if MAX_NAMED < stopping.len() {
            lines.push(format!("  … and {} more", stopping.len() - MAX_NAMED));
        }
    }
    for path in plan.blocked.iter().take(MAX_NAMED) {
        lines.push(format!("{} {BLOCKED}; move its content away", quote::name(path.as_bytes())));
    }
    if let Some(branch) = &plan.branch {
        let (then, now) = (quote::one_line(&branch.then), quote::one_line(&branch.now));
        let switch = if is_commit(&then) { "git switch --detach" } else { "git switch" };
        lines.push(format!(
            "`{now}` is checked out, and it was `{then}` then; `{switch} {then}` goes there, `--across-branches` goes ahead"
        ));
    }
    lines.join("\n")
}

/// Whether HEAD was detached, so that a commit is what was checked out.
fn is_commit(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What decides on paths that hold changes of the user's own.
fn decision_on_yours(yours: &[&PlannedPath]) -> String {
    let paths = words::count(yours.len() as u64, "path holds", "paths hold");
    let can_merge = yours.iter().all(|path| path.merged.is_some());
    let merge = if can_merge { ", `--on-conflict merge` merges them" } else { "" };
    let choices = "`--yes` replaces them, `--on-conflict keep` keeps them";
    format!("{paths} your own changes, made by no agent and no command: {choices}{merge}")
}

/// What decides on all of `stopping`: leaving a path as it is can always be done, everything else only for some.
fn decision(stopping: &[&PlannedPath]) -> String {
    let count = stopping.len() as u64;
    let for_any = |choice: OnConflict| stopping.iter().any(|path| choices(path).contains(&choice));
    let for_all = |choice: OnConflict| stopping.iter().all(|path| choices(path).contains(&choice));
    let others = [OnConflict::Overwrite, OnConflict::Merge];
    if !others.into_iter().any(for_any) {
        let paths = words::count(count, "path", "paths");
        let them = if count == 1 { "it as it is" } else { "them as they are" };
        return format!("{paths} cannot go back: `--on-conflict keep` leaves {them} and does the rest");
    }
    let paths = words::count(count, "path needs", "paths need");
    let possible: Vec<&str> = others.into_iter().filter(|choice| for_all(*choice)).map(choice_name).collect();
    let choices = match possible[..] {
        [] => "`--on-conflict keep`".to_owned(),
        [one] => format!("`--on-conflict keep` or `{one}`"),
        _ => "`--on-conflict keep`, `overwrite` or `merge`".to_owned(),
    };
    // What is possible for some only can be chosen for these where each is asked about.
    let rest = if others.into_iter().any(|choice| for_any(choice) && !for_all(choice)) {
        "; on a terminal, without `--yes`, each is asked about"
    } else {
        ""
    };
    format!("{paths} a decision: {choices} makes it for all{rest}")
}
