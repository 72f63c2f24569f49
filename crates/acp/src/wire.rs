//! The wire: JSON-RPC 2.0, one message a line.
//!
//! [`Reader`] tells messages from what is none, and keeps the bytes of each line, so that they can be passed on untouched.
//! [`Writer`] writes whole lines in the order in which they were handed in and waits when the other side does not read. Neither knows
//! what the messages mean; see [`crate::rpc_peer`] for questions and answers. Whatever comes in, reading goes on: only the end of the stream
//! and an error of the system end it.
//!
//! Written by hand, because crates for JSON-RPC decode a message into types and write those: the proxy has to pass on every byte as it
//! came, fields that no schema knows and numbers that no type holds included, and to go on after a line that is no message.

mod lenient_json;
mod line;
mod oversized;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

pub use line::{Incoming, MAX_LINE, Reader, Writer};
pub use oversized::OversizedLine;

/// A message of either direction.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Wants an answer.
    Request {
        /// As it came: a string, a number, or null.
        id: Value,
        /// What is wanted.
        method: String,
        /// How; null if there are none.
        params: Value,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: String,
        /// How; null if there are none.
        params: Value,
    },
    /// An answer.
    Response {
        /// The id of the request.
        id: Value,
        /// What came of it.
        outcome: Result<Value, RpcError>,
    },
}

/// An error that one side tells the other.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct RpcError {
    /// The kind.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// More for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What was read is no message.
#[derive(Debug, Error)]
pub enum NoMessage {
    /// It is no JSON.
    #[error("this is no JSON: {0}")]
    NoJson(#[source] serde_json::Error),
    /// It is JSON, but no message of JSON-RPC 2.0.
    #[error("this is no JSON-RPC 2.0 message: {what}")]
    NoRpc {
        /// What is wrong with it.
        what: &'static str,
        /// Its id, if it has one.
        id: Value,
    },
    /// It is an answer that says nothing, which some mean to be one.
    #[error("this is no JSON-RPC 2.0 message: it has neither a method, nor a result, nor an error")]
    Empty {
        /// Its id.
        id: Value,
    },
}

impl Message {
    /// A request.
    pub fn request(id: impl Into<Value>, method: impl Into<String>, params: Value) -> Self {
        Self::Request { id: id.into(), method: method.into(), params }
    }

    /// A notification.
    pub fn notification(method: impl Into<String>, params: Value) -> Self {
        Self::Notification { method: method.into(), params }
    }

    /// An answer.
    pub fn response(id: Value, outcome: Result<Value, RpcError>) -> Self {
        Self::Response { id, outcome }
    }

    /// Reads one. What JSON allows and our values cannot hold, half a surrogate pair, say, is there as something near to it: the line has
    /// it as it is.
    pub fn parse(line: &[u8]) -> Result<Self, NoMessage> {
        let value =
            serde_json::from_slice(line).or_else(|error| lenient_json::parse(line).ok_or(NoMessage::NoJson(error)))?;
        let Value::Object(fields) = value else {
            return Err(NoMessage::NoRpc { what: "it is no object", id: Value::Null });
        };
        Self::from_fields(fields)
    }

    fn from_fields(mut fields: Map<String, Value>) -> Result<Self, NoMessage> {
        let id = fields.remove("id");
        let wrong = |what, id: &Option<Value>| Err(NoMessage::NoRpc { what, id: id.clone().unwrap_or_default() });
        if !matches!(id, None | Some(Value::Null | Value::String(_) | Value::Number(_))) {
            return wrong("its id is neither a string nor a number", &None);
        }
        if id.as_ref().is_some_and(Value::is_f64) {
            return wrong("its id is no whole number that fits into 64 bits", &None);
        }
        // Some leave it out, and nobody who reads them minds.
        if fields.get("jsonrpc").is_some_and(|version| version != "2.0") {
            return wrong("`jsonrpc` is not \"2.0\"", &id);
        }
        match fields.remove("method") {
            Some(Value::String(method)) => {
                let params = fields.remove("params").unwrap_or_default();
                Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                })
            }
            Some(_) => wrong("its method is no string", &id),
            None => {
                let Some(id) = id else { return wrong("it has neither a method nor an id", &None) };
                match (fields.remove("result"), fields.remove("error")) {
                    // Some write both, and null for the one that does not hold.
                    (_, Some(error)) if !error.is_null() => {
                        Ok(Self::Response { id, outcome: Err(RpcError::from_value(error)) })
                    }
                    (Some(result), _) => Ok(Self::Response { id, outcome: Ok(result) }),
                    (None, _) => Err(NoMessage::Empty { id }),
                }
            }
        }
    }

    /// The message as JSON.
    pub fn into_value(self) -> Value {
        let mut fields = Map::new();
        fields.insert("jsonrpc".into(), "2.0".into());
        let mut call = |method: String, params: Value| {
            fields.insert("method".into(), method.into());
            if !params.is_null() {
                fields.insert("params".into(), params);
            }
        };
        match self {
            Self::Request { id, method, params } => {
                call(method, params);
                fields.insert("id".into(), id);
            }
            Self::Notification { method, params } => call(method, params),
            Self::Response { id, outcome } => {
                fields.insert("id".into(), id);
                match outcome {
                    Ok(result) => fields.insert("result".into(), result),
                    Err(error) => fields.insert("error".into(), error.into_value()),
                };
            }
        }
        Value::Object(fields)
    }

    /// The message as a line, with its end.
    pub fn into_line(self) -> Vec<u8> {
        let mut line = self.into_value().to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

impl RpcError {
    /// What was sent is no JSON.
    pub const PARSE: i64 = -32700;
    /// What was sent is no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are wrong, or cannot be followed as things stand.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something failed here.
    pub const INTERNAL: i64 = -32603;
    /// What is named does not exist.
    pub const NOT_FOUND: i64 = -32002;
    /// The agent wants to know who asks.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// Version 2: the version of the protocol is not spoken.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// It was cancelled.
    pub const CANCELLED: i64 = -32800;

    /// An error without more.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// There is no such method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method `{method}` here"))
    }

    /// The parameters are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// With a word that programs can tell it by, as `data.reason`.
    #[must_use]
    pub fn with_reason(self, reason: &str) -> Self {
        self.with("reason", reason)
    }

    /// With a field of `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let data = self.data.get_or_insert_with(|| json!({}));
        if let Value::Object(fields) = data {
            fields.insert(key.to_owned(), value.into());
        }
        self
    }

    fn into_value(self) -> Value {
        let mut value = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            value["data"] = data;
        }
        value
    }

    /// Whatever was sent as an error is one.
    fn from_value(value: Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_else(|_| Self {
            code: Self::INTERNAL,
            message: "an error".to_owned(),
            data: Some(value),
        })
    }
}

impl NoMessage {
    /// What the one who sent it is told.
    pub fn answer(&self) -> Message {
        let (id, code) = match self {
            Self::NoJson(_) => (Value::Null, RpcError::PARSE),
            Self::NoRpc { id, .. } | Self::Empty { id } => (id.clone(), RpcError::INVALID_REQUEST),
        };
        Message::response(id, Err(RpcError::new(code, self.to_string())))
    }
}

#[cfg(test)]
mod tests;
