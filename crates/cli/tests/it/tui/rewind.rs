//! Going back: every way to the picker, what it shows, and what is left afterwards.

use retake_testkit::Terminal;
use serde_json::json;

use super::{READY, Scene, User};

/// Two turns that have changed files.
fn two_turns() -> (Scene, Terminal) {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    (scene, terminal)
}

pub(super) fn say_two_turns(scene: &Scene, terminal: &Terminal) {
    scene.model().calls("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}));
    scene.model().says("First done.");
    scene.model().calls("bash", json!({"command": "echo new > b.txt"}));
    scene.model().says("Second done.");
    terminal.say("change the first").is_asked("May it?").key("y").wait_for("First done.").wait_for(READY);
    terminal.say("make another").is_asked("May it?").key("y").wait_for("Second done.").wait_for(READY);
    assert_eq!((scene.read("a.txt"), scene.read("b.txt")), ("two\n".into(), "new\n".into()));
}

#[test]
fn every_way_to_the_picker_opens_the_same_one_and_esc_leaves_everything_as_it_was() {
    let (scene, terminal) = two_turns();
    let before = scene.operations();
    let conversation = without_ages_and_sizes(&terminal.screen());
    let mut pickers = Vec::new();
    for way in ["Ctrl+R", ":rewind", ":rollback", "/rewind", "/rollback", "Esc Esc"] {
        match way {
            "Ctrl+R" => drop(terminal.key("C-r")),
            "Esc Esc" => {
                // The first Esc is seen by what it takes away.
                terminal
                    .say("/model")
                    .wait_for("anthropic/scripted")
                    .key("Escape")
                    .wait_until_gone("anthropic/scripted");
                terminal.key("Escape");
            }
            command => drop(terminal.say(command)),
        }
        terminal.wait_for("2 prompts · list").wait_for("What would change now").wait_for("+1 ~0 −0");
        pickers.push(without_ages_and_sizes(&terminal.screen()));
        terminal.key("Escape").wait_until_gone("2 prompts").wait_for("Second done.");
    }
    assert!(pickers.iter().all(|picker| *picker == pickers[0]), "{pickers:#?}");
    assert_eq!(without_ages_and_sizes(&terminal.screen()), conversation);
    assert_eq!((scene.operations(), scene.requests()), (before, 4));
    assert_eq!((scene.read("a.txt"), scene.read("b.txt")), ("two\n".into(), "new\n".into()));
}

/// The screen without how long ago things were, and without the size of the store: its database is written beside what is shown.
fn without_ages_and_sizes(screen: &str) -> String {
    let is_age = |word: &&str| *word == "now" || word.strip_suffix('s').is_some_and(|age| age.parse::<u32>().is_ok());
    let without_size = |row: &str| match row.split_once("  store ") {
        Some((before, after)) => format!("{before} {}", after.split_once("  ").map_or("", |(_, rest)| rest)),
        None => row.to_owned(),
    };
    let row =
        |row: &str| without_size(row).split_whitespace().filter(|word| !is_age(word)).collect::<Vec<_>>().join(" ");
    screen.lines().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_picker_shows_exactly_what_would_change() {
    let (_scene, terminal) = two_turns();
    // The lines come after the plan.
    terminal.key("C-r").wait_for("D b.txt").wait_for("− new").shows("this prompt leaves").shows_no("R a.txt");
    terminal.shows("› 2").shows("make another").shows("bash: echo new > b.txt");
    terminal.key("Down").wait_for("R a.txt").wait_for("− two").shows("+ one").shows("D b.txt").shows("− new");
    terminal.shows("this prompt and 1 later one leave");
}

#[test]
fn typing_filters_the_prompts_by_text_tool_and_file() {
    let (_scene, terminal) = two_turns();
    terminal.key("C-r").wait_for("2 prompts");
    terminal.type_text("another").wait_for("1 of 2").shows("make another").shows_no("change the first");
    terminal.key("Escape").wait_for("2 prompts").type_text("bash").wait_for("1 of 2").shows("make another");
    terminal.key("C-w").wait_for("2 prompts").type_text("a.txt").wait_for("1 of 2").wait_for("change the first");
    terminal.type_text("zzz").wait_for("0 of 2").wait_for("No prompt, label, tool or changed file has");
    terminal.key("Escape").wait_for("2 prompts").key("Escape").wait_for("Second done.");
}

#[test]
fn rewinding_both_brings_files_back_and_the_prompt_into_the_composer_unsent() {
    let (scene, terminal) = two_turns();
    terminal.key("C-r").wait_for("2 prompts").key("Down").wait_for("R a.txt").key("Enter");
    terminal.wait_for("› 1 Code and conversation").shows("2 files go back").shows("2 prompts leave");
    terminal.key("Enter").wait_for("Went back to").shows("2 files went back").shows("/undo takes this back");
    terminal.wait_for("> change the first").shows_no("First done.").shows_no("Second done.").shows(READY);
    assert_eq!((scene.read("a.txt"), scene.exists("b.txt")), ("one\n".into(), false));
    assert_eq!(scene.requests(), 4, "nothing was sent by itself");
    scene.model().says("Differently now.");
    terminal.type_text(", but gently").key("Enter").wait_for("Differently now.").wait_for(READY);
    let request = scene.model().last_request();
    assert!(request.transcript().ends_with("user: change the first, but gently"), "{}", request.transcript());
    for cut in ["First done.", "make another", "Second done.", "echo new", "b.txt"] {
        assert!(!request.text.contains(cut), "`{cut}` was sent: {}", request.transcript());
    }
    assert_eq!(scene.operations().iter().filter(|kind| *kind == "rewind").count(), 1);
}

#[test]
fn a_rewind_of_the_conversation_alone_leaves_files_and_one_of_code_alone_leaves_the_conversation() {
    let (scene, terminal) = two_turns();
    terminal.key("C-r").wait_for("D b.txt").key("Enter").wait_for("3 Code only").key("3").wait_for("Went back to");
    terminal.shows("1 file went back").shows("Second done.").shows("> Ask for something");
    assert!(!scene.exists("b.txt"));
    terminal.key("C-r").wait_for("2 prompts").wait_for("What would change now").key("Down").wait_for("R a.txt");
    terminal.key("Enter").wait_for("2 Conversation only").key("2").wait_for("no file changed");
    terminal.wait_for("> change the first").shows_no("First done.");
    assert_eq!(scene.read("a.txt"), "two\n");
    assert_eq!(scene.requests(), 4);
}

#[test]
fn many_enters_at_once_give_exactly_one_rewind_and_send_nothing() {
    let (scene, terminal) = two_turns();
    terminal.key("C-r").wait_for("D b.txt").key("Enter").wait_for("› 1 Code and conversation");
    terminal.keys(["Enter", "Enter", "Enter"]).wait_for("Went back to");
    // Whatever the other two did has been done when this is answered.
    terminal.wait_for("> make another").key("C-u").say("/model").wait_for("asks another");
    assert_eq!(scene.operations().iter().filter(|kind| *kind == "rewind").count(), 1);
    assert_eq!(scene.requests(), 4);
    assert!(!scene.exists("b.txt"));
    assert_eq!(scene.read("a.txt"), "two\n");
}

#[test]
fn a_running_turn_cannot_be_rewound_and_says_so() {
    let scene = Scene::new();
    let gate = scene.model().says_slowly(["It is", " said."]);
    let terminal = scene.open();
    terminal.say("talk").wait_for("It is").key("C-r").wait_for("A turn is running, and nothing can go back under it");
    terminal.shows_no("type to filter").shows("Esc stops");
    gate.open();
    terminal.wait_for("It is said.").wait_for(READY).key("C-r").wait_for("1 prompt · list");
}

#[test]
fn a_paused_turn_can_be_rewound_and_its_question_is_gone() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    let terminal = scene.open();
    terminal
        .say("make a file")
        .is_asked("May it?")
        .key("C-r")
        .wait_for("1 prompt · list")
        .wait_for("What would change");
    terminal.key("Enter").wait_for("› 1 Code and conversation").key("Enter").wait_for("Went back to");
    terminal.wait_for("> make a file").shows_no("May it?");
    assert!(!scene.exists("one.txt"));
    assert_eq!(scene.requests(), 1);
}

#[test]
fn what_was_typed_is_kept_and_draft_loads_what_was_said() {
    let (scene, terminal) = two_turns();
    terminal.type_text("half a thought").key("C-r").wait_for("D b.txt").key("Enter").wait_for("› 1 Code");
    terminal.key("Enter").wait_for("Went back to").shows("/draft loads it").wait_for("> half a thought");
    assert!(!scene.exists("b.txt"));
    terminal.key("C-u").say("/draft").wait_for("> make another");
    assert_eq!(scene.requests(), 4);
}

#[test]
fn undo_and_redo_follow_each_other_with_files_and_conversation() {
    let (scene, terminal) = two_turns();
    terminal.key("C-r").wait_for("D b.txt").key("Enter").wait_for("› 1 Code").key("Enter").wait_for("Went back to");
    terminal.wait_for("> make another").key("C-u").say("/undo").wait_for("Undid").wait_for("Second done.");
    assert_eq!(scene.read("b.txt"), "new\n");
    terminal.say("/redo").wait_for("Redid").wait_until_gone("Second done.");
    assert!(!scene.exists("b.txt"));
    terminal.key("C-u").say("/undo").wait_for("Second done.").say("/undo").wait_until_gone("Second done.");
    assert!(!scene.exists("b.txt"), "the turn itself was taken back");
    assert_eq!(scene.requests(), 4);
}
