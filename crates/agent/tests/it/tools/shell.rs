//! Shell commands: their output, their end, and that nothing is left of them.

use std::time::{Duration, Instant};

use retake_agent::tool::{Access, CALL_MARK, JobState, Output};
use retake_engine::session::entry::Outcome;
use serde_json::json;

use super::bench::{Bench, is_alive, processes_with, until, within};

/// A command that starts a child, a grandchild in a session of its own, one without the mark, and one without mark and group; each
/// writes its id to a file.
const FAMILY: &str = "
    sh -c 'echo $$ > child; exec sleep 1000' &
    setsid sh -c 'echo $$ > session; trap \"\" TERM HUP; while :; do sleep 0.1; done' &
    env -i /bin/sh -c 'echo $$ > bare; exec sleep 1000' &
    env -i /usr/bin/setsid /bin/sh -c 'echo $$ > lone; exec sleep 1000' &
    until [ -s child ] && [ -s session ] && [ -s bare ] && [ -s lone ]; do sleep 0.01; done
    echo $RETAKE_CALL > mark
    echo ready";

fn family(bench: &Bench) -> Vec<u32> {
    let id = |name: &&str| std::fs::read_to_string(bench.root().join(name)).unwrap_or_default().trim().parse().ok();
    ["child", "session", "bare", "lone"].iter().filter_map(id).collect()
}

/// The processes that have the call's mark.
fn marked(bench: &Bench) -> Vec<u32> {
    let mark = String::from_utf8(bench.content("mark")).unwrap();
    processes_with(&format!("{CALL_MARK}={}", mark.trim()))
}

