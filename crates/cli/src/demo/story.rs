//! The demo's story: a small project, and what the built-in model does when it is asked for something.
//!
//! The model is a function of what it is sent: the last thing the user said, and how many answers it has given to that.

use serde_json::{Value, json};

/// The project's files.
pub const FILES: [(&str, &str); 4] = [
    (
        "total.sh",
        "#!/bin/sh\n# Adds up the prices in a file: one item and its price a line.\nsed '$d' \"$1\" | awk '{ sum += $2 } END { print sum }'\n",
    ),
    ("prices.txt", "apples 3\nbread 4\ncheese 8\n"),
    ("notes.txt", "My own notes, which are nowhere else:\n- ask Ada about the cheese\n"),
    ("README.md", "# Prices\n\n`sh total.sh prices.txt` adds them up.\n"),
];

/// What the tour says, in order.
pub const FIRST: &str = "total.sh prints 7 for prices.txt, but it should be 15. Please mend it.";
pub const SECOND: &str = "Tidy up the project: the script belongs into src.";
pub const SECOND_BETTER: &str = "Tidy up the project: the script belongs into src. Leave my text files alone!";

/// One answer of the model.
pub struct Answer {
    pub text: &'static str,
    pub calls: Vec<(&'static str, Value)>,
}

fn says(text: &'static str) -> Answer {
    Answer { text, calls: Vec::new() }
}

impl Answer {
    fn calls(mut self, tool: &'static str, arguments: Value) -> Self {
        self.calls.push((tool, arguments));
        self
    }
}

/// The answer to the last prompt of a request, after `answered` others.
pub fn answer(prompt: &str, answered: usize) -> Answer {
    let prompt = prompt.to_lowercase();
    let mut answers = if prompt.contains("tidy") {
        if prompt.contains("text files") { tidy_with_care() } else { tidy_without_care() }
    } else if prompt.contains("total") || prompt.contains("mend") || prompt.contains("15") {
        mend()
    } else {
        lost()
    };
    if answered < answers.len() { answers.swap_remove(answered) } else { says("That is all.") }
}

fn mend() -> Vec<Answer> {
    vec![
        says("I will look at the script and run it.")
            .calls("read_file", json!({"path": "total.sh"}))
            .calls("bash", json!({"command": "sh total.sh prices.txt"})),
        says("`sed '$d'` drops the last line before it is added up. I take that out.").calls(
            "edit_file",
            json!({"path": "total.sh", "old": "sed '$d' \"$1\" | awk '{ sum += $2 } END { print sum }'", "new": "awk '{ sum += $2 } END { print sum }' \"$1\""}),
        ),
        says("Now it has to print 15.").calls("bash", json!({"command": "test \"$(sh total.sh prices.txt)\" = 15 && echo 'it prints 15'"})),
        says("Mended: `total.sh` left out the last line. It prints 15 now."),
    ]
}

/// The mistake: files of the user's go with it, by the shell.
fn tidy_without_care() -> Vec<Answer> {
    vec![
        says("I move the script into `src` and remove what is lying about.")
            .calls("bash", json!({"command": "mkdir -p src && mv total.sh src/ && rm -f *.txt && ls -R"})),
        says("Tidied up: the script is in `src`, and the loose text files are gone."),
    ]
}

fn tidy_with_care() -> Vec<Answer> {
    vec![
        says("I move the script and touch nothing else.")
            .calls("bash", json!({"command": "mkdir -p src && mv total.sh src/ && ls -R"})),
        says("The script is in `src`; `prices.txt` and `notes.txt` are where they were."),
    ]
}

fn lost() -> Vec<Answer> {
    vec![says(
        "I am the demo's built-in model and know this little project only. Ask me to **mend total.sh**, to **tidy up**, or to **tidy up and \
         leave the text files alone**.",
    )]
}
