//! `retake rewind`.

use retake_testkit::repos::git;
use serde_json::json;

use crate::history;
use crate::sandbox::{Run, Sandbox};

fn edited() -> (Sandbox, String) {
    let s = Sandbox::new();
    s.write("a", "1\n").write("gone", "1\n").write("run", "").symlink("a", "link").write("same", "same\n");
    let id = s.checkpoint();
    s.write("a", "2\n")
        .remove("gone")
        .write("new/deep", "new\n")
        .chmod("run", 0o755)
        .remove("link")
        .write("link", "file");
    (s, id)
}

#[test]
fn a_checkpoint_is_restored_exactly() {
    let (s, id) = edited();
    let same = s.everything_in_the_workspace()[&s.ws("same")];
    let run = s.retake(["rewind", &id, "--yes"]).succeeds();
    assert_eq!(
        String::from_utf8_lossy(&run.stdout),
        format!(
            "Rewound to {}: 2 restored, 1 recreated, 1 deleted, 1 with permissions restored, 1 directory deleted\n",
            &id[..8]
        )
    );
    run.says("`retake undo` takes this back\n");
    history::assert_holds(&s, &id, &history::on_disk(&s));
    assert_eq!(s.everything_in_the_workspace()[&s.ws("same")], same, "what is not affected is not touched");
    let again = s.retake(["rewind", &id]).text();
    assert!(again.starts_with("Nothing to do: "), "{again}");
}

#[test]
fn json_tells_what_was_done() {
    let (s, id) = edited();
    let document = s.retake(["rewind", &id, "--yes", "--json"]).json();
    assert_eq!(document["applied"], true);
    assert_eq!(document["operation"].as_str().map(str::len), Some(20));
    let files: Vec<(&str, &str, &str)> = document["files"]
        .as_array()
        .expect("files are a list")
        .iter()
        .map(|file| {
            let text = |key: &str| file[key].as_str().expect("it is text");
            (text("path"), text("action"), text("status"))
        })
        .collect();
    assert_eq!(
        files,
        [
            ("a", "restore", "done"),
            ("gone", "recreate", "done"),
            ("link", "restore", "done"),
            ("new", "delete", "done"),
            ("new/deep", "delete", "done"),
            ("run", "mode", "done"),
        ]
    );
    for list in ["conflicts", "gaps", "ledger", "kept", "blocked"] {
        assert_eq!(document[list], json!([]), "{list}");
    }
    assert!(document["branch"].is_null());
    let nothing = s.retake(["rewind", &id, "--json"]).json();
    assert_eq!((&nothing["applied"], &nothing["operation"]), (&json!(true), &json!(null)));
}

#[test]
fn a_dry_run_shows_the_plan_and_touches_nothing() {
    let (s, id) = edited();
    let before = s.everything_in_the_workspace();
    let plan = s.retake(["rewind", &id, "--yes", "--dry-run"]).text();
    for line in ["  R a         +1 -1", "  A gone      +1 -0", "  D new/deep  +0 -1", "  M run       mode 0755 to 0644"]
    {
        let is_it = |shown: &str| shown.strip_prefix(line).is_some_and(|rest| rest.starts_with("  yours"));
        assert!(plan.lines().any(is_it), "`{line}` is not in:\n{plan}");
    }
    let document = s.retake(["rewind", &id, "--yes", "--dry-run", "--json"]).json();
    assert_eq!((&document["applied"], &document["files"][0]["status"]), (&json!(false), &json!("planned")));
    assert_eq!(s.everything_in_the_workspace(), before);
    assert_eq!(s.retake(["log", "--all"]).text().lines().count(), 1, "no point was made");
    assert_eq!(s.retake(["ops", "--json"]).json()["operations"], json!([]));
}

