//! The terminal itself: its size, its colours, how much is written to it, and how it is left.

use std::time::Duration;

use retake_testkit::Terminal;
use rustix::process::Signal;
use serde_json::json;

use super::{LARGE, NARROW, READY, Scene, User, ready, wait_until};

/// Escapes that set a colour: 30–37, 38, 39, 40–47, 48, 49, 90–97, 100–107.
fn colours(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_colour = |code: &str| {
        let code: u32 = code.parse().unwrap_or(0);
        matches!(code, 30..=38 | 40..=48 | 90..=97 | 100..=107)
    };
    let escapes = text.split("\u{1b}[").skip(1).filter_map(|rest| {
        rest.split_once(|c: char| c.is_ascii_alphabetic())
            .map(|(codes, after)| (codes, rest.as_bytes()[rest.len() - after.len() - 1]))
    });
    escapes
        .filter(|(codes, end)| *end == b'm' && codes.split(';').any(is_colour))
        .map(|(codes, _)| codes.to_owned())
        .collect()
}

/// An answer with everything that could be coloured.
const COLOURFUL: &str =
    "# Title\n\nSome `code`, [a link](https://example.org).\n\n```rust\nfn main() { let x = \"text\"; }\n```\n";

#[test]
fn without_colours_no_colour_is_ever_written() {
    for (no_color, is_coloured) in [(None, true), (Some("1"), false)] {
        let scene = Scene::new();
        scene.write("a.txt", "one\n");
        scene.model().says(COLOURFUL).calls("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}));
        scene.model().says("Done.");
        let mut command = scene.command([]);
        no_color.map(|value| command.env("NO_COLOR", value));
        let terminal = ready(&command, LARGE);
        terminal.record().key("C-l").say("colours").is_asked("May it?").key("y").wait_for("Done.").wait_for(READY);
        terminal
            .key("C-r")
            .wait_for("R a.txt")
            .key("Enter")
            .wait_for("1 Code and")
            .key("Escape")
            .wait_until_gone("1 Code and");
        terminal.key("Escape").wait_for("Done.").say("/nonsense").wait_for("there is no command").key("C-u");
        terminal.type_text("/").wait_for("› /rewind").key("Escape").wait_until_gone("› /rewind");
        let found = colours(&terminal.raw_output());
        assert_eq!(!found.is_empty(), is_coloured, "{found:?}");
        let shown = colours(terminal.coloured_screen().as_bytes());
        assert!(is_coloured || shown.is_empty(), "{shown:?}");
    }
}

#[test]
fn nothing_is_written_while_nothing_happens() {
    let scene = Scene::new();
    scene.model().says("Hello.");
    let terminal = scene.open();
    terminal.ask("hello", "Hello.").wait_for("store").record().type_text("x").wait_for("> x");
    recorded(&terminal, "x");
    is_quiet(&terminal, Duration::from_secs(3));
    terminal.key("C-u").wait_until_gone("> x").key("C-r").wait_for("1 prompt").wait_for("What would change now");
    is_quiet(&terminal, Duration::from_secs(1));
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    terminal.key("Escape").wait_until_gone("1 prompt").say("ask me").is_asked("May it?").wait_for("waits for you");
    is_quiet(&terminal, Duration::from_secs(1));
}

/// Asserts that a program neither writes nor works for some time.
#[track_caller]
fn is_quiet(terminal: &Terminal, time: Duration) {
    // What is still on its way when something is first seen on the screen has arrived when it is seen again.
    let mut written = 0;
    while std::mem::replace(&mut written, terminal.raw_output_bytes()) != written {
        std::thread::sleep(Duration::from_millis(100));
    }
    let worked = ticks(terminal);
    std::thread::sleep(time);
    let output = terminal.raw_output();
    assert_eq!(output.len(), written, "{:?}", String::from_utf8_lossy(&output[written..]));
    let worked = ticks(terminal) - worked;
    assert!(worked <= 5, "{worked} ticks of a hundredth of a second each");
}

/// How long the program has worked.
fn ticks(terminal: &Terminal) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.fact("pane_pid"))).expect("it runs");
    let numbers = stat.rsplit(") ").next().expect("numbers follow the name");
    numbers.split(' ').skip(11).take(2).map(|number| number.parse::<u64>().expect("a number")).sum()
}

