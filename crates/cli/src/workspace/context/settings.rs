//! The settings file, `config.toml`. Unknown keys and bad values are errors that name the file and the key: a setting that is silently
//! ignored is a promise broken.

use std::io;
use std::path::{Path, PathBuf};

use std::collections::BTreeMap;

use retake_agent::mcp::ServerSettings;
use retake_agent::model::{Effort, Prices, Reasoning};
use retake_agent::permission::{InvalidRule, Rule};
use retake_engine::{Settings, plain_file};
use serde::Deserialize;
use thiserror::Error;
use toml::{Table, Value};

use crate::output::size::{self, BadSize};

/// Why the settings cannot be used; none of these leaves defaults in force.
#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("cannot read the settings file `{}`", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the settings file `{}` is not valid TOML (line {line}): {message}", .path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
    #[error("unknown key `{key}` in the settings file `{}`", .path.display())]
    UnknownKey { path: PathBuf, key: String },
    #[error("`{key}` in the settings file `{}` must be {expected}", .path.display())]
    WrongType { path: PathBuf, key: String, expected: &'static str },
    #[error("bad value for `{key}` in the settings file `{}`", .path.display())]
    BadSize { path: PathBuf, key: String, source: BadSize },
    #[error("bad value for `{key}` in the settings file `{}`", .path.display())]
    BadRule { path: PathBuf, key: String, source: InvalidRule },
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// For the engine.
    pub engine: Settings,
    /// For the agent.
    pub agent: AgentSettings,
}

/// What the agent can be told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// `model.name`: `anthropic/NAME` or `openai/NAME`.
    pub model: Option<String>,
    /// `model.base_url`
    pub base_url: Option<String>,
    /// `model.max_output`
    pub max_output: Option<u64>,
    /// `model.context`
    pub context: Option<u64>,
    /// `model.effort` or `model.thinking_tokens`
    pub reasoning: Option<Reasoning>,
    /// `model.prices`
    pub prices: Option<Prices>,
    /// `tools.checkpoint`
    pub checkpoints: bool,
    /// `permissions.allow`
    pub allow: Vec<Rule>,
    /// `permissions.ask`
    pub ask: Vec<Rule>,
    /// `permissions.deny`
    pub deny: Vec<Rule>,
    /// `[mcp.NAME]`
    pub servers: BTreeMap<String, ServerSettings>,
}

/// Where to look for settings.
#[derive(Debug)]
pub enum SettingsFile {
    /// Named by the user: must exist.
    Named(PathBuf),
    /// The usual place: need not exist.
    Usual(PathBuf),
    None,
}

/// The settings in force: the engine's defaults, changed by the file.
pub fn load(file: SettingsFile) -> Result<Loaded, SettingsError> {
    let (path, may_be_absent) = match file {
        SettingsFile::Named(path) => (path, false),
        SettingsFile::Usual(path) => (path, true),
        SettingsFile::None => return Ok(Loaded::default()),
    };
    // A user may name a pipe or a device on purpose; in the usual place one would keep every command waiting.
    let bytes = if may_be_absent { plain_file::read(&path) } else { std::fs::read(&path) };
    match bytes.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other)) {
        Ok(text) => parse(&path, &text),
        Err(error) if may_be_absent && is_absence(&error) => Ok(Loaded::default()),
        Err(source) => Err(SettingsError::Read { path, source }),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parse(path: &Path, text: &str) -> Result<Loaded, SettingsError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| SettingsError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| line_at(text, span.start)),
        message: error.message().to_owned(),
    })?;
    let mut settings = Loaded::default();
    for (section, value) in &table {
        if !matches!(section.as_str(), "capture" | "store" | "rewind" | "model" | "permissions" | "tools" | "mcp") {
            return Err(SettingsError::UnknownKey { path: path.to_owned(), key: section.clone() });
        }
        let entry = SettingEntry { path, key: section.clone(), value };
        for (key, value) in entry.table()? {
            set(&mut settings, &SettingEntry { path, key: format!("{section}.{key}"), value })?;
        }
    }
    Ok(settings)
}