fn assert_nothing_left(bench: &Bench) {
    assert_eq!(marked(bench), Vec::<u32>::new());
    let family = family(bench);
    assert_eq!(family.len(), 4);
    assert!(!family.iter().any(|id| is_alive(*id)), "{family:?}");
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_tells_its_exit_code() {
    let bench = Bench::new();
    bench.file("a", "");
    assert_eq!(
        bench.done("bash", json!({ "command": "ls; pwd" })).await,
        format!("a\n{}\n[Exit code 0.]", bench.root().display())
    );
    assert_eq!(
        bench.failed("bash", json!({ "command": "echo out; echo err >&2; exit 3" })).await,
        "out\nerr\n[Exit code 3.]"
    );
    assert_eq!(bench.done("bash", json!({ "command": "true" })).await, "[No output. Exit code 0.]");
    assert_eq!(bench.failed("bash", json!({ "command": "kill -9 $$" })).await, "[No output. Ended by signal 9.]");
    assert!(bench.failed("bash", json!({ "command": " " })).await.contains("empty"));
    let prepared = bench.prepare("bash", &json!({ "command": "ls\npwd" })).ok().unwrap();
    assert_eq!(
        (prepared.title.as_str(), prepared.access),
        ("bash: ls … (+1 line)", Access::Runs { command: "ls\npwd".to_owned() })
    );
}

#[tokio::test]
async fn a_command_has_no_input_no_terminal_and_no_keys() {
    if std::env::var_os("OPENAI_API_KEY").is_none() {
        // Variables are a process's own, and other tests run in this one.
        let name =
            concat!(module_path!(), "::a_command_has_no_input_no_terminal_and_no_keys").split_once("::").unwrap().1;
        let again =
            retake_testkit::rerun::test(name).envs([("OPENAI_API_KEY", "x"), ("ANTHROPIC_API_KEY", "y")]).status();
        assert!(again.unwrap().success());
        return;
    }
    let bench = Bench::new();
    let command =
        "cat; tty; echo $TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT; env | grep -c API_KEY; set -o | grep pipefail";
    let told = bench.done("bash", json!({ "command": command })).await;
    assert!(told.starts_with("not a tty\ndumb cat cat 0\n0\npipefail"), "{told}");
}

#[tokio::test]
async fn a_command_cannot_reach_the_users_terminal() {
    let bench = Bench::new();
    let command =
        "read -r _ _ _ _ group session _ < /proc/$$/stat; [ $group = $$ ] && [ $session = $$ ] && (: < /dev/tty) 2>&1";
    let told = bench.failed("bash", json!({ "command": command })).await;
    assert!(told.contains("/dev/tty: No such device or address"), "{told}");
}

#[tokio::test]
async fn output_comes_as_it_is_written_and_clean() {
    let bench = Bench::new();
    let command =
        "printf '\\033[31mone\\033[0m\\n'; until [ -e go ]; do sleep 0.01; done; printf ' 1%%\\r50%%\\r99%%\\ndone\\n'";
    let prepared = bench.prepare("bash", &json!({ "command": command })).ok().unwrap();
    let (surroundings, mut stream) = bench.surroundings();
    let running = tokio::spawn((prepared.run)(surroundings));
    assert_eq!(within(stream.recv()).await.unwrap(), "one\n", "before the command has ended");
    bench.file("go", "");
    let output = within(running).await.unwrap();
    assert_eq!(output.text(), "one\n99%\ndone\n[Exit code 0.]");
}

#[tokio::test]
async fn long_output_is_bounded_quick_and_keeps_both_ends() {
    let bench = Bench::new();
    let begun = Instant::now();
    let told = bench
        .done("bash", json!({ "command": "echo first; yes 0123456789 | head -c 10485760; echo; echo last" }))
        .await;
    assert!(
        told.starts_with("first\n0123456789\n") && told.ends_with("last\n[Exit code 0.]"),
        "{}",
        &told[told.len() - 60..]
    );
    assert!(told.contains("bytes left out …]") && told.len() < 31_000);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn order_is_kept_between_output_and_errors() {
    let bench = Bench::new();
    let command = "for i in $(seq 200); do echo o$i; echo e$i >&2; done";
    let told = bench.done("bash", json!({ "command": command })).await;
    let wanted: String = (1..=200).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(told, format!("{wanted}[Exit code 0.]"));
}

#[tokio::test]
async fn after_its_time_a_command_is_ended_with_all_it_started() {
    let bench = Bench::new();
    let command = format!("{FAMILY}; sleep 1000");
    let told = bench.failed("bash", json!({ "command": command, "timeout_seconds": 2 })).await;
    assert!(told.starts_with("ready\n[Timed out after 2 s"), "{told}");
    assert_nothing_left(&bench);
}

/// Runs `command` until it says `ready`, then interrupts it.
async fn interrupted(bench: &Bench, command: &str) -> (Output, Duration) {
    let prepared = bench.prepare("bash", &json!({ "command": command })).ok().unwrap();
    let (surroundings, mut stream) = bench.surroundings();
    let running = tokio::spawn((prepared.run)(surroundings));
    let mut seen = String::new();
    while !seen.contains("ready") {
        seen += &within(stream.recv()).await.unwrap();
    }
    let begun = Instant::now();
    bench.interrupt.send_replace(true);
    let output = within(running).await.unwrap();
    (output, begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_command_is_gone_with_all_it_started() {
    let bench = Bench::new();
    let (output, took) = interrupted(&bench, &format!("{FAMILY}; trap '' TERM INT; while :; do sleep 0.1; done")).await;
    assert_eq!(output.outcome, Outcome::Interrupted);
    assert!(output.text().starts_with("ready\n[Interrupted"), "{output:?}");
    // The promise is 100 ms; a busy machine is given more, but less than a command gets that is ended in order.
    assert!(took < Duration::from_secs(2), "{took:?}");
    // The call has ended; what it started ends a moment later if the machine is busy.
    let family = family(&bench);
    until("all are gone", || marked(&bench).is_empty() && !family.iter().any(|id| is_alive(*id))).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing() {
    let bench = Bench::new();
    let prepared = bench.prepare("bash", &json!({ "command": format!("{FAMILY}; sleep 1000") })).ok().unwrap();
    let (surroundings, mut stream) = bench.surroundings();
    let mut running = (prepared.run)(surroundings);
    tokio::select! {
        output = &mut running => panic!("{output:?}"),
        text = within(stream.recv()) => assert_eq!(text.unwrap(), "ready\n"),
    }
    drop(running);
    assert_nothing_left(&bench);
}

#[tokio::test]
async fn what_a_command_leaves_running_does_not_hold_the_call_and_becomes_a_job() {
    let mut bench = Bench::new();
    let output = bench.call("bash", json!({ "command": "sleep 1000 & echo $! > id; echo started" })).await;
    assert_eq!(output.outcome, Outcome::Done);
    let told = output.text();
    assert!(told.starts_with("started\n[Exit code 0.]\n[Still running, as job 1: `sleep 1000` ("), "{told}");
    let id = output.job.unwrap();
    let job = bench.toolbox.jobs().list().remove(0);
    assert_eq!((job.id, job.state, job.tag.as_str()), (id, JobState::Running, "prompt"));
    let left = String::from_utf8(bench.content("id")).unwrap().trim().parse().unwrap();
    assert!(is_alive(left));
    bench.toolbox.jobs().end(id).await;
    assert!(!is_alive(left));
    assert_eq!(within(bench.ended.recv()).await.unwrap().id, id);
}

#[tokio::test]
async fn a_child_that_writes_without_end_does_not_hold_the_call() {
    let bench = Bench::new();
    let output = bench.call("bash", json!({ "command": "yes & echo started" })).await;
    assert!(output.job.is_some(), "{}", output.text());
    bench.toolbox.shutdown().await;
}

#[tokio::test]
async fn a_child_that_ends_by_itself_is_no_job() {
    let bench = Bench::new();
    let output = bench.call("bash", json!({ "command": "(exit 0) & true | true; echo done" })).await;
    assert_eq!((output.job, output.text().as_str()), (None, "done\n[Exit code 0.]"));
}
