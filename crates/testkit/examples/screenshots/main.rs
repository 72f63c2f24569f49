//! Makes the pictures of the README: `cargo run -p retake-testkit --example screenshots -- RETAKE DIRECTORY`.
//!
//! RETAKE is the program. It is run in a real terminal against the scripted model, and what the terminal shows becomes an SVG in DIRECTORY.

mod svg;

use std::path::{Path, PathBuf};
use std::process::Command;

use retake_testkit::Scratch;
use retake_testkit::model::{Answer, Received, ScriptedModel};
use retake_testkit::tmux::Terminal;
use serde_json::json;

const SIZE: (u16, u16) = (116, 34);

const PARSER: &str = "//! Splits a line into fields.\n\npub fn fields(line: &str) -> Vec<&str> {\n    line.split(',').collect()\n}\n\n\
#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn blanks_do_not_count() {\n        assert_eq!(fields(\"a, b\"), [\"a\", \"b\"]);\n    }\n}\n";

fn main() {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (retake, directory) = args.next().zip(args.next()).expect("name the program and a directory");
    let retake = retake.canonicalize().expect("the program is there");
    let stage = Stage::new();
    let model = ScriptedModel::answering(answer);
    let terminal = Terminal::start(&stage.command(&retake, &model), SIZE);
    terminal.wait_for("● ready");
    let shoot = |name: &str, title: &str| {
        let picture = svg::draw(&terminal.coloured_screen(), SIZE, title);
        std::fs::write(directory.join(format!("{name}.svg")), picture).expect("the picture is written");
    };

    say(&terminal, "The test fails: blanks around a field count. Mend it, please.", "Mended");
    shoot("conversation", "retake");
    say(&terminal, "Now quotes: a field may contain commas between quotes.", "Fields in quotes");
    say(&terminal, "Split it into modules, and clean up.", "Cleaned up");
    terminal.key("C-r").wait_for("What would change now").wait_for("A src/fields.rs").wait_until_gone("working out");
    shoot("picker", "retake: Ctrl+R");

    // Somebody edits a file that the agent has written, too.
    let readme = stage.root().join("README.md");
    let edited = std::fs::read_to_string(&readme).expect("it is there") + "Ask Ada before you release.\n";
    std::fs::write(&readme, edited).expect("it is written");
    terminal.key("Escape").wait_until_gone("What would change now").key("C-r").wait_for("1 conflict");
    terminal.key("Enter").wait_for("Code and conversation").key("Enter").wait_for("keep");
    terminal.key("m").wait_for("is merged");
    terminal.wait_until_gone("working out");
    shoot("conflict", "retake: your own edits are never overwritten unasked");
    terminal.key("Enter").wait_for("takes this back");
    terminal.key("C-c");
    say(&terminal, "Keep it in one file, but write the documentation.", "Documented");
    terminal
        .key("C-r")
        .wait_for("What would change now")
        .key("Tab")
        .wait_for("Split it into modules")
        .wait_until_gone("working out");
    shoot("tree", "retake: every branch stays");
}

/// Says something, allows whatever is asked, and waits for the end.
fn say(terminal: &Terminal, prompt: &str, end: &str) {
    terminal.type_text(prompt).key("Enter").wait_for(end).wait_for("● ready");
}

