#!/usr/bin/env bash
# Times each tool's snapshot and restore sequence on copies of one work tree.
# usage: peers.sh BASE OUT [PEER...]
#   BASE    a tree made by `cargo xtask bench tree`
#   OUT     scratch folder, made if missing; whoever calls removes it, after all measuring is done
#   RETAKE  (environment) the retake binary; without it there is no row of ours
#
# One line per peer, cells separated by tabs, each printed as soon as it is known:
#   peer, first snapshot, nothing changed, after a turn, restore (microseconds, process start included), store growth in KiB,
#   paths that differ after the first restore, what changed in the user's git repository
# Each time is the best of several: three first snapshots, seven with nothing changed, five turns with their restores. The sequences are those of the tools' own
# sources: same git commands, same order, same options.
#
# Nothing is deleted on the way. For minutes after a large tree is removed, ext4 steps over its inodes one by one whenever a
# file is created nearby, which made creating files up to ten times slower and would be counted against every tool that
# writes a file per object.
set -u
BASE=$(realpath "$1")
mkdir -p "$2"
OUT=$(realpath "$2")
chattr +T "$OUT" 2>/dev/null # each copy in another part of the disk, where nothing has been deleted either
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shift 2
[ $# -gt 0 ] || set -- ${RETAKE:+retake} opencode zed cline_sdk commit codex_ghost tallow cline_legacy amazonq roo gemini
export GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=1

# Inside a sequence: W is the work tree and the current directory, S the tool's own folder, $1 the turn or the snapshot's id.
# A snapshot prints its id. Snapshots and restores run in a subshell, so they may change directory.
quiet() { "$@" >/dev/null 2>&1; }

# Commits on the user's own branch.
commit_init() { START=$(git rev-parse HEAD); }
commit_snap() {
    quiet git add -A && quiet git commit --no-verify --allow-empty -m "tallow:snapshot:turn-$1"
    git rev-parse HEAD
}
commit_restore() {
    quiet git reset --hard "$1"
    quiet git clean -fd
    quiet git reset --soft "$START"
}

# tallow as shipped: an empty temporary index and a private ref.
tallow_init() { :; }
tallow_snap() {
    local index=$S/index.$RANDOM tree commit
    quiet git status --porcelain --untracked-files=all
    GIT_INDEX_FILE=$index quiet git add -A
    tree=$(GIT_INDEX_FILE=$index git write-tree)
    rm -f "$index"
    quiet git rev-parse 'HEAD^{tree}'
    commit=$(git commit-tree "$tree" -p HEAD -m "tallow rewind: turn $1")
    git update-ref "refs/tallow/rewind/s/turn-$1" "$commit"
    echo "$commit"
}
tallow_restore() {
    git ls-tree -r --name-only -z "$1" | sort -z >"$S/then"
    git ls-files -z --cached --others --exclude-standard | sort -zu >"$S/now"
    cp .git/index "$S/index.kept"
    quiet git checkout "$1" -- .
    comm -z -13 "$S/then" "$S/now" | xargs -0 -r rm -f
    cp "$S/index.kept" .git/index
}

# Cline before 2026-06: a shadow repository per workspace. It looks for nested repositories twice (to rename and rename back).
shadow_excludes() { printf '%s\n' .git/ node_modules/ .env '.env.*' dist/ build/ target/ '*.log'; }
cline_legacy_init() {
    mkdir -p "$S/shadow"
    cd "$S/shadow" || return
    quiet git init
    git config core.worktree "$W"
    git config commit.gpgSign false
    git config user.name "Cline Checkpoint"
    git config user.email checkpoint@cline.bot
    shadow_excludes >.git/info/exclude
    cd "$W" || return
}
cline_legacy_snap() {
    find "$W" -mindepth 2 -name .git -type d -not -path '*/node_modules/*' >/dev/null
    cd "$S/shadow" || return
    quiet git add . --ignore-errors
    find "$W" -mindepth 2 -name .git_disabled -type d >/dev/null
    quiet git -c core.abbrev=40 commit -m "checkpoint-h-$1" --allow-empty --no-verify
    git rev-parse HEAD
}
cline_legacy_restore() {
    cd "$S/shadow" || return
    quiet git reset --hard "$1"
}

# Cline SDK: stash objects in the user's repository under refs/cline.
cline_sdk_init() { :; }
cline_sdk_snap() {
    local index=$S/index.$RANDOM stash tree base staged untracked= commit
    quiet git rev-parse --is-inside-work-tree
    stash=$(git stash create "cline checkpoint session=s run=$1")
    git ls-files --others --exclude-standard -z >"$S/untracked"
    if [ -s "$S/untracked" ]; then
        GIT_INDEX_FILE=$index quiet git add --force --pathspec-from-file "$S/untracked" --pathspec-file-nul
        tree=$(GIT_INDEX_FILE=$index git write-tree)
        untracked=$(git commit-tree "$tree" -m "untracked files on cline checkpoint")
        rm -f "$index"
    fi
    if [ -n "$stash" ]; then
        tree=$(git rev-parse "$stash^{tree}")
        base=$(git rev-parse "$stash^1")
        staged=$(git rev-parse "$stash^2")
    else
        base=$(git rev-parse HEAD)
        tree=$(git rev-parse 'HEAD^{tree}')
        staged=$(git commit-tree "$tree" -p "$base" -m "index on cline checkpoint")
    fi
    commit=$(git commit-tree "$tree" -p "$base" -p "$staged" ${untracked:+-p $untracked} -m "cline checkpoint session=s run=$1")
    git update-ref "refs/cline/checkpoints/s/$1" "$commit"
    echo "$commit"
}
cline_sdk_restore() {
    quiet git stash push --include-untracked --message "cline restore transaction x"
    git update-ref refs/cline/restore-transactions/x refs/stash
    quiet git stash drop 'stash@{0}'
    quiet git cat-file -e "$1^{commit}"
    quiet git reset --hard "$1^1"
    quiet git clean -fd
    quiet git stash apply "$1"
    quiet git update-ref -d refs/cline/restore-transactions/x
}

# Roo Code: a shadow repository per task.
roo_init() {
    mkdir -p "$S/shadow"
    cd "$S/shadow" || return
    quiet git init --template=
    git config core.worktree "$W"
    git config commit.gpgSign false
    git config user.name "Roo Code"
    git config user.email noreply@example.com
    mkdir -p .git/info
    shadow_excludes >.git/info/exclude
    cd "$W" || return
}
roo_snap() {
    cd "$S/shadow" || return
    quiet git add . --ignore-errors
    quiet git -c core.abbrev=40 commit -m "Task: s, Time: $1" --allow-empty
    git rev-parse HEAD
}
roo_restore() {
    cd "$S/shadow" || return
    quiet git clean -f -d -f
    quiet git reset --hard "$1"
}

# gemini-cli: a shadow repository with settings of its own.
gemini_git() {
    GIT_CONFIG_GLOBAL=$S/shadow/.gitconfig GIT_CONFIG_SYSTEM=$S/shadow/.gitconfig_system_empty \
        GIT_DIR=$S/shadow/.git GIT_WORK_TREE=$W git "$@"
}
gemini_init() {
    mkdir -p "$S/shadow"
    printf '[user]\n name = Gemini CLI\n email = gemini-cli@google.com\n[commit]\n gpgsign = false\n' >"$S/shadow/.gitconfig"
    : >"$S/shadow/.gitconfig_system_empty"
    quiet git -C "$S/shadow" init --initial-branch=main
    cp "$W/.gitignore" "$S/shadow/.gitignore"
    quiet gemini_git commit -m "Initial commit" --allow-empty
}
gemini_snap() {
    quiet gemini_git add .
    quiet gemini_git status --porcelain -b -u --null
    quiet gemini_git -c core.abbrev=40 commit -m "Snapshot $1" --no-verify
    gemini_git rev-parse HEAD
}
gemini_restore() {
    quiet gemini_git restore --source "$1" .
    quiet gemini_git clean -f -d
}

# Codex ghost commits, second form (removed 2026-04-27).
codex_ghost_init() { :; }
codex_ghost_snap() {
    local index=$S/index.$RANDOM head tree
    quiet git rev-parse --is-inside-work-tree
    quiet git rev-parse --show-toplevel
    head=$(git rev-parse --verify HEAD)
    git status --porcelain=2 -z --untracked-files=all >"$S/status"
    GIT_INDEX_FILE=$index git read-tree "$head"
    {
        tr '\0' '\n' <"$S/status" | grep '^1 ' | cut -d' ' -f9-
        tr '\0' '\n' <"$S/status" | grep '^2 ' | cut -d' ' -f10-
        tr '\0' '\n' <"$S/status" | grep '^? ' | cut -c3-
    } | tr '\n' '\0' | GIT_INDEX_FILE=$index xargs -0 -r -n 64 git add --all -- >/dev/null 2>&1
    tree=$(GIT_INDEX_FILE=$index git write-tree)
    GIT_AUTHOR_NAME="Codex Snapshot" GIT_AUTHOR_EMAIL=snapshot@codex.local GIT_COMMITTER_NAME="Codex Snapshot" \
        GIT_COMMITTER_EMAIL=snapshot@codex.local git commit-tree "$tree" -p "$head" -m "codex snapshot"
    git ls-files -o --exclude-standard -z >"$S/untracked.$1"
    rm -f "$index"
}
codex_ghost_restore() {
    git ls-files -o --exclude-standard -z | sort -z >"$S/now"
    quiet git status --porcelain=2 -z --untracked-files=all
    quiet git restore --source "$1" --worktree -- .
    sort -z "$S/untracked.1" | comm -z -13 - "$S/now" | xargs -0 -r rm -rf
}

# Zed: a temporary copy of the user's index inside .git.
zed_git() { git -c core.fsmonitor=false -c log.showSignature=false --no-optional-locks --no-pager "$@"; }
zed_init() { :; }
zed_snap() {
    local index=.git/index-$RANDOM.tmp tree head
    cp .git/index "$index"
    printf '*.zip\n*.png\n*.mp4\n' >.git/checkpoint-excludes.tmp
    export GIT_AUTHOR_NAME=Zed GIT_AUTHOR_EMAIL=hi@zed.dev GIT_COMMITTER_NAME=Zed GIT_COMMITTER_EMAIL=hi@zed.dev
    head=$(zed_git rev-parse HEAD)
    GIT_INDEX_FILE=$index zed_git add --update
    zed_git ls-files --others --exclude-standard -z --exclude-from=.git/checkpoint-excludes.tmp >"$S/untracked"
    GIT_INDEX_FILE=$index zed_git update-index --add -z --stdin <"$S/untracked"
    tree=$(GIT_INDEX_FILE=$index zed_git write-tree)
    zed_git commit-tree "$tree" -p "$head" -m Checkpoint
    rm -f "$index" .git/checkpoint-excludes.tmp
}
zed_restore() { quiet zed_git restore --source "$1" --worktree .; }

# OpenCode: a git directory of its own that borrows the user's objects and starts from a copy of the user's index.
opencode_git() {
    git -c core.autocrlf=false -c core.longpaths=true -c core.symlinks=true -c core.quotepath=false \
        --git-dir "$S/shadow" --work-tree "$W" "$@"
}
opencode_init() {
    local setting
    mkdir -p "$S/shadow"
    GIT_DIR=$S/shadow GIT_WORK_TREE=$W git init -q
    for setting in core.autocrlf=false core.longpaths=true core.symlinks=true core.fsmonitor=false feature.manyFiles=true \
        index.version=4 index.threads=true core.untrackedCache=true; do
        git --git-dir "$S/shadow" config "${setting%%=*}" "${setting#*=}"
    done
    mkdir -p "$S/shadow/objects/info"
    echo "$W/.git/objects" >"$S/shadow/objects/info/alternates"
    cp "$W/.git/index" "$S/shadow/index"
}
opencode_snap() {
    cp .git/info/exclude "$S/shadow/info/exclude" 2>/dev/null
    opencode_git diff-files --name-only -z -- . >"$S/changed" &
    opencode_git ls-files --full-name --others --exclude-standard -z -- . >"$S/untracked"
    wait
    sort -zu "$S/changed" "$S/untracked" >"$S/all"
    if [ -s "$S/all" ]; then
        git --git-dir .git --work-tree . check-ignore --no-index --stdin -z <"$S/all" >"$S/ignored"
        sed -z 's/^/:(top,literal)/' "$S/all" |
            quiet opencode_git add --all --sparse --pathspec-from-file=- --pathspec-file-nul
    fi
    opencode_git write-tree
}
opencode_restore() {
    local file
    opencode_snap restore >/dev/null
    opencode_git diff --cached --no-ext-diff --name-only -z "$1" -- . >"$S/differ"
    while IFS= read -r -d '' file; do
        quiet opencode_git checkout "$1" -- "$file" || { [ -z "$(opencode_git ls-tree "$1" -- "$file")" ] && rm -f "$file"; }
    done <"$S/differ"
}

# Kiro / Amazon Q: a bare shadow repository with a tag for each turn.
amazonq_git() { git --git-dir="$S/shadow" --work-tree="$W" "$@"; }
amazonq_init() {
    local setting
    git init -q --bare "$S/shadow"
    for setting in user.name=Q user.email=qcli@local core.preloadindex=true; do
        git --git-dir="$S/shadow" config "${setting%%=*}" "${setting#*=}"
    done
}
amazonq_snap() {
    quiet amazonq_git status --porcelain
    quiet amazonq_git add -A
    quiet amazonq_git commit --allow-empty --no-verify -m "turn $1"
    quiet git --git-dir="$S/shadow" tag "$1" -f
    echo "$1"
}
amazonq_restore() { quiet amazonq_git reset --hard "$1"; }

# Retake: one process per call, a store of its own. A label names a checkpoint, so nothing is parsed inside the timed part.
retake() { RETAKE_DATA_DIR=$S/data "$RETAKE" "$@"; }
retake_init() { :; }
retake_snap() { quiet retake checkpoint -m "turn-$1" && echo "turn-$1"; }
retake_restore() { quiet retake rewind "$1" --code --exact --on-conflict overwrite --yes --json; }

# Every file with mode, link, empty directory and content of the tree; the file that a turn adds to the ignored folder apart.
manifest() {
    cd "$1" || return
    {
        find . -path ./.git -prune -o -type f -printf '%m %p\n' -o -type l -printf 'l %p %l\n' -o -type d -empty -printf 'd %p\n' | sort
        find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
    } | grep -v ignored/new.bin
}
git_state() {
    cd "$1" || return
    echo "HEAD $(git rev-parse HEAD)"
    echo "reflog $(git reflog | wc -l)"
    echo "stash $(git stash list | wc -l)"
    echo "staged $(git diff --cached --name-only | tr '\n' ',')"
    echo "refs $(git for-each-ref | wc -l)"
    echo "loose objects $(git count-objects | cut -d' ' -f1)"
}
kib() { du -sk "$@" | awk '{ sum += $1 } END { print sum }'; }
cell() { printf '\t%s' "$1"; }

# Runs its arguments, leaves what they print in RESULT and the microseconds they took in TOOK.
timed() {
    local start=${EPOCHREALTIME/[.,]/}
    RESULT=$("$@" 2>>"$OUT/stderr")
    TOOK=$((${EPOCHREALTIME/[.,]/} - start))
}
# As timed, for a tool's set-up and first snapshot; the set-up not in a subshell, as some keep a variable.
timed_first() {
    local start=${EPOCHREALTIME/[.,]/}
    "${1}_init" 2>>"$OUT/stderr"
    RESULT=$("${1}_snap" 1 2>>"$OUT/stderr")
    TOOK=$((${EPOCHREALTIME/[.,]/} - start))
}
best() { if [ -z "$1" ] || [ "$2" -lt "$1" ]; then echo "$2"; else echo "$1"; fi; }

# A copy of the tree as W and an empty folder as S, under names that no run had before.
fresh_copy() {
    W=$OUT/$1.$$.work S=$OUT/$1.$$.state
    mkdir "$S"
    cp -a "$BASE" "$W"
    cd "$W" || return
    git status >/dev/null
    KIB_BEFORE=$(kib "$W/.git" "$S")
    sync -f "$W" # or the copy's own writes would be timed with the first tool that waits for the disk
}

# Measures one peer; stops with what it has if a snapshot fails.
measure() {
    local peer=$1 first= idle= turn= restore= target touched can_restore=yes k
    printf '%s' "$peer"
    for k in 1 2 3; do
        fresh_copy "$peer.$k"
        timed_first "$peer"
        [ -n "$RESULT" ] || return 1
        first=$(best "$first" "$TOOK")
    done
    target=$RESULT
    cell "$first"
    sync -f "$W"
    for k in 2 3 4 5 6 7 8; do
        timed "${peer}_snap" "$k"
        [ -n "$RESULT" ] || return 1
        idle=$(best "$idle" "$TOOK")
    done
    cell "$idle"

    if [ "$peer" = retake ] && ! quiet retake rewind --help; then can_restore=no; fi
    (manifest "$BASE" >"$OUT/manifest.before")
    (git_state "$BASE" >"$OUT/git.before")
    for k in 9 10 11 12 13; do
        bash "$HERE/turn.sh" "$k"
        timed "${peer}_snap" "$k"
        [ -n "$RESULT" ] || return 1
        turn=$(best "$turn" "$TOOK")
        if [ $can_restore = yes ]; then
            timed "${peer}_restore" "$target"
            restore=$(best "$restore" "$TOOK")
        fi
        if [ "$k" = 9 ]; then
            (manifest "$W" >"$OUT/manifest.after")
            (git_state "$W" >"$OUT/git.after")
        fi
    done
    cell "$turn"
    cell "${restore:--}"
    cell $(($(kib "$W/.git" "$S") - KIB_BEFORE))
    if [ $can_restore = yes ]; then
        cell "$(diff "$OUT/manifest.before" "$OUT/manifest.after" | sed -nE 's/^[<>] [^ ]+ +//p' | sort -u | wc -l)"
    else
        cell -
    fi
    touched=$(diff "$OUT/git.before" "$OUT/git.after" | sed -nE 's/^> //; T; s/([0-9a-f]{7})[0-9a-f]{33}/\1/; p' | paste -sd ';')
    cell "${touched:-none}"
}

status=0
for peer; do
    measure "$peer" || {
        status=1
        tail -n 5 "$OUT/stderr" >&2
    }
    echo
done
exit $status
