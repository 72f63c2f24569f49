//! Jobs: what runs on after its call.

use std::process::Stdio;

use retake_agent::tool::{Exit, JobState, Jobs, Shell, Toolbox};
use serde_json::json;

use super::bench::{Bench, is_alive, until, within};

fn id_in(bench: &Bench, name: &str) -> u32 {
    let read = || std::fs::read_to_string(bench.root().join(name)).unwrap_or_default();
    read().trim().parse().unwrap()
}

#[tokio::test]
async fn a_job_is_started_read_and_ended() {
    let mut bench = Bench::new();
    let output = bench.call("bash", json!({ "command": "echo one; until [ -e go ]; do sleep 0.01; done; echo two; sleep 1000", "background": true })).await;
    assert!(output.text().contains("Started as job 1"), "{output:?}");
    let jobs = bench.toolbox.jobs().clone();
    let id = output.job.unwrap();
    until("the first output", || jobs.list()[0].output > 0).await;
    assert_eq!(bench.done("job_output", json!({ "job": 1 })).await, "one\n[Job 1 is running.]");
    assert_eq!(bench.done("job_output", json!({ "job": "1" })).await, "[No new output. Job 1 is running.]");
    bench.file("go", "");
    until("more output", || jobs.list()[0].output > 4).await;
    assert_eq!(bench.done("job_end", json!({ "job": 1 })).await, "two\n[Job 1 has ended: ended by signal 15.]");
    let ended = within(bench.ended.recv()).await.unwrap();
    assert_eq!((ended.id, ended.tag.as_str(), ended.exit), (id, "prompt", Exit::Signal(15)));
    assert!(bench.failed("job_output", json!({ "job": 7 })).await.contains("There is no job 7. The jobs are 1 ("));
}

#[tokio::test]
async fn a_jobs_end_is_told_with_its_exit_code_once_nothing_of_it_is_left() {
    let mut bench = Bench::new();
    let command = "(until [ -e go ]; do sleep 0.01; done) & exit 4";
    bench.done("bash", json!({ "command": command, "background": true })).await;
    assert!(bench.ended.try_recv().is_err(), "the shell may have ended, its child has not");
    bench.file("go", "");
    let ended = within(bench.ended.recv()).await.unwrap();
    assert_eq!(ended.exit, Exit::Code(4));
    assert_eq!(bench.toolbox.jobs().list()[0].state, JobState::Ended { exit: Exit::Code(4) });
}

#[tokio::test]
async fn jobs_of_later_prompts_can_be_ended_alone() {
    let bench = Bench::new();
    for tag in ["first", "second", "third"] {
        let prepared = bench.prepare("bash", &json!({ "command": "sleep 1000", "background": true })).ok().unwrap();
        let mut surroundings = bench.surroundings().0;
        tag.clone_into(&mut surroundings.tag);
        (prepared.run)(surroundings).await;
    }
    let jobs = bench.toolbox.jobs();
    let ended = jobs.end_if(|job| job.tag != "first").await;
    assert_eq!(ended.iter().map(|job| job.tag.as_str()).collect::<Vec<_>>(), ["second", "third"]);
    let states: Vec<bool> = jobs.list().iter().map(|job| job.state == JobState::Running).collect();
    assert_eq!(states, [true, false, false]);
    let second = jobs.list()[1].started;
    assert_eq!(jobs.end_if(|job| job.started > second).await, [], "those have ended");
    bench.toolbox.shutdown().await;
    assert!(jobs.list().iter().all(|job| job.state != JobState::Running));
}

#[tokio::test]
async fn no_job_outlives_the_registry() {
    let bench = Bench::new();
    let (jobs, ended) = Jobs::new();
    let toolbox = Toolbox::new(&bench.root(), Shell::default(), jobs);
    let call = json!({ "command": "echo $$ > id; setsid sh -c 'echo $$ > other; exec sleep 1000' & sleep 1000", "background": true });
    let prepared = toolbox.prepare("bash", &call.to_string()).ok().unwrap();
    (prepared.run)(bench.surroundings().0).await;
    let is_there = |name: &str| std::fs::read(bench.root().join(name)).is_ok_and(|text| text.ends_with(b"\n"));
    until("both run", || is_there("id") && is_there("other")).await;
    let (shell, other) = (id_in(&bench, "id"), id_in(&bench, "other"));
    assert!(is_alive(shell) && is_alive(other));
    drop((toolbox, ended));
    assert!(!is_alive(shell) && !is_alive(other));
}

/// Run again in a process of its own by the test below, which kills it.
#[tokio::test]
async fn a_process_that_is_killed() {
    let Ok(root) = std::env::var("RETAKE_TEST_KILLED") else { return };
    let (jobs, _ended) = Jobs::new();
    let toolbox = Toolbox::new(root.as_ref(), Shell::default(), jobs);
    let bench = Bench::new();
    let command = "echo $$ > id; setsid sh -c 'echo $$ > other; exec sleep 1000' & sleep 1000";
    let call = json!({ "command": format!("cd {root}; {command}"), "background": true });
    (toolbox.prepare("bash", &call.to_string()).ok().unwrap().run)(bench.surroundings().0).await;
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn when_retake_itself_is_killed_nothing_is_left() {
    let bench = Bench::new();
    let mut retake =
        retake_testkit::rerun::test(concat!(module_path!(), "::a_process_that_is_killed").split_once("::").unwrap().1)
            .env("RETAKE_TEST_KILLED", bench.root())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
    let is_there = |name: &str| std::fs::read(bench.root().join(name)).is_ok_and(|text| text.ends_with(b"\n"));
    until("both run", || is_there("id") && is_there("other")).await;
    let (shell, other) = (id_in(&bench, "id"), id_in(&bench, "other"));
    retake.kill().unwrap();
    retake.wait().unwrap();
    until("both are gone", || !is_alive(shell) && !is_alive(other)).await;
}
