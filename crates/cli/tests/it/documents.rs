//! The documents show what the program does: every `console` block of a page runs in order, and must print what the page says.
//!
//! Ids and ages differ between runs, so they are compared by shape. `RETAKE_BLESS=1` writes what was printed into the page.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use retake_testkit::model::{Answer, ScriptedModel, Tokens};
use serde_json::json;

use crate::sandbox::{Run, Sandbox};

/// Printed before the output of each command.
const MARK: &str = "@@@ next command @@@";

/// A command of a page, with the lines that it is said to print.
struct Shown {
    command: String,
    output: Vec<String>,
    /// Where its output is in the page.
    lines: std::ops::Range<usize>,
}

#[test]
fn the_examples_of_the_readme_print_what_it_says() {
    examples_hold("README.md", None);
}

#[test]
fn the_examples_of_the_tutorial_print_what_it_says() {
    let write = json!({"command": "echo 'print(1 + 2)' > add.py"});
    let test = json!({"command": "grep -q 'print(1 + 2)' add.py && echo ok > tested.txt"});
    let answers = Mutex::new(VecDeque::from([
        answer(2_840).says("I write it.").calls("bash", write),
        answer(2_910).says("`add.py` adds two numbers."),
        answer(3_120).says("I run it.").calls("bash", test),
        answer(3_204).says("It works."),
    ]));
    let next = move |_: &_| {
        answers.lock().expect("nobody panics with it").pop_front().expect("the tutorial asks for four answers")
    };
    examples_hold("docs/tutorial.md", Some(&ScriptedModel::answering(next)));
}

fn answer(input: u64) -> Answer {
    Answer::default().costs(Tokens { input, output: 64, cache_read: 0, cache_write: 0 })
}

/// Asserts that every example of the page prints what the page says, or writes it there.
fn examples_hold(page: &str, model: Option<&ScriptedModel>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(&path).expect("the page can be read");
    let shown = examples(&text);
    assert!(!shown.is_empty(), "{page} has examples");
    let printed = run(&shown, model);
    let (promised, kept) = (shape(shown.iter().map(|one| &one.output)), shape(&printed));
    let Some(first) = (0..shown.len()).find(|at| promised[*at] != kept[*at]) else {
        return;
    };
    if std::env::var_os("RETAKE_BLESS").is_some() {
        let mut lines: Vec<&str> = text.lines().collect();
        for (one, printed) in shown.iter().zip(&printed).rev() {
            lines.splice(one.lines.clone(), printed.iter().map(String::as_str));
        }
        fs::write(&path, lines.join("\n") + "\n").expect("the page can be written");
        return;
    }
    panic!(
        "{page}: `{}` prints something else; `RETAKE_BLESS=1 cargo test -p retake --test it documents` writes it there\n\
         the page says:\n{}\nit prints:\n{}",
        shown[first].command,
        shown[first].output.join("\n"),
        printed[first].join("\n")
    );
}

/// The commands in the `console` blocks of a page.
fn examples(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, _) => match (line.strip_prefix("$ "), shown.last_mut()) {
                (Some(command), _) => {
                    let command = command.to_owned();
                    shown.push(Shown { command, output: Vec::new(), lines: number + 1..number + 1 });
                }
                (None, Some(last)) => {
                    last.output.push(line.to_owned());
                    last.lines.end = number + 1;
                }
                (None, None) => panic!("line {}: the block begins without a command", number + 1),
            },
            (false, _) => {}
        }
    }
    shown
}

/// What each command prints, standard output and error together, when all run in one shell.
fn run(shown: &[Shown], model: Option<&ScriptedModel>) -> Vec<Vec<String>> {
    let sandbox = Sandbox::new();
    let mut script = String::from("exec 2>&1\n");
    for one in shown {
        script += &format!("status=$?\necho '{MARK}'\n(exit $status)\n{}\n", one.command);
    }
    fs::write(sandbox.path("script"), script).expect("the script can be written");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_retake"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = program.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
    let mut shell = sandbox.command("sh");
    shell
        .env("PATH", std::env::join_paths(directories).expect("they were one path"))
        .env("XDG_RUNTIME_DIR", sandbox.path("home"))
        .env("LC_ALL", "C")
        .arg(sandbox.path("script"));
    if let Some(model) = model {
        shell.env("RETAKE_MODEL", "anthropic/scripted").env("RETAKE_BASE_URL", model.url());
    }
    let printed = String::from_utf8(Run::of(&mut shell).stdout).expect("it is text");
    let printed = printed.replace(&sandbox.path("home").display().to_string(), "/home/you");
    let mark = format!("{MARK}\n");
    let mut parts = printed.split(&mark).map(|part| part.lines().map(str::to_owned).collect());
    assert_eq!(parts.next(), Some(Vec::<String>::new()), "nothing is printed before the first command");
    let parts: Vec<_> = parts.collect();
    assert_eq!(parts.len(), shown.len(), "each command prints whole lines: {printed}");
    parts
}

/// What commands printed, without the parts that differ between two runs: ids are numbered as they come, ages are all alike, and so are
/// the spaces that align them.
fn shape<'a>(outputs: impl IntoIterator<Item = &'a Vec<String>>) -> Vec<Vec<String>> {
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let mut ids: Vec<String> = Vec::new();
    let mut line = |line: &String| {
        let mut text = line.clone();
        for word in line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_id(word)) {
            let number = ids.iter().position(|id| id == word).unwrap_or_else(|| {
                ids.push(word.to_owned());
                ids.len() - 1
            });
            text = text.replace(word, &format!("ID{number}"));
        }
        without_ages(text.split_whitespace())
    };
    outputs.into_iter().map(|output| output.iter().map(&mut line).collect()).collect()
}

/// The words with `just now` in the place of `30 seconds ago`.
fn without_ages<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in words {
        if let [.., number, unit] = kept[..]
            && word == "ago"
            && number.parse::<u32>().is_ok()
            && unit.starts_with("second")
        {
            kept.truncate(kept.len() - 2);
            kept.extend(["just", "now"]);
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

#[test]
fn ids_and_ages_may_differ_and_nothing_else() {
    let shape = |lines: [&str; 2]| shape(&lines.map(|line| vec![line.to_owned()]));
    let promised = shape(["session 9665e5a8", "9665e5a8  just now   +1"]);
    assert_eq!(promised, shape(["session 0123abcd", "0123abcd  30 seconds ago  +1"]));
    assert_ne!(promised, shape(["session 0123abcd", "0123abcd  just now  +2"]));
    assert_ne!(promised, shape(["session 0123abcd", "9665e5a8  just now  +1"]), "two ids are not one");
    assert_ne!(shape(["session feedface", ""]), shape(["session feedfaces", ""]));
}
