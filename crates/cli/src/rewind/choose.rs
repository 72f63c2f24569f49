//! The questions: what to do with each conflict, whether to go on across branches, whether to apply.
//!
//! Everything is asked on stderr and answered on stdin. The end of the input and an empty answer mean the safe one.

use std::io::{self, Write};

use retake_engine::Workspace;
use retake_engine::operation::OperationKind;
use retake_engine::rewind::{Conflict, OnConflict, Plan, PlannedPath, RewindError, RewindRequest};
use retake_engine::snapshot::Change;

use super::preview::{self, Length};
use crate::failure::Result;
use crate::output::diff::patch::{self, Binary};
use crate::output::diff::{Comparison, ContentSource};
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::{BOLD, Paint, RED, Ui};

/// Shows the plan and asks until everything is decided. The plan that was agreed to, with `request` now saying so too; `None` if the
/// user does not want it.
pub fn agree(
    ui: &mut Ui,
    workspace: &Workspace,
    kind: OperationKind,
    request: &mut RewindRequest,
) -> Result<Option<Plan>> {
    loop {
        let plan = super::plan(ui, workspace, request)?;
        preview::write(ui.talk()?, Paint::Colour, workspace, kind, &plan, &request.paths, Length::Screen)?;
        // A directory may be blocked by a path that is still to be decided about.
        if !plan.blocked.is_empty() && !plan.paths.iter().any(PlannedPath::stops) {
            return Err(RewindError::Refused { plan: Box::new(plan) }.into());
        }
        if plan.is_empty() && plan.is_applicable() {
            return Ok(Some(plan));
        }
        if plan.is_applicable() {
            return Ok(confirm(ui, "Apply?")?.then_some(plan));
        }
        if plan.branch.is_some() {
            if !confirm(ui, "Go on although another branch is checked out?")? {
                return Ok(None);
            }
            request.across_branches = true;
        }
        let (yours, stopping): (Vec<&PlannedPath>, Vec<&PlannedPath>) =
            plan.paths.iter().filter(|path| path.stops()).partition(|path| path.conflict == Some(Conflict::Yours));
        if !yours.is_empty() {
            match ask_of_yours(ui, &yours)? {
                OnConflict::Stop => return Ok(None),
                OnConflict::Overwrite if stopping.is_empty() => {
                    request.on_yours = OnConflict::Overwrite;
                    return Ok(Some(plan));
                }
                OnConflict::Overwrite => request.on_yours = OnConflict::Overwrite,
                OnConflict::Merge => {
                    for path in &yours {
                        writeln!(ui.talk()?, "\n{BOLD}{}{BOLD:#}", quote::name(path.path.as_bytes()))?;
                        draw_merged(ui, workspace, path)?;
                    }
                    request.choices.extend(yours.iter().map(|path| (path.path.clone(), OnConflict::Merge)));
                }
                choice => request.choices.extend(yours.iter().map(|path| (path.path.clone(), choice))),
            }
        }
        // Deciding on a path can raise another question, for a directory above it say: hence the loop.
        for path in stopping {
            match ask(ui, workspace, path)? {
                OnConflict::Stop => return Ok(None),
                choice => request.choices.insert(path.path.clone(), choice),
            };
        }
    }
}

/// Asks what to do with the paths that hold changes of the user's own: one question for all, which is also the one whether to apply.
fn ask_of_yours(ui: &mut Ui, yours: &[&PlannedPath]) -> io::Result<OnConflict> {
    let paths = messages::count(yours.len() as u64, "path holds", "paths hold");
    let for_all = |choice: OnConflict| yours.iter().all(|path| preview::choices(path).contains(&choice));
    let keep = if for_all(OnConflict::Keep) { "/keep" } else { "" };
    let merge = if for_all(OnConflict::Merge) { "/merge" } else { "" };
    loop {
        let answer = ui.question(&format!("{paths} your own changes. Apply and replace them? [y/N{keep}{merge}]"))?;
        match answer.trim() {
            "y" | "Y" | "yes" | "Yes" => return Ok(OnConflict::Overwrite),
            "" | "n" | "N" | "no" | "No" => return Ok(OnConflict::Stop),
            "k" | "keep" if !keep.is_empty() => return Ok(OnConflict::Keep),
            "m" | "merge" if !merge.is_empty() => return Ok(OnConflict::Merge),
            _ => {}
        }
    }
}

/// Shows the diff of one conflict and asks what to do with it.
fn ask(ui: &mut Ui, workspace: &Workspace, path: &PlannedPath) -> Result<OnConflict> {
    let why = path.why().unwrap_or_default();
    let why = quote::one_line(&why).into_owned();
    let name = quote::name(path.path.as_bytes()).into_owned();
    writeln!(ui.talk()?, "\n{BOLD}{name}{BOLD:#}: {RED}{why}{RED:#}")?;
    draw(
        ui,
        "From what is there now to the target:",
        &preview::comparison(workspace, preview::target_side(path)),
        &preview::change(path),
    )?;
    draw_merged(ui, workspace, path)?;
    let choices = preview::choices(path);
    let names: Vec<&str> = choices.iter().copied().map(preview::choice_name).collect();
    loop {
        let answer = ui.question(&format!("{name}: {} [stop]", names.join(", ")))?;
        let answer = answer.trim();
        if answer.is_empty() {
            return Ok(OnConflict::Stop);
        }
        if let Some(choice) = choices.iter().find(|choice| preview::choice_name(**choice).starts_with(answer)) {
            return Ok(*choice);
        }
    }
}

/// Shows what merging would make of `path`, if it can be merged.
fn draw_merged(ui: &mut Ui, workspace: &Workspace, path: &PlannedPath) -> Result<()> {
    let Some(merged) = &path.merged else { return Ok(()) };
    let comparison = preview::comparison(workspace, ContentSource::Given(&merged.content));
    draw(ui, "From what is there now to the merged file:", &comparison, &preview::merged_change(path, merged))
}

fn draw(ui: &mut Ui, heading: &str, comparison: &Comparison<'_>, change: &Change) -> Result<()> {
    writeln!(ui.talk()?, "{heading}")?;
    let style = patch::Style { paint: Paint::Colour, binary: Binary::Named };
    // Content that cannot be read is no reason not to ask.
    if let Err(error) = patch::write(ui.talk()?, style, comparison, change) {
        writeln!(ui.talk()?, "  {error}")?;
    }
    Ok(())
}

fn confirm(ui: &mut Ui, text: &str) -> io::Result<bool> {
    let answer = ui.question(&format!("{text} [y/N]"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