#[test]
fn streaming_writes_what_is_new_and_not_the_whole_screen() {
    let scene = Scene::new();
    scene.model().says("This stays where it is.");
    let pieces: Vec<String> = (0..8).map(|number| format!("piece{number} with some words. ")).collect();
    let gate = scene.model().says_slowly(std::array::from_fn::<&str, 8, _>(|number| &pieces[number]));
    let terminal = scene.open();
    terminal.ask("stay", "This stays where it is.").say("talk").wait_for("piece0").record();
    for number in 1..8 {
        gate.open();
        terminal.wait_for(&format!("piece{number} with some words."));
    }
    terminal.wait_for(READY);
    let raw = recorded(&terminal, "piece7");
    assert!(!raw.contains("stays"), "{raw:?}");
    // A row in which something is new may be drawn again, but not row after row for word after word.
    let drawn = raw.matches("piece").count();
    assert!(drawn <= 7 * 3, "{drawn} pieces were drawn for 7 new ones: {raw:?}");
}

/// What was recorded, as soon as `last` is in it: what is on the screen is on its way to the recording.
#[track_caller]
fn recorded(terminal: &Terminal, last: &str) -> String {
    let raw = || String::from_utf8_lossy(&terminal.raw_output()).into_owned();
    wait_until(&format!("`{last}` is recorded"), || raw().contains(last));
    raw()
}

#[test]
fn scrolling_text_is_moved_by_the_terminal() {
    let scene = Scene::new();
    // Rows that have nothing in common: what moves cannot be left where it is.
    let line = |number: u8| format!("{number} {}\n\n", char::from(b'a' + number % 26).to_string().repeat(60));
    let first: String = (0..20).map(line).collect();
    let pieces: Vec<String> = std::iter::once(first).chain((20..28).map(line)).collect();
    let gate = scene.model().says_slowly(std::array::from_fn::<&str, 9, _>(|number| &pieces[number]));
    let terminal = scene.open();
    terminal.say("list").wait_for("19 ttt").record();
    for number in 20..28 {
        gate.open();
        terminal.wait_for(line(number).trim_end());
    }
    let raw = recorded(&terminal, "27 bb");
    let is_run = |window: &&[u8]| window[0].is_ascii_lowercase() && window.iter().all(|letter| *letter == window[0]);
    let drawn = raw.as_bytes().windows(4).filter(is_run).count() / 60;
    // Some 13 rows of letters are on the screen: without moving them, all of them are drawn for each of the 8 that come.
    assert!(drawn <= 8 * 3, "{drawn} rows were drawn for 8 new ones");
    let screen = terminal.screen();
    let numbers: Vec<usize> = screen.lines().filter_map(|row| row.split(' ').next()?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]) && numbers.last() == Some(&27), "{screen}");
    terminal.wait_for(READY).is_drawn_right();
}

#[test]
fn a_terminal_that_changes_its_size_while_something_streams_shows_all_of_it() {
    let scene = Scene::new();
    let gate = scene.model().says_slowly(["The beginning of a sentence", " that goes on", " and comes to its end."]);
    let terminal = scene.open();
    terminal.say("a long prompt that does not fit into forty columns").wait_for("The beginning of a sentence");
    terminal.resize(40, 20).wait_until("it is drawn in forty columns", |screen| {
        screen.lines().any(|row| row == "─".repeat(40)) && screen.contains("The beginning of a sentence")
    });
    gate.open();
    terminal
        .wait_for("The beginning of a sentence that goes on")
        .shows("> a long prompt that does not fit into forty columns");
    terminal.resize(100, 30).wait_until("it is drawn in a hundred columns", |screen| {
        screen.lines().any(|row| row == "─".repeat(100)) && screen.contains("The beginning of a sentence that goes on")
    });
    gate.open();
    terminal.wait_for("The beginning of a sentence that goes on and comes to its end.").wait_for(READY);
    let screen = terminal.screen();
    assert_eq!(screen.matches("The beginning").count(), 1, "{screen}");
    assert_eq!(screen.matches('─').count(), 100, "{screen}");
    terminal.is_drawn_right();
}

