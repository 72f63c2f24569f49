//! The `initialize` request: the protocol's version, and the capabilities of both sides.
//!
//! Extensions are advertised in `_meta` of capabilities only. A client that sets our key in its own `_meta` gets a notification when history
//! is cut.

use serde_json::{Value, json};

use super::Version;
use super::params::Params;
use crate::extension::params::wrong;
use crate::extension::{KEY, capability};
use crate::wire::RpcError;

/// What the client has said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Initialized {
    /// The version that is spoken.
    pub(super) version: Version,
    /// Whether it wants to be told when history is cut, and what follows it then.
    pub(super) knows_rewind: bool,
    /// Whether it shows notices.
    pub(super) shows_notices: bool,
}

/// Reads `initialize` and answers it.
pub(super) fn greet(params: &Params) -> Result<(Initialized, Value), RpcError> {
    let wanted = params.given("protocolVersion").and_then(Value::as_u64);
    let version = match wanted {
        Some(2..) => Version::V2,
        Some(1) => Version::V1,
        Some(other) => {
            let text = format!("version {other} of the protocol is not spoken here, only 1 and 2");
            let error = RpcError::new(RpcError::UNSUPPORTED_VERSION, text);
            return Err(error.with("requested", other).with("supported", json!([1, 2])));
        }
        None => return Err(wrong("protocolVersion", "a number")),
    };
    let at = |path: &str| params.0.pointer(path).is_some_and(|value| !value.is_null());
    let greeted = match version {
        Version::V1 => Initialized {
            version,
            knows_rewind: at("/clientCapabilities/_meta/retake"),
            shows_notices: at("/clientCapabilities/session/notices"),
        },
        Version::V2 => Initialized {
            version,
            knows_rewind: at("/capabilities/_meta/retake") || at("/capabilities/session/_meta/retake"),
            shows_notices: true,
        },
    };
    let answer = match version {
        Version::V1 => json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": { "list": {}, "resume": {}, "fork": {}, "close": {}, "delete": {} },
                "_meta": { KEY: capability() },
            },
            "agentInfo": ourselves(),
            "authMethods": [],
        }),
        Version::V2 => json!({
            "protocolVersion": 2,
            "capabilities": {
                "session": {
                    "prompt": { "image": {}, "embeddedContext": {} },
                    "mcp": { "stdio": {} },
                    "fork": {},
                    "delete": {},
                    "_meta": { KEY: capability() },
                },
            },
            "info": ourselves(),
        }),
    };
    Ok((greeted, answer))
}

fn ourselves() -> Value {
    json!({ "name": "retake", "title": "Retake", "version": env!("CARGO_PKG_VERSION") })
}
