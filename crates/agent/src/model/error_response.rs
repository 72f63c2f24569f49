//! Parses error responses: the meaning of a status and an error body, for all supported servers.
//!
//! Servers agree on little: the type is in different places, the message is nested or flat, and one cause has different statuses. Where the type
//! does not tell, the words of known servers do.

use std::time::Duration;

use serde_json::Value;

use super::error::{ModelError, ServerPlace};
use super::settings::ModelSettings;

/// A message longer than this tells nobody anything.
const MAX_MESSAGE: usize = 600;

/// A failure as the server told it.
pub(super) struct ErrorResponse<'a> {
    /// The status; 200 for an error in the middle of an answer.
    pub(super) status: u16,
    /// When the server wants to be asked again.
    pub(super) retry_after: Option<Duration>,
    /// The body, or the error event.
    pub(super) body: &'a str,
}

impl ErrorResponse<'_> {
    /// What it means for whoever asked.
    pub(super) fn read(&self, settings: &ModelSettings) -> ModelError {
        let said = ErrorBody::parse(self.body);
        let message = clean(&said.message, self.status, settings);
        let place = settings.place();
        let (variable, model) = (settings.api.key_variable(), settings.full_name());
        let retry_after = self.retry_after;
        match said.kind(self.status) {
            FailureKind::Unauthorized => ModelError::Unauthorized { place, variable, message },
            FailureKind::OutOfCredit => ModelError::OutOfCredit { place, message },
            FailureKind::UnknownModel => ModelError::UnknownModel { place, model, message },
            FailureKind::RateLimited => ModelError::RateLimited { place, message, retry_after },
            FailureKind::Overloaded => ModelError::Overloaded { place, message, retry_after },
            FailureKind::TooLong => ModelError::ContextTooLong { message },
            FailureKind::Server => ModelError::Server { place, status: self.status, message },
            FailureKind::Refused => ModelError::Refused { place, status: self.status, message },
        }
    }
}

/// There is no way to the server, or none any more.
pub(super) fn unreachable(settings: &ModelSettings, error: reqwest::Error) -> ModelError {
    let server = if settings.is_local() { ServerPlace::Local } else { ServerPlace::Remote };
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

enum FailureKind {
    Unauthorized,
    OutOfCredit,
    UnknownModel,
    RateLimited,
    Overloaded,
    TooLong,
    Server,
    Refused,
}

struct ErrorBody {
    message: String,
    /// Types and codes, lower case, between blanks.
    types: String,
}

impl ErrorBody {
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

    fn kind(&self, status: u16) -> FailureKind {
        let words = self.message.to_lowercase();
        let says = |some: &[&str]| some.iter().any(|it| words.contains(it) || self.types.contains(it));
        let code = self.status_inside().unwrap_or(status);
        if says(OUT_OF_CREDIT) || code == 402 {
            return FailureKind::OutOfCredit;
        }
        if code == 413 || (code != 429 && says(TOO_LONG)) {
            return FailureKind::TooLong;
        }
        match code {
            401 | 403 => FailureKind::Unauthorized,
            404 => FailureKind::UnknownModel,
            429 => FailureKind::RateLimited,
            400 | 422 if says(UNKNOWN_MODEL) => FailureKind::UnknownModel,
            408 | 409 | 500..=502 | 504..=528 | 530..=599 => FailureKind::Server,
            503 | 529 => FailureKind::Overloaded,
            200 if says(&["rate_limit"]) => FailureKind::RateLimited,
            200 if says(&["overloaded"]) => FailureKind::Overloaded,
            200 if says(&["authentication", "permission"]) => FailureKind::Unauthorized,
            200 if says(&["invalid_request"]) => FailureKind::Refused,
            200 => FailureKind::Server,
            _ => FailureKind::Refused,
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
