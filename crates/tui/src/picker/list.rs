//! The rows on the screen: which there are, which are looked for, which one is chosen, and how far they are scrolled.
//!
//! The chosen row is remembered by its prompt, so that a new answer of the session never chooses another one by accident.

use std::collections::HashSet;

use retake_agent::contract::TreePrompt;
use retake_engine::id::EntryId;
use retake_engine::session::Target;

use super::rows::{Filter, PromptRow};
use super::tree::{self, Node};

/// What the rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListMode {
    /// What is retained, newest first.
    #[default]
    List,
    /// Everything that was ever said.
    Tree,
}

/// The rows.
#[derive(Debug, Default)]
pub struct RowList {
    /// What is shown.
    pub mode: ListMode,
    /// What is looked for.
    pub filter: Filter,
    /// What is retained, newest first; `None` until the session has answered.
    targets: Option<Vec<PromptRow>>,
    /// Everything, oldest first; `None` until the session has answered.
    tree: Option<Vec<Node>>,
    chosen: Option<EntryId>,
    /// The first line that is shown.
    pub scroll: usize,
    /// Rows that one page has.
    pub page: usize,
}

impl RowList {
    /// Takes the list of what one can go back to.
    pub fn take_targets(&mut self, targets: &[Target]) {
        self.targets = Some(targets.iter().map(PromptRow::of_target).collect());
        self.settle();
    }

    /// Takes the tree; call [`RowList::take_targets`] first, for which files are gone.
    pub fn take_tree(&mut self, head: Option<EntryId>, prompts: &[TreePrompt]) {
        let gone: HashSet<EntryId> =
            self.targets.iter().flatten().filter(|row| row.files_gone).map(|row| row.id).collect();
        self.tree = Some(tree::layout(head, prompts, &gone));
        self.settle();
    }

    /// Whether the session has said what there is.
    pub fn is_known(&self) -> bool {
        match self.mode {
            ListMode::List => self.targets.is_some(),
            ListMode::Tree => self.tree.is_some(),
        }
    }

    /// All rows of the list, looked for or not.
    pub fn rows(&self) -> Vec<&PromptRow> {
        match self.mode {
            ListMode::List => self.targets.iter().flatten().collect(),
            ListMode::Tree => self.nodes().iter().map(|node| &node.row).collect(),
        }
    }

    /// The graph.
    pub fn nodes(&self) -> &[Node] {
        self.tree.as_deref().unwrap_or_default()
    }

    /// How many prompts are retained.
    pub fn retained(&self) -> usize {
        self.targets.as_ref().map_or(0, Vec::len)
    }

    /// The rows that are looked for.
    pub fn matching(&self) -> Vec<&PromptRow> {
        self.rows().into_iter().filter(|row| row.matches(&self.filter)).collect()
    }

    /// The chosen row.
    pub fn chosen(&self) -> Option<&PromptRow> {
        let chosen = self.chosen?;
        self.rows().into_iter().find(|row| row.id == chosen)
    }

    /// Shows list or tree; the chosen prompt stays if it is in both.
    pub fn switch(&mut self, mode: ListMode) {
        self.mode = mode;
        self.scroll = 0;
        self.settle();
    }

    /// Changes what is looked for.
    pub fn look_for(&mut self, text: String) {
        self.filter.text = text;
        let exact = self
            .rows()
            .iter()
            .find(|row| row.number.is_some_and(|number| self.filter.is_number(number)))
            .map(|row| row.id);
        self.chosen = exact.or(self.chosen);
        self.settle();
    }

    /// Moves by rows that are looked for, and stops at the ends.
    pub fn step(&mut self, by: isize) {
        let ids: Vec<EntryId> = self.matching().iter().map(|row| row.id).collect();
        let Some(last) = ids.len().checked_sub(1) else { return };
        let at = ids.iter().position(|id| Some(*id) == self.chosen).unwrap_or(0);
        self.chosen = Some(ids[at.saturating_add_signed(by).min(last)]);
    }

    /// Chooses one that is looked for: the chosen one if it is, else the newest of the list, or the head of the tree.
    pub fn settle(&mut self) {
        if !self.is_known() {
            return;
        }
        let matching = self.matching();
        if matching.iter().any(|row| Some(row.id) == self.chosen) {
            return;
        }
        let head = match self.mode {
            ListMode::List => None,
            ListMode::Tree => self.nodes().iter().find(|node| node.is_head).map(|node| node.row.id),
        };
        let head = head.filter(|head| matching.iter().any(|row| row.id == *head));
        let end = match self.mode {
            ListMode::List => matching.first(),
            ListMode::Tree => matching.last(),
        };
        self.chosen = head.or(end.map(|row| row.id));
    }
}