fn set(settings: &mut Loaded, entry: &SettingEntry<'_>) -> Result<(), SettingsError> {
    let Loaded { engine, agent } = settings;
    match entry.key.as_str() {
        "capture.include" => engine.include = entry.strings()?,
        "capture.max_file" => engine.max_file = entry.size()?,
        "store.budget" => engine.budget = entry.size()?,
        "store.keep_days" => engine.keep_days = entry.days()?,
        "rewind.save_hidden" => engine.save_hidden = entry.size()?,
        "model.name" => agent.model = Some(entry.text()?),
        "model.base_url" => agent.base_url = Some(entry.text()?),
        "model.max_output" => agent.max_output = Some(entry.count("a number of tokens")?),
        "model.context" => agent.context = Some(entry.count("a number of tokens")?),
        "tools.checkpoint" => agent.checkpoints = entry.flag()?,
        "model.effort" => agent.reasoning = Some(Reasoning::Effort(entry.effort()?)),
        "model.thinking_tokens" => agent.reasoning = Some(Reasoning::Budget(entry.count("a number of tokens")?)),
        "model.prices" => agent.prices = Some(entry.prices()?),
        "permissions.allow" => agent.allow = entry.rules()?,
        "permissions.ask" => agent.ask = entry.rules()?,
        "permissions.deny" => agent.deny = entry.rules()?,
        key if key.starts_with("mcp.") => drop(agent.servers.insert(key[4..].to_owned(), entry.server()?)),
        _ => return Err(SettingsError::UnknownKey { path: entry.path.to_owned(), key: entry.key.clone() }),
    }
    Ok(())
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

/// One setting as written, with all that an error about it needs.
struct SettingEntry<'a> {
    path: &'a Path,
    key: String,
    value: &'a Value,
}

