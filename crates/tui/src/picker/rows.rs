//! Rows: a prompt that one can go back to, as list and tree show it, and whether it is looked for.
//!
//! A row knows nothing of other rows and is never changed by anything but a new answer of the session.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use retake_agent::contract::TreePrompt;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::rewind::LedgerItem;
use retake_engine::session::{Target, TurnSummary};

use super::text_lines::clean;

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptRow {
    /// The prompt.
    pub id: EntryId,
    /// Its number; `None` if it was left behind.
    pub number: Option<u64>,
    /// When it was said.
    pub at: Timestamp,
    /// Its first line.
    pub text: String,
    /// Its label.
    pub label: Option<String>,
    /// What its turn did, if that is known.
    pub files: Option<TurnSummary>,
    /// Whether the files of that moment are gone.
    pub files_gone: bool,
    /// The sessions that were forked before it.
    pub forks: Vec<String>,
}

impl PromptRow {
    /// Of the list.
    pub fn of_target(target: &Target) -> Self {
        Self {
            id: target.id,
            number: Some(target.number),
            at: target.at,
            text: clean(&target.text),
            label: target.label.as_deref().map(clean),
            files: Some(summary(&target.files)),
            files_gone: !target.has_files,
            forks: Vec::new(),
        }
    }

    /// Of the tree; of those that were left behind only a plan tells whether their files can still be had.
    pub fn of_tree(prompt: &TreePrompt, gone: &HashSet<EntryId>) -> Self {
        Self {
            id: prompt.id,
            number: prompt.number,
            at: prompt.at,
            text: clean(&prompt.text),
            label: prompt.label.as_deref().map(clean),
            files: prompt.files.as_ref().map(summary),
            files_gone: gone.contains(&prompt.id),
            forks: prompt.forks.iter().map(|session| clean(session.short())).collect(),
        }
    }

    /// Why not everything can go back to it.
    pub fn limit(&self) -> Option<&'static str> {
        self.files_gone.then_some("files of that moment are gone; conversation only")
    }

    /// The same where there is little room.
    pub fn short_limit(&self) -> Option<&'static str> {
        self.files_gone.then_some("files gone; conversation only")
    }

    /// Effects that are known to be outside the files and stay.
    pub fn outside(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|files| &files.outside).map(|item| item.what.as_str())
    }

    /// `+2 ~1 −0`, or nothing if no file was changed.
    pub fn changed(&self) -> String {
        match &self.files {
            Some(files) if files.added + files.modified + files.deleted != 0 => {
                format!("+{} ~{} −{}", files.added, files.modified, files.deleted)
            }
            _ => String::new(),
        }
    }

    /// The tool calls, each kind once.
    pub fn tools(&self) -> String {
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for tool in self.files.iter().flat_map(|files| &files.tools) {
            match counted.iter_mut().find(|(known, _)| known == tool) {
                Some((_, count)) => *count += 1,
                None => counted.push((tool, 1)),
            }
        }
        let one = |(tool, count): (&str, usize)| if count == 1 { tool.to_owned() } else { format!("{tool} ×{count}") };
        counted.into_iter().map(one).collect::<Vec<_>>().join(" · ")
    }

    /// Whether every word occurs in it, or by what the session found in a file that it changed.
    pub fn matches(&self, filter: &Filter) -> bool {
        filter.words().all(|word| self.contains(&word) || filter.by_file(&word, self.id))
    }

    fn contains(&self, word: &str) -> bool {
        if let Some(number) = word.strip_prefix('#').filter(|rest| !rest.is_empty()) {
            return self.number.is_some_and(|own| own.to_string() == number);
        }
        let tools = self.files.iter().flat_map(|files| &files.tools);
        let texts = tools.chain(&self.label).chain([&self.text]);
        texts.into_iter().any(|text| !found(text, word).is_empty())
            || self.number.is_some_and(|number| number.to_string().contains(word))
    }
}