#[test]
fn single_paths_can_be_brought_back() {
    let (s, id) = edited();
    s.retake(["rewind", &id, "--yes", "--path", "a", "--path", "new"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
    assert!(!s.ws("new").exists() && !s.ws("gone").exists());
    s.write("sub/b", "");
    s.retake_in(s.ws("sub"), ["rewind", &id, "--path", "../gone"]).succeeds();
    assert_eq!(s.read("gone"), "1\n");
    s.retake(["rewind", &id, "--path", "/etc"]).fails(2);
    for more in [["--path", "nosuch"], ["--path", "a/nosuch"]] {
        let run = s.retake(["rewind", &id, "--path", "a", more[0], more[1]]).fails(1);
        run.says(&format!("`{}` is not there now, and was not at checkpoint {}", more[1], &id[..8]));
    }
}

#[test]
fn at_a_sessions_point_only_its_own_changes_go_back() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    s.retake(["exec", "-m", "start", "--", "sh", "-c", "echo 2 > a; echo new > c"]).succeeds();
    s.write("b", "mine\n");
    let document = s.retake(["rewind", "start", "--json"]).json();
    assert_eq!(document["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["files"][0]["certainty"], "presumed");
    assert_eq!(document["undoes"], json!(["sh -c 'echo 2 > a; echo new > c'"]));
    assert_eq!(document["ledger"], json!([]), "a command is named once");
    assert_eq!((s.read("a"), s.read("b")), ("1\n".to_owned(), "mine\n".to_owned()));
    assert!(!s.ws("c").exists());
    s.retake(["rewind", "start", "--exact", "--yes"]).succeeds();
    assert_eq!(s.read("b"), "1\n");
}

/// A file that a command and the user both changed, at its two ends, and one that only the user's last word is on.
fn conflict() -> Sandbox {
    let s = Sandbox::new();
    let text: String = (0..20).map(|n| format!("line {n}\n")).collect();
    s.write("both", &text).write("plain", "1\n").write("tail", "1\n");
    s.retake([
        "exec",
        "-m",
        "start",
        "--",
        "sh",
        "-c",
        "sed -i 's/line 1$/agent/' both; echo 2 > plain; echo 2 > tail",
    ])
    .succeeds();
    s.write("both", s.read("both").replace("line 18\n", "mine\n")).write("tail", "3\n");
    s
}

#[test]
fn a_conflict_stops_everything_and_is_listed() {
    let s = conflict();
    let before = s.everything_in_the_workspace();
    let run = s.retake(["rewind", "start"]).fails(3);
    run.says(
        "hint: 2 paths need a decision: `--on-conflict keep` or `overwrite` makes it for all; \
         on a terminal, without `--yes`, each is asked about\n",
    );
    run.says("  both: changed since by you or another program (keep, overwrite, merge, stop)");
    run.says("  tail: changed since by you or another program (keep, overwrite, stop)");
    assert_eq!(s.retake(["rewind", "start", "--yes"]).code(), Some(3));
    let document = s.retake(["rewind", "start", "--json"]).refused_with_json();
    assert_eq!(document["conflicts"][0]["path"], "both");
    assert_eq!(document["conflicts"][0]["why"], "changed_since");
    assert_eq!(document["conflicts"][0]["choices"], json!(["keep", "overwrite", "merge", "stop"]));
    assert_eq!(document["conflicts"][1]["choices"], json!(["keep", "overwrite", "stop"]));
    let statuses: Vec<&str> =
        document["files"].as_array().expect("a list").iter().filter_map(|file| file["status"].as_str()).collect();
    assert_eq!(statuses, ["conflict", "planned", "conflict"]);
    let dry = s.retake(["rewind", "start", "--dry-run"]);
    assert_eq!(dry.code(), Some(3));
    assert!(String::from_utf8_lossy(&dry.stdout).contains("! both"));
    s.retake(["rewind", "start", "--dry-run", "--json"]).refused_with_json();
    s.retake(["rewind", "start", "--on-conflict", "merge"]).fails(3).says("1 path needs a decision");
    assert_eq!(s.everything_in_the_workspace(), before);
}

#[test]
fn only_choices_that_can_work_are_offered() {
    let s = Sandbox::new();
    s.write("p", "1\n").write("q", "1\n");
    s.exec("echo 2 > p; echo 2 > q").succeeds();
    s.write("p", "mine\n");
    s.retake(["undo"]).fails(3).says("1 path needs a decision: `--on-conflict keep` or `overwrite` makes it for all\n");

    let s = Sandbox::new();
    s.write("d/a", "1\n");
    s.exec("echo 2 > d/a").succeeds();
    // Nothing is ever written through a link.
    std::fs::rename(s.ws("d"), s.ws("e")).expect("it is there");
    s.symlink("e", "d");
    let run = s.retake(["undo", "--on-conflict", "overwrite"]).fails(3);
    run.says("1 path cannot go back: `--on-conflict keep` leaves it as it is and does the rest\n  d/a: ");
    s.retake(["undo", "--on-conflict", "keep"]).succeeds();
    assert_eq!(s.read("e/a"), "2\n");
}

#[test]
fn conflicts_can_be_kept_overwritten_or_merged() {
    let s = conflict();
    let run = s.retake(["rewind", "start", "--on-conflict", "keep"]).succeeds();
    run.says(
        "warning: 2 paths changed since then and did not go back\n  both: changed since by you or another program\n  tail: changed since by you or another program\n",
    );
    assert_eq!((s.read("plain"), s.read("tail")), ("1\n".to_owned(), "3\n".to_owned()));
    assert!(s.read("both").contains("agent\n") && s.read("both").contains("mine\n"));

    let s = conflict();
    s.retake(["rewind", "start", "--on-conflict", "overwrite"]).succeeds();
    assert_eq!((s.read("plain"), s.read("tail")), ("1\n".to_owned(), "1\n".to_owned()));
    assert!(!s.read("both").contains("agent\n") && !s.read("both").contains("mine\n"));
    s.retake(["undo"]).succeeds();
    assert!(s.read("both").contains("agent\n") && s.read("both").contains("mine\n"), "nothing was lost");

    let s = conflict();
    s.write("tail", "2\n");
    s.retake(["rewind", "start", "--on-conflict", "merge"]).succeeds();
    assert!(!s.read("both").contains("agent\n") && s.read("both").contains("mine\n"));
}

#[test]
fn ignored_files_survive_although_the_rules_have_changed() {
    let s = Sandbox::new();
    s.write(".gitignore", "*.log\n").write("a.log", "precious\n").write("a", "1\n");
    let id = s.checkpoint();
    s.remove(".gitignore").write("dir/b", "new\n").write("a", "2\n");
    let run = s.retake(["rewind", &id, "--yes"]).succeeds();
    assert_eq!(s.read("a.log"), "precious\n");
    assert_eq!(s.read(".gitignore"), "*.log\n");
    assert!(!s.ws("dir").exists());
    run.says("a.log: may have been there then: it was not captured");
}

#[test]
fn a_directory_with_uncaptured_content_stays_or_refuses() {
    let s = Sandbox::new();
    s.write(".gitignore", "*.log\n").write("was-file", "1\n");
    let id = s.checkpoint();
    s.write("dir/a", "").write("dir/x.log", "precious\n");
    s.retake(["rewind", &id, "--yes"]).succeeds().says("dir: holds files that are not captured or not ours");
    assert_eq!(s.read("dir/x.log"), "precious\n");
    assert!(!s.ws("dir/a").exists());
    s.remove("was-file").write("was-file/x.log", "precious\n");
    s.retake(["rewind", &id, "--yes"]).fails(3).says("holds files that stay, so nothing can take its place");
    let document = s.retake(["rewind", &id, "--yes", "--json"]).refused_with_json();
    assert_eq!(document["blocked"], json!(["was-file"]));
    assert_eq!(s.read("was-file/x.log"), "precious\n");
}

#[test]
fn another_branch_has_to_be_confirmed() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    git(&s.path("ws"), &["add", "."]);
    git(&s.path("ws"), &["commit", "--quiet", "-m", "one"]);
    let id = s.checkpoint();
    git(&s.path("ws"), &["switch", "--quiet", "-c", "other"]);
    s.write("a", "2\n");
    let run = s.retake(["rewind", &id]).fails(3);
    run.says(
        "`other` is checked out, and it was `main` then; `git switch main` goes there, `--across-branches` goes ahead",
    );
    let document = s.retake(["rewind", &id, "--json"]).refused_with_json();
    assert_eq!(document["branch"], json!({"then": "main", "now": "other"}));
    assert_eq!(document["ledger"][0]["remedy"], "git symbolic-ref HEAD refs/heads/main");
    assert_eq!(s.read("a"), "2\n");
    s.retake(["rewind", &id, "--across-branches", "--yes"]).succeeds().says("`git symbolic-ref HEAD refs/heads/main`");
    assert_eq!(s.read("a"), "1\n");
    git(&s.path("ws"), &["switch", "--quiet", "--detach", "main"]);
    let (id, commit) = (s.checkpoint(), git(&s.path("ws"), &["rev-parse", "HEAD"]));
    git(&s.path("ws"), &["switch", "--quiet", "other"]);
    s.write("a", "2\n");
    s.retake(["rewind", &id]).fails(3).says(&format!("`git switch --detach {}` goes there", commit.trim()));
}

#[test]
fn points_are_named_as_everywhere() {
    let (s, _) = edited();
    s.retake(["rewind", "nosuch"]).fails(1).says("`retake log` lists the points");
    s.retake(["rewind"]).fails(2);
    s.retake(["rewind", "x", "--on-conflict", "guess"]).fails(2);
    s.retake(["rewind", "x", "--yes", "--dry-run"]).fails(1).says("there is no checkpoint `x`");
}

#[test]
fn names_of_any_bytes_are_restored_and_told() {
    let s = Sandbox::new();
    let name = std::ffi::OsStr::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"caf\xe9\n"));
    s.write(name, "1\n");
    let id = s.checkpoint();
    s.remove(name);
    let document = s.retake(["rewind", &id, "--json"]).json();
    assert_eq!(document["files"][0]["path"], json!({"bytes": "Y2Fm6Qo="}));
    assert_eq!(s.read(name), "1\n");
}

