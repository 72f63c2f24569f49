//! Conversations as trees: lines with `uuid` and `parentUuid`, as Claude Code and Qwen Code write them.
//!
//! Who goes back in these agents leaves the old branch in the file and goes on from an earlier line:
//!
//! ```text
//! prompt 1 ── answer ── prompt 2 ── answer        (left)
//!                  └─── prompt 2' ── answer       (the leaf's chain: what goes on)
//! ```
//!
//! Parallel tool calls branch, too, and belong to the conversation: only a branch that begins with a prompt was left.

use std::collections::{HashMap, HashSet};

use super::Line;

/// The lines of a conversation that belong together.
#[derive(Debug)]
pub(crate) struct Tree {
    /// For each line whether it is in the conversation; lines that are in no tree are `None`.
    kept: Vec<Option<bool>>,
}

impl Tree {
    /// Sorts the first `end` lines by whether they belong to the conversation that their last one continues.
    ///
    /// `is_prompt` says which lines begin a turn, `is_root` which ones continue the line before them without naming it.
    pub(crate) fn new(lines: &[Line], is_prompt: &dyn Fn(&Line) -> bool, is_root: &dyn Fn(&Line) -> bool) -> Self {
        let is_node = |line: &Line| line.str("uuid").is_some() && line.value["isSidechain"] != true;
        let index: HashMap<&str, usize> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| is_node(line))
            .filter_map(|(at, line)| Some((line.str("uuid")?, at)))
            .collect();
        let before = |at: usize| lines[..at].iter().rposition(is_node);
        let parent = |at: usize| match lines[at].str("parentUuid").and_then(|parent| index.get(parent)).copied() {
            Some(parent) if parent < at => Some(parent),
            _ if is_root(&lines[at]) => before(at),
            _ => None,
        };
        let mut chain = HashSet::new();
        let mut next = before(lines.len());
        while let Some(at) = next.filter(|at| chain.insert(*at)) {
            next = parent(at);
        }
        let mut kept: Vec<Option<bool>> = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            let is_kept =
                chain.contains(&at) || !is_prompt(line) && parent(at).is_some_and(|parent| kept[parent] == Some(true));
            kept.push(is_node(line).then_some(is_kept));
        }
        Self { kept }
    }

    /// Whether a line belongs to the conversation; `None` if it is no part of the tree.
    pub(crate) fn is_kept(&self, line: usize) -> Option<bool> {
        self.kept.get(line).copied().flatten()
    }

    /// Whether there is a conversation at all.
    pub(crate) fn has_leaf(&self) -> bool {
        self.kept.contains(&Some(true))
    }
}
