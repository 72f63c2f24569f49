//! Whose change is it? Two sessions, background jobs and a person in one workspace: a rewind takes back what its own session did, by
//! whatever means, exactly, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use retake_agent::contract::{
    Action, Change, ChangeGoal, Command, EventKind, Query, Reason, Refusal, Reply, TurnEnd, WhileRunning,
};
use retake_agent::controller::{Attached, Opened};
use retake_agent::rewind_document::{Bytes, RewindDocument};
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;
use retake_engine::session::entry::Part;
use retake_testkit::fingerprint;
use retake_testkit::model::ScriptedModel;
use retake_testkit::naive::{self, Shape};
use retake_testkit::repos::git;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

/// What is at each path, version control left out: shape, permission bits, content.
type Tree = BTreeMap<String, (Shape, u16, Vec<u8>)>;

fn tree(root: &Path) -> Tree {
    let all = naive::everything(root).unwrap();
    let paths = all.into_iter().map(|(path, thing)| (String::from_utf8(path).unwrap(), thing));
    let mine = paths.filter(|(path, _)| path.split('/').all(|name| name != ".git"));
    mine.map(|(path, thing)| (path, (thing.shape, thing.mode, thing.content))).collect()
}

/// The model runs one command.
fn runs(scene: &mut Scene, command: &str) -> EntryId {
    scene.model.calls("bash", json!({"command": command}));
    scene.model.says("Done.");
    scene.prompt(&format!("run {command}"))
}

/// The model writes one file.
fn writes(scene: &mut Scene, path: &str, content: &str) -> EntryId {
    scene.model.calls("write_file", json!({"path": path, "content": content}));
    scene.model.says("Done.");
    scene.prompt(&format!("write {path}"))
}

fn rewinds(
    scene: &mut Scene,
    entry: EntryId,
    scope: Scope,
    on_conflict: OnConflict,
) -> Result<RewindDocument, Refusal> {
    let change = Change { on_conflict, ..Change::new(rewind_goal(entry, scope)) };
    scene.apply(change, WhileRunning::Refuse)
}

fn kinds(document: &RewindDocument, kind: &str) -> Vec<String> {
    document.ledger.iter().filter(|item| item.kind == kind).map(|item| item.what.clone()).collect()
}

/// Another session in the same workspace.
struct Other {
    model: ScriptedModel,
    opened: Opened,
    session: SessionId,
    runtime: std::sync::Arc<tokio::runtime::Runtime>,
}

impl Other {
    fn beside(scene: &Scene) -> Self {
        let (model, opened, session) = scene.beside();
        Self { model, opened, session, runtime: scene.runtime() }
    }

    fn request(&self, command: impl Into<Command>) -> Result<Reply, Refusal> {
        self.runtime.block_on(self.opened.handle.request(command))
    }

    /// Says something that the model answers with one call, and waits for the end of the turn.
    fn calls(&self, tool: &str, arguments: serde_json::Value) -> EntryId {
        self.model.calls(tool, arguments);
        self.model.says("Done.");
        self.runtime.block_on(async {
            let Attached { mut events, .. } = self.opened.handle.attach(None).await.unwrap();
            let said = self.opened.handle.request(Action::prompt(vec![Part::text("do it")])).await.unwrap();
            let Reply::Said { prompt: wanted } = said else { panic!("not said: {said:?}") };
            loop {
                if let EventKind::TurnEnded { prompt, reason, .. } = &events.recv().await.unwrap().kind
                    && *prompt == wanted
                {
                    assert_eq!(*reason, TurnEnd::Done);
                    return wanted;
                }
            }
        })
    }

    fn close(self) {
        self.request(Action::Close).unwrap();
        self.opened.served.join().unwrap();
    }
}

/// A file outside the workspace, which commands and the test wait for.
struct Signal(PathBuf);

impl Signal {
    fn new(scene: &Scene, name: &str) -> Self {
        Self(scene.dir.path().join(name))
    }

    /// A shell command that waits for it, but not for ever.
    fn awaited(&self) -> String {
        format!("for i in $(seq 1000); do [ -e {0} ] && break; sleep 0.02; done; [ -e {0} ]", self.0.display())
    }

    fn given(&self) -> String {
        format!("touch {}", self.0.display())
    }

    fn give(&self) {
        fs::write(&self.0, "").unwrap();
    }

