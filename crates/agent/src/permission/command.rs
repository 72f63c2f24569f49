//! Reading command lines, conservatively.
//!
//! [`parse`] understands words, quotes, `;`, `&&`, `||`, `|`, and redirections that cannot write a file; nothing else of the shell's
//! language. Whatever it is not sure of it refuses, with the reason: an expansion could become any word, an assignment could change any
//! command. [`loosely`] is the opposite, for what is denied: it looks for commands wherever one could begin.

use std::fmt;

/// Why a command line is not known to be plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// `$X`, `$(…)`, `` `…` ``.
    Expansion,
    /// `> file`, `< file`, `<<EOF`.
    Redirection,
    /// `*`, `?`, `[`, `{`, outside quotes.
    Pattern,
    /// `&` behind a command.
    Background,
    /// `X=1` in front of a command.
    Assignment,
    /// `if`, `(`, `!`, `#` and the like.
    Syntax,
    /// Several lines, or control characters outside quotes.
    Lines,
    /// A quote without its end, an operator with nothing behind it, or no command at all.
    Incomplete,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expansion => "`$` or a backquote in the line can become any word or run another command",
            Self::Redirection => "the line redirects input or output",
            Self::Pattern => "an unquoted `*`, `?`, `[` or `{` in the line can become any word",
            Self::Background => "the line sends a command to the background",
            Self::Assignment => "the line sets a variable for the command",
            Self::Syntax => "the line uses more of the shell's language than plain commands",
            Self::Lines => "the command has several lines",
            Self::Incomplete => "the line is not complete",
        })
    }
}

/// Words that change what the words after them mean.
const KEYWORDS: [&str; 22] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "time", "coproc", "in", "!", "{", "}", "[[", "]]",
];

/// Takes a command line apart: the words of each simple command, at least one.
pub(crate) fn parse(command: &str) -> Result<Vec<Vec<String>>, Unclear> {
    let mut reader = Reader { rest: command.trim_matches([' ', '\t']), commands: Vec::new(), words: Vec::new() };
    reader.read()?;
    Ok(reader.commands)
}

