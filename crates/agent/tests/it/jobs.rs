//! R34: background jobs and rewinds.

use retake_agent::contract::{Action, Change, ChangeGoal, EventKind, Query, Reason, Refusal, Reply, WhileRunning};
use retake_engine::id::EntryId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

/// A turn that starts a job; it runs when this returns.
fn start_job(scene: &mut Scene, prompt: &str, command: &str) -> retake_engine::id::EntryId {
    scene.model.calls("bash", json!({"command": command, "background": true}));
    scene.model.says("Started.");
    scene.prompt(prompt)
}

/// The commands of the jobs that run.
fn running(scene: &mut Scene) -> Vec<String> {
    let jobs = scene.view().jobs;
    jobs.into_iter().filter(|job| job.ended.is_none()).map(|job| job.command).collect()
}

/// Waits until a job has written a file.
fn until_written(scene: &Scene, name: &str) {
    while scene.read(name).is_none_or(|text| text.is_empty()) {
        std::thread::yield_now();
    }
}

#[test]
fn jobs_since_the_target_are_ended_and_older_ones_stay() {
    for scope in [Scope::Code, Scope::Both] {
        let mut scene = Scene::new().file("a.txt", "a\n").start();
        start_job(&mut scene, "first", "echo 1 > one.txt; sleep 300");
        // A file that the first job writes after the second prompt goes back with it.
        until_written(&scene, "one.txt");
        let second = start_job(&mut scene, "second", "echo 2 > two.txt; sleep 301");
        until_written(&scene, "two.txt");
        assert_eq!(running(&mut scene).len(), 2);
        scene.rewind(second, scope);
        assert_eq!(running(&mut scene), ["echo 1 > one.txt; sleep 300"], "{scope:?}");
        assert_eq!(scene.files(), "a.txt: a\none.txt: 1\n", "{scope:?}");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn jobs_since_a_prompt_are_ended_when_its_checkpoint_is_named() {
    let mut scene = Scene::new().file("a.txt", "a\n").start();
    start_job(&mut scene, "first", "echo 1 > one.txt; sleep 300");
    until_written(&scene, "one.txt");
    start_job(&mut scene, "second", "echo 2 > two.txt; sleep 301");
    until_written(&scene, "two.txt");
    let Reply::Checkpoints { checkpoints } = scene.request(Query::Checkpoints).unwrap() else { panic!("no list") };
    let second = checkpoints.into_iter().find(|one| one.note.as_deref() == Some("> second")).unwrap().checkpoint;
    scene.change(ChangeGoal::Checkpoint { checkpoint: second.into(), files: None }).unwrap();
    assert_eq!(running(&mut scene), ["echo 1 > one.txt; sleep 300"]);
    assert_eq!(scene.files(), "a.txt: a\none.txt: 1\n");
    scene.check();
}

#[test]
fn a_rewind_of_the_conversation_alone_ends_no_job() {
    let mut scene = Scene::new().start();
    let first = start_job(&mut scene, "first", "sleep 300");
    scene.rewind(first, Scope::Conversation);
    assert_eq!(running(&mut scene), ["sleep 300"]);
    scene.check();
}

#[test]
fn a_rewind_that_is_refused_ends_no_job() {
    let mut scene = Scene::new().file("a.txt", "one\n").start();
    scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("first");
    // While no tool is at work, so that it is nobody's but the person's.
    scene.write("a.txt", "mine\n");
    start_job(&mut scene, "another", "sleep 301");
    let refusal = scene.change(rewind_goal(first, Scope::Both)).unwrap_err();
    assert_eq!(refusal.reason, Reason::Conflicts, "{refusal:?}");
    assert_eq!(running(&mut scene), ["sleep 301"], "nothing was changed, so nothing was ended");
    assert_eq!(scene.files(), "a.txt: mine\n");
    scene.check();
}

/// Asks for a plan, and then for just that plan.
fn rewind_as_seen(scene: &mut Scene, change: Change) -> Result<Reply, Refusal> {
    let Ok(Reply::Change { document }) = scene.request(Query::Plan { change: change.clone() }) else {
        panic!("there is a plan")
    };
    let running = WhileRunning::Refuse;
    scene.request(Action::Apply { change, head_seen: None, plan_seen: document.fingerprint, running })
}

/// A job that writes `job.txt`, and at its end `last` too; returns the prompt before it.
fn start_job_with_a_last_write(scene: &mut Scene, last: &str) -> EntryId {
    let command = format!("trap 'echo last >> {last}; exit' TERM; echo run > job.txt; while :; do sleep 0.05; done");
    let prompt = start_job(scene, "start it", &command);
    while scene.read("job.txt").is_none_or(|text| text.is_empty()) {
        std::thread::yield_now();
    }
    prompt
}

#[test]
fn what_a_job_writes_last_does_not_make_the_plan_stale() {
    for last in ["job.txt", "new.txt"] {
        let mut scene = Scene::new().file("a.txt", "one\n").start();
        scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
        scene.model.says("Done.");
        let first = scene.prompt("first");
        start_job_with_a_last_write(&mut scene, last);
        let rewound = rewind_as_seen(&mut scene, Change::new(rewind_goal(first, Scope::Both)));
        assert!(rewound.is_ok(), "{last}: {rewound:?}");
        assert_eq!((running(&mut scene), scene.files()), (Vec::new(), "a.txt: one\n".to_owned()), "{last}");
        scene.check();
    }
}

#[test]
fn a_save_while_jobs_are_ended_makes_the_plan_stale() {
    let mut scene = Scene::new().file("a.txt", "one\n").start();
    scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("first");
    // The job has not written this file, and the plan has something to do with it: so this stands for a person's save.
    start_job_with_a_last_write(&mut scene, "a.txt");
    let on_conflict = OnConflict::Overwrite;
    let change = Change { on_conflict, ..Change::new(rewind_goal(first, Scope::Both)) };
    let refusal = rewind_as_seen(&mut scene, change).unwrap_err();
    assert_eq!(refusal.reason, Reason::StalePlan, "{refusal:?}");
    assert_eq!(scene.read("a.txt").as_deref(), Some("two\nlast\n"));
    scene.check();
}

#[test]
fn undoing_a_rewind_ends_no_job_and_undoing_its_turn_does() {
    let mut scene = Scene::new().start();
    start_job(&mut scene, "start", "sleep 300");
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    let second = scene.prompt("second");
    scene.rewind(second, Scope::Both);
    scene.undo();
    assert_eq!((running(&mut scene).len(), scene.files().as_str()), (1, "a.txt: a\n"), "the rewind is undone");
    scene.undo();
    assert_eq!((running(&mut scene).len(), scene.files().as_str()), (1, ""), "the second turn is undone");
    scene.undo();
    assert_eq!(running(&mut scene), Vec::<String>::new(), "the turn that started it is undone");
    scene.redo();
    assert_eq!(running(&mut scene), Vec::<String>::new(), "nothing is ever run again by itself");
    scene.check();
}

#[test]
fn a_job_can_be_ended_and_what_it_did_is_its_turns() {
    let mut scene = Scene::new().start();
    let first = start_job(&mut scene, "first", "echo 1 > one.txt; sleep 300");
    until_written(&scene, "one.txt");
    let job = scene.view().jobs[0].job.clone();
    assert!(scene.request(Action::EndJob { job: "no such job".to_owned() }).is_err());
    scene.request(Action::EndJob { job }).unwrap();
    scene.until(|kind| matches!(kind, EventKind::JobsChanged { jobs } if jobs[0].ended.is_some()));
    scene.rewind(first, Scope::Both);
    assert_eq!(scene.files(), "");
    scene.check();
}

#[test]
fn jobs_that_end_with_the_session_are_told_to_people_and_once_to_the_model() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    scene.prompt("write");
    start_job(&mut scene, "start", "sleep 91\nsleep 92");
    let mut events = scene.runtime().block_on(scene.handle().attach(None)).unwrap().events;
    scene.restart();
    let mut warnings = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let EventKind::Warning { text } = &event.kind {
            warnings.push(text.clone());
        }
    }
    assert_eq!(warnings, ["`sleep 91 … (+1 line)` was ended with the session"]);
    scene.check();
    scene.undo();
    let left = (scene.draft(), scene.view().conversation().prompts().count());
    assert_eq!(left, ("start".to_owned(), 1), "the note does not keep its turn from being undone");
    scene.redo();
    scene.restart();
    scene.model.says("I see.");
    scene.prompt("and now?");
    let transcript = scene.last_request().transcript();
    let told = "These background jobs were ended when the session was closed: `sleep 91 … (+1 line)`.";
    assert_eq!(transcript.matches(told).count(), 1, "{transcript}");
    scene.undo();
    scene.undo();
    assert_eq!((scene.draft().as_str(), scene.view().conversation().prompts().count()), ("start", 1));
    scene.undo();
    assert_eq!((scene.files().as_str(), scene.view().entries.len()), ("", 0));
    scene.redo();
    scene.redo();
    assert!(scene.context().contains("These background jobs were ended"), "what is redone has its note again");
    scene.check();
    scene.model.assert_exhausted();
}
