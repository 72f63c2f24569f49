//! Reads failures: what a status and an error body of any of the servers mean.
//!
//! Servers agree on little: the type is here or there, the message is nested or flat, and the same trouble has different statuses.
//! What cannot be told from a type is told from the words that servers are known to use.

use std::time::Duration;

use serde_json::Value;

use super::error::{ModelError, Server};
use super::settings::ModelSettings;

/// A message longer than this tells nobody anything.
const MAX_MESSAGE: usize = 600;

/// A failure as the server told it.
pub(super) struct Failure<'a> {
    /// The status; 200 for an error in the middle of an answer.
    pub(super) status: u16,
    /// When the server wants to be asked again.
    pub(super) retry_after: Option<Duration>,
    /// The body, or the error event.
    pub(super) body: &'a str,
}

impl Failure<'_> {
    /// What it means for whoever asked.
    pub(super) fn read(&self, settings: &ModelSettings) -> ModelError {
        let said = Said::parse(self.body);
        let message = clean(&said.message, self.status, settings);
        let place = settings.place();
        let (variable, model) = (settings.api.key_variable(), settings.full_name());
        let retry_after = self.retry_after;
        match said.kind(self.status) {
            Kind::Unauthorized => ModelError::Unauthorized { place, variable, message },
            Kind::OutOfCredit => ModelError::OutOfCredit { place, message },
            Kind::UnknownModel => ModelError::UnknownModel { place, model, message },
            Kind::RateLimited => ModelError::RateLimited { place, message, retry_after },
            Kind::Overloaded => ModelError::Overloaded { place, message, retry_after },
            Kind::TooLong => ModelError::ContextTooLong { message },
            Kind::Server => ModelError::Server { place, status: self.status, message },
            Kind::Refused => ModelError::Refused { place, status: self.status, message },
        }
    }
}

/// There is no way to the server, or none any more.
pub(super) fn unreachable(settings: &ModelSettings, error: reqwest::Error) -> ModelError {
    let server = if settings.is_local() { Server::Local } else { Server::Remote };
    ModelError::Unreachable { place: settings.place(), reason: reason(error), server }
}

/// The innermost cause, which is the one that says something, without the URL, which is said elsewhere.
pub(super) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

enum Kind {
    Unauthorized,
    OutOfCredit,
    UnknownModel,
    RateLimited,
    Overloaded,
    TooLong,
    Server,
    Refused,
}

struct Said {
    message: String,
    /// Types and codes, lower case, between blanks.
    types: String,
}

impl Said {
    fn parse(body: &str) -> Self {
        let Ok(parsed) = serde_json::from_str::<Value>(body) else {
            return Self { message: body.trim().to_owned(), types: String::new() };
        };
        // Gemini's compatible endpoint wraps its error in a list.
        let whole = parsed.get(0).unwrap_or(&parsed);
        let error = whole.get("error").unwrap_or(whole);
        let texts = [&error["metadata"]["raw"], &error["message"], error, &whole["message"], &error["detail"]];
        let message = texts.iter().find_map(|text| text.as_str()).map_or_else(|| body.trim().to_owned(), str::to_owned);
        let types = [&error["type"], &error["code"], &error["status"], &whole["type"]];
        let types = types.iter().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_lowercase));
        Self { message, types: types.collect::<Vec<_>>().join(" ") }
    }

    fn kind(&self, status: u16) -> Kind {
        let words = self.message.to_lowercase();
        let says = |some: &[&str]| some.iter().any(|it| words.contains(it) || self.types.contains(it));
        let code = self.status_inside().unwrap_or(status);
        if says(OUT_OF_CREDIT) || code == 402 {
            return Kind::OutOfCredit;
        }
        if code == 413 || (code != 429 && says(TOO_LONG)) {
            return Kind::TooLong;
        }
        match code {
            401 | 403 => Kind::Unauthorized,
            404 => Kind::UnknownModel,
            429 => Kind::RateLimited,
            400 | 422 if says(UNKNOWN_MODEL) => Kind::UnknownModel,
            408 | 409 | 500..=502 | 504..=528 | 530..=599 => Kind::Server,
            503 | 529 => Kind::Overloaded,
            200 if says(&["rate_limit"]) => Kind::RateLimited,
            200 if says(&["overloaded"]) => Kind::Overloaded,
            200 if says(&["authentication", "permission"]) => Kind::Unauthorized,
            200 if says(&["invalid_request"]) => Kind::Refused,
            200 => Kind::Server,
            _ => Kind::Refused,
        }
    }

    /// Some servers give the status inside of the error, and for an error in mid-stream there is no other.
    fn status_inside(&self) -> Option<u16> {
        let codes = self.types.split(' ').filter_map(|it| it.parse().ok());
        codes.into_iter().find(|code| (400..600).contains(code))
    }
}

const OUT_OF_CREDIT: &[&str] = &["insufficient_quota", "insufficient balance", "credit balance is too low"];

const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "prompt is too long",
    "context length",
    "context window",
    "context limit",
    "maximum context",
    "available context size",
    "request_too_large",
];

const UNKNOWN_MODEL: &[&str] =
    &["model_not_found", "model not exist", "not a valid model", "does not exist", "unknown model", "model not found"];

fn clean(message: &str, status: u16, settings: &ModelSettings) -> String {
    let message = settings.without_secrets(message);
    if message.is_empty() {
        return format!("it said nothing but {status}");
    }
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

#[cfg(test)]
mod tests;
