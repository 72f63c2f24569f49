//! Code with highlighting, in the terminal's own colours.
//!
//! The grammars take a while to load, so a thread of its own does that as soon as anything is drawn; until then code is plain. What was
//! parsed is remembered per thread and continued when the text grows, because streaming code is drawn again with every piece that comes.

mod kind;

use std::cell::RefCell;
use std::sync::OnceLock;

use ratatui::text::{Line, Span};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use self::kind::Kind;
use crate::theme::Theme;

/// Longer code is plain: parsing it would be felt.
const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 200_000;
/// A longer line is generated, and slow to parse.
const MAX_LINE: usize = 2_000;
/// How many texts are remembered.
const REMEMBERED: usize = 24;

static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();

/// Loads the grammars, and makes those ready that are met most. Takes some hundred milliseconds: not for the thread that draws.
pub(crate) fn load() {
    if GRAMMARS.get().is_some() {
        return;
    }
    let grammars = SyntaxSet::load_defaults_newlines();
    for (language, sample) in kind::SAMPLES {
        if let Some(mut known) = Known::new(language, &grammars) {
            known.go_on(sample, &grammars);
        }
    }
    // Two loads at once come to the same; the first one is kept.
    GRAMMARS.get_or_init(|| grammars);
}

/// Whether code is highlighted yet; what was drawn before may be drawn again.
pub(crate) fn is_loaded() -> bool {
    grammars().is_some()
}

// Tests must not depend on who came first.
#[cfg(test)]
fn grammars() -> Option<&'static SyntaxSet> {
    Some(GRAMMARS.get_or_init(SyntaxSet::load_defaults_newlines))
}

#[cfg(not(test))]
fn grammars() -> Option<&'static SyntaxSet> {
    static ASKED: std::sync::Once = std::sync::Once::new();
    // Without a thread to spare, code stays plain.
    ASKED.call_once(|| drop(std::thread::Builder::new().name("grammars".to_owned()).spawn(load)));
    GRAMMARS.get()
}

/// The lines of `code`, highlighted if `language` (a fence's word, or a file's extension) is known. They are not wrapped.
pub(crate) fn lines(code: &str, language: &str, theme: &Theme) -> Vec<Line<'static>> {
    let is_short = code.len() <= MAX_BYTES && code.lines().nth(MAX_LINES).is_none();
    let parsed = grammars().filter(|_| is_short).and_then(|grammars| parsed(code, language, grammars));
    match parsed {
        Some(parsed) => {
            let lines = code.lines().zip(parsed);
            lines.map(|(line, tokens)| styled(line, &tokens, theme)).collect()
        }
        None => code.lines().map(|line| Line::from(line.to_owned())).collect(),
    }
}

fn styled(line: &str, tokens: &[Token], theme: &Theme) -> Line<'static> {
    let mut spans = Vec::new();
    let mut start = 0;
    for token in tokens {
        // The newline that the parser needs is none of ours.
        let end = token.end.min(line.len());
        if start < end {
            spans.push(Span::styled(line[start..end].to_owned(), token.kind.style(*theme)));
            start = end;
        }
    }
    if start < line.len() {
        spans.push(Span::raw(line[start..].to_owned()));
    }
    Line::from(spans)
}

/// A part of a line, up to `end`.
#[derive(Clone, Copy, Debug)]
struct Token {
    end: usize,
    kind: Kind,
}

