//! Decisions, on tricky command lines above all.

use super::*;

fn policy(mode: Mode, allow: &[&str], deny: &[&str]) -> Policy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a rule")).collect();
    Policy { mode, allow: rules(allow), deny: rules(deny), ..Policy::default() }
}

fn bash(policy: &Policy, command: &str) -> Decision {
    decide(policy, "bash", &Access::Runs { command: command.to_owned() })
}

fn is_allowed_by(allow: &[&str], command: &str) -> bool {
    bash(&policy(Mode::Interactive, allow, &[]), command) == Decision::Allow
}

fn is_denied_by(deny: &[&str], command: &str) -> bool {
    matches!(bash(&policy(Mode::Headless(Allowed::All), &[], deny), command), Decision::Deny { .. })
}

#[test]
fn a_prefix_allows_commands_that_begin_with_its_words() {
    let allow = ["bash: git status", "bash: head", "bash: echo"];
    for command in [
        "git status",
        "  git   status --short ",
        "git status 'a b'",
        "echo 'one\ntwo; rm x' \"three\nfour\"",
        "git status \"a b\"",
        "git 'status'",
        "g\\it status",
        "git status 2>&1",
        "git status >/dev/null 2>&1",
        "git status 2>/dev/null | head -5",
        "git status && echo ok",
        "git status || echo 'no; rm -rf x'",
        "git status; head x;",
        "echo ~/x a=b",
        "echo 'it'\\''s'",
    ] {
        assert!(is_allowed_by(&allow, command), "{command}");
    }
}

#[test]
fn a_rule_covers_words_whose_quotes_make_them_literal() {
    for command in [
        "sed -i s/3/x/ m.txt",
        "sed -i 's/^4$/y/' m.txt",
        "sed -i 's/[a-z]*\\(x\\)?{2}/`$(y)`/' m.txt",
        "sed -i \"s/^4$/y/\" m.txt",
        "sed -n \"/^4$/p\" \"end$\"",
    ] {
        assert!(is_allowed_by(&["bash: sed"], command), "{command}");
    }
}

/// None of these may run because `git status`, `echo` and `head` may.
const NOT_PLAIN: &[&str] = &[
    "git",
    "git statusx",
    "git stash",
    "'git status'",
    "git status; rm -rf x",
    "git status;rm -rf x",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status | xargs rm",
    "git status & rm x",
    "git status &",
    "git status |& sh",
    "git status\nrm x",
    "git status\r\nrm x",
    "git status $(rm x)",
    "git status \"$(rm x)\"",
    "git status `rm x`",
    "git status \"`rm x`\"",
    "git status $X",
    "git status \"$X\"",
    "git status ${X}",
    "git status $'a'",
    "git status > file",
    "git status >> file",
    "git status >/dev/nullx",
    "git status >/dev/null/../sda",
    "git status 2> file",
    "git status 3>file",
    "git status &> file",
    "git status >& file",
    "git status >&3",
    "git status >| file",
    "git status < file",
    "git status <(rm x)",
    "git status <<EOF",
    "X=1 git status",
    "GIT_PAGER=rm git status",
    "git status *",
    "git status ?",
    "git status [a]",
    "git status {a,b}",
    "git status # x",
    "(git status)",
    "{ git status; }",
    "! git status",
    "if git status; then echo; fi",
    "time git status",
    "~/git status",
    "/tmp/git status",
    "./git status",
    "git status \\\nrm",
    "echo \"a\nb\"\nrm x",
    "echo \"a\\\nb\"",
    "git status 'unclosed",
    "git status \"unclosed",
    "git status \\",
    "git status &&",
    "&& git status",
    "git status ;; echo",
    "; git status",
    "",
    "   ",
    "git\u{a0}status",
    "git status\u{2028}rm",
    "git\0status",
    "echo hi | git status | tee x",
    "function git { rm x; }; git status",
    "echo a>b",
    "head -c1 x>y",
];

#[test]
fn what_could_run_something_else_is_asked_about() {
    let allow = ["bash: git status", "bash: echo", "bash: head"];
    for command in NOT_PLAIN {
        assert!(!is_allowed_by(&allow, command), "{command:?}");
    }
}

