//! The ledger: what happened since the target and cannot be undone by restoring files.

use crate::git::GitState;

/// Something that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LedgerItem {
    /// What it is: `command`, `git`, or what a caller calls it.
    pub kind: String,
    /// What happened, in words.
    pub what: String,
    /// A command that would move it back, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What moved in the repository between two moments. The commands, in this order, move it back: none of them touches a file,
/// for files are what going back is about, and git would refuse to overwrite what it has brought back.
pub(crate) fn git_moves(then: &GitState, now: &GitState) -> Vec<LedgerItem> {
    if *now == GitState::default() && then != now {
        let what = "the git repository is gone, and it is not captured".to_owned();
        return vec![LedgerItem { kind: "git".to_owned(), what, remedy: None }];
    }
    let moves = [under_way(then, now), head(then, now), index(then, now), stash(then, now)];
    let item = |(what, remedy)| LedgerItem { kind: "git".to_owned(), what, remedy };
    moves.into_iter().flatten().map(item).collect()
}

/// What happened, and the command that would move it back.
type Moved = (String, Option<String>);

fn under_way(then: &GitState, now: &GitState) -> Option<Moved> {
    match (then.under_way, now.under_way) {
        (then, now) if then == now => None,
        (_, Some(action)) => {
            let name = action.name();
            Some((format!("a {name} is under way that was not then"), Some(format!("git {name} --quit"))))
        }
        (Some(action), None) => Some((format!("the {} that was under way then has ended", action.name()), None)),
        (None, None) => None,
    }
}

fn head(then: &GitState, now: &GitState) -> Option<Moved> {
    if then.branch == now.branch {
        if then.head == now.head {
            return None;
        }
        let commit = |git: &GitState| git.head.as_deref().map_or_else(|| "nothing".to_owned(), short);
        let remedy = match (&then.head, &then.branch) {
            (Some(head), _) => Some(format!("git reset --soft {head}")),
            // The branch had no commit yet.
            (None, Some(_)) => Some("git update-ref -d HEAD".to_owned()),
            (None, None) => None,
        };
        return Some((format!("HEAD went from {} to {}", commit(then), commit(now)), remedy));
    }
    let name = |git: &GitState| match (&git.branch, &git.head) {
        (Some(branch), _) => branch.clone(),
        (None, Some(commit)) => format!("a detached HEAD at {}", short(commit)),
        (None, None) => "nothing".to_owned(),
    };
    let remedy = match (&then.branch, &then.head) {
        (Some(branch), _) => Some(format!("git symbolic-ref HEAD {}", quoted(&format!("refs/heads/{branch}")))),
        (None, Some(commit)) => Some(format!("git update-ref --no-deref HEAD {commit}")),
        (None, None) => None,
    };
    Some((format!("what is checked out went from {} to {}", name(then), name(now)), remedy))
}

/// The former index is not known, only that it was another one.
fn index(then: &GitState, now: &GitState) -> Option<Moved> {
    let what = "the index has changed, so what is staged may differ; unstaging all of it leaves the files alone";
    let remedy = now.index.as_ref().map(|_| "git reset".to_owned());
    (then.index != now.index).then(|| (what.to_owned(), remedy))
}

fn stash(then: &GitState, now: &GitState) -> Option<Moved> {
    match (&then.stash, &now.stash) {
        (then, now) if then == now => None,
        (Some(then), None) => Some(("the stash is gone".to_owned(), Some(format!("git stash store -m 'WIP' {then}")))),
        // Whether one was put on top or taken away is not known, and dropping one could lose something.
        (_, _) => Some(("the stash has changed: see `git stash list`".to_owned(), None)),
    }
}

fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}

/// A name as a shell takes it: git allows characters in it that mean something there.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/-_.+@%=:,".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}
