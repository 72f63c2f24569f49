//! The demo's story: a small project, and what the built-in model does when it is asked for something.
//!
//! The model is a function of what it is sent: the last prompt, and the results of the calls that it made for it. It never reports as done
//! what was denied or has failed.

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
pub struct StoryAnswer {
    pub text: &'static str,
    pub calls: Vec<(&'static str, Value)>,
}

/// The result of a call, as the model is sent it.
pub struct CallResult {
    pub outcome: CallOutcome,
    pub text: String,
}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Done,
    Failed,
    Denied,
}

/// The results of the calls of one answer.
pub type Round = Vec<CallResult>;

fn says(text: &'static str) -> StoryAnswer {
    StoryAnswer { text, calls: Vec::new() }
}

impl StoryAnswer {
    fn calls(mut self, tool: &'static str, arguments: Value) -> Self {
        self.calls.push((tool, arguments));
        self
    }
}

/// Whether a prompt asks to tidy up.
pub fn is_tidy(prompt: &str) -> bool {
    prompt.to_lowercase().contains("tidy")
}

/// Whether a prompt asks to tidy up and to leave files alone.
pub fn is_careful(prompt: &str) -> bool {
    let prompt = prompt.to_lowercase();
    is_tidy(&prompt)
        && ["text file", "alone", "careful", "keep", "not delete", "n't delete", "not remove", "n't remove"]
            .iter()
            .any(|words| prompt.contains(words))
}

/// The answer to the last prompt of a request, after these rounds of calls.
pub fn answer(prompt: &str, rounds: &[Round]) -> StoryAnswer {
    let lower = prompt.to_lowercase();
    let last = rounds.last().map(Vec::as_slice).unwrap_or_default();
    if last.iter().any(|result| result.outcome == CallOutcome::Denied) {
        return says("You did not allow that, so I have not done it. Tell me what to do instead.");
    }
    if is_careful(&lower) {
        tidy_with_care(last, rounds.len())
    } else if is_tidy(&lower) {
        tidy_without_care(last, rounds.len())
    } else if lower.contains("total") || lower.contains("mend") || lower.contains("15") {
        mend(last, rounds.len())
    } else {
        says(LOST)
    }
}

fn has_failed(results: &[CallResult]) -> bool {
    results.iter().any(|result| result.outcome == CallOutcome::Failed)
}

fn mend(last: &[CallResult], round: usize) -> StoryAnswer {
    match round {
        0 => says("I will look at the script and run it.")
            .calls("read_file", json!({"path": "total.sh"}))
            .calls("bash", json!({"command": "sh total.sh prices.txt"})),
        1 if last.first().is_none_or(|read| read.outcome != CallOutcome::Done) => {
            says("There is no `total.sh` here any more, so I changed nothing.")
        }
        1 if !last.iter().any(|read| read.text.contains("sed '$d'")) => {
            says("`total.sh` adds up every line already, so I changed nothing.")
        }
        1 => says("`sed '$d'` drops the last line before it is added up. I take that out.").calls(
            "edit_file",
            json!({"path": "total.sh", "old": "sed '$d' \"$1\" | awk '{ sum += $2 } END { print sum }'", "new": "awk '{ sum += $2 } END { print sum }' \"$1\""}),
        ),
        2 if has_failed(last) => says("The edit failed, so `total.sh` is as it was."),
        2 => says("Now it has to print 15.")
            .calls("bash", json!({"command": "test \"$(sh total.sh prices.txt)\" = 15 && echo 'it prints 15'"})),
        _ if has_failed(last) => says("I took `sed '$d'` out of `total.sh`, but it does not print 15 yet."),
        _ => says("Mended: `total.sh` left out the last line. It prints 15 now."),
    }
}

/// The mistake: files of the user's go with it, by the shell.
fn tidy_without_care(last: &[CallResult], round: usize) -> StoryAnswer {
    match round {
        0 => says("I move the script into `src` and remove what is lying about.")
            .calls("bash", json!({"command": "mkdir -p src; mv *.sh src/; rm -f *.txt; ls -R"})),
        _ if has_failed(last) => says("The command failed; its output says why."),
        _ => says("Tidied up: the script is in `src`, and the loose text files are gone."),
    }
}

fn tidy_with_care(last: &[CallResult], round: usize) -> StoryAnswer {
    match round {
        0 => says("I move the script and touch nothing else.")
            .calls("bash", json!({"command": "mkdir -p src && mv total.sh src/ && ls -R"})),
        _ if has_failed(last) => says("The script could not be moved; the output says why. I touched nothing else."),
        _ => says("The script is in `src`; I touched nothing else."),
    }
}

const LOST: &str = "I am the demo's built-in model and know this little project only. Ask me to **mend total.sh**, to **tidy up**, or to \
                    **tidy up and leave the text files alone**.";

#[cfg(test)]
mod tests {
    use super::*;

    fn round(outcome: CallOutcome, text: &str) -> Round {
        vec![CallResult { outcome, text: text.to_owned() }]
    }

    #[test]
    fn what_was_denied_is_not_reported_as_done() {
        for prompt in [FIRST, SECOND, SECOND_BETTER] {
            let told = answer(prompt, &[round(CallOutcome::Denied, "no")]);
            assert!(told.text.contains("have not done it") && told.calls.is_empty(), "{prompt}: {}", told.text);
        }
    }

    #[test]
    fn what_failed_is_not_reported_as_done() {
        let read = || round(CallOutcome::Done, "sed '$d'");
        for (prompt, rounds) in [
            (FIRST, vec![read(), round(CallOutcome::Failed, "")]),
            (FIRST, vec![read(), round(CallOutcome::Done, ""), round(CallOutcome::Failed, "")]),
            (SECOND, vec![round(CallOutcome::Failed, "")]),
            (SECOND_BETTER, vec![round(CallOutcome::Failed, "")]),
        ] {
            let told = answer(prompt, &rounds);
            let is_honest =
                ["failed", "does not print 15", "could not be moved"].iter().any(|words| told.text.contains(words));
            assert!(is_honest && told.calls.is_empty(), "{prompt}: {}", told.text);
        }
        assert!(answer(FIRST, &[round(CallOutcome::Done, "awk only")]).calls.is_empty(), "there is nothing to mend");
    }
}
