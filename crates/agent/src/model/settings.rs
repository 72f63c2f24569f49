//! Settings of a model: which one, where it is, and what it may cost.
//!
//! Nothing here reads the environment or a file: whoever asks brings the names and a way to look up keys. A key never shows itself,
//! neither in a debug print nor in an error, and cannot be serialised.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use retake_engine::session::entry::Usage;
use thiserror::Error;

/// What is shorter is no secret, and may well be a part of other words.
const SHORTEST_SECRET: usize = 6;

/// A wire format, and with it the provider whose keys are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI's chat completions, and everything that speaks them.
    OpenAi,
}

impl Api {
    /// What stands before the slash in a model's full name.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The variable that holds its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
        }
    }

    /// Where it is if nobody says otherwise.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }
}

/// A provider's key. It never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Takes a key as it was typed or pasted; `None` if there is nothing but white space.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the header it goes into.
    pub(super) fn secret(&self) -> &str {
        &self.0
    }

    /// `text` without the key, should a server have repeated it.
    pub(super) fn remove_from(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Read, and not from a cache.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache.
    pub cache_read: f64,
    /// Read, and put into a cache.
    pub cache_write: f64,
}

impl Prices {
    /// What `usage` costs.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cache_read + usage.cache_write);
        let dollars = fresh as f64 * self.input
            + usage.cache_read as f64 * self.cache_read
            + usage.cache_write as f64 * self.cache_write
            + usage.output as f64 * self.output;
        dollars / 1_000_000.0
    }
}

/// How much a model is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasoning {
    /// As much as it finds right at this effort.
    Effort(Effort),
    /// At most so many tokens: for older models of Anthropic, and for OpenRouter. Other servers have no such setting.
    Budget(u64),
}

/// An effort. Which of them a model knows is for its provider to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Effort {
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    /// As it is spelled in settings and in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Reads what [`Effort::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];
        all.into_iter().find(|effort| effort.as_str() == text)
    }
}

/// Which model, where it is, and how it is to be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// The wire format.
    pub api: Api,
    /// Its name, as the server knows it; may contain slashes.
    pub name: String,
    /// Where the server is.
    pub base_url: Url,
    /// The key; a local server needs none.
    pub key: Option<Key>,
    /// The most tokens that an answer may have. `None` is 32,000 for Anthropic, which wants a number, and the server's own limit
    /// elsewhere: small local models refuse any number that does not fit beside the prompt.
    pub max_output: Option<u64>,
    /// How many tokens the model can read and write; what is known of the provider for `None`.
    pub context: Option<u64>,
    /// What it costs, if the server does not tell.
    pub prices: Option<Prices>,
    /// How much it is to think; the server's default for `None`.
    pub reasoning: Option<Reasoning>,
}

/// The settings do not name a model that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// Not one of the two forms.
    #[error("`{given}` is no model: write `anthropic/NAME` or `openai/NAME`")]
    UnknownProvider {
        /// What was given.
        given: String,
    },
    /// Not a URL that a server can be at.
    #[error("`{given}` is no base URL: {reason}")]
    InvalidBaseUrl {
        /// What was given.
        given: String,
        /// Why not.
        reason: String,
    },
    /// The server is not on this machine, and there is no key for it.
    #[error("no key for `{model}`: set {variable}")]
    NoKey {
        /// The model.
        model: String,
        /// The variable to set.
        variable: &'static str,
    },
}

impl ModelSettings {
    /// Reads `anthropic/NAME` or `openai/NAME`; `key` looks up the value of a variable, and is asked for one variable at most.
    pub fn parse(
        model: &str,
        base_url: Option<&str>,
        key: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let unknown = || SettingsError::UnknownProvider { given: model.to_owned() };
        let (prefix, name) = model.trim().split_once('/').ok_or_else(unknown)?;
        let all = [Api::Anthropic, Api::OpenAi];
        let api = all.into_iter().find(|api| api.prefix() == prefix).ok_or_else(unknown)?;
        if name.is_empty() {
            return Err(unknown());
        }
        let settings = Self {
            api,
            name: name.to_owned(),
            base_url: parse_base_url(base_url.unwrap_or(api.default_base_url()))?,
            key: key(api.key_variable()).as_deref().and_then(Key::new),
            max_output: None,
            context: None,
            prices: None,
            reasoning: None,
        };
        if settings.key.is_none() && !settings.is_local() {
            return Err(SettingsError::NoKey { model: settings.full_name(), variable: api.key_variable() });
        }
        Ok(settings)
    }

    /// `anthropic/NAME` or `openai/NAME`: what a reply says of who gave it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.api.prefix(), self.name)
    }

    /// How many tokens the model can read and write, if that is known: the settings say so, or all models of the provider can.
    pub fn context_window(&self) -> Option<u64> {
        let known = match self.api {
            Api::Anthropic if self.is_at("anthropic.com") => Some(200_000),
            Api::OpenAi if self.is_at("api.openai.com") || self.is_at("deepseek.com") => Some(128_000),
            Api::Anthropic | Api::OpenAi => None,
        };
        self.context.or(known)
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        let Some(host) = self.base_url.host_str() else { return false };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
        host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(is_loopback)
    }

    /// The base URL as it may be shown.
    pub fn place(&self) -> String {
        let mut url = self.base_url.clone();
        // Neither can fail: the scheme is http or https.
        url.set_username("").and_then(|()| url.set_password(None)).ok();
        // Some servers take their key there.
        url.set_query(None);
        url.set_fragment(None);
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// `text` without the key, and without what the base URL holds that may be one, should a server have repeated it.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.remove_from(text));
        let values = self.base_url.query_pairs().map(|(_, value)| value.into_owned());
        let raw = self.base_url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let raw = raw.map(|(_, value)| value.to_owned());
        let password = self.base_url.password().map(str::to_owned);
        let secrets = values.chain(raw).chain(password).filter(|secret| secret.len() >= SHORTEST_SECRET);
        secrets.fold(text, |text, secret| text.replace(&secret, "[key]"))
    }

    /// Whether the server is at `domain` or below it.
    pub(super) fn is_at(&self, domain: &str) -> bool {
        let Some(host) = self.base_url.host_str() else { return false };
        host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Where requests go. People paste base URLs with and without the version and the last part, and mean the same.
    pub(super) fn endpoint(&self) -> Url {
        let (version, last) = match self.api {
            Api::Anthropic => ("/v1", "/messages"),
            Api::OpenAi => ("/v1", "/chat/completions"),
        };
        let path = self.base_url.path().trim_end_matches('/').trim_end_matches(last);
        let versioned = match self.api {
            Api::Anthropic => path.ends_with(version),
            // Many servers have a path of their own here, such as `/api/v1` or `/openai`.
            Api::OpenAi => !path.is_empty(),
        };
        let path = if versioned { format!("{path}{last}") } else { format!("{path}{version}{last}") };
        let mut url = self.base_url.clone();
        url.set_path(&path);
        url
    }
}

fn parse_base_url(given: &str) -> Result<Url, SettingsError> {
    let invalid = |reason: String| SettingsError::InvalidBaseUrl { given: without_secrets(given), reason };
    let url = Url::parse(given.trim()).map_err(|error| invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it must begin with `http://` or `https://`".to_owned()));
    }
    Ok(url)
}

/// What is no URL as it may be shown: without what stands before a host, and behind a path.
fn without_secrets(given: &str) -> String {
    let shown = given.split(['?', '#']).next().unwrap_or_default();
    match (shown.split_once("://"), shown.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        (None, Some((_, place))) => place.to_owned(),
        (_, None) => shown.to_owned(),
    }
}

#[cfg(test)]
mod tests;