struct Reader<'a> {
    rest: &'a str,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Unclear> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            let Some(next) = self.rest.chars().next() else { break };
            match next {
                ';' | '&' | '|' => self.operator()?,
                '>' => self.redirection()?,
                _ if self.rest.starts_with("2>") || self.rest.starts_with("1>") => self.redirection()?,
                _ => {
                    let word = self.word()?;
                    self.words.push(word);
                }
            }
        }
        self.end_command()
    }

    fn operator(&mut self) -> Result<(), Unclear> {
        let known = ["&&", "||", ";;", "|&", "&>", ";", "|", "&"];
        let operator = known.into_iter().find(|operator| self.rest.starts_with(operator));
        let operator = match operator {
            Some("&") => return Err(Unclear::Background),
            Some("&>") => return Err(Unclear::Redirection),
            None | Some(";;" | "|&") => return Err(Unclear::Syntax),
            Some(operator) => operator,
        };
        self.rest = &self.rest[operator.len()..];
        self.end_command()?;
        // What ends with `;` is whole; what ends with another operator is not.
        match operator == ";" || !self.rest.trim_matches([' ', '\t']).is_empty() {
            true => Ok(()),
            false => Err(Unclear::Incomplete),
        }
    }

    fn end_command(&mut self) -> Result<(), Unclear> {
        let words = std::mem::take(&mut self.words);
        let Some(first) = words.first() else {
            // Only behind a final `;`.
            let is_whole = !self.commands.is_empty() && self.rest.is_empty();
            return if is_whole { Ok(()) } else { Err(Unclear::Incomplete) };
        };
        if first.contains('=') {
            return Err(Unclear::Assignment);
        }
        if first.is_empty() || KEYWORDS.contains(&first.as_str()) {
            return Err(Unclear::Syntax);
        }
        self.commands.push(words);
        Ok(())
    }

    /// Only what cannot write a file: to another output, or to `/dev/null`.
    fn redirection(&mut self) -> Result<(), Unclear> {
        let rest = self.rest.trim_start_matches(['1', '2']);
        let rest = rest.strip_prefix('>').ok_or(Unclear::Redirection)?;
        let rest = rest.strip_prefix('>').unwrap_or(rest);
        let target = rest.trim_start_matches([' ', '\t']);
        let behind = ["&1", "&2", "/dev/null"].into_iter().find_map(|name| target.strip_prefix(name));
        let behind = behind.ok_or(Unclear::Redirection)?;
        let is_whole = behind.chars().next().is_none_or(|next| matches!(next, ' ' | '\t' | ';' | '|' | '&'));
        self.rest = behind;
        if is_whole { Ok(()) } else { Err(Unclear::Redirection) }
    }

    fn word(&mut self) -> Result<String, Unclear> {
        let mut word = String::new();
        let mut is_quoted = false;
        loop {
            let mut chars = self.rest.chars();
            let Some(next) = chars.next() else { break };
            match next {
                ' ' | '\t' | ';' | '|' | '&' => break,
                '\'' => {
                    let (text, behind) = chars.as_str().split_once('\'').ok_or(Unclear::Incomplete)?;
                    word.push_str(plain(text)?);
                    (self.rest, is_quoted) = (behind, true);
                    continue;
                }
                '"' => {
                    self.rest = double_quoted(chars.as_str(), &mut word)?;
                    is_quoted = true;
                    continue;
                }
                '\\' => {
                    let escaped = chars.next().ok_or(Unclear::Incomplete)?;
                    if escaped.is_control() {
                        return Err(Unclear::Lines);
                    }
                    word.push(escaped);
                    is_quoted = true;
                }
                '$' | '`' => return Err(Unclear::Expansion),
                // A digit before one may be a redirection of another stream.
                '>' | '<' => return Err(Unclear::Redirection),
                '*' | '?' | '[' | ']' | '{' | '}' => return Err(Unclear::Pattern),
                '(' | ')' | '!' | '#' => return Err(Unclear::Syntax),
                c if c.is_control() || (c.is_whitespace() && c != ' ') => return Err(Unclear::Lines),
                '~' if !word.is_empty() || is_quoted => word.push('~'),
                // A home directory is never an option or a command of ours.
                '~' if self.words.is_empty() => return Err(Unclear::Expansion),
                c => word.push(c),
            }
            self.rest = chars.as_str();
        }
        if is_quoted || !word.is_empty() { Ok(word) } else { Err(Unclear::Incomplete) }
    }
}

/// Adds what is up to the closing quote, and returns what is behind it.
fn double_quoted<'a>(text: &'a str, word: &mut String) -> Result<&'a str, Unclear> {
    let mut chars = text.chars();
    loop {
        match chars.next().ok_or(Unclear::Incomplete)? {
            '"' => return Ok(chars.as_str()),
            // Nothing expands that begins like this, as in "s/^4$/y/".
            '$' if chars.as_str().starts_with(['"', '/', '|', ')', ' ']) => word.push('$'),
            '$' | '`' => return Err(Unclear::Expansion),
            '\\' => match chars.next().ok_or(Unclear::Incomplete)? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other if other.is_control() => return Err(Unclear::Lines),
                other => word.extend(['\\', other]),
            },
            c if !is_plain(c) => return Err(Unclear::Lines),
            c => word.push(c),
        }
    }
}

fn plain(text: &str) -> Result<&str, Unclear> {
    if text.chars().all(is_plain) { Ok(text) } else { Err(Unclear::Lines) }
}

/// What quotes hold without doubt: a message may have several lines.
fn is_plain(c: char) -> bool {
    !c.is_control() || matches!(c, '\t' | '\n')
}

/// Commands that run what follows them, with how many words of their own at least.
const WRAPPERS: [&str; 32] = [
    "sudo", "doas", "su", "env", "command", "builtin", "exec", "eval", "nohup", "nice", "ionice", "chrt", "taskset",
    "setsid", "stdbuf", "timeout", "time", "xargs", "parallel", "watch", "flock", "strace", "script", "ssh", "npx",
    "busybox", "bash", "sh", "dash", "zsh", "ksh", "fish",
];

