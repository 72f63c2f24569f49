//! A plan drawn for people: what would happen to each path, what stays, what cannot be undone, and what needs a decision.

use std::io::{self, Write};

pub use retake_agent::rewind_document::choices;
use retake_engine::id::SnapshotId;
use retake_engine::operation::OperationKind;
use retake_engine::rewind::{
    Action, Conflict, ForkFate, LedgerItem, Means, Merged, OnConflict, Plan, PlannedFork, PlannedPath,
};
use retake_engine::session::Scope;
use retake_engine::session::{PlannedConversation, PromptLine, first_line};
use retake_engine::snapshot::Change;
use retake_engine::view::Side;
use retake_engine::{Workspace, WorkspacePath};
use unicode_width::UnicodeWidthStr;

use crate::output::diff::stat::StatRow;
use crate::output::diff::{Comparison, ContentSource, Uncaptured};
use crate::output::gaps::{self, Detail};
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::{BOLD, CYAN, DIM, GREEN, Paint, RED, YELLOW};

/// Paths shown before a question; `--dry-run` shows all.
const MAX_SHOWN: usize = 60;
/// Lines of what cannot be undone, and of what is undone too.
const MAX_LISTED: usize = 10;

/// Marks a path that holds a change which no agent and no command made.
const YOURS: &str = "yours";

/// How much of a plan is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Whole,
    Screen,
}

/// What `plan` means for files; `None` where they stay.
pub fn means(kind: OperationKind, plan: &Plan) -> Option<Means> {
    let is_reversal = matches!(kind, OperationKind::Undo | OperationKind::Redo);
    plan.means.or((is_reversal && plan.scope != Scope::Conversation).then_some(Means::Operation))
}

/// What goes back, of which `only` these paths were asked for: all for none.
fn describe_means(means: Means, only: &[WorkspacePath]) -> String {
    let names = quote::names(only).join(", ");
    match (means, names.is_empty()) {
        (_, true) => means.describe().to_owned(),
        (Means::Workspace, false) => format!("only {names}"),
        (Means::Session | Means::Operation, false) => format!("{}, only {names}", means.describe()),
    }
}

/// Draws `plan`, of which `only` these paths were asked for: all for none.
pub fn write(
    out: &mut dyn Write,
    paint: Paint,
    workspace: &Workspace,
    kind: OperationKind,
    plan: &Plan,
    only: &[WorkspacePath],
    length: Length,
) -> io::Result<()> {
    let (bold, yellow) = (paint.with(BOLD), paint.with(YELLOW));
    let title = intent(kind, &plan.what);
    if let Some(fork) = &plan.fork {
        return writeln!(out, "{bold}{title}{bold:#}: {}; files stay as they are", fate(fork, Tense::Planned));
    }
    let mut about: Vec<String> = means(kind, plan).map(|means| describe_means(means, only)).into_iter().collect();
    if plan.scope == Scope::Conversation {
        about.push("the conversation only; files and side effects stay".to_owned());
    } else if plan.paths.is_empty() && plan.blocked.is_empty() {
        about.push("nothing to do, the files are there already".to_owned());
    }
    match about.is_empty() {
        true => writeln!(out, "{bold}{title}{bold:#}:")?,
        false => writeln!(out, "{bold}{title}{bold:#}: {}", about.join("; "))?,
    }
    write_paths(out, paint, workspace, plan, length)?;
    if let Some(planned) = &plan.conversation {
        write_conversation(out, planned, Tense::Planned)?;
    }
    for path in &plan.blocked {
        let red = paint.with(RED);
        writeln!(out, "  {red}!{red:#} {}/  {}", quote::name(path.as_bytes()), BLOCKED)?;
    }
    if let Some(branch) = &plan.branch {
        let (then, now) = (quote::one_line(&branch.then), quote::one_line(&branch.now));
        writeln!(out, "{yellow}Another branch is checked out{yellow:#}: {now}, and it was {then} then")?;
    }
    if !plan.kept.is_empty() {
        writeln!(out, "Stays although it was not there then:")?;
        for kept in &plan.kept {
            writeln!(out, "  {}  {}", quote::name(kept.path.as_bytes()), kept.why.describe())?;
        }
    }
    let uncaptured = plan.uncaptured.iter();
    let uncaptured = uncaptured.map(|one| format!("{}  {}", quote::name(one.path.as_bytes()), one.describe()));
    write_some(out, "Changed since then and does not go back:", &uncaptured.collect::<Vec<_>>())?;
    write_some(
        out,
        "As before already; the change may come back, out of git's stash or another branch:",
        &plan.already.iter().map(|path| quote::name(path.as_bytes()).into_owned()).collect::<Vec<_>>(),
    )?;
    if plan.foreign != 0 {
        let paths = messages::count(plan.foreign, "path", "paths");
        writeln!(out, "{yellow}Of these, the session never wrote {paths}{yellow:#}")?;
    }
    write_some(
        out,
        "Takes back what was done to these files by:",
        &plan.undoes.iter().map(|tool| quote::one_line(tool).into_owned()).collect::<Vec<_>>(),
    )?;
    if !plan.gaps.is_empty() {
        writeln!(out, "Not captured then: {}", gaps::count(plan.gaps.len() as u64))?;
        for line in gaps::lines(&plan.gaps, Detail::Few) {
            writeln!(out, "{line}")?;
        }
    }
    write_ledger(out, paint, &plan.ledger)
}