impl<'a> SettingEntry<'a> {
    fn table(&self) -> Result<&'a Table, SettingsError> {
        self.value.as_table().ok_or_else(|| self.wrong_type("a table"))
    }

    fn strings(&self) -> Result<Vec<String>, SettingsError> {
        let strings = self.value.as_array().and_then(|list| {
            list.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        });
        strings.ok_or_else(|| self.wrong_type("a list of strings"))
    }

    fn size(&self) -> Result<u64, SettingsError> {
        let wrong = || self.wrong_type("a number of bytes or a text such as \"64 MiB\"");
        match self.value {
            Value::Integer(bytes) => u64::try_from(*bytes).map_err(|_| wrong()),
            Value::String(text) => size::parse(text).map_err(|source| SettingsError::BadSize {
                path: self.path.to_owned(),
                key: self.key.clone(),
                source,
            }),
            _ => Err(wrong()),
        }
    }

    fn text(&self) -> Result<String, SettingsError> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong_type("a text"))
    }

    fn flag(&self) -> Result<bool, SettingsError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    fn count(&self, expected: &'static str) -> Result<u64, SettingsError> {
        let count = self.value.as_integer().and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        count.ok_or_else(|| self.wrong_type(expected))
    }

    fn effort(&self) -> Result<Effort, SettingsError> {
        let wrong = || self.wrong_type("one of \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"max\"");
        self.value.as_str().and_then(Effort::parse).ok_or_else(wrong)
    }

    fn rules(&self) -> Result<Vec<Rule>, SettingsError> {
        let bad = |source| SettingsError::BadRule { path: self.path.to_owned(), key: self.key.clone(), source };
        self.strings()?.iter().map(|text| text.parse().map_err(bad)).collect()
    }

    fn prices(&self) -> Result<Prices, SettingsError> {
        let wrong = || self.wrong_type("a table of dollars per million tokens: input, output, cache_read, cache_write");
        let table = self.value.as_table().ok_or_else(wrong)?;
        let mut prices = Prices { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
        for (key, value) in table {
            #[allow(clippy::cast_precision_loss, reason = "nobody pays that much")]
            let value = value.as_float().or_else(|| value.as_integer().map(|value| value as f64)).ok_or_else(wrong)?;
            match key.as_str() {
                "input" => prices.input = value,
                "output" => prices.output = value,
                "cache_read" => prices.cache_read = value,
                "cache_write" => prices.cache_write = value,
                _ => return Err(wrong()),
            }
        }
        Ok(prices)
    }

    fn server(&self) -> Result<ServerSettings, SettingsError> {
        let wrong = || self.wrong_type("a table with `command`, and if need be `args`, `env` and `trust`");
        ServerSettings::deserialize(self.value.clone()).map_err(|_| wrong())
    }

    fn days(&self) -> Result<u32, SettingsError> {
        let days = self.value.as_integer().and_then(|days| u32::try_from(days).ok());
        days.ok_or_else(|| self.wrong_type("a number of days"))
    }

    fn wrong_type(&self, expected: &'static str) -> SettingsError {
        SettingsError::WrongType { path: self.path.to_owned(), key: self.key.clone(), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(Path::new("/c.toml"), text).expect_err("it must be refused").to_string()
    }

    #[test]
    fn an_empty_file_leaves_the_defaults() {
        assert_eq!(parse(Path::new("/c.toml"), "").expect("it is valid"), Loaded::default());
    }

    #[test]
    fn every_key_is_read() {
        let text = "[capture]\ninclude = ['a', '*.b']\nmax_file = '1 MiB'\n[store]\nbudget = 1000\nkeep_days = 7\n[rewind]\nsave_hidden = '2 MiB'\n";
        let wanted = Settings {
            include: vec!["a".into(), "*.b".into()],
            max_file: 1 << 20,
            budget: 1000,
            keep_days: 7,
            save_hidden: 2 << 20,
        };
        assert_eq!(parse(Path::new("/c.toml"), text).expect("it is valid").engine, wanted);
        let text = "[model]\nname = 'openai/x'\nbase_url = 'http://127.0.0.1:1'\nmax_output = 10\neffort = 'low'\n\
            prices = { input = 3, output = 15.5 }\n[permissions]\nallow = ['edits']\ndeny = ['bash: rm']\nask = ['bash']\n\
            [mcp.files]\ncommand = 'server'\n";
        let agent = parse(Path::new("/c.toml"), text).expect("it is valid").agent;
        assert_eq!((agent.model.as_deref(), agent.max_output), (Some("openai/x"), Some(10)));
        assert_eq!(agent.reasoning, Some(Reasoning::Effort(Effort::Low)));
        assert_eq!(agent.prices.map(|prices| prices.output), Some(15.5));
        assert_eq!((agent.allow.len(), agent.ask.len(), agent.deny.len()), (1, 1, 1));
        assert_eq!(agent.servers["files"].command, "server");
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        assert_eq!(refused("[capture]\nmaxfile = 1\n"), "unknown key `capture.maxfile` in the settings file `/c.toml`");
        assert_eq!(refused("[captures]\n"), "unknown key `captures` in the settings file `/c.toml`");
        assert_eq!(refused("store = 1\n"), "`store` in the settings file `/c.toml` must be a table");
        assert_eq!(
            refused("[store]\nbudget = '4 GoB'\n"),
            "bad value for `store.budget` in the settings file `/c.toml`"
        );
        assert!(refused("[model]\neffort = 'much'\n").contains("`model.effort`"));
        assert!(refused("[permissions]\nallow = ['bash: a; b']\n").contains("`permissions.allow`"));
        assert!(refused("[permissions]\ndeny = ['bsh: rm']\n").contains("`permissions.deny`"));
        assert!(refused("[mcp.x]\ncomand = 'y'\n").contains("`mcp.x`"));
        assert!(refused("[store]\nkeep_days = -1\n").contains("`store.keep_days`"));
        assert!(refused("[store]\n\nbudget = \n").contains("(line 3)"));
    }

    #[test]
    fn only_a_named_file_must_exist() {
        let gone = || PathBuf::from("/nonexistent/config.toml");
        assert_eq!(load(SettingsFile::Usual(gone())).expect("absence is fine"), Loaded::default());
        assert!(matches!(load(SettingsFile::Named(gone())), Err(SettingsError::Read { .. })));
    }
}
