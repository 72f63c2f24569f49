//! The preview as lines: the plan in the words of the command line, then the changes in each file.
//!
//! A function of the answer and the width. Lines may be longer than that only where they are lines of files, which are cut when drawn.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::diff::FileDiff;
use retake_agent::rewind_document::{Bytes, File, RewindDocument};
use retake_engine::rewind::{LedgerItem, OnConflict};
use retake_engine::session::PromptLine;
use retake_engine::session::Scope;

use super::conflicts::Decision;
use super::menu::{BLOCKED, Item, Offer, changes};
use super::preview::ShownPreview;
use super::text_lines::{clean, fit_end, wrapped};
use crate::text::diff::{self, path_text};
use crate::text::fit;
use crate::theme::Theme;
use retake_agent::escape::count;

/// Lines of a list that are shown before the rest is counted.
const MAX_LISTED: usize = 6;

/// A preview that was drawn.
#[derive(Debug)]
pub struct PreviewLines {
    /// What it was drawn of.
    pub of: PreviewSource,
    /// All its lines.
    pub lines: Vec<Line<'static>>,
}

/// What a preview is drawn of: it looks the same as long as this is the same.
#[derive(Debug, PartialEq, Eq)]
pub struct PreviewSource {
    /// [`Preview::revision`](super::preview::Preview::revision).
    pub revision: u64,
    /// The path that is being decided about.
    pub decision: Option<Decision>,
    /// The thing that is about to be done, with what comes of it; code and conversation go back for `None`.
    pub item: Option<(Item, Offer)>,
    /// Background jobs.
    pub jobs: Vec<String>,
    /// The room.
    pub width: usize,
}

impl PreviewSource {
    /// Draws it.
    pub fn draw(self, shown: Option<&ShownPreview>, theme: Theme) -> PreviewLines {
        let lines = match (shown, &self.decision) {
            (None, _) => Vec::new(),
            (Some(shown), Some(decision)) => of_decision(decision, shown.diffs.as_deref(), self.width, theme),
            (Some(shown), None) => of_item(self.item.as_ref(), shown, &self.jobs, self.width, theme),
        };
        PreviewLines { of: self, lines }
    }
}

/// The lines of a plan that files alone go back by.
pub struct PlanLines {
    /// All its lines.
    pub lines: Vec<Line<'static>>,
    /// The line at which each file begins.
    pub starts: Vec<usize>,
}

/// Draws a plan that files alone go back by, with what changes in each of them. Its title says what its point means.
pub fn plan_lines(plan: &RewindDocument, diffs: &[FileDiff], width: usize, theme: Theme) -> PlanLines {
    let mut writer = LineWriter::new(width, theme);
    writer.plan(plan, Some(diffs), &[], Scope::Code);
    PlanLines { lines: writer.lines, starts: writer.starts }
}

/// Lines of a given width.
struct LineWriter {
    theme: Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    /// The line at which each file begins.
    starts: Vec<usize>,
}

/// What the chosen thing would do.
fn of_item(
    item: Option<&(Item, Offer)>,
    shown: &ShownPreview,
    jobs: &[String],
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let mut writer = LineWriter::new(width, theme);
    match item {
        None | Some((Item::Both, _)) => writer.rewind(shown, jobs, Scope::Both),
        Some((Item::Code, _)) => writer.rewind(shown, jobs, Scope::Code),
        Some((Item::Conversation, Ok(_))) if shown.plan.is_ok() => writer.rewind(shown, jobs, Scope::Conversation),
        Some((item, Ok(what))) => {
            writer.text(&format!("{}: {what}", item.title()), theme.bold());
            writer.text("No file changes.", theme.plain());
        }
        Some((item, Err(why))) => writer.text(&format!("{}: {why}", item.title()), theme.warning()),
    }
    writer.lines
}