pub const BLOCKED: &str = "holds files that stay, so nothing can take its place";

/// Says what stays as it is whatever happens to files.
pub fn write_ledger(out: &mut dyn Write, paint: Paint, ledger: &[LedgerItem]) -> io::Result<()> {
    let dim = paint.with(DIM);
    let line = |item: &LedgerItem| {
        let remedy = item.remedy.as_ref().map(|remedy| format!("  {dim}`{}`{dim:#}", quote::one_line(remedy)));
        format!("{}: {}{}", item.kind, quote::one_line(&item.what), remedy.unwrap_or_default())
    };
    write_some(out, "Stays as it is, since only files go back:", &ledger.iter().map(line).collect::<Vec<_>>())
}

fn write_some(out: &mut dyn Write, heading: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{heading}")?;
    for line in lines.iter().take(MAX_LISTED) {
        writeln!(out, "  {line}")?;
    }
    if MAX_LISTED < lines.len() {
        writeln!(out, "  … and {} more", lines.len() - MAX_LISTED)?;
    }
    Ok(())
}

fn write_paths(
    out: &mut dyn Write,
    paint: Paint,
    workspace: &Workspace,
    plan: &Plan,
    length: Length,
) -> io::Result<()> {
    let shown = match length {
        Length::Whole => plan.paths.len(),
        Length::Screen => plan.paths.len().min(MAX_SHOWN),
    };
    let lines: Vec<(&PlannedPath, String, String)> = plan.paths[..shown]
        .iter()
        .map(|path| {
            let (name, brief) = describe(workspace, paint, path);
            (path, name, brief)
        })
        .collect();
    let width = lines.iter().map(|(_, name, _)| name.width()).max().unwrap_or(0).min(60);
    for (path, name, brief) in lines {
        let (letter, style) = letter(path);
        let style = paint.with(style);
        let padding = " ".repeat(width.saturating_sub(name.width()));
        write!(out, "  {style}{letter}{style:#} {name}{padding}  {brief}")?;
        if let Some(certainty) = path.certainty.filter(|_| path.conflict.is_none()) {
            let dim = paint.with(DIM);
            write!(out, "  {dim}{}{dim:#}", certainty.name())?;
        }
        let (yellow, red, dim) = (paint.with(YELLOW), paint.with(RED), paint.with(DIM));
        match path.conflict {
            Some(Conflict::Yours) => write!(out, "  {yellow}{YOURS}{yellow:#} {dim}({}){dim:#}", outcome(path))?,
            Some(_) => {
                let why = path.why().unwrap_or_default();
                write!(out, "  {red}{}{red:#} {dim}({}){dim:#}", quote::one_line(&why), outcome(path))?;
            }
            None if path.yours => write!(out, "  {yellow}{YOURS}{yellow:#}")?,
            None => {}
        }
        writeln!(out)?;
    }
    if shown < plan.paths.len() {
        writeln!(out, "  … and {} more; `--dry-run` shows all", plan.paths.len() - shown)?;
    }
    Ok(())
}

