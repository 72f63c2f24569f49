//! Keys at the wrong moment, and changes behind the client's back: nothing is done that nobody meant.

use retake_testkit::model::Gate;
use serde_json::json;

use super::rewind::say_two_turns;
use super::{LARGE, READY, Scene, User};
use retake_testkit::Terminal;

#[test]
fn somebody_who_is_typing_goes_on_typing_when_something_is_asked() {
    let scene = Scene::new();
    let gate = Gate::new();
    scene.model().says("A moment.").waits_for(&gate).calls("bash", json!({"command": "touch one.txt"}));
    scene.model().says("Made.");
    let terminal = scene.open();
    terminal.say("make a file").wait_for("A moment.").type_text("wh").wait_for("> wh");
    gate.open();
    terminal.is_asked("May it?").shows("goes back to the answers").type_text("y not n a w").wait_for("> why not n a w");
    assert!(!scene.exists("one.txt"));
    terminal.key("Tab").wait_for("y Yes, this once").key("y").wait_for("Made.").shows("> why not n a w");
    assert!(scene.exists("one.txt"));
}

#[test]
fn several_questions_are_answered_one_by_one_or_all_at_once() {
    let scene = Scene::new();
    let touch = |name: &str| json!({"command": format!("touch {name}")});
    scene.model().calls("bash", touch("one")).calls("bash", touch("two")).calls("bash", touch("three"));
    scene.model().says("Two of three.");
    scene.model().calls("bash", touch("four")).calls("bash", touch("five"));
    scene.model().says("And these.");
    let terminal = scene.open();
    terminal
        .say("make files")
        .is_asked("bash: touch one (1 of 3)")
        .key("y")
        .is_asked("bash: touch two (1 of 2)")
        .key("n");
    terminal.is_asked("May it? bash: touch three").key("y").wait_for("Two of three.").wait_for(READY);
    assert_eq!(["one", "two", "three"].map(|name| scene.exists(name)), [true, false, true]);
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("did not allow this call"), "{transcript}");
    terminal.say("more").is_asked("(1 of 2)").keys(["a", "Enter"]).wait_for("And these.").wait_for(READY);
    assert!(scene.exists("four") && scene.exists("five"));
}

#[test]
fn a_summary_that_is_stopped_changes_nothing() {
    let scene = Scene::new();
    scene.model().says("A long story.");
    let terminal = scene.open();
    terminal.ask("tell me", "A long story.");
    let gate = scene.model().says("SUMMARY").pauses();
    terminal.say("/compact");
    gate.wait_until_reached();
    terminal.wait_for("the model writes a summary").key("Escape").wait_for(READY).shows_no("SUMMARY");
    scene.model().wait_for_hang_up(1);
    scene.model().says("Still known.");
    terminal.ask("more", "Still known.");
    assert!(scene.model().last_request().transcript().contains("A long story."));
}

#[test]
fn while_a_turn_runs_what_would_disturb_it_is_refused_with_a_reason() {
    let scene = Scene::new();
    scene.model().says("First.");
    let gate = scene.model().says_slowly(["It goes", " on."]);
    let terminal = scene.open();
    terminal.ask("one", "First.").say("two").wait_for("It goes");
    let refused = [
        (":rewind", "A turn is running, and nothing can go back"),
        ("/undo", "is running"),
        ("/compact", "a turn is running"),
        ("/new", "A turn is running: Esc stops it first"),
        ("/quit", "A turn is running. /quit once more stops it and leaves"),
    ];
    for (command, reason) in refused {
        terminal.say(command).wait_for(reason).shows("Esc stops");
        // A notice is gone with the next command, so that the same words are not taken for an answer to it.
        terminal.say("/model").wait_for("asks another");
    }
    gate.open();
    terminal.wait_for("It goes on.").wait_for(READY);
    assert_eq!(scene.requests(), 2);
    assert!(scene.operations().iter().all(|kind| kind == "turn"), "{:?}", scene.operations());
}

#[test]
fn leaving_a_running_turn_takes_two_quits_and_keeps_everything() {
    let scene = Scene::new();
    let _gate = scene.model().says_slowly(["Half an ans", "wer."]);
    let terminal = scene.open();
    terminal.say("talk").wait_for("Half an ans").say("/quit").wait_for("/quit once more").say("/quit");
    assert_eq!(terminal.wait_for_end(), "0");
    scene.model().wait_for_hang_up(1);
    let terminal = scene.run(["resume"]);
    terminal.wait_for("Half an ans").wait_for("interrupted").shows("> talk");
}