/// A project and a home of its own.
struct Stage {
    scratch: Scratch,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { scratch: Scratch::new() };
        std::fs::create_dir_all(stage.root().join("src")).expect("the project is made");
        std::fs::write(stage.root().join("src/fields.rs"), PARSER).expect("the project is made");
        std::fs::write(
            stage.root().join("README.md"),
            "# fields\n\nSplits lines.\n\n## Use\n\n    fields LINE\n\n## Release\n\nRun the tests first.\n",
        )
        .expect("the project is made");
        stage
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join("fields")
    }

    fn command(&self, retake: &Path, model: &ScriptedModel) -> Command {
        let home = self.scratch.path().join("home");
        std::fs::create_dir_all(&home).expect("a home is made");
        let config = home.join("config.toml");
        let settings = format!(
            "[model]\nname = 'anthropic/claude-opus-5'\nbase_url = '{}'\ncontext = 200000\nprices = {{ input = 5, output = 25 }}\n\
             [permissions]\nallow = ['edits', 'bash']\n",
            model.url()
        );
        std::fs::write(&config, settings).expect("the settings are written");
        let mut command = Command::new(retake);
        command.current_dir(self.root()).env("HOME", &home).env("RETAKE_CONFIG", config);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "tmux-256color");
        command.env("LANG", "C.UTF-8").env("ANTHROPIC_API_KEY", "none").env("XDG_RUNTIME_DIR", &home);
        command
    }
}

/// What the model says, by what it was last asked and how far it is with that.
fn answer(request: &Received) -> Answer {
    let transcript = request.transcript();
    let story = story();
    let (told, _) = story
        .iter()
        .enumerate()
        .filter_map(|(number, (asked, _))| Some((number, transcript.rfind(asked)?)))
        .max_by_key(|(_, at)| *at)
        .expect("it is asked for something of the story");
    let (asked, answers) = &story[told];
    let since = &transcript[transcript.rfind(asked).expect("it is there")..];
    let given = answers.iter().take_while(|answer| since.contains(answer.0)).count();
    let (text, calls) = &answers[given.min(answers.len() - 1)];
    calls.iter().fold(Answer::default().says(text), |answer, (tool, arguments)| answer.calls(tool, arguments.clone()))
}

type Said = (&'static str, Vec<(&'static str, serde_json::Value)>);

fn story() -> Vec<(&'static str, Vec<Said>)> {
    let bash = |command: &str| ("bash", json!({"command": command}));
    let edit = |path: &str, old: &str, new: &str| ("edit_file", json!({"path": path, "old": old, "new": new}));
    let read = |path: &str| ("read_file", json!({"path": path}));
    let (src, readme) = ("src/fields.rs", "README.md");
    vec![
        (
            "blanks around a field count",
            vec![
                ("I look at the code and its test.", vec![read(src)]),
                (
                    "`split` keeps the blanks. I **trim** each field:",
                    vec![edit(
                        src,
                        "    line.split(',').collect()\n",
                        "    line.split(',').map(str::trim).collect()\n",
                    )],
                ),
                (
                    "Now the tests:",
                    vec![bash(
                        "printf 'running 1 test\\ntest tests::blanks_do_not_count ... ok\\n\\ntest result: ok. 1 passed; 0 failed\\n'",
                    )],
                ),
                (
                    "Mended: blanks around a field do not count any more.\n\n- `fields` trims every field\n- the test passes\n\n```rust\nassert_eq!(fields(\"a, b\"), [\"a\", \"b\"]);\n```",
                    vec![],
                ),
            ],
        ),
        (
            "Now quotes",
            vec![
                (
                    "I describe it first.",
                    vec![
                        read(readme),
                        edit(
                            readme,
                            "Splits lines.",
                            "Splits lines at commas.\nA comma between quotes is part of its field.",
                        ),
                    ],
                ),
                ("Fields in quotes are described; the code follows.", vec![]),
            ],
        ),
        (
            "Split it into modules",
            vec![
                (
                    "I move things around and remove what is not needed.",
                    vec![bash(
                        "mkdir -p src/split && mv src/fields.rs src/split/mod.rs && sed -i 's/Splits/Cuts/; s/between quotes/inside quotes/' README.md && npm --version >/dev/null 2>&1; true",
                    )],
                ),
                ("Cleaned up: everything is in `src/split` now.", vec![]),
            ],
        ),
        (
            "Keep it in one file",
            vec![
                ("I only add to the documentation.", vec![bash("printf '\\nSee `src/fields.rs`.\\n' >> README.md")]),
                ("Documented.", vec![]),
            ],
        ),
    ]
}