/// The name of a path, and what changes in it.
fn describe(workspace: &Workspace, paint: Paint, path: &PlannedPath) -> (String, String) {
    let row = row(workspace, path);
    match row {
        Ok(row) => (row.name().to_owned(), row.brief(paint)),
        // The plan is what counts; applying it tells what cannot be read.
        Err(_) => (quote::name(path.path.as_bytes()).into_owned(), "?".to_owned()),
    }
}

fn row(workspace: &Workspace, path: &PlannedPath) -> Result<StatRow, retake_engine::view::ContentError> {
    match merging(path) {
        Some(merged) => {
            StatRow::new(&comparison(workspace, ContentSource::Given(&merged.content)), &merged_change(path, merged))
        }
        None => StatRow::new(&comparison(workspace, target_side(path)), &change(path)),
    }
}

/// What the path becomes, if it was chosen to be merged and can be.
fn merging(path: &PlannedPath) -> Option<&Merged> {
    let is_chosen = path.conflict.is_some() && path.choice == OnConflict::Merge;
    path.merged.as_ref().filter(|_| is_chosen)
}

/// What merging does to `path`.
pub fn merged_change(path: &PlannedPath, merged: &Merged) -> Change {
    Change { after: Some(merged.node), ..change(path) }
}

/// What going back does to `path`, conflict or not.
pub fn change(path: &PlannedPath) -> Change {
    Change { path: path.path.clone(), before: path.now, after: path.target }
}

/// Compares what is on disk with `to`.
pub fn comparison<'a>(workspace: &'a Workspace, to: ContentSource<'a>) -> Comparison<'a> {
    Comparison { workspace, from: ContentSource::Disk, to, uncaptured: Uncaptured::default() }
}

/// Where the target's content is: a stored content is found by its own id, whatever snapshot it is in.
pub fn target_side(path: &PlannedPath) -> ContentSource<'static> {
    let content = path.target.map(|node| node.content).unwrap_or_default();
    ContentSource::Side(Side::Stored(SnapshotId(content)))
}

fn letter(path: &PlannedPath) -> (char, anstyle::Style) {
    match (path.conflict, path.action) {
        (Some(conflict), _) if conflict != Conflict::Yours => ('!', RED),
        (_, Action::Restore) => ('R', YELLOW),
        (_, Action::Delete) => ('D', RED),
        (_, Action::Recreate) => ('A', GREEN),
        (_, Action::Mode) => ('M', CYAN),
        (_, Action::Unchanged) => (' ', DIM),
    }
}

/// What is going to happen to a conflict.
fn outcome(path: &PlannedPath) -> &'static str {
    match (path.stops(), path.choice) {
        (true, OnConflict::Merge) => "does not merge, stops everything",
        (true, OnConflict::Overwrite) => "cannot be overwritten, stops everything",
        (true, OnConflict::Stop) if path.conflict == Some(Conflict::Yours) => "needs your decision",
        (true, OnConflict::Stop | OnConflict::Keep) | (false, OnConflict::Stop) => "stops everything",
        (false, OnConflict::Keep) => "is kept",
        (false, OnConflict::Overwrite) => "is overwritten",
        (false, OnConflict::Merge) if path.result() == path.now => "is kept: nothing to merge out of it",
        (false, OnConflict::Merge) => "is merged",
    }
}

pub fn choice_name(choice: OnConflict) -> &'static str {
    match choice {
        OnConflict::Stop => "stop",
        OnConflict::Keep => "keep",
        OnConflict::Overwrite => "overwrite",
        OnConflict::Merge => "merge",
    }
}

/// Whether something is told before or after it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tense {
    Planned,
    Done,
}

