//! The tree: everything that was ever said in a session, drawn as a graph.
//!
//! ```text
//! ●  1 Set up the project
//! ●  2 Add a login
//! ├─○  Use cookies
//! │ ○  And test them
//! ●  3 Add sessions
//! ```
//!
//! What is retained is a straight line; what was left behind branches off above what took its place. Nothing here asks for anything.

use std::collections::{HashMap, HashSet};

use retake_agent::contract::TreePrompt;
use retake_engine::id::EntryId;

use super::rows::PromptRow;

/// A prompt in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The prompt.
    pub row: PromptRow,
    /// What is drawn before it.
    pub graph: String,
    /// What is drawn before more lines of it.
    pub below: String,
    /// Whether it is retained.
    pub retained: bool,
    /// Whether it is the last one that is retained.
    pub is_head: bool,
}

/// Lays out `prompts`, which come oldest first; the rows of `gone` have no files any more.
pub fn layout(head: Option<EntryId>, prompts: &[TreePrompt], gone: &HashSet<EntryId>) -> Vec<Node> {
    let known: HashSet<EntryId> = prompts.iter().map(|prompt| prompt.id).collect();
    let mut children: HashMap<Option<EntryId>, Vec<&TreePrompt>> = HashMap::new();
    for prompt in prompts {
        // One whose parent is gone begins a branch of its own.
        let parent = prompt.parent.filter(|parent| known.contains(parent) && *parent != prompt.id);
        children.entry(parent).or_default().push(prompt);
    }
    let mut nodes = Vec::with_capacity(prompts.len());
    // Prompts that are still to be drawn, the next one last: a session may be longer than the stack is deep.
    let mut waiting = Vec::new();
    branch(&mut waiting, &children, None, "");
    while let Some(Waiting { prompt, own, below }) = waiting.pop() {
        let retained = prompt.number.is_some();
        let sign = if retained { '●' } else { '○' };
        nodes.push(Node {
            row: PromptRow::of_tree(prompt, gone),
            graph: format!("{own}{sign}"),
            below: format!("{below}{}", if children.contains_key(&Some(prompt.id)) { '│' } else { ' ' }),
            retained,
            is_head: head == Some(prompt.id),
        });
        branch(&mut waiting, &children, Some(prompt), &below);
    }
    // Nothing is above the first one.
    if let Some(first) = nodes.first_mut().filter(|first| first.graph.starts_with('├')) {
        first.graph = first.graph.replacen('├', "┌", 1);
    }
    nodes
}

struct Waiting<'a> {
    prompt: &'a TreePrompt,
    /// What is drawn before the prompt itself.
    own: String,
    /// What is drawn before what follows it.
    below: String,
}

/// Puts the children of `parent` on the heap: the one that goes straight on is drawn last, those that branch off before it.
fn branch<'a>(
    waiting: &mut Vec<Waiting<'a>>,
    children: &HashMap<Option<EntryId>, Vec<&'a TreePrompt>>,
    parent: Option<&TreePrompt>,
    prefix: &str,
) {
    let Some(all) = children.get(&parent.map(|parent| parent.id)) else { return };
    // After a head that went back everything branches off; a branch itself goes straight on.
    let is_head = parent.is_some_and(|parent| parent.number.is_some());
    let alone = (all.len() == 1 && !is_head).then_some(0);
    let straight = all.iter().rposition(|prompt| prompt.number.is_some()).or(alone);
    if let Some(at) = straight {
        waiting.push(Waiting { prompt: all[at], own: prefix.to_owned(), below: prefix.to_owned() });
    }
    let mut is_last = straight.is_none();
    for (at, prompt) in all.iter().enumerate().rev() {
        if Some(at) == straight {
            continue;
        }
        let (turn, below) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
        waiting.push(Waiting { prompt, own: format!("{prefix}{turn}"), below: format!("{prefix}{below}") });
        is_last = false;
    }
}
