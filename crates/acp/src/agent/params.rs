//! Parameters that only Retake's own agent reads; the rest is the extension's.

use std::path::PathBuf;

use serde_json::Value;

use super::host::McpServer;
pub(super) use crate::extension::params::Params;
use crate::extension::params::wrong;
use crate::wire::RpcError;

impl Params {
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
}

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
