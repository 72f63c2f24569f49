//! Why a plan is refused, and what can be done about it: only choices that can work for the paths it is about.

use retake_engine::rewind::{Conflict, OnConflict, Plan, PlannedPath};

use super::preview::{BLOCKED, choice_name, choices};
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::MAX_NAMED;

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
    let paths = messages::count(yours.len() as u64, "path holds", "paths hold");
    let for_all = |choice: OnConflict| yours.iter().all(|path| choices(path).contains(&choice));
    let keep = if for_all(OnConflict::Keep) { ", `--on-conflict keep` keeps them" } else { "" };
    let merge = if for_all(OnConflict::Merge) { ", `--on-conflict merge` merges them" } else { "" };
    format!("{paths} your own changes, made by no agent and no command: `--yes` replaces them{keep}{merge}")
}

/// What decides on all of `stopping`: only choices that can work for each of them.
fn decision(stopping: &[&PlannedPath]) -> String {
    let count = stopping.len() as u64;
    let for_any = |choice: OnConflict| stopping.iter().any(|path| choices(path).contains(&choice));
    let for_all = |choice: OnConflict| stopping.iter().all(|path| choices(path).contains(&choice));
    let all = [OnConflict::Keep, OnConflict::Overwrite, OnConflict::Merge];
    if !all[1..].iter().any(|choice| for_any(*choice)) {
        let paths = messages::count(count, "path", "paths");
        let them = if count == 1 { "it as it is" } else { "them as they are" };
        return match for_all(OnConflict::Keep) {
            true => format!("{paths} cannot go back: `--on-conflict keep` leaves {them} and does the rest"),
            false => format!("{paths} cannot go back"),
        };
    }
    let paths = messages::count(count, "path needs", "paths need");
    let possible: Vec<&str> = all.into_iter().filter(|choice| for_all(*choice)).map(choice_name).collect();
    // What is possible for some only can be chosen for these where each is asked about.
    let is_for_some = all.into_iter().any(|choice| for_any(choice) && !for_all(choice));
    let asked = "on a terminal, without `--yes`, each is asked about";
    match possible[..] {
        [] => format!("{paths} a decision: {asked}"),
        _ => {
            let rest = if is_for_some { format!("; {asked}") } else { String::new() };
            format!("{paths} a decision: `--on-conflict {}` makes it for all{rest}", either(&possible))
        }
    }
}

/// `keep`, `overwrite` or `merge`, the first without its opening mark.
fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, last] => format!("{one}` or `{last}"),
        [first, rest @ ..] => format!("{first}`, `{}", either(rest)),
    }
}
