//! Tells agents where their model is: a file for each that reads one, variables for the others.

use std::path::Path;

use serde_json::json;

/// The key that the loopback server is given; it looks at none.
const KEY: &str = "none";

/// Writes the files of all agents below `home`; none minds those of the others.
pub fn write_all(home: &Path, url: &str) {
    let write = |path: &str, text: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".config/opencode/opencode.json", &opencode(url));
    write(".config/kilo/kilo.json", &opencode(url));
    write(".codex/config.toml", &codex(url));
    write(".vibe/config.toml", &vibe(url));
    write(".cline/data/settings/providers.json", &cline(url));
    write(".pi/agent/models.json", &pi(url));
    write(".pi/agent/settings.json", PI_SETTINGS);
    write(".hermes/config.yaml", &hermes(url));
}

/// The variables that an agent gets beside `PATH`.
pub fn variables(home: &Path, url: &str) -> Vec<(&'static str, String)> {
    let below = |path: &str| home.join(path).to_string_lossy().into_owned();
    vec![
        ("HOME", below("")),
        ("XDG_CONFIG_HOME", below(".config")),
        ("XDG_DATA_HOME", below(".data")),
        ("RETAKE_DATA_DIR", below("retake")),
        ("OPENAI_BASE_URL", format!("{url}/v1")),
        ("OPENAI_API_KEY", KEY.to_owned()),
        ("OPENAI_MODEL", "scripted".to_owned()),
        ("ANTHROPIC_BASE_URL", url.to_owned()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("CODEX_HOME", below(".codex")),
        // Its sandbox needs namespaces of its own, which are not to be had inside ours.
        ("INITIAL_AGENT_MODE", "agent-full-access".to_owned()),
        ("NO_BROWSER", "1".to_owned()),
        ("VIBE_HOME", below(".vibe")),
        ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
        ("COPILOT_PROVIDER_API_KEY", KEY.to_owned()),
        ("COPILOT_MODEL", "scripted".to_owned()),
        ("COPILOT_OFFLINE", "true".to_owned()),
        ("GENERIC_BASE_URL", format!("{url}/v1")),
        ("GENERIC_API_KEY", KEY.to_owned()),
    ]
}

fn opencode(url: &str) -> String {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": format!("{url}/v1"), "apiKey": KEY },
        "models": { "scripted": { "name": "scripted", "tool_call": true } },
    });
    let permission = json!({ "edit": "allow", "bash": "allow", "external_directory": "allow" });
    let settings = json!({
        "provider": { "scripted": provider },
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": false,
        "permission": permission,
    });
    settings.to_string()
}

fn codex(url: &str) -> String {
    format!(
        r#"model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"#
    )
}

fn vibe(url: &str) -> String {
    format!(
        r#"active_model = "scripted"

[[providers]]
name = "scripted"
api_base = "{url}/v1"
api_key_env_var = "OPENAI_API_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"#
    )
}

/// Over the protocol it takes its own provider only, which may be elsewhere.
fn cline(url: &str) -> String {
    let provider = "cline";
    let settings = json!({ "provider": provider, "apiKey": KEY, "model": "scripted", "baseUrl": format!("{url}/v1") });
    let entry = json!({ "settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual" });
    let document = json!({ "version": 1, "lastUsedProvider": provider, "modes": {}, "providers": { provider: entry } });
    document.to_string()
}

/// Which of its models Pi takes.
const PI_SETTINGS: &str = r#"{"defaultProvider":"scripted","defaultModel":"scripted","quietStartup":true}"#;

fn pi(url: &str) -> String {
    let provider = json!({
        "baseUrl": format!("{url}/v1"),
        "api": "openai-completions",
        "apiKey": KEY,
        "models": [{ "id": "scripted" }],
    });
    json!({ "providers": { "scripted": provider } }).to_string()
}

/// JSON is YAML, too.
fn hermes(url: &str) -> String {
    let model = json!({ "default": "scripted", "provider": "custom", "base_url": format!("{url}/v1"), "api_key": KEY });
    json!({ "model": model }).to_string()
}
