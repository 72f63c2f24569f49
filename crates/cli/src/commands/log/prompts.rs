//! The prompts of a conversation: those that are retained, and with `--all` or `--graph` those that were left behind.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use retake_agent::fresh;
use retake_engine::session::entry::{Body, Entry, EntryId};
use retake_engine::session::{Target, first_line};
use retake_engine::{Session, SessionId, Timestamp, Workspace};
use serde::Serialize;

use super::counts;
use crate::clock;
use crate::forks::{self, FromFacts};
use crate::json;
use crate::quote;
use crate::ui::{BOLD, DIM, Format, Paint, RED, Ui, YELLOW};

/// Tool calls named beside a prompt.
const MAX_TOOLS: usize = 3;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What is retained.
    Retained,
    /// What was left behind too.
    All,
    /// The same, as a tree.
    Graph,
}

/// What is to be listed.
#[derive(Clone, Copy, Debug)]
pub struct What<'a> {
    pub shown: Shown,
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
    id: EntryId,
    at: Timestamp,
    text: String,
    parent: Option<EntryId>,
    target: Option<Target>,
    seen: bool,
}

/// Prints the prompts of `session`.
pub fn print(ui: &mut Ui, workspace: &Workspace, session: &Session, what: &What<'_>) -> anyhow::Result<()> {
    let What { shown, max_count, search } = *what;
    let conversation = workspace.conversation(session.id)?;
    let entries = workspace.all_entries(session.id)?;
    let (mut prompts, last) = prompts(&entries, workspace.targets(session.id)?);
    let unseen = conversation.unseen();
    prompts.iter_mut().for_each(|prompt| prompt.seen &= !unseen.contains(&prompt.id));
    let forks = forks_of(workspace, session.id)?;
    if let Some(query) = search {
        let found: HashSet<EntryId> =
            workspace.search(session.id, query)?.into_iter().map(|target| target.id).collect();
        let lower = query.to_lowercase();
        prompts.retain(|prompt| found.contains(&prompt.id) || prompt.text.to_lowercase().contains(&lower));
    }
    if shown == Shown::Retained {
        prompts.retain(|prompt| prompt.target.is_some());
    }
    if shown != Shown::Graph {
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
            None => writeln!(ui.talk()?, "Nothing has been said in this session.")?,
        }
        return Ok(());
    }
    ui.start_pager()?;
    let now = fresh::now();
    match shown {
        Shown::Retained | Shown::All => {
            for prompt in &prompts {
                writeln!(ui.out, "{}", line(ui.paint, prompt, now))?;
            }
        }
        Shown::Graph => {
            for row in graph(ui.paint, &prompts, &forks, &last, now).into_iter().take(max_count) {
                writeln!(ui.out, "{row}")?;
            }
            if let Some(from) = &session.forked_from {
                let dim = ui.paint.with(DIM);
                writeln!(ui.out, "{dim}{}{dim:#}", forks::origin(from))?;
            }
        }
    }
    Ok(())
}

/// Sessions that were forked from `session` in this workspace, oldest first.
fn forks_of(workspace: &Workspace, session: SessionId) -> anyhow::Result<Vec<Session>> {
    let is_fork = |other: &Session| other.forked_from.as_ref().is_some_and(|from| from.session == session);
    let mut forks: Vec<Session> = workspace.sessions()?.into_iter().filter(is_fork).collect();
    forks.reverse();
    Ok(forks)
}

fn fork_facts(fork: &Session) -> ForkFacts {
    let entry = fork.forked_from.as_ref().and_then(|from| from.entry);
    ForkFacts { session: fork.id.to_string(), title: fork.title.clone(), entry: entry.map(|id| id.to_string()) }
}

/// All prompts among `entries`, newest first, and for each entry the last prompt at or before it.
fn prompts(entries: &[Entry], targets: Vec<Target>) -> (Vec<Prompt>, HashMap<EntryId, EntryId>) {
    let mut targets: HashMap<EntryId, Target> = targets.into_iter().map(|target| (target.id, target)).collect();
    let mut last: HashMap<EntryId, EntryId> = HashMap::new();
    let mut prompts = Vec::new();
    for entry in entries {
        let before = entry.parent.and_then(|parent| last.get(&parent).copied());
        let Body::Prompt { parts } = &entry.body else {
            before.map(|before| last.insert(entry.id, before));
            continue;
        };
        last.insert(entry.id, entry.id);
        let (text, target) = (first_line(parts), targets.remove(&entry.id));
        let seen = target.is_some();
        prompts.push(Prompt { id: entry.id, at: entry.at, text, parent: before, target, seen });
    }
    prompts.reverse();
    (prompts, last)
}

