//! Code with highlighting, in the terminal's own colours.
//!
//! The grammars take a while to load, so a thread of its own does that as soon as anything is drawn; until then code is plain. What was
//! parsed is remembered per thread and continued when the text grows, because streaming code is drawn again with every piece that comes.
//! Parsing is slow, some ten lines in a millisecond: whoever draws frames gives it a [`Budget`], and gets the rest with the next frame.

mod token;

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use ratatui::text::{Line, Span};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use self::token::TokenKind;
use crate::theme::Theme;

/// Longer code is plain: parsing it would be felt.
const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 200_000;
/// A longer line is generated, and slow to parse.
const MAX_LINE: usize = 2_000;
/// How many texts are remembered.
const REMEMBERED: usize = 64;

static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();

/// Loads the grammars, and makes those ready that are met most. Takes some hundred milliseconds: not for the thread that draws.
pub(crate) fn load() {
    if GRAMMARS.get().is_some() {
        return;
    }
    let grammars = SyntaxSet::load_defaults_newlines();
    for (language, sample) in token::SAMPLES {
        if let Some(mut known) = ParsedCode::new(language, &grammars) {
            known.go_on(sample, &grammars);
        }
    }
    // Two loads at once come to the same; the first one is kept.
    GRAMMARS.get_or_init(|| grammars);
}

// Tests must not depend on who came first.
#[cfg(test)]
fn grammars() -> Option<&'static SyntaxSet> {
    Some(GRAMMARS.get_or_init(SyntaxSet::load_defaults_newlines))
}

#[cfg(not(test))]
fn grammars() -> Option<&'static SyntaxSet> {
    static ASKED: std::sync::Once = std::sync::Once::new();
    ASKED.call_once(|| {
        if std::thread::Builder::new().name("grammars".to_owned()).spawn(load).is_err() {
            load();
        }
    });
    GRAMMARS.get()
}

/// The lines of `code`, highlighted if `language` (a fence's word, or a file's extension) is known. They are not wrapped.
pub(crate) fn lines(code: &str, language: &str, theme: &Theme) -> Vec<Line<'static>> {
    let is_short = code.len() <= MAX_BYTES && code.lines().nth(MAX_LINES).is_none();
    let parsed = match grammars() {
        Some(grammars) if is_short => parsed(code, language, grammars),
        Some(_) => None,
        None => {
            IS_CUT.set(IS_CUT.get() || is_short && !language.is_empty());
            None
        }
    };
    match parsed {
        Some(parsed) => {
            let tokens = parsed.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
            code.lines().zip(tokens).map(|(line, tokens)| styled(line, tokens, theme)).collect()
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
    kind: TokenKind,
}

thread_local! {
    static REMEMBER: RefCell<Vec<ParsedCode>> = const { RefCell::new(Vec::new()) };
    /// Lines that may still be parsed.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Whether lines stayed plain because there was no budget left, or no grammars yet.
    static IS_CUT: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, no more than so many lines are parsed on this thread; the others stay plain until they are asked for again.
#[derive(Debug)]
pub(crate) struct Budget(());

impl Budget {
    pub(crate) fn of(lines: usize) -> Self {
        BUDGET.set(lines);
        Self(())
    }

    /// Whether lines stayed plain since this was last asked.
    pub(crate) fn was_exceeded(&self) -> bool {
        IS_CUT.replace(false)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        BUDGET.set(usize::MAX);
        IS_CUT.set(false);
    }
}

/// Code that was parsed as far as its last whole line.
struct ParsedCode {
    language: String,
    text: String,
    state: ParseState,
    scopes: ScopeStack,
    lines: Vec<Vec<Token>>,
}

/// The tokens of each line; continues what was parsed before.
fn parsed(code: &str, language: &str, grammars: &SyntaxSet) -> Option<Vec<Vec<Token>>> {
    REMEMBER.with_borrow_mut(|remembered| {
        let begins = |known: &ParsedCode| known.language == language && code.starts_with(&known.text);
        let longest = remembered.iter().enumerate().filter(|(_, known)| begins(known));
        let mut known = match longest.max_by_key(|(_, known)| known.text.len()).map(|(at, _)| at) {
            Some(at) => remembered.remove(at),
            None => ParsedCode::new(language, grammars)?,
        };
        let whole = code.rfind('\n').map_or(0, |at| at + 1);
        known.go_on(affordable(&code[known.text.len()..whole]), grammars);
        let mut lines = known.lines.clone();
        if known.text.len() == whole && whole < code.len() {
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

/// As many of the lines as there is budget for.
fn affordable(lines: &str) -> &str {
    let budget = BUDGET.get();
    match lines.match_indices('\n').nth(budget) {
        // Even the line before it is one too many if there is no budget at all.
        Some(_) => {
            let end = budget.checked_sub(1).and_then(|last| lines.match_indices('\n').nth(last));
            BUDGET.set(0);
            IS_CUT.set(true);
            &lines[..end.map_or(0, |(at, _)| at + 1)]
        }
        None => {
            BUDGET.set(budget - lines.matches('\n').count());
            lines
        }
    }
}

impl ParsedCode {
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
    grammars.find_syntax_by_token(token::alias(&language))
}

fn tokens(line: &str, state: &mut ParseState, scopes: &mut ScopeStack, grammars: &SyntaxSet) -> Vec<Token> {
    if line.len() > MAX_LINE {
        return Vec::new();
    }
    // A grammar that fails leaves the line plain.
    let Ok(changes) = state.parse_line(line, grammars) else { return Vec::new() };
    let mut tokens = Vec::new();
    for (at, change) in changes {
        tokens.push(Token { end: at, kind: TokenKind::of(scopes) });
        if scopes.apply(&change).is_err() {
            return Vec::new();
        }
    }
    tokens.push(Token { end: line.len(), kind: TokenKind::of(scopes) });
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(code: &str, language: &str) -> String {
        let theme = Theme::default();
        let mark = |span: &Span| match span.style {
            style if style == TokenKind::Keyword.style(theme) => format!("k({})", span.content),
            style if style == TokenKind::String.style(theme) => format!("s({})", span.content),
            style if style == TokenKind::Comment.style(theme) => format!("c({})", span.content),
            style if style == TokenKind::Constant.style(theme) => format!("n({})", span.content),
            style if style == TokenKind::Function.style(theme) => format!("f({})", span.content),
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
    fn what_is_too_much_for_one_frame_is_done_with_the_next() {
        let code = "let x = 1;\n".repeat(25);
        let coloured = |drawn: &[Line]| drawn.iter().filter(|line| line.spans.len() > 1).count();
        for expected in [(10, true), (20, true), (25, false)] {
            let budget = Budget::of(10);
            let drawn = lines(&code, "rust", &Theme::default());
            assert_eq!((drawn.len(), coloured(&drawn), budget.was_exceeded()), (25, expected.0, expected.1));
        }
        assert_eq!(coloured(&lines(&format!("{code}//\n{code}"), "rust", &Theme::default())), 50);
    }

    #[test]
    fn long_code_is_plain() {
        let long = "fn f() {}\n".repeat(MAX_LINES + 1);
        let drawn = lines(&long, "rust", &Theme::default());
        assert_eq!((drawn.len(), drawn[0].spans.len()), (MAX_LINES + 1, 1));
    }
}
