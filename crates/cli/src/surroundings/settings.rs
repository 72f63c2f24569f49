//! The settings file, `config.toml`. Unknown keys and bad values are errors that name the file and the key: a setting that is silently
//! ignored is a promise broken.

use std::io;
use std::path::{Path, PathBuf};

use retake_engine::Settings;
use thiserror::Error;
use toml::{Table, Value};

use crate::size::{self, BadSize};

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
}

/// Where to look for settings.
#[derive(Debug)]
pub enum File {
    /// Named by the user: must exist.
    Named(PathBuf),
    /// The usual place: need not exist.
    Usual(PathBuf),
    None,
}

/// The settings in force: the engine's defaults, changed by the file.
pub fn load(file: File) -> Result<Settings, SettingsError> {
    let (path, may_be_absent) = match file {
        File::Named(path) => (path, false),
        File::Usual(path) => (path, true),
        File::None => return Ok(Settings::default()),
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&path, &text),
        Err(error) if may_be_absent && is_absence(&error) => Ok(Settings::default()),
        Err(source) => Err(SettingsError::Read { path, source }),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn parse(path: &Path, text: &str) -> Result<Settings, SettingsError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| SettingsError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| line_at(text, span.start)),
        message: error.message().to_owned(),
    })?;
    let mut settings = Settings::default();
    for (section, value) in &table {
        if !matches!(section.as_str(), "capture" | "store") {
            return Err(SettingsError::UnknownKey { path: path.to_owned(), key: section.clone() });
        }
        let entry = Entry { path, key: section.clone(), value };
        for (key, value) in entry.table()? {
            set(&mut settings, &Entry { path, key: format!("{section}.{key}"), value })?;
        }
    }
    Ok(settings)
}

fn set(settings: &mut Settings, entry: &Entry<'_>) -> Result<(), SettingsError> {
    match entry.key.as_str() {
        "capture.include" => settings.include = entry.strings()?,
        "capture.max_file" => settings.max_file = entry.size()?,
        "store.budget" => settings.budget = entry.size()?,
        "store.keep_days" => settings.keep_days = entry.days()?,
        _ => return Err(SettingsError::UnknownKey { path: entry.path.to_owned(), key: entry.key.clone() }),
    }
    Ok(())
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

/// One setting as written, with all that an error about it needs.
struct Entry<'a> {
    path: &'a Path,
    key: String,
    value: &'a Value,
}

impl<'a> Entry<'a> {
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
        assert_eq!(parse(Path::new("/c.toml"), "").expect("it is valid"), Settings::default());
    }

    #[test]
    fn every_key_is_read() {
        let text = "[capture]\ninclude = ['a', '*.b']\nmax_file = '1 MiB'\n[store]\nbudget = 1000\nkeep_days = 7\n";
        let wanted =
            Settings { include: vec!["a".into(), "*.b".into()], max_file: 1 << 20, budget: 1000, keep_days: 7 };
        assert_eq!(parse(Path::new("/c.toml"), text).expect("it is valid"), wanted);
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
        assert!(refused("[store]\nkeep_days = -1\n").contains("`store.keep_days`"));
        assert!(refused("[store]\n\nbudget = \n").contains("(line 3)"));
    }

    #[test]
    fn only_a_named_file_must_exist() {
        let gone = || PathBuf::from("/nonexistent/config.toml");
        assert_eq!(load(File::Usual(gone())).expect("absence is fine"), Settings::default());
        assert!(matches!(load(File::Named(gone())), Err(SettingsError::Read { .. })));
    }
}
