//! The ledger: what happened since the target and cannot be undone by restoring files.

use crate::GitState;

/// Something that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LedgerItem {
    /// What it is: `command`, `git`, or what a caller calls it.
    pub kind: String,
    /// What happened, in words.
    pub what: String,
    /// A command that would move it back, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What moved in the repository between two moments.
pub(crate) fn git_moves(then: &GitState, now: &GitState) -> Vec<LedgerItem> {
    let mut items = Vec::new();
    let mut push = |what: String, remedy: Option<String>| {
        items.push(LedgerItem { kind: "git".to_owned(), what, remedy });
    };
    let short = |commit: &String| commit.chars().take(10).collect::<String>();
    let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "a detached HEAD".to_owned());
    if then.branch != now.branch {
        let remedy = then.branch.as_ref().map(|branch| format!("git switch {branch}"));
        push(format!("the branch checked out went from {} to {}", name(&then.branch), name(&now.branch)), remedy);
    } else if then.head != now.head {
        let old = then.head.as_ref().map_or_else(|| "nothing".to_owned(), short);
        let new = now.head.as_ref().map_or_else(|| "nothing".to_owned(), short);
        let remedy = then.head.as_ref().map(|head| format!("git reset --soft {head}"));
        push(format!("HEAD went from {old} to {new}"), remedy);
    }
    if then.index != now.index {
        push("what is staged has changed; it stays as it is".to_owned(), None);
    }
    if then.stash != now.stash {
        let remedy = now.stash.as_ref().map(|_| "git stash list".to_owned());
        push("the stash has changed".to_owned(), remedy);
    }
    items
}