thread_local! {
    static REMEMBER: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Code that was parsed as far as its last whole line.
struct Known {
    language: String,
    text: String,
    state: ParseState,
    scopes: ScopeStack,
    lines: Vec<Vec<Token>>,
}

/// The tokens of each line; continues what was parsed before.
fn parsed(code: &str, language: &str, grammars: &SyntaxSet) -> Option<Vec<Vec<Token>>> {
    REMEMBER.with_borrow_mut(|remembered| {
        let begins = |known: &Known| known.language == language && code.starts_with(&known.text);
        let longest = remembered.iter().enumerate().filter(|(_, known)| begins(known));
        let mut known = match longest.max_by_key(|(_, known)| known.text.len()).map(|(at, _)| at) {
            Some(at) => remembered.remove(at),
            None => Known::new(language, grammars)?,
        };
        let whole = code.rfind('\n').map_or(0, |at| at + 1);
        known.go_on(&code[known.text.len().min(whole)..whole], grammars);
        let mut lines = known.lines.clone();
        if whole < code.len() {
            let (mut state, mut scopes) = (known.state.clone(), known.scopes.clone());
            lines.push(tokens(&format!("{}\n", &code[whole..]), &mut state, &mut scopes, grammars));
        }
        // Those that were asked for last stand last.
        remembered.push(known);
        if remembered.len() > REMEMBERED {
            remembered.remove(0);
        }
        Some(lines)
    })
}

impl Known {
    fn new(language: &str, grammars: &SyntaxSet) -> Option<Self> {
        let state = ParseState::new(grammar(language, grammars)?);
        let scopes = ScopeStack::new();
        Some(Self { language: language.to_owned(), text: String::new(), state, scopes, lines: Vec::new() })
    }

    /// Parses whole lines that follow those that were parsed.
    fn go_on(&mut self, more: &str, grammars: &SyntaxSet) {
        for line in more.split_inclusive('\n') {
            self.lines.push(tokens(line, &mut self.state, &mut self.scopes, grammars));
        }
        self.text.push_str(more);
    }
}

fn grammar<'a>(language: &str, grammars: &'a SyntaxSet) -> Option<&'a SyntaxReference> {
    let language = language.to_lowercase();
    if language.is_empty() {
        return None;
    }
    grammars.find_syntax_by_token(kind::alias(&language))
}

fn tokens(line: &str, state: &mut ParseState, scopes: &mut ScopeStack, grammars: &SyntaxSet) -> Vec<Token> {
    if line.len() > MAX_LINE {
        return Vec::new();
    }
    // A grammar that fails leaves the line plain.
    let Ok(changes) = state.parse_line(line, grammars) else { return Vec::new() };
    let mut tokens = Vec::new();
    for (at, change) in changes {
        tokens.push(Token { end: at, kind: Kind::of(scopes) });
        if scopes.apply(&change).is_err() {
            return Vec::new();
        }
    }
    tokens.push(Token { end: line.len(), kind: Kind::of(scopes) });
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(code: &str, language: &str) -> String {
        let theme = Theme::default();
        let mark = |span: &Span| match span.style {
            style if style == Kind::Keyword.style(theme) => format!("k({})", span.content),
            style if style == Kind::String.style(theme) => format!("s({})", span.content),
            style if style == Kind::Comment.style(theme) => format!("c({})", span.content),
            style if style == Kind::Constant.style(theme) => format!("n({})", span.content),
            style if style == Kind::Function.style(theme) => format!("f({})", span.content),
            _ => span.content.to_string(),
        };
        let line = |line: &Line| line.spans.iter().map(mark).collect::<String>();
        lines(code, language, &theme)
            .iter()
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
            .replace(")s(", "")
            .replace(")c(", "")
    }

    #[test]
    fn code_is_told_apart_by_what_it_is() {
        assert_eq!(marked("fn main() { // hi\n", "rust"), "k(fn) f(main)() { c(// hi)");
        assert_eq!(marked("x = \"a\" if y else 3\n", "py"), "x = s(\"a\") k(if) y k(else) n(3)");
        assert_eq!(marked("const a: number = 'x'", "ts"), "k(const) a: number = s('x')");
        assert_eq!(marked("whatever fn", "no-such-language"), "whatever fn");
    }

    #[test]
    fn code_that_grows_looks_as_if_it_had_come_at_once() {
        let code = "/* a\n b */ let s = \"x\n y\";\nfn f() {}\n\n// end";
        for (at, _) in code.char_indices() {
            lines(&code[..at], "rs", &Theme::default());
        }
        let grown = lines(code, "rs", &Theme::default());
        REMEMBER.with_borrow_mut(Vec::clear);
        assert_eq!(grown, lines(code, "rs", &Theme::default()));
        assert_eq!(grown.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), code);
    }

    #[test]
    fn long_code_is_plain() {
        let long = "fn f() {}\n".repeat(MAX_LINES + 1);
        let drawn = lines(&long, "rust", &Theme::default());
        assert_eq!((drawn.len(), drawn[0].spans.len()), (MAX_LINES + 1, 1));
    }
}
