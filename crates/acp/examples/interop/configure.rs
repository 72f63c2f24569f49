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
    write(".codex/config.toml", &codex(url));
    write(".vibe/config.toml", &vibe(url));
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
