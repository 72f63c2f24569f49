//! What to put into an editor's settings so that it starts Retake's agent, or another one with rewind. Pure.

use std::fmt::Write;

/// An editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Editor {
    /// Zed.
    Zed,
    /// The IDEs of JetBrains.
    JetBrains,
    /// Neovim, with CodeCompanion.
    Neovim,
    /// Emacs, with agent-shell.
    Emacs,
}

/// Agents that are commonly wrapped: what they are called, and how they are started.
const AGENTS: [(&str, &[&str]); 5] = [
    ("Claude", &["npx", "-y", "@agentclientprotocol/claude-agent-acp"]),
    ("Codex", &["npx", "-y", "@agentclientprotocol/codex-acp"]),
    ("OpenCode", &["opencode", "acp"]),
    ("Qwen", &["qwen", "--acp"]),
    ("Vibe", &["vibe-acp"]),
];

impl Editor {
    /// What to do, and the text to copy; `retake` is how the editor is to start Retake, and `is_installed` tells whether a program is there.
    pub fn instructions(self, retake: &str, is_installed: impl Fn(&str) -> bool) -> String {
        let mut servers = vec![("Retake".to_owned(), vec!["acp".to_owned()])];
        let found = AGENTS.iter().filter(|(_, command)| is_installed(command[0]));
        servers.extend(found.map(|(name, command)| wrapped(name, command)));
        // With none of them installed, one shows how it is done.
        if servers.len() == 1 {
            servers.push(wrapped(AGENTS[0].0, AGENTS[0].1));
        }
        match self {
            Self::Zed => json(ZED, "agent_servers", "\"type\": \"custom\", ", retake, &servers),
            Self::JetBrains => json(JETBRAINS, "agent_servers", "", retake, &servers),
            Self::Neovim => neovim(retake, &servers),
            Self::Emacs => emacs(retake, &servers),
        }
    }
}

const ZED: &str =
    "Put this into Zed's settings (`zed: open settings file`), then choose the agent in the agent panel's menu:";
/// OpenCode's adapter is the plainest there is: it signs nobody in and sets no variables.
const NEOVIM: &str = r#"With CodeCompanion, put this into your configuration, then `:CodeCompanionChat adapter=retake`, or another name:

local function agent(name, title, command)
  return function()
    return require("codecompanion.adapters").extend("opencode", {
      name = name, formatted_name = title, commands = { default = command }, defaults = { timeout = 60000 },
    })
  end
end
require("codecompanion").setup({
  adapters = {
    acp = {
"#;
const JETBRAINS: &str = "Put this into `~/.jetbrains/acp.json` (AI Chat, menu of agents, Add Custom Agent opens it), then choose the agent there:";

fn wrapped(name: &str, command: &[&str]) -> (String, Vec<String>) {
    let words = ["acp", "--"].into_iter().chain(command.iter().copied());
    (format!("{name} with rewind"), words.map(str::to_owned).collect())
}

fn json(intro: &str, key: &str, kind: &str, retake: &str, servers: &[(String, Vec<String>)]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let lines: Vec<String> = servers
        .iter()
        .map(|(name, words)| {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let (name, command) = (quoted(name), quoted(retake));
            format!("    {name}: {{ {kind}\"command\": {command}, \"args\": [{}] }}", words.join(", "))
        })
        .collect();
    format!("{intro}\n\n{{\n  \"{key}\": {{\n{}\n  }}\n}}\n", lines.join(",\n"))
}

fn neovim(retake: &str, servers: &[(String, Vec<String>)]) -> String {
    let mut text = String::from(NEOVIM);
    for (name, words) in servers {
        let key = name.to_lowercase().replace(' ', "_");
        let words: Vec<String> = [retake].into_iter().chain(words.iter().map(String::as_str)).map(lua).collect();
        writeln!(text, "      {key} = agent({}, {}, {{ {} }}),", lua(&key), lua(name), words.join(", "))
            .expect("a string takes everything");
    }
    text.push_str("    },\n  },\n})\n");
    text
}

fn lua(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn emacs(retake: &str, servers: &[(String, Vec<String>)]) -> String {
    let mut text = String::from(
        "With agent-shell, put this into your init file, then `M-x` one of the commands:\n\n(require 'agent-shell)\n",
    );
    for (name, words) in servers {
        let key = name.to_lowercase().replace(' ', "-");
        let words: Vec<String> = words.iter().map(|word| lua(word)).collect();
        writeln!(
            text,
            "(defun my-agent-shell-{key} ()\n  (interactive)\n  (agent-shell-start\n   :config (agent-shell-make-agent-config\n            \
             :identifier '{key} :mode-line-name {name:?} :buffer-name {name:?} :shell-prompt \"> \" :shell-prompt-regexp \"> \"\n            \
             :client-maker (lambda (buffer)\n                            (agent-shell--make-acp-client\n                             :command {} \
             :command-params '({}) :context-buffer buffer)))))",
            lua(retake),
            words.join(" ")
        )
        .expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_wrapped_and_json_is_json() {
        for editor in [Editor::Zed, Editor::JetBrains] {
            let text = editor.instructions("/usr/bin/retake", |program| program == "opencode");
            let json = &text[text.find('{').expect("there is JSON")..];
            let value: serde_json::Value = serde_json::from_str(json).expect("it can be copied as it is");
            let wrapped = &value["agent_servers"]["OpenCode with rewind"];
            assert_eq!(wrapped["args"], serde_json::json!(["acp", "--", "opencode", "acp"]));
            assert_eq!(value["agent_servers"]["Retake"]["args"], serde_json::json!(["acp"]));
            assert!(value["agent_servers"].get("Claude with rewind").is_none(), "{value}");
        }
    }

    #[test]
    fn without_any_agent_one_shows_how_it_is_done() {
        for editor in [Editor::Neovim, Editor::Emacs] {
            let text = editor.instructions("retake", |_| false);
            assert!(text.contains("claude-agent-acp"), "{text}");
        }
    }
}