#[test]
fn a_file_that_changes_while_the_menu_is_open_is_not_overwritten() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    terminal.key("C-r").wait_for("2 prompts").key("Down").wait_for("R a.txt").key("Enter").wait_for("1 Code and");
    scene.write("a.txt", "mine\n");
    terminal.key("Enter").wait_for("1 file needs a decision").shows("a.txt").shows("[keep]");
    assert_eq!((scene.read("a.txt"), scene.read("b.txt")), ("mine\n".into(), "new\n".into()));
    terminal.wait_for("is kept").key("Enter").wait_for("Went back to");
    assert_eq!((scene.read("a.txt"), scene.exists("b.txt")), ("mine\n".into(), false));
    assert_eq!(scene.operations().iter().filter(|kind| *kind == "rewind").count(), 1);
}

#[test]
fn a_rewind_ends_the_jobs_that_it_undoes_and_says_so_before() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "echo $$ > pid; exec sleep 1000", "background": true}));
    let gate = scene.model().says("It runs.").pauses();
    let terminal = scene.open();
    terminal.say("start it").is_asked("May it?").key("y");
    // What it writes is the turn's as long as that goes on.
    scene.wait_for_file("pid");
    gate.open();
    terminal.wait_for("It runs.").wait_for(READY).wait_for("1 in the background");
    let process = scene.read("pid");
    terminal.key("C-r").wait_for("Background jobs").shows("sleep 1000").wait_for("What would change now");
    terminal
        .key("Enter")
        .wait_for("1 Code and")
        .key("Enter")
        .wait_for("Went back to")
        .wait_until_gone("in the background");
    super::assert_gone(process.trim());
}

#[test]
fn on_another_branch_it_is_asked_before_files_go_back() {
    let scene = Scene::new();
    let git = |args: &[&str]| {
        let mut command = scene.agent.sandbox.command("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
        assert!(command.output().expect("git is installed").status.success(), "{args:?}");
    };
    git(&["init", "--quiet", "-b", "main"]);
    scene.write("a.txt", "one\n");
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    git(&["checkout", "--quiet", "-b", "other"]);
    terminal.key("C-r").wait_for("D b.txt").shows("Another branch is checked out").key("Enter").wait_for("1 Code and");
    terminal.key("Enter").wait_for("y Yes, go on").shows("› n No, change nothing").key("Enter");
    terminal.wait_until_gone("y Yes, go on");
    assert_eq!(scene.read("b.txt"), "new\n");
    terminal.wait_for("1 Code and").key("Enter").wait_for("y Yes, go on").key("y").wait_for("Went back to");
    assert!(!scene.exists("b.txt"));
}

#[test]
fn a_path_at_the_beginning_of_a_prompt_is_no_command() {
    let scene = Scene::new();
    scene.model().says("I see.");
    let terminal = scene.open();
    terminal.ask("/etc/hosts is wrong", "I see.");
    assert!(scene.model().last_request().transcript().ends_with("user: /etc/hosts is wrong"));
}

#[test]
fn without_a_model_it_says_how_to_set_one_and_leaves_the_terminal_alone() {
    let scene = Scene::new();
    let mut command = scene.command([]);
    command.env_remove("RETAKE_MODEL").env_remove("RETAKE_BASE_URL").env("OLLAMA_HOST", "127.0.0.1:1");
    let terminal = Terminal::start(&command, LARGE);
    assert_ne!(terminal.wait_for_end(), "0");
    terminal.shows("no model is set").shows("--model").shows("retake demo");
    assert_eq!(terminal.fact("alternate_on"), "0");
}

#[test]
fn a_client_whose_session_is_killed_says_so_and_gives_the_terminal_back() {
    let scene = Scene::new();
    scene.model().says("Hello.");
    let here = scene.open();
    here.ask("hello", "Hello.");
    let there = scene.run(["attach"]);
    there.wait_for("Hello.").wait_for(READY);
    here.kill_9();
    assert_ne!(there.wait_for_end(), "0");
    there.wait_for("error:");
    assert_eq!((there.fact("alternate_on"), there.fact("mouse_any_flag")), ("0".into(), "0".into()));
    let again = scene.run(["resume"]);
    again.wait_for("Hello.").wait_for(READY);
}