/// What a decision would do to its path.
fn of_decision(decision: &Decision, diffs: Option<&[FileDiff]>, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut writer = LineWriter::new(width, theme);
    let found = diffs.map(|diffs| diffs.iter().find(|diff| diff.path == decision.path));
    let mut lines = match found.flatten() {
        Some(file) => diff_lines(file, width, theme),
        None => vec![Line::styled(fit_end(&path_text(&decision.path), width), theme.bold())],
    };
    let rest = lines.split_off(1);
    writer.lines = lines;
    let text = match decision.choice {
        OnConflict::Keep | OnConflict::Stop => "is kept: nothing changes in it; going back would have changed:",
        OnConflict::Overwrite => "is overwritten; what is there now stays in the safety checkpoint:",
        OnConflict::Merge => "is merged: only the session's own changes are taken out:",
    };
    let style = if decision.choice == OnConflict::Overwrite { theme.warning() } else { theme.plain() };
    writer.text(text, style);
    writer.lines.extend(rest);
    if found == Some(None) {
        writer.text("nothing to show", theme.dim());
    }
    writer.lines
}

/// A plan of both on one line, as far as `scope` goes.
fn summary(plan: &RewindDocument, scope: Scope) -> String {
    if scope == Scope::Conversation {
        return format!("{} · files and side effects stay", conversation(plan));
    }
    let files = match changes(plan) {
        paths if paths.is_empty() => "no file changes".to_owned(),
        paths => paths.in_words(),
    };
    let conflicts = (!plan.conflicts.is_empty()).then(|| count(plan.conflicts.len(), "conflict", "conflicts"));
    let prompts = match scope {
        Scope::Code => "the conversation stays".to_owned(),
        Scope::Both | Scope::Conversation => conversation(plan),
    };
    let parts = [Some(files), conflicts, Some(prompts).filter(|text| !text.is_empty())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn conversation(plan: &RewindDocument) -> String {
    let Some(planned) = &plan.conversation else { return String::new() };
    let leaves = match planned.leaves.len() {
        0 => None,
        // Its files may hold more: prompts that were left behind may have changed them too.
        1 => Some("this prompt leaves".to_owned()),
        more => Some(format!("this prompt and {} leave", count(more - 1, "later one", "later ones"))),
    };
    // What comes back was left behind: then what leaves is of another branch.
    let returns =
        (!planned.returns.is_empty()).then(|| count(planned.returns.len(), "prompt comes back", "prompts come back"));
    let leaves = match &returns {
        Some(_) => (!planned.leaves.is_empty()).then(|| count(planned.leaves.len(), "prompt leaves", "prompts leave")),
        None => leaves,
    };
    [leaves, returns].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl LineWriter {
    fn new(width: usize, theme: Theme) -> Self {
        Self { theme, width, lines: Vec::new(), starts: Vec::new() }
    }

    /// What going back would change, of what the plan of both has.
    fn rewind(&mut self, shown: &ShownPreview, jobs: &[String], scope: Scope) {
        match &shown.plan {
            Ok(plan) => {
                let has_files = scope != Scope::Conversation && plan.scope != Some(Scope::Conversation);
                if let Some(means) = plan.means.filter(|_| has_files) {
                    self.text(&format!("Rewind: {}", means.describe()), self.theme.plain());
                }
                self.plan(plan, shown.diffs.as_deref(), jobs, scope);
            }
            Err(refusal) => {
                let style = self.theme.warning();
                self.text(&format!("It cannot go back there: {}", clean(&refusal.message)), style);
                if let Some(hint) = &refusal.hint {
                    self.text(&clean(hint), self.theme.dim());
                }
            }
        }
    }

    /// What a plan would change, as far as `scope` goes.
    fn plan(&mut self, plan: &RewindDocument, diffs: Option<&[FileDiff]>, jobs: &[String], scope: Scope) {
        let scope = if plan.scope == Some(Scope::Conversation) { Scope::Conversation } else { scope };
        self.text(&summary(plan, scope), self.theme.bold());
        if scope == Scope::Conversation {
            let paths = changes(plan);
            if !paths.is_empty() {
                let stay = paths.with_verb("keeps", "keep");
                self.text(&format!("{stay} the changes that were made since then"), self.theme.plain());
            }
        } else {
            self.warnings(plan);
        }
        self.stays(plan, jobs, scope);
        if scope != Scope::Code {
            self.conversation(plan);
        }
        if scope != Scope::Conversation {
            self.left_before(plan);
            self.files(plan, diffs);
        }
        self.side_effects(plan);
        if scope != Scope::Conversation {
            self.all_that_stay(plan);
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        self.lines.extend(wrapped(text, style, self.width, (0, 0)));
    }

    /// All paths that do not go back, if there are more than [`Self::stays`] names.
    fn all_that_stay(&mut self, plan: &RewindDocument) {
        let all = not_restored(plan);
        if MAX_LISTED < all.len() {
            self.lines.push(Line::default());
            self.text(
                &format!("All {} paths that changed since then and do not go back:", all.len()),
                self.theme.warning(),
            );
            for item in &all {
                self.lines.extend(wrapped(item, self.theme.plain(), self.width, (2, 4)));
            }
        }
    }

    /// A heading and what is below it, the rest counted.
    fn listed(&mut self, heading: &str, style: Style, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.text(heading, style);
        for item in items.iter().take(MAX_LISTED) {
            let item = fit(item, self.width.saturating_sub(2));
            self.lines.push(Line::styled(format!("  {item}"), self.theme.plain()));
        }
        if MAX_LISTED < items.len() {
            self.lines.push(Line::styled(format!("  … and {} more", items.len() - MAX_LISTED), self.theme.dim()));
        }
    }

    /// What needs a decision, or stops everything.
    fn warnings(&mut self, plan: &RewindDocument) {
        let (warning, removed) = (self.theme.warning(), self.theme.removed());
        let conflict = |facts: &retake_agent::rewind_document::ConflictFacts| {
            format!("! {}  {}", path_text(&facts.path), facts.text)
        };
        let conflicts: Vec<String> = plan.conflicts.iter().map(conflict).collect();
        self.listed("To be decided first:", removed, &conflicts);
        for path in &plan.blocked {
            self.text(&format!("! {}/  {BLOCKED}", path_text(path)), removed);
        }
        if let Some(branch) = &plan.branch {
            self.text(&format!("Another branch is checked out: {}", clean(&branch.in_words())), warning);
        }
        if plan.foreign != 0 {
            let paths = count(usize::try_from(plan.foreign).unwrap_or(usize::MAX), "path", "paths");
            self.text(&format!("Of these, the session never wrote {paths}"), warning);
        }
    }

    /// What does not go back.
    fn stays(&mut self, plan: &RewindDocument, jobs: &[String], scope: Scope) {
        let warning = self.theme.warning();
        let commands = plan.ledger.iter().filter(|item| is_command(item)).count();
        if let Some(others) = plan.ledger.len().checked_sub(commands).filter(|others| *others != 0) {
            let text = count(others, "effect is", "effects are");
            self.text(&format!("! {text} outside the files: no rewind takes that back (below)"), warning);
        }
        if commands != 0 {
            let ran = count(commands, "command ran; its effects", "commands ran; their effects");
            self.text(&format!("{ran} outside these files stay (below)"), self.theme.dim());
        }
        if scope == Scope::Conversation {
            return;
        }
        self.listed("Changed since then and does not go back:", warning, &not_restored(plan));
        let (gaps, total) = gaps(plan);
        self.listed(&format!("Not captured then: {}", count(total, "gap", "gaps")), warning, &gaps);
        let open: Vec<String> = plan.still_open.iter().map(path_text).collect();
        self.listed("Still open for writing in a program:", warning, &open);
        self.listed("Background jobs: ended if they were started since then:", warning, jobs);
    }

    /// What becomes of what was said.
    fn conversation(&mut self, plan: &RewindDocument) {
        let Some(planned) = &plan.conversation else { return };
        let texts =
            |prompts: &[PromptLine]| -> Vec<String> { prompts.iter().map(|prompt| clean(&prompt.text)).collect() };
        let dim = self.theme.dim();
        if 1 < planned.leaves.len() || !planned.returns.is_empty() {
            self.listed("Leaves the conversation:", dim, &texts(&planned.leaves));
        }
        self.listed("Comes back into the conversation:", dim, &texts(&planned.returns));
    }

    /// Prompts outside the conversation whose files go back.
    fn left_before(&mut self, plan: &RewindDocument) {
        let prompts = plan.conversation.iter().flat_map(|planned| &planned.left_before);
        let texts: Vec<String> = prompts.map(|prompt| clean(&prompt.text)).collect();
        self.listed("Left the conversation earlier, and their files go back:", self.theme.warning(), &texts);
    }

    /// What restoring files does not take back.
    fn side_effects(&mut self, plan: &RewindDocument) {
        let (commands, others): (Vec<_>, Vec<_>) = plan.ledger.iter().partition(|item| is_command(item));
        let style = if others.is_empty() { self.theme.dim() } else { self.theme.warning() };
        let ledger: Vec<String> = others.into_iter().chain(commands).map(ledger_line).collect();
        if !ledger.is_empty() {
            self.lines.push(Line::default());
        }
        self.listed("Since then; effects outside the files stay:", style, &ledger);
    }

    /// What changes in each file.
    fn files(&mut self, plan: &RewindDocument, diffs: Option<&[FileDiff]>) {
        let is_changed = |file: &&File| file.action.as_deref() != Some("unchanged");
        for (at, file) in plan.files.iter().enumerate().filter(|(_, file)| is_changed(file)) {
            let same = |diff: &&FileDiff| diff.path == file.path;
            let all = diffs.unwrap_or_default();
            let found = all.get(at).filter(same).or_else(|| all.iter().find(same));
            self.lines.push(Line::default());
            self.starts.push(self.lines.len());
            let lines = match found {
                Some(found) => diff_lines(found, self.width.saturating_sub(2), self.theme),
                None => {
                    vec![Line::styled(fit(&path_text(&file.path), self.width.saturating_sub(2)), self.theme.bold())]
                }
            };
            for (at, line) in lines.into_iter().enumerate() {
                let line = if at == 0 { self.headed(file, line) } else { indented(line) };
                self.lines.push(line);
            }
        }
        let is_presumed = |file: &File| file.certainty.as_deref() == Some("presumed");
        if plan.files.iter().any(is_presumed) {
            self.lines.push(Line::default());
            self.text("What changed while its commands ran is presumed to be the session's own.", self.theme.dim());
        }
    }

    /// `R src/main.rs  +1 −2  contested`
    fn headed(&self, file: &File, line: Line<'static>) -> Line<'static> {
        let theme = self.theme;
        let (letter, style) = match (file.status.as_str(), file.action.as_deref()) {
            ("conflict", _) => ('!', theme.removed()),
            (_, Some("restore")) => ('R', theme.warning()),
            (_, Some("delete")) => ('D', theme.removed()),
            (_, Some("recreate")) => ('A', theme.added()),
            (_, Some("mode")) => ('M', theme.accent()),
            (_, _) => ('?', theme.dim()),
        };
        // That of most is presumed, and said once.
        let certainty = file.certainty.as_deref().filter(|certainty| !matches!(*certainty, "certain" | "presumed"));
        let certainty = certainty.map(|certainty| Span::styled(format!("  {}", clean(certainty)), theme.dim()));
        let mut spans = vec![Span::styled(format!("{letter} "), style)];
        spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
        spans.extend(certainty);
        Line::from(spans)
    }
}

fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw("  "));
    line
}

/// The path, and what changes in it.
fn diff_lines(file: &FileDiff, width: usize, theme: Theme) -> Vec<Line<'static>> {
    diff::lines(std::slice::from_ref(file), u16::try_from(width).unwrap_or(u16::MAX), &theme)
}

/// Whether it is only known that a command ran.
fn is_command(item: &LedgerItem) -> bool {
    item.kind == "command"
}

fn ledger_line(item: &LedgerItem) -> String {
    let remedy = item.remedy.as_ref().map(|remedy| format!("  `{}`", clean(remedy))).unwrap_or_default();
    format!("{}: {}{remedy}", clean(&item.kind), clean(&item.what))
}

/// Paths that do not go back, with why.
fn not_restored(plan: &RewindDocument) -> Vec<String> {
    plan.not_restored.iter().map(|one| with_text(&one.path, &one.text)).collect()
}

/// What was not captured, with why, and how much there is in all.
fn gaps(plan: &RewindDocument) -> (Vec<String>, usize) {
    let gaps = plan.gaps.gaps.iter().take(MAX_LISTED + 1).map(|gap| with_text(&gap.path, &gap.text));
    (gaps.collect(), usize::try_from(plan.gaps.gaps_total).unwrap_or(usize::MAX))
}

fn with_text(path: &Bytes, text: &str) -> String {
    format!("{}  {}", path_text(path), clean(text))
}