#[test]
fn a_question_says_why_a_rule_that_fits_is_not_applied() {
    for (command, why) in [
        ("sed -i s/a/$X/ m.txt", "`$`"),
        ("sed s/a/b/ \"$(cat m)\"", "`$`"),
        ("sed s/a/b/ m.txt > n.txt", "redirects"),
        ("sed -i s/a/b/ *.txt", "`*`"),
        ("sed s/a/b/ m.txt &", "background"),
        ("LC_ALL=C sed s/a/b/ m.txt", "variable"),
        ("if true; then sed s/a/b/ m.txt; fi", "shell's language"),
        ("cd x\nsed s/a/b/ m.txt", "several lines"),
        ("sed 's/a/b/ m.txt", "not complete"),
        ("sed s/a/b/ m.txt && touch n.txt", "no rule allows `touch n.txt`"),
    ] {
        let Decision::Ask { why: told, .. } = bash(&policy(Mode::Interactive, &["bash: sed"], &[]), command) else {
            panic!("{command} is asked about")
        };
        assert!(told.contains("`bash: sed`") && told.contains(why), "{command}: {told}");
        let headless = bash(&policy(Mode::Headless(Allowed::None), &["bash: sed"], &[]), command);
        assert!(matches!(&headless, Decision::Deny { why: told } if told.contains(why)), "{command}: {headless:?}");
    }
    let unrelated = bash(&policy(Mode::Interactive, &["bash: sed"], &[]), "ls > n.txt");
    assert!(matches!(unrelated, Decision::Ask { why, .. } if why == USUAL), "no rule is about it");
}

#[test]
fn a_denied_prefix_is_found_in_each_command_of_a_line() {
    for command in [
        "rm -rf x",
        "git status && rm -rf x",
        "git status; rm x",
        "git status | rm",
        "git status\nrm x",
        "echo $(rm x)",
        "echo `rm x`",
        "(rm x)",
        "if true; then rm x; fi",
        "X=1 rm x",
        "sudo rm x",
        "sudo -u me rm x",
        "env A=b rm x",
        "timeout 5 rm x",
        "find . | xargs -n1 rm",
        "/bin/rm x",
        "r\"m\" x",
        "'rm' x",
        "\\rm x",
        "sh -c 'rm x'",
        "bash -c \"rm x\"",
        "! rm x",
        "nohup rm x &",
        "find . -exec rm {} +",
        "find . -name 'x y' -execdir /bin/rm {} \\;",
        "find . \\( -name x -o -ok rm -f {} \\; \\)",
        "command rm x",
        "busybox rm x",
        "zsh -c 'rm x'",
        "ssh host rm x",
        "flock lock rm x",
        ">/dev/null rm x",
        "true 2>/dev/null; <a rm x",
        "true \\\nx; rm x",
        "echo \\\\\nrm x",
    ] {
        assert!(is_denied_by(&["bash: rm"], command), "{command:?}");
    }
    assert!(is_denied_by(&["bash: git push"], "cd a && git push --force"));
    // The shell takes a backslash at the end of a line away, and the line with it.
    for command in
        ["git \\\n push", "git\\\n push", "git pu\\\nsh", "\"git\" \\\n  pu\\\nsh -f", "sh -c 'git \\\npush'"]
    {
        assert!(is_denied_by(&["bash: git push"], command), "{command:?}");
    }
    for command in ["git pull", "git status push", "echo git", "rmdir x", "ls rm", "cargo rm"] {
        assert!(!is_denied_by(&["bash: git push", "bash: rm"], command), "{command}");
    }
}

#[test]
fn deny_wins_over_allow_and_over_approval() {
    let mut policy = policy(Mode::Headless(Allowed::All), &["bash", "bash: git push"], &["bash: git push"]);
    policy.approved = vec!["bash".parse().expect("a rule")];
    assert!(matches!(bash(&policy, "git push"), Decision::Deny { .. }));
    assert_eq!(bash(&policy, "git pull"), Decision::Allow);
    let policy = Policy { deny: vec!["read_file".parse().expect("a rule")], ..Policy::default() };
    assert!(matches!(decide(&policy, "read_file", &Access::Reads), Decision::Deny { .. }), "reads too");
}

#[test]
fn an_ask_rule_holds_until_the_user_approves() {
    let mut policy = policy(Mode::Interactive, &["bash: git"], &[]);
    policy.ask = vec!["bash: git push".parse().expect("a rule")];
    assert_eq!(bash(&policy, "git pull"), Decision::Allow);
    assert!(matches!(bash(&policy, "git push"), Decision::Ask { .. }));
    policy.approved = vec!["bash: git push".parse().expect("a rule")];
    assert_eq!(bash(&policy, "git push origin"), Decision::Allow);
}