    fn wait(&self) {
        let began = std::time::Instant::now();
        while !self.0.exists() {
            assert!(began.elapsed().as_secs() < 20, "{} never came", self.0.display());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

fn furnished() -> Scene {
    let scene = Scene::new().file("a.txt", "one\ntwo\nthree\n").file("sub/b.txt", "b\n").file("sub/deep/c.txt", "c\n");
    let root = scene.root();
    fs::create_dir(root.join("empty")).unwrap();
    symlink("a.txt", root.join("link")).unwrap();
    fs::write(root.join("script.sh"), "#!/bin/sh\necho hello > made.txt\n").unwrap();
    fs::set_permissions(root.join("script.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("bytes"), [0, 159, 146, 150, b'\r', b'\n']).unwrap();
    scene
}

#[test]
fn whatever_a_command_did_goes_back_exactly_and_comes_again_by_undo() {
    let commands = [
        "sed -i s/two/TWO/ a.txt",
        "mv a.txt sub/moved.txt",
        "mv sub other",
        "rm a.txt bytes",
        "echo x > a.txt; echo new > sub/new.txt; : > empty/file",
        "mkdir -p out/deep && cp a.txt out/deep/ && ln -s deep out/link && touch out/file && mkdir out/nothing && ./script.sh",
        "chmod 600 a.txt; chmod 644 script.sh; chmod 700 sub; chmod 4755 sub/b.txt",
        "ln -sfn sub/b.txt link; ln -s nowhere dangling",
        "rm link && cp a.txt link",
        "rm -r sub empty",
        "rm -r sub && echo file > sub",
        "rm a.txt && mkdir -p a.txt/inner && echo x > a.txt/inner/file",
        "mkdir many && for i in $(seq 3000); do echo $i > many/$i; done; sed -i s/one/1/ a.txt",
        "printf 'caf\\xc3\\xa9\\r\\n\\0' > bytes; printf x >> a.txt; touch \"$(printf 'a name\\nwith all \\x27 of it')\"",
        "exit_code() { return 3; }; echo half > a.txt; exit_code",
    ];
    let mut scene = furnished().start();
    let before = tree(&scene.root());
    for (at, command) in commands.into_iter().enumerate() {
        let scope = if at % 2 == 0 { Scope::Both } else { Scope::Code };
        let prompt = runs(&mut scene, command);
        let after = tree(&scene.root());
        assert_ne!(after, before, "`{command}` does something");
        let document = scene.rewind(prompt, scope);
        assert_eq!(tree(&scene.root()), before, "`{command}`: {document:#?}");
        assert_eq!(document.undoes, [format!("bash: {command}").lines().next().unwrap()], "{command}");
        assert!(kinds(&document, "command").is_empty(), "what is taken back does not stay: {document:#?}");
        assert!(document.files.iter().all(|file| file.certainty.as_deref() == Some("presumed")), "{document:#?}");
        scene.check();
        scene.undo();
        assert_eq!(tree(&scene.root()), after, "`{command}`, undone");
        scene.redo();
        assert_eq!(tree(&scene.root()), before, "`{command}`, redone");
        scene.check();
    }
    scene.model.assert_exhausted();
}

/// A repository with two branches and something staged.
fn repository() -> Scene {
    let scene = furnished();
    let root = scene.root();
    git(&root, &["init", "--quiet", "--initial-branch", "main"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "--quiet", "--message", "one"]);
    git(&root, &["checkout", "--quiet", "-b", "side"]);
    scene.write("a.txt", "of the side\n");
    scene.write("side.txt", "side\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "--quiet", "--message", "side"]);
    git(&root, &["checkout", "--quiet", "main"]);
    scene.write("staged.txt", "staged\n");
    git(&root, &["add", "staged.txt"]);
    scene
}

#[test]
fn what_git_threw_away_comes_back_and_git_is_left_alone() {
    let scene = repository();
    scene.write("a.txt", "not committed\n");
    let mut scene = scene.start();
    let before = tree(&scene.root());
    let prompt = runs(&mut scene, "git checkout -- a.txt && git clean -fdq && git rm -q --cached sub/b.txt");
    assert_eq!(scene.read("a.txt").as_deref(), Some("one\ntwo\nthree\n"));
    let repository = fingerprint(&scene.root());
    let document = scene.rewind(prompt, Scope::Both);
    assert_eq!(tree(&scene.root()), before, "{document:#?}");
    let moves = kinds(&document, "git");
    assert!(moves.iter().any(|what| what.contains("index")), "{moves:?}");
    scene.undo();
    scene.redo();
    repository.assert_same(&fingerprint(&scene.root()));
    assert_eq!(tree(&scene.root()), before);
}

#[test]
fn going_back_across_branches_has_to_be_confirmed_and_moves_files_alone() {
    let mut scene = repository().start();
    let before = tree(&scene.root());
    let prompt = runs(&mut scene, "git checkout --quiet side");
    assert_eq!(scene.read("a.txt").as_deref(), Some("of the side\n"));
    let after = tree(&scene.root());
    let repository = fingerprint(&scene.root());
    let refusal = scene.change(rewind_goal(prompt, Scope::Both)).expect_err("another branch is checked out");
    assert_eq!(refusal.reason, Reason::Conflicts, "{refusal:#?}");
    assert!(refusal.document.is_some_and(|document| document.branch.is_some()));
    assert_eq!(tree(&scene.root()), after);
    scene.check();
    let change = Change { across_branches: true, ..Change::new(rewind_goal(prompt, Scope::Both)) };
    let document = scene.apply(change, WhileRunning::Refuse).unwrap();
    assert_eq!(tree(&scene.root()), before);
    let git_items: Vec<_> = document.ledger.iter().filter(|item| item.kind == "git").collect();
    let remedies: Vec<_> = git_items.iter().filter_map(|item| item.remedy.as_deref()).collect();
    assert!(remedies.contains(&"git symbolic-ref HEAD refs/heads/main"), "{git_items:#?}");
    repository.assert_same(&fingerprint(&scene.root()));
}

#[test]
fn a_person_keeps_what_they_did_elsewhere() {
    let mut scene = furnished().start();
    let prompt = runs(&mut scene, "echo agent > a.txt; echo new > new.txt; mkdir d; echo x > d/x");
    scene.write("sub/b.txt", "a person's\n");
    scene.write("mine.txt", "mine\n");
    scene.write("d/mine.txt", "in the agent's directory\n");
    let document = rewinds(&mut scene, prompt, Scope::Both, OnConflict::Keep).unwrap();
    assert_eq!(scene.read("a.txt").as_deref(), Some("one\ntwo\nthree\n"), "{document:#?}");
    assert_eq!((scene.read("new.txt"), scene.read("d/x")), (None, None));
    assert_eq!(scene.read("sub/b.txt").as_deref(), Some("a person's\n"));
    assert_eq!(scene.read("mine.txt").as_deref(), Some("mine\n"));
    assert_eq!(scene.read("d/mine.txt").as_deref(), Some("in the agent's directory\n"));
    scene.check();
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

#[test]
fn a_conflict_changes_nothing_unless_somebody_decides() {
    for (choice, wanted) in [
        (OnConflict::Stop, None),
        (OnConflict::Keep, Some("1\nagent\n3\n4\n5\n6\n7\nperson\n9\n")),
        (OnConflict::Overwrite, Some(LINES)),
        (OnConflict::Merge, Some("1\n2\n3\n4\n5\n6\n7\nperson\n9\n")),
    ] {
        let mut scene = Scene::new().file("a.txt", LINES).file("b.txt", "b\n").start();
        let prompt = runs(&mut scene, "sed -i 2s/.*/agent/ a.txt; echo agent > b.txt");
        let text = scene.read("a.txt").unwrap().replace('8', "person");
        scene.write("a.txt", &text);
        let (before, entries) = (tree(&scene.root()), scene.view().entries);
        let result = rewinds(&mut scene, prompt, Scope::Both, choice);
        match wanted {
            None => {
                let refusal = result.expect_err("somebody has to decide");
                assert_eq!(refusal.reason, Reason::Conflicts);
                let document = refusal.document.unwrap();
                assert_eq!(document.conflicts.len(), 1, "{document:#?}");
                assert_eq!(document.conflicts[0].path, Bytes::Text("a.txt".to_owned()));
                let offered = [OnConflict::Keep, OnConflict::Overwrite, OnConflict::Merge, OnConflict::Stop];
                assert_eq!(document.conflicts[0].choices, offered);
                assert_eq!((tree(&scene.root()), scene.view().entries), (before, entries));
            }
            Some(wanted) => {
                result.unwrap();
                assert_eq!(scene.read("a.txt").as_deref(), Some(wanted), "{choice:?}");
                assert_eq!(scene.read("b.txt").as_deref(), Some("b\n"));
                scene.undo();
                assert_eq!((tree(&scene.root()), scene.view().entries), (before, entries), "{choice:?}");
            }
        }
        scene.check();
    }
}

#[test]
fn what_does_not_merge_is_refused_whole() {
    let mut scene = Scene::new().file("a.txt", LINES).file("b.txt", LINES).start();
    let prompt = runs(&mut scene, "sed -i 2s/.*/agent/ a.txt b.txt");
    for path in ["a.txt", "b.txt"] {
        let line = if path == "a.txt" { "agent" } else { "8" };
        scene.write(path, &scene.read(path).unwrap().replace(line, "person"));
    }
    let before = tree(&scene.root());
    let refusal = rewinds(&mut scene, prompt, Scope::Both, OnConflict::Merge).expect_err("one does not merge");
    assert_eq!(refusal.reason, Reason::Conflicts);
    assert_eq!(tree(&scene.root()), before);
    let choices =
        vec![(Bytes::Text("a.txt".to_owned()), OnConflict::Keep), (Bytes::Text("b.txt".to_owned()), OnConflict::Merge)];
    let change = Change { choices, ..Change::new(rewind_goal(prompt, Scope::Both)) };
    scene.apply(change, WhileRunning::Refuse).unwrap();
    assert_eq!(scene.read("a.txt").as_deref(), Some("1\nperson\n3\n4\n5\n6\n7\n8\n9\n"));
    assert_eq!(scene.read("b.txt").as_deref(), Some("1\n2\n3\n4\n5\n6\n7\nperson\n9\n"));
    scene.check();
}

#[test]
fn another_session_keeps_what_it_did() {
    let mut scene = Scene::new().file("shared.txt", LINES).file("a.txt", "a\n").file("b.txt", "b\n").start();
    let other = Other::beside(&scene);
    assert_ne!(other.session, scene.session());
    let first = runs(&mut scene, "echo ours > a.txt; sed -i 2s/.*/ours/ shared.txt; echo x > ours.txt");
    other
        .calls("bash", json!({"command": "rm b.txt; sed -i 8s/.*/theirs/ shared.txt; mkdir t; echo y > t/theirs.txt"}));
    let second = writes(&mut scene, "ours2.txt", "more\n");
    let document = scene.rewind(second, Scope::Code);
    assert_eq!(document.files.len(), 1, "{document:#?}");
    let refusal = scene.change(rewind_goal(first, Scope::Both)).expect_err("both changed a file");
    assert_eq!(refusal.document.unwrap().conflicts.len(), 1);
    rewinds(&mut scene, first, Scope::Both, OnConflict::Merge).unwrap();
    assert_eq!(scene.files(), format!("a.txt: a\nshared.txt: {}t/theirs.txt: y\n", LINES.replace('8', "theirs")));
    scene.check();
    // And the other way round: theirs go, ours stay.
    scene.undo();
    let theirs = other.runtime.block_on(other.opened.handle.request(Query::Targets { query: None })).unwrap();
    let Reply::Targets { targets, .. } = theirs else { panic!("no targets") };
    let change = Change { on_conflict: OnConflict::Merge, ..Change::new(rewind_goal(targets[0].id, Scope::Both)) };
    other.request(Action::Apply { change, head_seen: None, plan_seen: None, running: WhileRunning::Refuse }).unwrap();
    assert_eq!(
        scene.files(),
        format!("a.txt: ours\nb.txt: b\nours.txt: x\nshared.txt: {}", LINES.replace('2', "ours"))
    );
    scene.check();
    other.close();
}

#[test]
fn while_another_session_is_at_work_files_do_not_go_back() {
    let mut scene = Scene::new().file("a.txt", "a\n").start();
    let other = Other::beside(&scene);
    let (started, go) = (Signal::new(&scene, "started"), Signal::new(&scene, "go"));
    let command = format!("echo contested > c.txt; {}; {}; echo theirs > t.txt", started.given(), go.awaited());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| other.calls("bash", json!({"command": command})));
        started.wait();
        let prompt = runs(&mut scene, "echo ours > a.txt");
        let refusal = scene.change(rewind_goal(prompt, Scope::Both)).expect_err("a command of another session runs");
        assert_eq!(refusal.reason, Reason::InUse, "{refusal:?}");
        assert_eq!(scene.read("a.txt").as_deref(), Some("ours\n"));
        scene.check();
        go.give();
        running.join().unwrap();
        // Two commands ran side by side: who changed what is not known, so somebody has to decide.
        let refusal = scene.change(rewind_goal(prompt, Scope::Both)).expect_err("more than one may have changed it");
        let document = refusal.document.unwrap();
        let contested: Vec<_> = document.conflicts.iter().map(|conflict| conflict.path.clone()).collect();
        assert!(contested.contains(&Bytes::Text("a.txt".to_owned())), "{contested:?}");
        assert!(!contested.contains(&Bytes::Text("t.txt".to_owned())), "theirs alone: {contested:?}");
        rewinds(&mut scene, prompt, Scope::Both, OnConflict::Overwrite).unwrap();
        assert_eq!(scene.read("a.txt").as_deref(), Some("a\n"));
        assert_eq!(scene.read("t.txt").as_deref(), Some("theirs\n"));
    });
    scene.check();
    other.close();
}

#[test]
fn a_declared_path_is_never_contested() {
    let mut scene = Scene::new().start();
    let other = Other::beside(&scene);
    let (started, go) = (Signal::new(&scene, "started"), Signal::new(&scene, "go"));
    let command = format!("{}; {}; echo theirs > t.txt", started.given(), go.awaited());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| other.calls("bash", json!({"command": command})));
        started.wait();
        let prompt = writes(&mut scene, "ours.txt", "ours\n");
        go.give();
        running.join().unwrap();
        let document = scene.rewind(prompt, Scope::Both);
        assert_eq!(document.files[0].certainty.as_deref(), Some("certain"));
        assert_eq!(scene.files(), "t.txt: theirs\n");
    });
    other.close();
}

fn until_jobs_ended(scene: &mut Scene) {
    if scene.view().jobs.iter().any(|job| job.ended.is_none()) {
        scene.until(
            |kind| matches!(kind, EventKind::JobsChanged { jobs } if jobs.iter().all(|job| job.ended.is_some())),
        );
    }
}

#[test]
fn what_a_job_does_later_belongs_to_the_turn_that_started_it() {
    let mut scene = Scene::new().file("a.txt", "a\n").start();
    let go = Signal::new(&scene, "go");
    let command = format!("{}; echo late > late.txt; echo job > a.txt", go.awaited());
    scene.model.calls("bash", json!({"command": command, "background": true}));
    scene.model.says("It runs.");
    let first = scene.prompt("start it");
    let second = runs(&mut scene, "echo b > b.txt");
    go.give();
    until_jobs_ended(&mut scene);
    assert_eq!(scene.files(), "a.txt: job\nb.txt: b\nlate.txt: late\n");
    scene.check();
    let targets = scene.targets();
    let tools: Vec<_> = targets.iter().map(|target| target.files.tools.len()).collect();
    assert_eq!(tools, [1, 1], "each turn has its command: {targets:#?}");
    let counted = |number: usize| (targets[number].files.added, targets[number].files.modified);
    assert_eq!((counted(1), counted(0)), ((1, 1), (1, 0)), "what a job did late counts with its turn: {targets:#?}");
    // What the job did came after the second prompt, and it is the session's.
    scene.rewind(second, Scope::Code);
    assert_eq!(scene.files(), "a.txt: a\n");
    scene.undo();
    let document = scene.rewind(first, Scope::Both);
    assert_eq!(scene.files(), "a.txt: a\n", "{document:#?}");
    scene.undo();
    assert_eq!(scene.files(), "a.txt: job\nb.txt: b\nlate.txt: late\n");
    scene.check();
}

#[test]
fn taking_a_turn_back_takes_back_what_its_job_did_after_it() {
    let mut scene = Scene::new().start();
    let go = Signal::new(&scene, "go");
    scene
        .model
        .calls("bash", json!({"command": format!("{}; echo late > late.txt", go.awaited()), "background": true}));
    scene.model.says("It runs.");
    scene.prompt("start it");
    go.give();
    until_jobs_ended(&mut scene);
    scene.model.says("Hello.");
    scene.prompt("hello");
    assert_eq!(scene.files(), "late.txt: late\n");
    scene.undo();
    scene.undo();
    assert_eq!(scene.files(), "");
    scene.check();
}

#[test]
fn a_job_ends_when_files_go_back_to_before_it_and_is_listed_otherwise() {
    let mut scene = Scene::new().file("a.txt", "a\n").start();
    let pid = Signal::new(&scene, "pid");
    let command = format!("echo job > job.txt; echo $$ > {}; exec sleep 600", pid.0.display());
    scene.model.calls("bash", json!({"command": command, "background": true}));
    scene.model.says("It runs.");
    let first = scene.prompt("start it");
    pid.wait();
    let second = runs(&mut scene, "echo b > a.txt");
    let plan = |scene: &Scene, entry, scope| {
        let change = Change::new(rewind_goal(entry, scope));
        let Reply::Change { document } = scene.request(Query::Plan { change }).unwrap() else { panic!("no plan") };
        *document
    };
    for scope in [Scope::Code, Scope::Conversation, Scope::Both] {
        let running = kinds(&plan(&scene, second, scope), "running");
        assert_eq!(running.len(), 1, "{scope:?}: {running:?}");
        assert!(running[0].contains("sleep 600"), "{running:?}");
    }
    let document = scene.rewind(second, Scope::Code);
    assert_eq!(kinds(&document, "running").len(), 1, "an older job goes on");
    assert_eq!(scene.files(), "a.txt: a\njob.txt: job\n");
    let pid: u32 = fs::read_to_string(&pid.0).unwrap().trim().parse().unwrap();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    scene.rewind(first, Scope::Conversation);
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "only files going back ends a job");
    scene.undo();
    scene.rewind(first, Scope::Both);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the job has ended");
    assert_eq!(scene.files(), "a.txt: a\n");
    assert!(scene.view().jobs.iter().all(|job| job.ended.is_some()));
    scene.check();
}

