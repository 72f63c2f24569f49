//! Reading snapshots back through the public interface and comparing them with the naive reference.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;

use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::ObjectId;
use retake_engine::snapshot::{Change, Changed, GapKind, Node, NodeKind};
use retake_engine::view::Side;
use retake_engine::{Workspace, WorkspacePath};
use retake_testkit::naive::{self, NaiveGap, NaiveKind, NaiveNode, NaiveNodes, NaiveTree};

/// What a comparison can end in: all is as it should be, or a text for the failure report.
pub(crate) type Verdict = Result<(), String>;

/// Starts every report of a wrong answer, as opposed to an error or a panic.
pub(crate) const MISMATCH: &str = "MISMATCH";

/// Contents that were read from one store. An id stands for its content, so reading it again would show nothing new.
#[derive(Debug, Default)]
pub(crate) struct Read(HashMap<ObjectId, Vec<u8>>);

/// Turns an error of the engine, which none of these trees should cause, into a report.
pub(crate) fn no_error<T>(what: &str, result: Result<T, impl Display>) -> Result<T, String> {
    result.map_err(|error| format!("ERROR: {what}: {error}"))
}

/// Compares everything that `side` holds, names, kinds, modes and bytes, with what is really there.
pub(crate) fn tree(what: &str, workspace: &Workspace, side: &Side<'_>, truth: &NaiveNodes) -> Verdict {
    tree_but(what, workspace, side, truth, &mut Read::default())
}

/// Like [`tree`], but reads no content that was `read` before from the same store.
pub(crate) fn tree_but(
    what: &str,
    workspace: &Workspace,
    side: &Side<'_>,
    truth: &NaiveNodes,
    read: &mut Read,
) -> Verdict {
    let stored = read_all(workspace, side, read)?;
    let wrong = naive::diff(truth, &stored);
    if wrong.is_empty() {
        return Ok(());
    }
    let lines = wrong.iter().map(|(path, (truth, stored))| {
        let shown = |node: &Option<&NaiveNode>| node.map_or("nothing".to_owned(), |node| format!("{node:?}"));
        format!("  {}\n    is     {}\n    stored {}\n", path.escape_ascii(), shown(truth), shown(stored))
    });
    Err(format!("{MISMATCH}: {what} differs from what is there:\n{}", lines.collect::<String>()))
}

/// Compares the differences that the engine finds with the true ones.
pub(crate) fn changes(what: &str, found: &[Change], before: &NaiveNodes, after: &NaiveNodes) -> Verdict {
    let truth = naive::diff(before, after);
    let is_sorted = found.windows(2).all(|pair| pair[0].path < pair[1].path);
    let as_said = |node: Option<&Node>, truth: Option<&NaiveNode>| match (node, truth) {
        (None, None) => true,
        (Some(node), Some(truth)) => describes(node, truth),
        _ => false,
    };
    let is_right = found.len() == truth.len()
        && found.iter().all(|change| {
            truth.get(change.path.as_bytes()).is_some_and(|(before, after)| {
                as_said(change.before.as_ref(), *before) && as_said(change.after.as_ref(), *after)
            })
        });
    if is_right && is_sorted {
        return Ok(());
    }
    let found: String = found.iter().map(|change| format!("    {change:?}\n")).collect();
    let truth: String = truth.iter().map(|(path, sides)| format!("    {} {sides:?}\n", path.escape_ascii())).collect();
    Err(format!("{MISMATCH}: diff of {what} (sorted: {is_sorted}):\n  is\n{truth}  found\n{found}"))
}

/// Compares the counts that a checkpoint carries: files and links, against the one before.
pub(crate) fn counted(what: &str, changed: Changed, last: &NaiveTree, found: &NaiveTree) -> Verdict {
    let is_there = |path: &[u8]| found.left_out.contains(path) || found.hidden.contains_key(path);
    let is_leaf = |node: Option<&NaiveNode>| node.is_some_and(|node| node.kind != NaiveKind::Directory);
    let mut truth = Changed { added: 0, modified: 0, deleted: 0 };
    for (path, (before, after)) in naive::diff(&last.nodes, &found.nodes) {
        match (is_leaf(before), is_leaf(after)) {
            // What a rule has come to leave out is not deleted, unless it is gone.
            (true, false) if found.is_left_out(path) && is_there(path) => {}
            // What a rule left out is not added when that goes.
            (false, true) if before.is_none() && last.is_left_out(path) => {}
            (false, true) => truth.added += 1,
            (true, true) => truth.modified += 1,
            (true, false) => truth.deleted += 1,
            (false, false) => {}
        }
    }
    if changed == truth {
        return Ok(());
    }
    Err(format!("{MISMATCH}: {what} counts {changed:?}, really {truth:?}"))
}