#[test]
fn an_empty_path_does_not_stand_for_everything() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let point = s.checkpoint();
    s.write("a", "2\n");
    let run = s.retake(["rewind", &point, "--yes", "--path", ""]);
    run.says("an empty path is outside the workspace");
    assert_eq!(run.code(), Some(2));
    assert_eq!(s.read("a"), "2\n");
}

fn printed(run: &Run) -> String {
    String::from_utf8_lossy(&run.stdout).into_owned()
}

#[test]
fn a_command_that_ignores_everything_hides_nothing() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("dir/b", "1\n");
    s.checkpoint();
    let run = s.retake(["exec", "--", "sh", "-c", "echo '*' > .gitignore"]).succeeds();
    run.says("1 added");
    run.says(
        "a command changed an ignore rule that hides 2 files: still captured; `retake checkpoint --apply-ignores`",
    );
    s.write("a", "2\n");
    let run = s.retake(["checkpoint"]).succeeds();
    run.says("2 files hidden by a command's ignore rule and still captured");
    assert!(printed(&run).contains("1 modified"), "{}", printed(&run));
    let doctor = printed(&s.retake(["doctor"]).succeeds());
    assert!(doctor.contains("2 files are captured although an ignore rule that a command changed"), "{doctor}");
    let undone = printed(&s.retake(["undo"]).succeeds());
    assert!(undone.contains("1 deleted"), "{undone}");
    assert!(!s.ws(".gitignore").exists());
    assert_eq!(s.read("a"), "2\n");
}