#[test]
fn an_ignored_file_that_a_tool_declared_goes_back() {
    let scene = Scene::new()
        .file(".gitignore", "*.log\nout/\n")
        .file("old.log", "old\n")
        .file(".env", "KEY=1\n")
        .file("ours.log", "o\n");
    let mut scene = scene.start();
    scene.model.says("Hello.");
    let greeting = scene.prompt("hello");
    scene.model.calls("read_file", json!({"path": "old.log"}));
    scene.model.calls("write_file", json!({"path": "old.log", "content": "new\n"}));
    scene.model.calls("write_file", json!({"path": "fresh.log", "content": "fresh\n"}));
    scene.model.calls("write_file", json!({"path": "out/made.txt", "content": "made\n"}));
    scene.model.calls(
        "bash",
        json!({"command": "echo KEY=2 > .env; echo by the shell > ours.log; echo more > out/shell.txt"}),
    );
    scene.model.says("Done.");
    scene.prompt("write them");
    assert_eq!(scene.read("old.log").as_deref(), Some("new\n"));
    let document = scene.rewind(greeting, Scope::Both);
    let files = scene.files();
    assert!(files.contains("old.log: old\n") && files.contains(".env: KEY=1\n"), "{files}\n{document:#?}");
    assert!(!files.contains("fresh.log") && !files.contains("made.txt"), "{files}");
    assert!(
        files.contains("ours.log: by the shell\n") && files.contains("out/shell.txt: more\n"),
        "nobody captured it: {files}"
    );
    scene.undo();
    assert_eq!(
        (scene.read("old.log").as_deref(), scene.read("fresh.log").as_deref()),
        (Some("new\n"), Some("fresh\n"))
    );
    assert_eq!(scene.read("out/made.txt").as_deref(), Some("made\n"));
    scene.check();
}

