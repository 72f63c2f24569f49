//! `retake doctor`: is all well, and if not, what to do.
//!
//! Each check is a line: `ok`, `note` (worth knowing, nothing is wrong) or `problem`. One that cannot be made is a problem too, and the
//! others are made all the same.

use std::io::Write;

use retake_agent::ids;
use retake_engine::Workspace;
use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::maintenance::Footprint;
use retake_engine::progress::Progress;
use serde::Serialize;

use super::CommandError;
use crate::failure::{Failure, Result};
use crate::output::json;
use crate::output::messages;
use crate::output::quote;
use crate::output::size::human;
use crate::output::ui::{Format, GREEN, RED, Ui, YELLOW};
use crate::workspace::context::CommandContext;

/// Details of one check that are listed; the rest is counted.
const MAX_DETAILS: usize = 10;

/// Check the store and everything around it, and say what to do
///
/// Reads everything that is stored and every file of the workspace. Also takes a checkpoint, to prove that not a byte of the git
/// repository changes. Exits with 1 if there is a problem.
#[derive(clap::Args, Debug)]
pub struct DoctorArgs {}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckState {
    Ok,
    Note,
    Problem,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    state: CheckState,
    text: String,
    advice: Option<String>,
    details: Vec<String>,
}

#[derive(Serialize)]
struct DoctorDocument {
    version: u32,
    healthy: bool,
    checks: Vec<Check>,
}

impl Check {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, state: CheckState::Ok, text: text.into(), advice: None, details: Vec::new() }
    }

    fn note(name: &'static str, text: impl Into<String>, advice: &str) -> Self {
        Self { state: CheckState::Note, advice: Some(advice.to_owned()), ..Self::ok(name, text) }
    }

    fn problem(name: &'static str, text: impl Into<String>, advice: &str) -> Self {
        Self { state: CheckState::Problem, ..Self::note(name, text, advice) }
    }

    /// The check itself failed.
    fn failed(name: &'static str, what: &str, error: &Failure) -> Self {
        let advice = "mend the cause and run `retake doctor` again";
        Self::problem(name, format!("{what} could not be checked: {error:#}"), advice)
    }

    fn with(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }
}

pub fn run(ui: &mut Ui, here: CommandContext) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    let checks = {
        let progress = ui.progress();
        let checks = examine(&mut workspace, &progress);
        if progress.cancelled() {
            return Err(CommandError::Stopped.into());
        }
        checks
    };
    let problems = checks.iter().filter(|check| check.state == CheckState::Problem).count() as u64;
    match ui.format {
        Format::Json => ui.json(&DoctorDocument { version: json::VERSION, healthy: problems == 0, checks })?,
        Format::Text => checks.iter().try_for_each(|check| draw(ui, check))?,
    }
    if problems == 0 { Ok(()) } else { Err(CommandError::Unhealthy { problems }.into()) }
}

fn examine(workspace: &mut Workspace, progress: &dyn Progress) -> Vec<Check> {
    let or_failed =
        |name, what: &str, check: Result<Check>| check.unwrap_or_else(|error| Check::failed(name, what, &error));
    let mut checks = vec![
        or_failed("store", "the store", store(workspace, progress)),
        or_failed("permissions", "the store's permissions", permissions(workspace)),
        or_failed("interrupted", "whether a rewind was interrupted", interrupted(workspace)),
        or_failed("purge", "whether a purge was interrupted", purge(workspace)),
        or_failed("commands", "which commands are running", commands(workspace)),
        or_failed("index", "the index", index(workspace, progress)),
        or_failed("ignores", "which ignore rules changed", ignores(workspace)),
    ];
    // Last, because a checkpoint is taken for it.
    checks.push(or_failed("git", "that git is left alone", git(workspace, progress)));
    checks.push(or_failed("budget", "the budget", budget(workspace)));
    checks
}

/// Files that a command's ignore rule hides and that are captured all the same.
fn ignores(workspace: &Workspace) -> Result<Check> {
    let Some(newest) = workspace.checkpoints().newest()? else {
        return Ok(Check::ok("ignores", "nothing is captured yet"));
    };
    Ok(match workspace.changes().coverage(&newest)?.held {
        0 => Check::ok("ignores", "no command has hidden a captured file by an ignore rule"),
        held => {
            let files = messages::count(held, "file is", "files are");
            let them = if held == 1 { "it" } else { "them" };
            let text = format!("{files} captured although an ignore rule that a command changed hides {them}");
            Check::note("ignores", text, "`retake checkpoint --apply-ignores` applies the rule")
        }
    })
}

fn store(workspace: &Workspace, progress: &dyn Progress) -> Result<Check> {
    let integrity = workspace.maintenance().check_with(progress)?;
    if integrity.damage.is_empty() && integrity.affected.is_empty() {
        let usage = workspace.maintenance().usage()?;
        let checkpoints = messages::count(usage.checkpoints, "checkpoint", "checkpoints");
        let objects = messages::count(usage.objects, "object", "objects");
        return Ok(Check::ok("store", format!("{checkpoints} and {objects} are whole")));
    }
    let mut details: Vec<String> = integrity.damage.iter().map(|damage| damage.what.clone()).collect();
    details.extend(
        integrity.affected.iter().map(|checkpoint| format!("checkpoint {} is not whole", checkpoint.id.short())),
    );
    let damage = messages::count(integrity.damage.len() as u64, "damaged place", "damaged places");
    let affected = messages::count(integrity.affected.len() as u64, "checkpoint", "checkpoints");
    let text = format!("{damage} in the store; {affected} cannot be had whole any more");
    workspace.maintenance().note_damage(&integrity.damage)?;
    let advice = "all others can be used; check the disk, then run `retake doctor` again: what of this is still in the workspace \
                  has been stored once more by then";
    Ok(Check::problem("store", text, advice).with(details))
}