/// Options of `find` that run what follows them.
const RUN_WHAT_FOLLOWS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// The words wherever a command could begin, quotes and all else taken away. Finds too much rather than too little.
pub(crate) fn loosely(command: &str) -> Vec<Vec<String>> {
    let begins = |c: char| matches!(c, ';' | '&' | '|' | '\n' | '\r' | '(' | ')' | '`' | '{' | '}' | '!');
    // A backslash at the end of a line goes with the line's end, unless it is itself behind one.
    let joined = command.replace("\\\n", "");
    let mut found = Vec::new();
    for text in [command, &joined] {
        // As one text with its quotes, and as one without: `sh -c 'rm x'` hides a command in them, and so does `r"m" x`.
        let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let spaced: String = text.chars().map(|c| if matches!(c, '\'' | '"' | '\\') { ';' } else { c }).collect();
        for text in [bare, spaced] {
            text.split(begins).for_each(|segment| look_into(segment, &mut found));
        }
    }
    found
}

/// Adds the words wherever a command could begin in a part of a line that holds at most one, and what `find` would run.
fn look_into(segment: &str, found: &mut Vec<Vec<String>>) {
    for (at, part) in segment.split(['<', '>']).enumerate() {
        let words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
        found.extend(beginnings(&words));
        // The first word behind a redirection is a file's name, and the next one may be the command.
        if let [_, behind @ ..] = words.as_slice()
            && at > 0
        {
            found.extend(beginnings(behind));
        }
        let runs = |word: &String| RUN_WHAT_FOLLOWS.contains(&word.as_str());
        let run = words.iter().enumerate().filter(|(_, word)| runs(word));
        found.extend(run.flat_map(|(at, _)| beginnings(&words[at + 1..])));
    }
}

/// The words, again without each wrapper, keyword and assignment in front, and with the path of the program taken away.
fn beginnings(words: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = words;
    let mut is_wrapped = false;
    while let [first, behind @ ..] = rest {
        let name = first.rsplit('/').next().unwrap_or(first).trim_start_matches('$');
        let mut as_named = rest.to_vec();
        name.clone_into(&mut as_named[0]);
        found.extend([rest.to_vec(), as_named]);
        let is_assignment = first.contains('=');
        let is_front = WRAPPERS.contains(&name) || KEYWORDS.contains(&name) || is_assignment;
        // Options and numbers behind a wrapper are its own, and so may any word be: `timeout 5 rm`, `xargs -I x rm`.
        if !is_front && !is_wrapped {
            break;
        }
        is_wrapped |= WRAPPERS.contains(&name);
        rest = behind;
    }
    found
}

/// Programs whose first plain word says what they do.
const WITH_SUBCOMMANDS: [&str; 24] = [
    "git",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "go",
    "docker",
    "podman",
    "kubectl",
    "pip",
    "uv",
    "poetry",
    "gh",
    "jj",
    "hg",
    "svn",
    "make",
    "just",
    "rustup",
    "terraform",
    "systemctl",
    "dotnet",
];
/// Programs that run whatever they are told; to allow them is to allow everything.
const RUN_ANYTHING: [&str; 26] = [
    "bash", "sh", "zsh", "fish", "dash", "sudo", "doas", "env", "xargs", "eval", "exec", "source", ".", "command",
    "nohup", "timeout", "python", "python3", "node", "perl", "ruby", "ssh", "find", "awk", "rm", "dd",
];

/// The words of a command that a user would allow: `git status`, `npm run build`, `ls`.
pub(crate) fn usual_prefix(words: &[String]) -> &[String] {
    let is_plain = |at: usize| words.get(at).is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    let first = words.first().map_or("", String::as_str);
    let length = if RUN_ANYTHING.contains(&first) || first.contains('/') {
        words.len()
    } else if !WITH_SUBCOMMANDS.contains(&first) {
        1
    } else if is_plain(1) && words[1] == "run" && words.len() > 2 {
        3
    } else if is_plain(1) {
        2
    } else {
        words.len()
    };
    &words[..length.min(words.len())]
}
