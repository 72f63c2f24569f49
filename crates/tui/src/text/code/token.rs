//! The kinds of tokens in code, and the grammar for a language name.

use std::sync::OnceLock;

use ratatui::style::Style;
use syntect::parsing::{Scope, ScopeStack};

use crate::theme::Theme;

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Plain,
    Comment,
    String,
    Constant,
    Keyword,
    Function,
    Type,
    Added,
    Removed,
}

/// The first that fits decides, so what is narrower stands first.
const SCOPES: [(&str, TokenKind); 23] = [
    ("comment", TokenKind::Comment),
    ("constant.character.escape", TokenKind::Constant),
    ("string", TokenKind::String),
    ("constant", TokenKind::Constant),
    ("keyword.operator.word", TokenKind::Keyword),
    ("keyword.operator.logical.python", TokenKind::Keyword),
    ("keyword.operator", TokenKind::Plain),
    ("keyword", TokenKind::Keyword),
    ("storage", TokenKind::Keyword),
    ("variable.language", TokenKind::Keyword),
    ("entity.name.function", TokenKind::Function),
    ("entity.name.macro", TokenKind::Function),
    ("entity.other.attribute-name", TokenKind::Function),
    ("support.function", TokenKind::Function),
    ("support.macro", TokenKind::Function),
    ("variable.function", TokenKind::Function),
    ("entity.name.tag", TokenKind::Keyword),
    ("entity.name", TokenKind::Type),
    ("entity.other.inherited-class", TokenKind::Type),
    ("support.type", TokenKind::Type),
    ("support.class", TokenKind::Type),
    ("markup.inserted", TokenKind::Added),
    ("markup.deleted", TokenKind::Removed),
];

impl TokenKind {
    /// What is written inside of `scopes`.
    pub(super) fn of(scopes: &ScopeStack) -> Self {
        static TABLE: OnceLock<Vec<(Scope, TokenKind)>> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let scopes = SCOPES.iter().filter_map(|(name, kind)| Some((Scope::new(name).ok()?, *kind)));
            scopes.collect()
        });
        let inner_first = scopes.as_slice().iter().rev();
        let mut kinds = inner_first.filter_map(|scope| table.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)));
        kinds.next().map_or(Self::Plain, |(_, kind)| *kind)
    }

    pub(super) fn style(self, theme: Theme) -> Style {
        match self {
            Self::Plain => theme.plain(),
            Self::Comment => theme.dim(),
            Self::String | Self::Added => theme.added(),
            Self::Constant => theme.magenta(),
            Self::Keyword => theme.blue(),
            Self::Function => theme.accent(),
            Self::Type => theme.warning(),
            Self::Removed => theme.removed(),
        }
    }
}

/// The name under which a grammar is found: some languages are close enough to one that there is.
pub(super) fn alias(language: &str) -> &str {
    match language {
        "ts" | "tsx" | "jsx" | "mjs" | "cjs" | "typescript" | "javascriptreact" | "typescriptreact" => "js",
        "jsonc" | "json5" | "jsonl" => "json",
        "zsh" | "console" | "shell-session" | "shellsession" | "ksh" | "fish" => "sh",
        "toml" | "ini" | "cfg" | "conf" | "env" => "properties",
        "kt" | "kotlin" => "scala",
        "patch" => "diff",
        "golang" => "go",
        "python3" | "pyi" => "py",
        "c++" | "cc" | "hpp" | "cuh" => "cpp",
        "make" | "mk" => "makefile",
        other => other,
    }
}

/// Pieces of the languages that are met most: parsing them makes their grammars ready.
pub(super) const SAMPLES: [(&str, &str); 7] = [
    (
        "rust",
        "//! a\nuse std::io::{self, Read};\n#[derive(Debug)]\npub struct A<'a, T: Read> { a: &'a str, b: Vec<T> }\nimpl<T> A<'_, T> {\n    \
/// x\n    pub async fn f(&mut self, n: usize) -> Result<(), Box<dyn E>> {\n        let s = format!(\"{n:?}\\n\", 'c');\n        for i in \
0..10_u8 { if let Some(x) = y? && true { return Ok(match x { 1 | 2 => |a| a + 1.0, _ => !0 }); } }\n    }\n}\n",
    ),
    (
        "py",
        "import a\n@d\nclass A(B):\n    \"\"\"x\"\"\"\n    async def f(self, *a, x: int = 1) -> str:\n        return f\"{x}\" if not a else None # c\n",
    ),
    (
        "js",
        "import a from 'b';\nexport const f = async (x) => { let y = `a${x}`; return /re/g.test(y) ? null : new A({ b: 1 }); } // c\n",
    ),
    (
        "sh",
        "set -e\nfor f in *.rs; do if [ -f \"$f\" ]; then cat $f | grep -v 'x' > \"${o:-y}\"; fi; done # c\nfoo() { echo $(ls); }\n",
    ),
    ("json", "{\"a\": [1, true, null, \"b\\n\"]}\n"),
    (
        "go",
        "package a\nimport \"b\"\nfunc (s *S) F(a int) (string, error) { if x := 1; x > 0 { return `a`, nil } // c\n}\n",
    ),
    ("yaml", "a: 1\nb:\n  - \"c\" # d\n"),
];