#[test]
fn a_confirmed_rule_is_applied_and_counted() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.checkpoint();
    s.retake(["exec", "--", "sh", "-c", "echo a > .gitignore"]).succeeds();
    let document = s.retake(["checkpoint", "--json"]).json();
    assert_eq!(document["ignores"], json!({ "held": 1, "newly_held": 0, "no_longer_captured": 0 }));
    let doctor = printed(&s.retake(["doctor"]).succeeds());
    assert!(
        doctor.contains("1 file is captured although an ignore rule that a command changed hides it\n"),
        "{doctor}"
    );
    let run = s.retake(["checkpoint", "--apply-ignores"]).succeeds();
    run.says("1 file no longer captured, because of an ignore rule; nothing was deleted");
    assert!(printed(&run).contains("nothing changed"), "{}", printed(&run));
}

#[test]
fn files_that_a_command_hid_go_back_and_the_rest_is_named() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    let script = "printf 'evil.sh\\nmine\\n' > .gitignore; echo x > evil.sh";
    s.retake(["exec", "--", "sh", "-c", script]).succeeds();
    s.write("mine", "the user's\n");
    let document = s.retake(["rewind", &id, "--yes", "--json"]).json();
    assert_eq!(document["kept"][0]["path"], "mine");
    assert_eq!(document["kept"][0]["why"], "hidden");
    assert!(!s.ws("evil.sh").exists() && !s.ws(".gitignore").exists());
    s.retake(["rewind", &id, "--yes"]).succeeds().says("mine: is new since then and was hidden by an ignore rule");
    assert_eq!(s.read("mine"), "the user's\n");
}

#[test]
fn a_file_that_the_command_grew_beyond_the_limit_names_the_command() {
    let s = Sandbox::new();
    s.write("big", "1\n");
    s.checkpoint();
    s.retake(["exec", "--", "truncate", "-s", "70M", "big"]).succeeds();
    let run = s.retake(["undo"]).fails(3);
    run.says("big: changed by `truncate -s 70M big`, and not captured since: what is there now may be more than that");
    s.retake(["undo", "--on-conflict", "overwrite"]).succeeds();
    assert_eq!(s.read("big"), "1\n");
}