#[test]
fn forty_columns_are_enough_for_the_whole_story() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open_in(NARROW);
    scene.model().says("I will.").calls("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}));
    scene.model().says("It is done now.");
    terminal.say("change a").is_asked("May it?").shows("y Yes, this once").shows("+ two").key("y");
    terminal.wait_for("It is done now.").wait_for(READY);
    assert_eq!(scene.read("a.txt"), "two\n");
    terminal.key("C-r").wait_for("1 prompt").wait_for("R a.txt").shows("change a").key("Enter");
    terminal.wait_for("› 1 Code and conversation").shows("1 file goes back").key("Enter").wait_for("Went back to");
    terminal.wait_for("> change a").shows("/undo takes this back");
    assert_eq!(scene.read("a.txt"), "one\n");
    scene.model().says("Otherwise.");
    terminal.type_text(" a bit").key("Enter").wait_for("Otherwise.").wait_for(READY);
    assert!(scene.model().last_request().transcript().ends_with("user: change a a bit"));
    let screen = terminal.screen();
    assert!(screen.lines().all(|row| row.chars().count() <= 40), "{screen}");
    terminal.type_text("?").wait_for("Going back").key("Escape").wait_for("Otherwise.");
}

#[test]
fn leaving_gives_the_terminal_back_as_it_was() {
    for way in ["/quit", "Ctrl+D", "Ctrl+C twice", "SIGTERM"] {
        let scene = Scene::new();
        scene.model().says("Hello.");
        let (terminal, before) = in_shell(&scene);
        terminal.say("retake").wait_for(READY);
        assert_eq!((terminal.fact("alternate_on"), terminal.fact("mouse_any_flag")), ("1".into(), "1".into()), "{way}");
        assert_ne!(terminal.line_settings(), before, "{way}");
        terminal.ask("hello", "Hello.");
        match way {
            "/quit" => drop(terminal.say("/quit")),
            "Ctrl+D" => drop(terminal.key("C-d")),
            "Ctrl+C twice" => drop(terminal.key("C-c").wait_for("Ctrl+C once more leaves").key("C-c")),
            _ => signal_child(&terminal, Signal::TERM),
        }
        terminal
            .wait_for("$ retake")
            .wait_until("the shell has the terminal", |screen| screen.trim_end().ends_with('$'));
        let state = ["alternate_on", "mouse_any_flag", "cursor_flag"].map(|name| terminal.fact(name));
        assert_eq!(state, ["0", "0", "1"], "{way}");
        assert_eq!(terminal.line_settings(), before, "{way}");
        // What was there before is there again, and how to come back.
        terminal.shows("$ echo before").shows_no("Hello.");
        if way != "SIGTERM" {
            terminal.shows("goes on");
        }
        terminal.say("echo typ''ed").wait_for("typed");
    }
}

#[test]
fn to_the_background_and_back() {
    let scene = Scene::new();
    scene.model().says("Hello.");
    let (terminal, before) = in_shell(&scene);
    terminal.say("retake").wait_for(READY).ask("hello", "Hello.").type_text("half").wait_for("> half").key("C-z");
    terminal.wait_for("Stopped").wait_until("the shell has the terminal", |screen| screen.trim_end().ends_with('$'));
    assert_eq!((terminal.fact("alternate_on"), terminal.line_settings()), ("0".into(), before));
    terminal.say("fg").wait_for("Hello.").wait_for("> half").type_text(" a thought").wait_for("> half a thought");
    assert_eq!(terminal.fact("alternate_on"), "1");
}

/// A shell in a terminal, and the settings of its line.
fn in_shell(scene: &Scene) -> (Terminal, String) {
    let mut command = scene.command([]);
    let binary = std::path::Path::new(command.get_program()).parent().expect("it is in a directory").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", binary.display()));
    let mut shell = std::process::Command::new("bash");
    shell.args(["--noprofile", "--norc", "--noediting", "-i"]);
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PS1", "$ ");
    shell.current_dir(command.get_current_dir().expect("it has one"));
    let terminal = Terminal::start(&shell, LARGE);
    terminal.wait_for("$").say("echo before").wait_for("$ echo before");
    terminal.wait_until("the command is done", |screen| screen.contains("\nbefore\n$"));
    let before = terminal.line_settings();
    (terminal, before)
}

/// Sends a signal to what the shell of a terminal runs.
fn signal_child(terminal: &Terminal, signal: Signal) {
    let shell = terminal.fact("pane_pid");
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("it runs");
    let child = children.trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("it has one child");
    rustix::process::kill_process(child, signal).expect("it runs");
}
