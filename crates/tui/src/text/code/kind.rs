//! What a piece of code is, as far as it is coloured, and which grammar a word means.

use std::sync::OnceLock;

use ratatui::style::Style;
use syntect::parsing::{Scope, ScopeStack};

use crate::theme::Theme;

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
const SCOPES: [(&str, Kind); 23] = [
    ("comment", Kind::Comment),
    ("constant.character.escape", Kind::Constant),
    ("string", Kind::String),
    ("constant", Kind::Constant),
    ("keyword.operator.word", Kind::Keyword),
    ("keyword.operator.logical.python", Kind::Keyword),
    ("keyword.operator", Kind::Plain),
    ("keyword", Kind::Keyword),
    ("storage", Kind::Keyword),
    ("variable.language", Kind::Keyword),
    ("entity.name.function", Kind::Function),
    ("entity.name.macro", Kind::Function),
    ("entity.other.attribute-name", Kind::Function),
    ("support.function", Kind::Function),
    ("support.macro", Kind::Function),
    ("variable.function", Kind::Function),
    ("entity.name.tag", Kind::Keyword),
    ("entity.name", Kind::Type),
    ("entity.other.inherited-class", Kind::Type),
    ("support.type", Kind::Type),
    ("support.class", Kind::Type),
    ("markup.inserted", Kind::Added),
    ("markup.deleted", Kind::Removed),
];

impl Kind {
    /// What is written inside of `scopes`.
    pub(super) fn of(scopes: &ScopeStack) -> Self {
        static TABLE: OnceLock<Vec<(Scope, Kind)>> = OnceLock::new();
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