/// Tells what becomes of a conversation.
pub fn write_conversation(out: &mut dyn Write, planned: &PlannedConversation, tense: Tense) -> io::Result<()> {
    let (leave, come, go) = match tense {
        Tense::Planned => ("leave the conversation", "come back into the conversation", "go back too"),
        Tense::Done => ("have left the conversation", "are back in the conversation", "went back too"),
    };
    for (prompts, heading) in [
        (&planned.leaves, format!("These prompts, and what was answered, {leave}:")),
        (&planned.returns, format!("These prompts, and what was answered, {come}:")),
        (&planned.left_before, format!("Files of these prompts, which left the conversation earlier, {go}:")),
    ] {
        let line = |prompt: &PromptLine| format!("{}  {}", prompt.id.short(), quote::one_line(&prompt.text));
        write_some(out, &heading, &prompts.iter().map(line).collect::<Vec<_>>())?;
    }
    write_stays(out, planned)?;
    if planned.discards {
        writeln!(out, "What leaves the conversation is removed for good: this half cannot be undone")?;
    }
    if let [_, ..] = planned.kept_for.as_slice() {
        let forks: Vec<&str> = planned.kept_for.iter().map(|id| id.get(..8).unwrap_or(id)).collect();
        writeln!(out, "But some of it is kept for what was forked from it: {}", forks.join(", "))?;
    }
    match &planned.draft {
        Some(draft) if !draft.is_empty() => {
            writeln!(out, "To be said again: {}", quote::one_line(&first_line(draft)))
        }
        _ => Ok(()),
    }
}

/// Says why an undo leaves the conversation alone, if it does, and how to go on from there all the same.
pub fn write_stays(out: &mut dyn Write, planned: &PlannedConversation) -> io::Result<()> {
    let fork = planned.fork_at.map(|id| format!("; `retake fork {}` goes on from there in a new session", id.short()));
    match (planned.removed, planned.went_on) {
        (true, _) => writeln!(out, "The conversation stays as it is: what was said was removed for good"),
        (false, true) => writeln!(out, "The conversation stays as it is: it went on since{}", fork.unwrap_or_default()),
        (false, false) => Ok(()),
    }
}

/// How to take back what was done to `files` files and to a conversation; `None` if there is nothing that could be.
pub fn way_back(kind: OperationKind, files: usize, conversation: Option<&PlannedConversation>) -> Option<&'static str> {
    let is_final = conversation.is_some_and(|planned| planned.discards || planned.removed);
    match (kind, is_final, files) {
        (_, true, 0) => None,
        (OperationKind::Undo, ..) => Some("`retake redo` repeats it"),
        (_, true, _) => Some("`retake undo` takes the files back, and only them"),
        (_, false, _) => Some("`retake undo` takes this back"),
    }
}

/// What becomes of a forked session.
pub fn fate(fork: &PlannedFork, tense: Tense) -> String {
    let what = match (fork.fate, tense) {
        (ForkFate::Goes, Tense::Planned) => "goes; nothing was said in it",
        (ForkFate::Goes, Tense::Done) => "is gone",
        (ForkFate::ComesBack, Tense::Planned) => "comes back as it was",
        (ForkFate::ComesBack, Tense::Done) => "is back as it was",
    };
    format!("session {} {what}", fork.session.short())
}

/// `Rewind to 3fa29c41`, `Undo exec make`
fn intent(kind: OperationKind, what: &str) -> String {
    let what = point(what);
    match kind {
        OperationKind::Undo => format!("Undo {what}"),
        OperationKind::Redo => format!("Redo {what}"),
        _ => format!("Rewind to {what}"),
    }
}

/// `Rewound to 3fa29c41`, `Undid exec make`
pub fn title(kind: OperationKind, what: &str) -> String {
    let what = point(what);
    match kind {
        OperationKind::Undo => format!("Undid {what}"),
        OperationKind::Redo => format!("Redid {what}"),
        _ => format!("Rewound to {what}"),
    }
}

/// What a plan is about, on one line.
pub fn point(what: &str) -> String {
    quote::one_line(what).into_owned()
}