#[test]
fn the_ledger_is_told_when_only_the_conversation_goes_back() {
    let mut scene = repository().start();
    let prompt = runs(&mut scene, "git -c user.name=a -c user.email=a@b commit --quiet --message staged");
    let document = scene.rewind(prompt, Scope::Conversation);
    assert_eq!(kinds(&document, "command").len(), 1, "{document:#?}");
    let moves = kinds(&document, "git");
    assert!(moves.iter().any(|what| what.starts_with("HEAD went from")), "{moves:?}");
    assert!(document.ledger.iter().filter(|item| item.what.starts_with("HEAD")).all(|item| item.remedy.is_some()));
}

#[test]
fn a_single_file_goes_back_alone() {
    let mut scene = furnished().start();
    let prompt = runs(&mut scene, "echo x > a.txt; echo x > sub/b.txt; echo x > sub/deep/c.txt");
    let goal = rewind_goal(prompt, Scope::Code);
    let change = Change { paths: vec![Bytes::Text("sub/b.txt".to_owned())], ..Change::new(goal) };
    scene.apply(change, WhileRunning::Refuse).unwrap();
    let read = |path: &str| scene.read(path).unwrap();
    assert_eq!([read("a.txt"), read("sub/b.txt"), read("sub/deep/c.txt")], ["x\n", "b\n", "x\n"]);
    scene.change(ChangeGoal::Undo { operation: None }).unwrap();
    assert_eq!(scene.read("sub/b.txt").as_deref(), Some("x\n"));
    scene.check();
}