#[test]
fn one_verdict_follows_from_rules_approvals_and_mode_in_this_order() {
    const ALL: Mode = Mode::Headless(Allowed::All);
    const EDITS: Mode = Mode::Headless(Allowed::Edits);
    const NONE: Mode = Mode::Headless(Allowed::None);
    const ATTENDED: Mode = Mode::Attended(Allowed::Edits);
    let edit = || Access::Writes { paths: Vec::new() };
    let push = || Access::Runs { command: "cd x && git push".to_owned() };
    let rules =
        |text: &str| -> Vec<Rule> { text.split_terminator(',').map(|one| one.parse().expect("a rule")).collect() };
    // Mode; deny, ask, allow, approved; tool; what is decided.
    for (mode, [deny, ask, allow, approved], tool, access, wanted) in [
        (ALL, ["bash: git push", "bash", "bash", "bash"], "bash", push(), "deny `bash: git push`"),
        (NONE, ["", "bash: git push", "", "bash"], "bash", push(), "allow"),
        (Mode::Interactive, ["", "bash: git push", "bash", ""], "bash", push(), "ask `bash: git push`"),
        (Mode::Interactive, ["", "bash: git push", "", "bash: git push,bash: cd"], "bash", push(), "allow"),
        (
            Mode::Interactive,
            ["", "bash: git push", "bash: cd", "bash: git push"],
            "bash",
            push(),
            "ask `bash: git push`",
        ),
        (Mode::Interactive, ["", "", "bash: cd", "bash: git push"], "bash", push(), "allow"),
        (Mode::Interactive, ["", "", "bash: cd", ""], "bash", push(), "ask no rule allows `git push`"),
        (Mode::Interactive, ["", "", "bash: ls", ""], "bash", push(), "ask may change"),
        (ALL, ["", "bash: git push", "bash", ""], "bash", push(), "deny `bash: git push`, and nobody can be asked"),
        (ALL, ["", "bash: git pull", "", ""], "bash", push(), "allow"),
        (ALL, ["", "edits", "", ""], "edit_file", edit(), "deny `edits`, and nobody can be asked"),
        (EDITS, ["", "bash: git push", "", ""], "bash", push(), "deny `bash: git push`, and nobody can be asked"),
        (EDITS, ["", "bash: git pull", "", ""], "bash", push(), "deny --allow edits"),
        (EDITS, ["", "edit_file", "", ""], "edit_file", edit(), "deny `edit_file`, and nobody can be asked"),
        (EDITS, ["", "edit_file", "", ""], "write_file", edit(), "allow"),
        (ATTENDED, ["", "", "", ""], "edit_file", edit(), "allow"),
        (ATTENDED, ["", "edits", "", ""], "edit_file", edit(), "ask `edits`"),
        (ATTENDED, ["", "", "", ""], "bash", push(), "ask may change"),
        (Mode::Attended(Allowed::All), ["", "bash: git push", "", ""], "bash", push(), "ask `bash: git push`"),
        (Mode::Attended(Allowed::All), ["", "", "", ""], "bash", push(), "allow"),
        (NONE, ["", "", "bash", ""], "bash", push(), "allow"),
        (NONE, ["", "bash", "bash", ""], "bash", push(), "deny `bash`, and nobody can be asked"),
        (NONE, ["", "", "", ""], "edit_file", edit(), "deny --allow none"),
        (NONE, ["", "", "", ""], "grep", Access::Reads, "allow"),
        (Mode::Interactive, ["", "grep", "", ""], "grep", Access::Reads, "ask `grep`"),
        (ALL, ["", "grep", "", ""], "grep", Access::Reads, "deny `grep`, and nobody can be asked"),
    ] {
        let policy =
            Policy { mode, deny: rules(deny), ask: rules(ask), allow: rules(allow), approved: rules(approved) };
        let (verdict, why) = match decide(&policy, tool, &access) {
            Decision::Allow => ("allow", String::new()),
            Decision::Ask { why, .. } => ("ask", why),
            Decision::Deny { why } => ("deny", why),
        };
        let (wanted, words) = wanted.split_once(' ').unwrap_or((wanted, ""));
        assert_eq!(verdict, wanted, "{policy:?} {access:?}: {why}");
        assert!(why.contains(words), "{policy:?} {access:?}: {why}");
    }
}

#[test]
fn headless_modes_allow_what_their_flag_says() {
    let edit = Access::Writes { paths: Vec::new() };
    let run = |allowed| Policy { mode: Mode::Headless(allowed), ..Policy::default() };
    let denied = |policy: &Policy, tool: &str, access: &Access| match decide(policy, tool, access) {
        Decision::Deny { why } => why,
        other => panic!("{tool} is {other:?}"),
    };
    for allowed in [Allowed::None, Allowed::Edits, Allowed::All] {
        assert_eq!(decide(&run(allowed), "grep", &Access::Reads), Decision::Allow);
    }
    assert!(denied(&run(Allowed::None), "edit_file", &edit).contains("--allow none"));
    assert_eq!(decide(&run(Allowed::Edits), "edit_file", &edit), Decision::Allow);
    assert_eq!(decide(&run(Allowed::Edits), "move_file", &Access::Unknown), Decision::Allow);
    let command = Access::Runs { command: "ls".to_owned() };
    let why = denied(&run(Allowed::Edits), "bash", &command);
    assert!(why.contains("--allow edits") && why.contains("edit_file"), "{why}");
    assert!(denied(&run(Allowed::Edits), "db__drop", &Access::Unknown).contains("--allow edits"));
    assert_eq!(decide(&run(Allowed::All), "bash", &Access::Runs { command: "$(x)".to_owned() }), Decision::Allow);
    let with_rule = policy(Mode::Headless(Allowed::Edits), &["bash: cargo test"], &[]);
    assert_eq!(bash(&with_rule, "cargo test -p x"), Decision::Allow);
    assert!(matches!(bash(&with_rule, "cargo run"), Decision::Deny { why } if why.contains("bash: cargo test")));
}

