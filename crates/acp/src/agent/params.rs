//! Parameters of requests: what is there is taken out with its type, what is wrong is named.

use std::path::PathBuf;

use retake_engine::session::entry::EntryId;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::host::McpServer;
use crate::wire::RpcError;

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct Params(pub(super) Value);

impl Params {
    /// A text that has to be there.
    pub(super) fn text(&self, name: &str) -> Result<&str, RpcError> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| wrong(name, "a string"))
    }

    /// A text, if it is there and not null.
    pub(super) fn text_if_given(&self, name: &str) -> Result<Option<&str>, RpcError> {
        match self.given(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| wrong(name, "a string")),
        }
    }

    /// A flag, if it is there and not null.
    pub(super) fn flag(&self, name: &str, otherwise: bool) -> Result<bool, RpcError> {
        match self.given(name) {
            None => Ok(otherwise),
            Some(value) => value.as_bool().ok_or_else(|| wrong(name, "a boolean")),
        }
    }

    /// Something that reads itself, if it is there and not null.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str, what: &str) -> Result<Option<T>, RpcError> {
        let read = |value: &Value| T::deserialize(value).map_err(|_| wrong(name, what));
        self.given(name).map(read).transpose()
    }

    /// The id of a message, if it is there and not null. One that we would never have given is unknown.
    pub(super) fn message(&self, name: &str) -> Result<Option<EntryId>, RpcError> {
        let Some(text) = self.text_if_given(name)? else { return Ok(None) };
        // What the model thought belongs to what it then said.
        let entry = text.strip_suffix(THOUGHT).unwrap_or(text);
        entry.parse().map(Some).map_err(|_| unknown_message(text))
    }

    /// The directory, which has to be absolute.
    pub(super) fn cwd(&self) -> Result<PathBuf, RpcError> {
        let cwd = PathBuf::from(self.text("cwd")?);
        if cwd.is_absolute() { Ok(cwd) } else { Err(wrong("cwd", "an absolute path")) }
    }

    /// The servers that are programs. Others were not offered, so no client sends one.
    pub(super) fn servers(&self) -> Result<Vec<McpServer>, RpcError> {
        let listed = self.given("mcpServers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        listed.iter().map(server).collect()
    }

    /// A field that is there and not null.
    pub(super) fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// What the id of a thought ends with: it is told apart from what the model then said, which has the same entry.
pub(super) const THOUGHT: &str = "-thought";

fn server(value: &Value) -> Result<McpServer, RpcError> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or("stdio");
    if kind != "stdio" {
        return Err(RpcError::invalid_params(format!("MCP servers over `{kind}` are not supported, only programs")));
    }
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let env = list("env").iter().filter_map(|one| Some((text(one, "name")?, text(one, "value")?)));
    Ok(McpServer {
        name: text(value, "name").ok_or_else(|| wrong("mcpServers", "a list of servers with names"))?,
        command: text(value, "command").ok_or_else(|| wrong("mcpServers", "a list of servers with commands"))?,
        args: list("args").iter().filter_map(|arg| arg.as_str().map(str::to_owned)).collect(),
        env: env.collect(),
    })
}

/// A parameter is not what it should be.
pub(super) fn wrong(name: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("`{name}` must be {what}")).with_reason("invalid_params")
}

/// No retained message has this id.
pub(super) fn unknown_message(id: &str) -> RpcError {
    let text = format!("no message `{id}` is retained in this session");
    RpcError::new(RpcError::NOT_FOUND, text).with_reason("unknown_message_id").with("messageId", id)
}