fn summary(files: &TurnSummary) -> TurnSummary {
    let item = |item: &LedgerItem| LedgerItem { kind: clean(&item.kind), what: clean(&item.what), remedy: None };
    TurnSummary {
        tools: files.tools.iter().map(|tool| clean(tool)).collect(),
        outside: files.outside.iter().map(item).collect(),
        ..*files
    }
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// As it was typed.
    pub text: String,
    /// Prompts that changed a file with the word in its path, as the session found them, by word.
    by_file: HashMap<String, SearchResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SearchResult {
    prompts: HashSet<EntryId>,
    answer: SearchState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SearchState {
    /// It is on its way; until then what was found before counts.
    #[default]
    Awaited,
    /// It is there.
    Known,
    /// It is of before, and has to be asked for again.
    Old,
}

impl Filter {
    /// In small letters.
    pub fn words(&self) -> impl Iterator<Item = String> + '_ {
        self.text.split_whitespace().map(str::to_lowercase)
    }

    /// Words that the session has to be asked about; they count as asked from now on.
    pub fn unasked(&mut self) -> Vec<String> {
        if self.text.is_empty() {
            self.by_file.clear();
        }
        let is_unasked = |word: &String| self.by_file.get(word).is_none_or(|found| found.answer == SearchState::Old);
        let words: Vec<String> = self.words().filter(is_unasked).collect();
        for word in &words {
            self.by_file.entry(word.clone()).or_default().answer = SearchState::Awaited;
        }
        words
    }

    /// Takes in what the session found.
    pub fn found(&mut self, word: String, prompts: HashSet<EntryId>) {
        self.by_file.insert(word, SearchResult { prompts, answer: SearchState::Known });
    }

    /// Something has happened: what the session found has to be asked for again.
    pub fn outdate(&mut self) {
        self.by_file.values_mut().for_each(|found| found.answer = SearchState::Old);
    }

    /// Whether the session still looks for a word.
    pub fn is_waiting(&self) -> bool {
        self.words().any(|word| self.by_file.get(&word).is_some_and(|found| found.answer == SearchState::Awaited))
    }

    /// Whether it is exactly this number.
    pub fn is_number(&self, number: u64) -> bool {
        let text = self.text.trim();
        text.strip_prefix('#').unwrap_or(text) == number.to_string()
    }

    /// Where `text` has what is looked for, in bytes, in order.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let mut marks: Vec<Range<usize>> = self.words().flat_map(|word| found(text, &word)).collect();
        marks.sort_by_key(|mark| (mark.start, mark.end));
        let mut apart: Vec<Range<usize>> = Vec::new();
        for mark in marks {
            match apart.last_mut() {
                Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
                _ => apart.push(mark),
            }
        }
        apart
    }

    /// The words that were found in the path of a file that a row changed, and nowhere else.
    pub fn only_by_file(&self, row: &PromptRow) -> Vec<String> {
        self.words().filter(|word| !row.contains(word) && self.by_file(word, row.id)).collect()
    }

    fn by_file(&self, word: &str, prompt: EntryId) -> bool {
        self.by_file.get(word).is_some_and(|found| found.prompts.contains(&prompt))
    }
}

/// Where `word`, in small letters, occurs in `text`, whatever the case.
fn found(text: &str, word: &str) -> Vec<Range<usize>> {
    if word.is_empty() {
        return Vec::new();
    }
    let (mut marks, mut from) = (Vec::new(), 0);
    for (start, _) in text.char_indices() {
        if start < from {
            continue;
        }
        if let Some(length) = begins_with(&text[start..], word) {
            from = start + length;
            marks.push(start..from);
        }
    }
    marks
}

/// How many bytes of `text` are `word`, if it begins with it.
fn begins_with(text: &str, word: &str) -> Option<usize> {
    let mut wanted = word.chars().peekable();
    for (at, c) in text.char_indices() {
        if wanted.peek().is_none() {
            return Some(at);
        }
        for small in c.to_lowercase() {
            if wanted.next() != Some(small) {
                return None;
            }
        }
    }
    wanted.peek().is_none().then_some(text.len())
}