#[test]
fn the_suggested_rule_allows_the_call_and_no_more_than_needed() {
    for (command, suggested) in [
        ("git status --short", Some("bash: git status")),
        ("git -C x status", Some("bash: git -C x status")),
        ("npm run build -- --fast", Some("bash: npm run build")),
        ("ls -la", Some("bash: ls")),
        ("rm -rf build", Some("bash: rm -rf build")),
        ("python3 -c 'print(1)'", Some("bash: python3 -c 'print(1)'")),
        ("./run.sh x", Some("bash: ./run.sh x")),
        ("git status && git log", None),
        ("echo $HOME", None),
    ] {
        let Decision::Ask { suggested: rule, .. } = bash(&Policy::default(), command) else {
            panic!("{command} is asked about")
        };
        assert_eq!(rule.as_ref().map(ToString::to_string).as_deref(), suggested, "{command}");
        if let Some(rule) = rule {
            let prefix = rule.prefix_text();
            let again = Rule::new(rule.tool(), prefix.as_deref()).expect("reads back");
            let policy = Policy { approved: vec![again], ..Policy::default() };
            assert_eq!(bash(&policy, command), Decision::Allow, "{command}");
        }
    }
    let edit = Access::Writes { paths: Vec::new() };
    assert!(
        matches!(decide(&Policy::default(), "write_file", &edit), Decision::Ask { suggested: Some(rule), .. } if rule == Rule::edits())
    );
    let policy = Policy { approved: vec![Rule::edits()], ..Policy::default() };
    assert_eq!(decide(&policy, "multi_edit", &edit), Decision::Allow);
    assert!(matches!(bash(&policy, "ls"), Decision::Ask { .. }));
}

#[test]
fn tools_of_a_server_can_be_allowed_together() {
    let policy = policy(Mode::Interactive, &["db__*"], &["db__drop"]);
    assert_eq!(decide(&policy, "db__query", &Access::Unknown), Decision::Allow);
    assert!(matches!(decide(&policy, "db__drop", &Access::Unknown), Decision::Deny { .. }));
    assert!(matches!(decide(&policy, "web__get", &Access::Unknown), Decision::Ask { .. }));
}

#[test]
fn a_rule_that_could_mean_more_than_it_says_is_refused() {
    for text in ["", "bash: ", "bash: a; b", "bash: $X", "bash: a | b", "ba sh", "bash: X=1 a"] {
        assert!(text.parse::<Rule>().is_err(), "{text:?}");
    }
}

#[test]
fn a_rule_that_nothing_can_ever_fit_is_refused_and_named() {
    for text in ["bsh: rm", "write-file", "Bash", "edit", "write_file: a", "db__drop: x", "edits: a", "x*"] {
        let why = text.parse::<Rule>().expect_err(text).to_string();
        assert!(why.contains(&format!("`{text}`")), "{why}");
    }
    for text in ["bash", "bash: rm", "edits", "write_file", "db__drop", "db__*", "*", "job_*"] {
        assert!(text.parse::<Rule>().is_ok(), "{text:?}");
    }
}

#[test]
fn approvals_are_those_of_the_entries_given() {
    let entry = |tool: &str, prefix: Option<&str>| Entry {
        id: retake_engine::id::EntryId::new([1; 10]),
        parent: None,
        at: retake_engine::Timestamp(0),
        body: Body::Approved { tool: tool.to_owned(), prefix: prefix.map(str::to_owned) },
    };
    let entries = [entry("bash", Some("cargo test")), entry("edits", None)];
    let policy = Policy::default().with_approvals(&entries);
    assert_eq!(bash(&policy, "cargo test --lib"), Decision::Allow);
    assert_eq!(decide(&policy, "edit_file", &Access::Writes { paths: Vec::new() }), Decision::Allow);
    let rewound = policy.with_approvals(&entries[..1]);
    assert!(matches!(decide(&rewound, "edit_file", &Access::Writes { paths: Vec::new() }), Decision::Ask { .. }));
}
