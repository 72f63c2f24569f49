//! The prompts of a conversation: those that are retained, and with `--all` or `--graph` those that were left behind.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use retake_agent::ids;
use retake_engine::id::EntryId;
use retake_engine::session::Session;
use retake_engine::session::{ForkPlace, PromptTree, SaidPrompt, TreeFork};
use retake_engine::{Timestamp, Workspace};
use serde::Serialize;

use super::{Numbers, counts};
use crate::failure::Result;
use crate::output::fork_links::{self, FromFacts};
use crate::output::json;
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{BOLD, DIM, Format, Paint, RED, Ui, YELLOW};

/// Tool calls named beside a prompt.
const MAX_TOOLS: usize = 3;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptScope {
    /// What is retained.
    Retained,
    /// What was left behind too.
    All,
    /// The same, as a tree.
    Graph,
}

/// What is to be listed.
#[derive(Clone, Copy, Debug)]
pub struct PromptFilter<'a> {
    pub shown: PromptScope,
    pub max_count: usize,
    pub search: Option<&'a str>,
}

#[derive(Serialize)]
struct PromptsDocument {
    version: u32,
    session: String,
    head: Option<String>,
    /// What the session was forked from.
    forked_from: Option<FromFacts>,
    /// Sessions that were forked from it, oldest first.
    forks: Vec<ForkFacts>,
    /// What one can go back to, newest first.
    prompts: Vec<PromptFacts>,
}

#[derive(Serialize)]
struct PromptFacts {
    id: String,
    /// Null for a prompt that was left behind.
    number: Option<u64>,
    at: String,
    text: String,
    retained: bool,
    /// Whether the model sees it as it was said; false if it was summarised or cleared, or is not retained.
    seen: bool,
    /// The prompt before it on its branch.
    parent: Option<String>,
    files: Option<retake_engine::session::TurnSummary>,
    label: Option<String>,
    has_files: Option<bool>,
}

#[derive(Serialize)]
struct ForkFacts {
    session: String,
    title: String,
    /// Null if it is gone.
    entry: Option<String>,
}

/// A prompt, retained or not.
struct Prompt {
    said: SaidPrompt,
    /// Whether the model sees it as it was said.
    seen: bool,
}

impl Prompt {
    fn is_retained(&self) -> bool {
        self.said.number.is_some()
    }
}

/// Prints the prompts of `session`.
pub fn print(ui: &mut Ui, workspace: &Workspace, session: &Session, what: &PromptFilter<'_>) -> Result<()> {
    let PromptFilter { shown, max_count, search } = *what;
    let conversation = workspace.sessions().conversation(session.id)?;
    let PromptTree { prompts, forks } = workspace.sessions().prompt_tree(session.id)?;
    let unseen = conversation.unseen();
    let has_prompts = !prompts.is_empty();
    let newest_first = prompts.into_iter().rev();
    let mut prompts: Vec<Prompt> =
        newest_first.map(|said| Prompt { seen: said.number.is_some() && !unseen.contains(&said.id), said }).collect();
    if let Some(query) = search {
        let found: HashSet<EntryId> =
            workspace.sessions().search(session.id, query)?.into_iter().map(|target| target.id).collect();
        let lower = query.to_lowercase();
        prompts.retain(|Prompt { said, .. }| found.contains(&said.id) || said.text.to_lowercase().contains(&lower));
    }
    if shown == PromptScope::Retained {
        prompts.retain(Prompt::is_retained);
    }
    if shown != PromptScope::Graph {
        prompts.truncate(max_count);
    }
    if ui.format == Format::Json {
        let forked_from = &session.forked_from;
        let (session, head) = (session.id.to_string(), conversation.head().map(|id| id.to_string()));
        let forked_from = forked_from.as_ref().map(FromFacts::new);
        let forks = forks.iter().map(fork_facts).collect();
        let prompts = prompts.iter().map(facts).collect();
        return Ok(ui.json(&PromptsDocument { version: json::VERSION, session, head, forked_from, forks, prompts })?);
    }
    if prompts.is_empty() {
        match search {
            Some(query) => writeln!(ui.talk()?, "No prompt here matches \"{}\".", quote::one_line(query))?,
            None if has_prompts => {
                writeln!(ui.talk()?, "No prompts to list. `--all` lists also those that rewinds left behind.")?;
            }
            None => writeln!(ui.talk()?, "Nothing has been said in this session.")?,
        }
        return Ok(());
    }
    ui.start_pager()?;
    let now = ids::now();
    let numbers = Numbers::of(prompts.iter().filter_map(|prompt| prompt.said.number));
    match shown {
        PromptScope::Retained | PromptScope::All => {
            for prompt in &prompts {
                writeln!(ui.out, "{}", line(ui.paint, numbers, prompt, now))?;
            }
        }
        PromptScope::Graph => {
            for row in graph(ui.paint, numbers, &prompts, &forks, now).into_iter().take(max_count) {
                writeln!(ui.out, "{row}")?;
            }
            if let Some(from) = &session.forked_from {
                let dim = ui.paint.with(DIM);
                writeln!(ui.out, "{dim}{}{dim:#}", fork_links::origin(from))?;
            }
        }
    }
    Ok(())
}