fn facts(prompt: &Prompt) -> PromptFacts {
    let target = prompt.target.as_ref();
    PromptFacts {
        id: prompt.id.to_string(),
        number: target.map(|target| target.number),
        at: clock::rfc3339(prompt.at),
        text: prompt.text.clone(),
        retained: target.is_some(),
        seen: prompt.seen,
        parent: prompt.parent.map(|id| id.to_string()),
        files: target.map(|target| target.files.clone()),
        label: target.and_then(|target| target.label.clone()),
        has_files: target.map(|target| target.has_files),
    }
}

fn line(paint: Paint, prompt: &Prompt, now: Timestamp) -> String {
    let (yellow, dim, bold, red) = (paint.with(YELLOW), paint.with(DIM), paint.with(BOLD), paint.with(RED));
    let (id, age) = (prompt.id.short(), clock::age(prompt.at, now));
    let Some(target) = &prompt.target else {
        let text = quote::one_line(&prompt.text);
        return format!("{yellow}{id}{yellow:#}  {dim}{age:<14}  {:<14}  {text}  left behind{dim:#}", "");
    };
    let files = &target.files;
    let changed = retake_engine::Changed { added: files.added, modified: files.modified, deleted: files.deleted };
    let mut line = format!(
        "{yellow}{id}{yellow:#}  {dim}{age:<14}{dim:#}  {}  {}",
        counts(paint, &changed),
        quote::one_line(&prompt.text)
    );
    if let Some(label) = &target.label {
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
    if !prompt.seen {
        line.push_str(&format!("  {dim}· no longer seen by the model{dim:#}"));
    }
    if !target.has_files {
        line.push_str(&format!("  {red}! files not kept{red:#}"));
    }
    line
}

/// The prompts as a tree, newest first: what is retained is the trunk, and what was left behind branches off below the prompt after
/// which it was said.
fn graph(
    paint: Paint,
    newest_first: &[Prompt],
    forks: &[Session],
    last: &HashMap<EntryId, EntryId>,
    now: Timestamp,
) -> Vec<String> {
    let by_id: HashMap<EntryId, &Prompt> = newest_first.iter().map(|prompt| (prompt.id, prompt)).collect();
    let retained: HashSet<EntryId> =
        newest_first.iter().filter(|prompt| prompt.target.is_some()).map(|prompt| prompt.id).collect();
    let depth = |prompt: &Prompt| {
        let mut depth = 0;
        let mut at = Some(prompt);
        while let Some(here) = at.filter(|here| !retained.contains(&here.id)) {
            depth += 1;
            at = here.parent.and_then(|parent| by_id.get(&parent).copied());
        }
        depth
    };
    let mut rows = Vec::new();
    for prompt in newest_first {
        let at = |fork: &&Session| fork.forked_from.as_ref().and_then(|from| from.entry);
        // A fork from a prompt begins before it; one from what was answered has the prompt.
        let has_it = |fork: &&Session| at(fork).is_some_and(|at| at != prompt.id && last.get(&at) == Some(&prompt.id));
        rows.extend(forks.iter().rev().filter(has_it).map(|fork| fork_line(paint, fork, now)));
        rows.push(match depth(prompt) {
            0 => format!("*  {}", line(paint, prompt, now)),
            depth => format!("|{} o  {}", "  ".repeat(depth - 1), line(paint, prompt, now)),
        });
        let without_it = |fork: &&Session| at(fork) == Some(prompt.id);
        rows.extend(forks.iter().rev().filter(without_it).map(|fork| fork_line(paint, fork, now)));
    }
    rows
}

/// A session that was forked from this one.
fn fork_line(paint: Paint, fork: &Session, now: Timestamp) -> String {
    let (yellow, dim) = (paint.with(YELLOW), paint.with(DIM));
    let (id, age, title) = (fork.id.short(), clock::age(fork.at, now), quote::one_line(&fork.title));
    format!("| +  {yellow}{id}{yellow:#}  {dim}{age:<14}  {:<14}  session forked here{dim:#}  {title}", "")
        .trim_end()
        .to_owned()
}
