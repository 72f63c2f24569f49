//! Commands that are typed: their names, what they are for, and what a line means.

/// A command that can be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slash {
    /// Opens the picker.
    Rewind,
    /// Takes the last turn or rewind back.
    Undo,
    /// Repeats what was undone.
    Redo,
    /// Begins another session from here.
    Fork,
    /// Names the point before the last prompt.
    Label,
    /// Has a part of the conversation summarised.
    Summarize,
    /// Has all of it summarised.
    Compact,
    /// Shows what the last turn changed.
    Diff,
    /// Lists checkpoints.
    Checkpoints,
    /// Lists sessions.
    Sessions,
    /// Begins a new session.
    New,
    /// Cuts what the model sees.
    Clear,
    /// Shows or changes the model.
    Model,
    /// Writes the conversation to a file.
    Export,
    /// Shows the session in a browser too.
    Web,
    /// Lists background jobs, or ends one.
    Jobs,
    /// Loads what waits to be said.
    Draft,
    /// Shows all keys and commands.
    Help,
    /// Leaves.
    Quit,
}

/// What is told of a command.
pub struct CommandInfo {
    /// As it is typed, without the slash.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What can follow it.
    pub takes: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The command.
    pub slash: Slash,
}

const fn told(
    slash: Slash,
    name: &'static str,
    aliases: &'static [&'static str],
    takes: &'static str,
    about: &'static str,
) -> CommandInfo {
    CommandInfo { name, aliases, takes, about, slash }
}

/// All of them, in the order of the help.
pub const ALL: [CommandInfo; 19] = [
    told(Slash::Rewind, "rewind", &["rollback"], "", "go back to a prompt: files, conversation or both"),
    told(Slash::Undo, "undo", &[], "[keep|overwrite|merge]", "take back the last turn or rewind"),
    told(Slash::Redo, "redo", &[], "[keep|overwrite|merge]", "repeat what was undone"),
    told(Slash::Diff, "diff", &[], "", "what the last turn changed"),
    told(Slash::Fork, "fork", &[], "", "go on from here in a session of its own"),
    told(Slash::Label, "label", &[], "TEXT", "name the point before the last prompt"),
    told(Slash::Checkpoints, "checkpoints", &[], "", "the checkpoints of this directory"),
    told(Slash::Compact, "compact", &[], "[WHAT TO HEED]", "have the whole conversation summarised"),
    told(Slash::Summarize, "summarize", &["summarise"], "[from|up to NUMBER]", "have a part of it summarised"),
    told(Slash::Clear, "clear", &[], "", "the model sees nothing of what was said so far"),
    told(Slash::New, "new", &[], "", "begin a new session"),
    told(Slash::Sessions, "sessions", &["resume"], "", "other sessions of this directory"),
    told(Slash::Model, "model", &[], "[PROVIDER/NAME]", "which model is asked, or ask another"),
    told(Slash::Export, "export", &[], "[FILE]", "write the conversation as JSON lines"),
    told(Slash::Web, "web", &[], "", "this session in a browser too"),
    told(Slash::Jobs, "jobs", &[], "[end JOB]", "background jobs"),
    told(Slash::Draft, "draft", &[], "", "load what waits to be said"),
    told(Slash::Help, "help", &[], "", "all keys and commands"),
    told(Slash::Quit, "quit", &["exit", "q"], "", "leave"),
];

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It is no command.
    Prompt,
    /// A command, and what follows it.
    Command(Slash, String),
    /// It begins like a command and is none.
    Unknown(String),
    /// It begins like a command that nothing can follow.
    TooMuch(&'static str),
}

/// Reads a line. A path such as `/etc/hosts is wrong` is no command, and nothing is behind a blank.
pub fn read(line: &str) -> Meaning {
    let line = line.trim_end();
    let Some(rest) = line.strip_prefix('/').or_else(|| line.strip_prefix(':')) else { return Meaning::Prompt };
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if let Some(told) = ALL.iter().find(|told| told.name == name || told.aliases.contains(&name)) {
        return match told.takes.is_empty() && !argument.trim().is_empty() {
            true => Meaning::TooMuch(told.name),
            false => Meaning::Command(told.slash, argument.trim().to_owned()),
        };
    }
    let is_a_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    match is_a_word && argument.is_empty() && !line.contains('\n') {
        true => Meaning::Unknown(name.to_owned()),
        false => Meaning::Prompt,
    }
}

/// The commands that what was typed could become.
pub fn matching(typed: &str) -> Vec<&'static CommandInfo> {
    let begins =
        |told: &&CommandInfo| told.name.starts_with(typed) || told.aliases.iter().any(|alias| alias.starts_with(typed));
    ALL.iter().filter(begins).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_slash_and_colon_and_their_other_names() {
        for line in ["/rewind", ":rewind", ":rollback", "/rewind "] {
            assert_eq!(read(line), Meaning::Command(Slash::Rewind, String::new()), "{line}");
        }
        assert_eq!(read("/label all tests pass"), Meaning::Command(Slash::Label, "all tests pass".into()));
    }

    #[test]
    fn what_only_looks_like_a_command_is_said_to_be_none() {
        assert_eq!(read("/rewnd"), Meaning::Unknown("rewnd".into()));
        assert_eq!(read("/clear the cache directory"), Meaning::TooMuch("clear"), "it may be a sentence");
        for line in [" /clear the cache", "/etc/hosts is wrong", "/usr/bin", "mend /rewind", "/ what", ": a"] {
            assert_eq!(read(line), Meaning::Prompt, "{line}");
        }
    }

    #[test]
    fn names_are_unique_and_completed() {
        let mut names: Vec<&str> =
            ALL.iter().flat_map(|told| told.aliases.iter().copied().chain([told.name])).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(matching("re").iter().map(|told| told.name).collect::<Vec<_>>(), ["rewind", "redo", "sessions"]);
    }
}