fn fork_facts(TreeFork { session: fork, .. }: &TreeFork) -> ForkFacts {
    let entry = fork.forked_from.as_ref().and_then(|from| from.entry);
    ForkFacts { session: fork.id.to_string(), title: fork.title.clone(), entry: entry.map(|id| id.to_string()) }
}

fn facts(prompt: &Prompt) -> PromptFacts {
    let Prompt { said, seen } = prompt;
    let retained = prompt.is_retained();
    PromptFacts {
        id: said.id.to_string(),
        number: said.number,
        at: time::rfc3339(said.at),
        text: said.text.clone(),
        retained,
        seen: *seen,
        parent: said.parent.map(|id| id.to_string()),
        files: retained.then(|| said.files.clone().unwrap_or_default()),
        label: said.label.clone().filter(|_| retained),
        has_files: retained.then_some(said.has_files),
    }
}

fn line(paint: Paint, numbers: Numbers, prompt: &Prompt, now: Timestamp) -> String {
    let Prompt { said, seen } = prompt;
    let (yellow, dim, bold, red) = (paint.with(YELLOW), paint.with(DIM), paint.with(BOLD), paint.with(RED));
    let (id, age, text) = (said.id.short(), time::age(said.at, now), quote::one_line(&said.text));
    let number = numbers.cell(said.number);
    if !prompt.is_retained() {
        return format!("{yellow}{id}{yellow:#}{number}  {dim}{age:<14}  {:<14}  {text}  left behind{dim:#}", "");
    }
    let files = said.files.clone().unwrap_or_default();
    let changed =
        retake_engine::snapshot::Changed { added: files.added, modified: files.modified, deleted: files.deleted };
    let mut line =
        format!("{yellow}{id}{yellow:#}{number}  {dim}{age:<14}{dim:#}  {}  {text}", counts(paint, &changed));
    if let Some(label) = &said.label {
        line.push_str(&format!("  {bold}{}{bold:#}", quote::one_line(label)));
    }
    if !files.tools.is_empty() {
        let mut tools: Vec<String> =
            files.tools.iter().take(MAX_TOOLS).map(|tool| quote::one_line(tool).into_owned()).collect();
        if MAX_TOOLS < files.tools.len() {
            tools.push(format!("{} more", files.tools.len() - MAX_TOOLS));
        }
        line.push_str(&format!("  {dim}{}{dim:#}", tools.join(", ")));
    }
    if !seen {
        line.push_str(&format!("  {dim}· no longer seen by the model{dim:#}"));
    }
    if !said.has_files {
        line.push_str(&format!("  {red}! files not kept{red:#}"));
    }
    line
}

/// The prompts as a tree, newest first: what is retained is the trunk, and what was left behind branches off below the prompt after
/// which it was said.
fn graph(paint: Paint, numbers: Numbers, newest_first: &[Prompt], forks: &[TreeFork], now: Timestamp) -> Vec<String> {
    let by_id: HashMap<EntryId, &Prompt> = newest_first.iter().map(|prompt| (prompt.said.id, prompt)).collect();
    let depth = |prompt: &Prompt| {
        let mut depth = 0;
        let mut at = Some(prompt);
        while let Some(here) = at.filter(|here| !here.is_retained()) {
            depth += 1;
            at = here.said.parent.and_then(|parent| by_id.get(&parent).copied());
        }
        depth
    };
    let fork_lines = |place: ForkPlace| {
        let at = forks.iter().rev().filter(move |fork| fork.place == Some(place));
        at.map(|fork| fork_line(paint, &fork.session, now)).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for prompt in newest_first {
        rows.extend(fork_lines(ForkPlace::After(prompt.said.id)));
        rows.push(match depth(prompt) {
            0 => format!("*  {}", line(paint, numbers, prompt, now)),
            depth => format!("|{} o  {}", "  ".repeat(depth - 1), line(paint, numbers, prompt, now)),
        });
        rows.extend(fork_lines(ForkPlace::Before(prompt.said.id)));
    }
    rows
}

/// A session that was forked from this one.
fn fork_line(paint: Paint, fork: &Session, now: Timestamp) -> String {
    let (yellow, dim) = (paint.with(YELLOW), paint.with(DIM));
    let (id, age, title) = (fork.id.short(), time::age(fork.at, now), quote::one_line(&fork.title));
    format!("| +  {yellow}{id}{yellow:#}  {dim}{age:<14}  {:<14}  session forked here{dim:#}  {title}", "")
        .trim_end()
        .to_owned()
}
