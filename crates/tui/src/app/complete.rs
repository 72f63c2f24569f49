//! What could be meant by what is being typed: commands and files.

use retake_engine::session::entry::Part;

use super::slash;
use crate::composer::Composer;

/// Rows shown at a time.
pub const MAX_ROWS: usize = 8;

/// What is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What is being typed.
    pub what: Typing,
    /// What it could become.
    pub choices: Vec<Candidate>,
    /// Which is chosen.
    pub at: usize,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typing {
    /// A command.
    Command(String),
    /// A file, after `@`.
    File(String),
}

/// What it could become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What is put in place of it.
    pub text: String,
    /// What is said about it.
    pub about: String,
}

/// What is being typed at the cursor, if it can be completed.
pub fn typing(composer: &Composer) -> Option<Typing> {
    let (text, cursor) = composer.raw();
    let (start, word) = composer.word();
    if start == 0
        && cursor == text.len()
        && let Some(name) = word.strip_prefix('/')
    {
        return Some(Typing::Command(name.to_owned()));
    }
    word.strip_prefix('@').map(|path| Typing::File(path.to_owned()))
}

/// What looks like a mention of a file and has none beside it.
pub fn missing(parts: &[Part]) -> Vec<String> {
    let attached: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::File { path, .. } => Some(path.as_str()),
            _ => None,
        })
        .collect();
    let has_image = parts.iter().any(|part| matches!(part, Part::Image { .. }));
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let names = texts.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('@'));
    let names = names.map(|name| name.trim_end_matches(['.', ',', ';', ':', '?', '!', ')']));
    // A handle such as `@ada` is no path.
    let looks_like_one = |name: &&str| name.contains('/') || name.contains('.');
    let is_missing = |name: &&str| !attached.contains(name) && !has_image;
    names.filter(looks_like_one).filter(is_missing).map(|name| format!("`{name}`")).collect()
}

impl Completion {
    /// Commands; `None` if there is none like it.
    pub fn of_commands(typed: &str) -> Option<Self> {
        let choices: Vec<Candidate> = slash::matching(typed)
            .into_iter()
            .map(|told| {
                let takes = if told.takes.is_empty() { String::new() } else { format!(" {}", told.takes) };
                Candidate { text: format!("/{}", told.name), about: format!("{}{}", told.about, takes_hint(&takes)) }
            })
            .collect();
        (!choices.is_empty()).then(|| Self { what: Typing::Command(typed.to_owned()), choices, at: 0 })
    }

    /// Files; `None` if there is none like it.
    pub fn of_files(typed: &str, paths: Vec<String>) -> Option<Self> {
        let choices: Vec<Candidate> =
            paths.into_iter().map(|path| Candidate { text: mention(&path), about: String::new() }).collect();
        (!choices.is_empty()).then(|| Self { what: Typing::File(typed.to_owned()), choices, at: 0 })
    }

    /// Moves the choice by `by`, from one end to the other.
    pub fn step(&mut self, by: isize) {
        let count = self.choices.len();
        self.at = (self.at + count).saturating_add_signed(by) % count;
    }

    /// The chosen one.
    pub fn chosen(&self) -> &Candidate {
        &self.choices[self.at]
    }

    /// The rows that are shown, and which of them is chosen.
    pub fn window(&self) -> (&[Candidate], usize) {
        let first = (self.at + 1).saturating_sub(MAX_ROWS);
        let last = (first + MAX_ROWS).min(self.choices.len());
        (&self.choices[first..last], self.at - first)
    }
}

/// A file as it is mentioned: one with blanks in its name needs quotes.
fn mention(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\" ") } else { format!("@{path} ") }
}

fn takes_hint(takes: &str) -> String {
    if takes.is_empty() { String::new() } else { format!(" ·{takes}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Option<Typing> {
        let mut composer = Composer::default();
        composer.insert(text);
        typing(&composer)
    }

    #[test]
    fn a_command_is_one_at_the_beginning_only() {
        assert_eq!(typed("/re"), Some(Typing::Command("re".into())));
        assert_eq!(typed("see /re"), None);
        assert_eq!(typed("/label x"), None);
    }

    #[test]
    fn a_file_is_completed_anywhere() {
        assert_eq!(typed("see @src/l"), Some(Typing::File("src/l".into())));
        assert_eq!(typed("me@example.org"), None);
    }

    #[test]
    fn what_looks_like_a_file_and_is_none_is_told() {
        let file = Part::File { path: "src/lib.rs".into(), text: String::new() };
        let said = Part::text("see @src/lib.rs, @gone.txt and @ada");
        assert_eq!(missing(&[said, file]), ["`gone.txt`"]);
    }

    #[test]
    fn the_chosen_one_is_always_among_those_shown() {
        let paths = (0..20).map(|number| format!("f{number}")).collect();
        let mut files = Completion::of_files("f", paths).expect("there are some");
        for _ in 0..45 {
            files.step(1);
            let (rows, at) = files.window();
            assert_eq!(&rows[at], files.chosen());
            assert!(rows.len() <= MAX_ROWS);
        }
        assert_eq!(Completion::of_files("f", Vec::new()), None);
    }
}