fn permissions(workspace: &Workspace) -> Result<Check> {
    let exposed = workspace.maintenance().exposed()?;
    if exposed.is_empty() {
        return Ok(Check::ok("permissions", "only you can read the store"));
    }
    let details = exposed.iter().map(|path| path.display().to_string()).collect();
    let advice = format!("run `chmod -R go= '{}'`", workspace.store_dir().display());
    Ok(Check::problem("permissions", "others may read or change parts of the store", &advice).with(details))
}

fn interrupted(workspace: &Workspace) -> Result<Check> {
    let left_over = workspace.rewinds().left_over()?;
    Ok(match workspace.rewinds().interrupted()? {
        None if !left_over.is_empty() => {
            let text = "temporary files of a rewind are still there; they may hold what somebody saved meanwhile";
            let details = quote::names(&left_over);
            Check::problem("interrupted", text, messages::LEFT_OVER).with(details)
        }
        None => Check::ok("interrupted", "no rewind was interrupted"),
        Some(operation) => {
            let text = format!("an interrupted {} of `{}` is not finished", operation.kind.name(), operation.what);
            Check::problem("interrupted", text, "run `retake recover`: it finishes it or takes it back")
        }
    })
}

fn purge(workspace: &Workspace) -> Result<Check> {
    Ok(match workspace.maintenance().is_purge_unfinished()? {
        false => Check::ok("purge", "no purge was interrupted"),
        true => {
            let text = "a purge was interrupted: no checkpoint holds the path, but its bytes may still be in the store";
            Check::problem("purge", text, "run `retake gc`: it removes them")
        }
    })
}

fn commands(workspace: &Workspace) -> Result<Check> {
    let under_way = workspace.maintenance().under_way()?;
    let abandoned: Vec<String> =
        under_way.iter().filter(|window| window.abandoned).map(|window| window.tool.clone()).collect();
    if abandoned.is_empty() {
        return Ok(Check::ok(
            "commands",
            match under_way.len() {
                0 => "no command is being watched".to_owned(),
                count => format!("{} being watched", messages::count(count as u64, "command is", "commands are")),
            },
        ));
    }
    let text = format!(
        "{} without an end: the process is gone",
        messages::count(abandoned.len() as u64, "command", "commands")
    );
    Ok(Check::note("commands", text, "nothing to do: the next checkpoint closes them").with(abandoned))
}

fn index(workspace: &Workspace, progress: &dyn Progress) -> Result<Check> {
    Ok(match workspace.maintenance().index_agrees(progress)? {
        true => Check::ok("index", "the index agrees with every file on disk"),
        false => {
            let path = workspace.store_dir().join("index");
            let advice = format!(
                "if no other program is writing to the workspace, remove `{}`: the next checkpoint makes it anew",
                path.display()
            );
            Check::problem("index", "a scan with the index finds something else than a scan without it", &advice)
        }
    })
}

fn git(workspace: &mut Workspace, progress: &dyn Progress) -> Result<Check> {
    let at = ids::now();
    let new = NewCheckpoint { id: ids::checkpoint().id, at, label: None };
    Ok(match workspace.maintenance_mut().self_test(new, progress)? {
        Footprint::NoRepository => Check::ok("git", "there is no git repository; a checkpoint could be taken"),
        Footprint::Untouched { files } => {
            let files = messages::count(files, "file", "files");
            Check::ok("git", format!("a checkpoint and a plan left all {files} of the git repository as they were"))
        }
        Footprint::Touched { paths } => {
            let details = paths.iter().map(|path| path.display().to_string()).collect();
            let advice =
                "another program may be at it; run `retake doctor` again while nothing else uses the repository";
            Check::problem("git", "files of the git repository changed during the test", advice).with(details)
        }
    })
}

fn budget(workspace: &Workspace) -> Result<Check> {
    let usage = workspace.maintenance().usage()?;
    let text = format!("the store takes {} of {}", human(usage.store_bytes), human(usage.budget));
    // The same slack that making room leaves.
    if usage.store_bytes < usage.budget - usage.budget / 10 {
        return Ok(Check::ok("budget", text));
    }
    let advice = "the oldest unlabelled checkpoints will go; `retake gc` makes room, or raise `store.budget`";
    Ok(Check::note("budget", text, advice))
}

fn draw(ui: &mut Ui, check: &Check) -> std::io::Result<()> {
    let (word, style) = match check.state {
        CheckState::Ok => ("ok", GREEN),
        CheckState::Note => ("note", YELLOW),
        CheckState::Problem => ("problem", RED),
    };
    let style = ui.paint.with(style);
    writeln!(ui.out, "{style}{word:<8}{style:#} {}", quote::one_line(&check.text))?;
    for detail in check.details.iter().take(MAX_DETAILS) {
        writeln!(ui.out, "           {}", quote::one_line(detail))?;
    }
    if let Some(more @ 1..) = check.details.len().checked_sub(MAX_DETAILS) {
        writeln!(ui.out, "           … and {more} more")?;
    }
    match &check.advice {
        Some(advice) => writeln!(ui.out, "         → {}", quote::one_line(advice)),
        None => Ok(()),
    }
}