/// Compares the gaps that a checkpoint carries: exactly those that the tree has, and none for want of a steady look.
pub(crate) fn gaps(what: &str, workspace: &Workspace, checkpoint: &Checkpoint, truth: &NaiveTree) -> Verdict {
    let found = no_error("gaps", workspace.checkpoints().gaps(checkpoint))?;
    let name = |kind: GapKind| format!("{kind:?}");
    let found: BTreeSet<_> = found.iter().map(|gap| (gap.path.as_bytes().to_vec(), name(gap.kind))).collect();
    let truth: BTreeSet<_> = truth
        .gaps
        .iter()
        .map(|(path, gap)| {
            let kind = match gap {
                NaiveGap::Special => GapKind::Special,
                NaiveGap::TooLarge => GapKind::TooLarge,
                NaiveGap::HardLink => GapKind::HardLink,
            };
            (path.clone(), name(kind))
        })
        .collect();
    if found == truth && checkpoint.gap_count == truth.len() as u64 {
        return Ok(());
    }
    let list = |gaps: Vec<&(Vec<u8>, String)>| {
        gaps.iter().map(|(path, kind)| format!(" {kind} {}", path.escape_ascii())).collect::<String>()
    };
    Err(format!(
        "{MISMATCH}: gaps of {what}: missing{}, too much{}, {} counted",
        list(truth.difference(&found).collect()),
        list(found.difference(&truth).collect()),
        checkpoint.gap_count
    ))
}

/// Everything that `side` holds, read through `list`, `entry` and `content`.
pub(crate) fn read_back(workspace: &Workspace, side: &Side<'_>) -> Result<NaiveNodes, String> {
    read_all(workspace, side, &mut Read::default())
}

fn read_all(workspace: &Workspace, side: &Side<'_>, read: &mut Read) -> Result<NaiveNodes, String> {
    let mut nodes = NaiveNodes::new();
    let mut directories = vec![None];
    while let Some(directory) = directories.pop() {
        for (name, node) in no_error("list", workspace.list(side, directory.as_ref()))? {
            let path = match &directory {
                None => name,
                Some(directory) => [directory.as_bytes(), b"/", &name].concat(),
            };
            let path =
                WorkspacePath::parse(&path).map_err(|_| format!("{MISMATCH}: {} listed", path.escape_ascii()))?;
            // Looking up walks down from the root: every fourth is enough to compare the two ways.
            if nodes.len().is_multiple_of(4) {
                look_up(workspace, side, &path, &node)?;
            }
            let naive = read_node(workspace, side, &path, &node, read)?;
            if nodes.insert(path.as_bytes().to_vec(), naive).is_some() {
                return Err(format!("{MISMATCH}: {} listed twice", path.as_bytes().escape_ascii()));
            }
            if node.kind == NodeKind::Directory {
                directories.push(Some(path));
            }
        }
    }
    Ok(nodes)
}

fn look_up(workspace: &Workspace, side: &Side<'_>, path: &WorkspacePath, node: &Node) -> Verdict {
    let entry = no_error("entry", workspace.entry(side, path))?;
    if entry.as_ref() == Some(node) {
        return Ok(());
    }
    Err(format!("{MISMATCH}: {path:?} is listed as {node:?} and looked up as {entry:?}"))
}

fn read_node(
    workspace: &Workspace,
    side: &Side<'_>,
    path: &WorkspacePath,
    node: &Node,
    read: &mut Read,
) -> Result<NaiveNode, String> {
    let (kind, mode) = (naive_kind(node.kind), node.mode);
    if node.kind == NodeKind::Directory {
        return Ok(NaiveNode { kind, mode, content: Vec::new() });
    }
    let content = match read.0.get(&node.content) {
        Some(content) => content.clone(),
        None => {
            let mut content = Vec::new();
            no_error("content", workspace.content(side, path, node, &mut content))?;
            read.0.insert(node.content, content.clone());
            content
        }
    };
    if content.len() as u64 != node.size {
        return Err(format!("{MISMATCH}: {path:?} has {} bytes, listed as {node:?}", content.len()));
    }
    Ok(NaiveNode { kind, mode, content })
}

fn describes(node: &Node, truth: &NaiveNode) -> bool {
    node.size == truth.content.len() as u64 && naive_kind(node.kind) == truth.kind && node.mode == truth.mode
}

fn naive_kind(kind: NodeKind) -> NaiveKind {
    match kind {
        NodeKind::File => NaiveKind::File,
        NodeKind::Symlink => NaiveKind::Symlink,
        NodeKind::Directory => NaiveKind::Directory,
    }
}
