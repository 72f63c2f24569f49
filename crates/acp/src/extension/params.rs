//! Parameters of requests: what is there is taken out with its type, what is wrong is named. Nothing is guessed: a flag that is a text
//! would else be obeyed as its opposite.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::wire::RpcError;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Params(pub(crate) Value);

impl Params {
    /// A text that has to be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str, RpcError> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| wrong(name, "a string"))
    }

    /// A text, if it is there and not null.
    pub(crate) fn text_if_given(&self, name: &str) -> Result<Option<&str>, RpcError> {
        match self.given(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| wrong(name, "a string")),
        }
    }

    /// A flag, if it is there and not null.
    pub(crate) fn flag(&self, name: &str, otherwise: bool) -> Result<bool, RpcError> {
        match self.given(name) {
            None => Ok(otherwise),
            Some(value) => value.as_bool().ok_or_else(|| wrong(name, "a boolean")),
        }
    }

    /// Something that reads itself, if it is there and not null.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str, what: &str) -> Result<Option<T>, RpcError> {
        let read = |value: &Value| T::deserialize(value).map_err(|_| wrong(name, what));
        self.given(name).map(read).transpose()
    }

    /// Content blocks that have to be there.
    pub(crate) fn blocks(&self, name: &str) -> Result<&[Value], RpcError> {
        let blocks = self.given(name).and_then(Value::as_array);
        blocks.map(Vec::as_slice).ok_or_else(|| wrong(name, "a list of content blocks"))
    }

    /// A field that is there and not null.
    pub(crate) fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// A parameter is not what it should be.
pub(crate) fn wrong(name: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("`{name}` must be {what}")).with_reason("invalid_params")
}

/// No retained message has this id.
pub(crate) fn unknown_message(id: &str) -> RpcError {
    let text = format!("no message `{id}` is retained in this session");
    RpcError::new(RpcError::NOT_FOUND, text).with_reason("unknown_message_id").with("messageId", id)
}

/// No session with this id is open on this connection.
pub(crate) fn unknown_session(id: &str, why: &str) -> RpcError {
    RpcError::new(RpcError::NOT_FOUND, why).with_reason("unknown_session_id").with("sessionId", id)
}
