//! The settings that make an editor start Retake's agent, or another agent with rewind. Pure.

use std::fmt::Write;

use serde_json::{Value, json};

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

/// What an editor is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// What to do, in a sentence, and what each agent needs, a line each.
    pub what_to_do: String,
    /// What to copy.
    pub text: String,
}

/// An agent that an editor can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentServer {
    /// What it is called.
    pub name: String,
    /// The arguments of `retake`.
    pub arguments: Vec<String>,
    /// What it has to have to work.
    pub needs: &'static str,
    /// Variables to fill in.
    pub variables: &'static [(&'static str, &'static str)],
}

const OWN_NEEDS: &str = "a model and its key: put yours in `env` (`OPENAI_API_KEY` for OpenAI); leave out what your editor's environment \
                         or Retake's configuration file already has";
const OWN_VARIABLES: &[(&str, &str)] =
    &[("RETAKE_MODEL", "anthropic/claude-sonnet-4-5"), ("ANTHROPIC_API_KEY", "YOUR-KEY")];

/// An agent that can be wrapped.
struct KnownAgent {
    /// What it is called.
    name: &'static str,
    /// How it is started.
    command: &'static [&'static str],
    /// A program that has to be there beside that one.
    beside: Option<&'static str>,
    /// What it needs beside that.
    needs: &'static str,
}

impl KnownAgent {
    const fn new(name: &'static str, command: &'static [&'static str], needs: &'static str) -> Self {
        Self { name, command, beside: None, needs }
    }
}

/// Agents that are commonly wrapped, started as they were run behind the proxy (`docs/interop.md`); Gemini and Goose as their documentation
/// says.
const AGENTS: [KnownAgent; 13] = [
    KnownAgent::new(
        "Claude",
        &["npx", "-y", "@agentclientprotocol/claude-agent-acp"],
        "Node.js 22, whose `npx` fetches the agent when it is first started, and a login of Claude Code or `ANTHROPIC_API_KEY`",
    ),
    KnownAgent::new(
        "Codex",
        &["npx", "-y", "@agentclientprotocol/codex-acp"],
        "Node.js 22, whose `npx` fetches the agent when it is first started, and a login of Codex or `OPENAI_API_KEY`",
    ),
    KnownAgent::new("OpenCode", &["opencode", "acp"], "a model that OpenCode is set up for"),
    KnownAgent::new("Copilot", &["copilot", "--acp"], "a login of GitHub Copilot"),
    KnownAgent::new("Cline", &["cline", "--acp"], "a model that Cline is set up for"),
    KnownAgent::new("Kilo", &["kilo", "acp"], "a model that Kilo is set up for"),
    KnownAgent {
        beside: Some("pi"),
        ..KnownAgent::new(
            "Pi",
            &["npx", "-y", "pi-acp"],
            "Node.js 22, whose `npx` fetches its adapter, and a model that Pi is set up for",
        )
    },
    KnownAgent::new("Qwen", &["qwen", "--acp"], "a login of Qwen Code, or `OPENAI_API_KEY` and `OPENAI_MODEL`"),
    KnownAgent::new("Vibe", &["vibe-acp"], "Vibe's setup, or `MISTRAL_API_KEY`"),
    KnownAgent::new("fast-agent", &["fast-agent", "acp"], "a model that fast-agent is set up for"),
    KnownAgent::new("Hermes", &["hermes-acp"], "a model that Hermes is set up for"),
    KnownAgent::new("Gemini", &["gemini", "--acp"], "a login of Gemini CLI, or `GEMINI_API_KEY`"),
    KnownAgent::new("Goose", &["goose", "acp"], "a model that Goose is set up for"),
];

/// Retake's own agent, and those whose programs `find` finds, each with the path that it gives; with none of them, one that shows how it is
/// done.
pub fn servers(find: impl Fn(&str) -> Option<String>) -> Vec<AgentServer> {
    let own = AgentServer {
        name: "Retake".to_owned(),
        arguments: vec!["acp".to_owned()],
        needs: OWN_NEEDS,
        variables: OWN_VARIABLES,
    };
    let wrapped = |agent: &KnownAgent, program: String| {
        let words = agent.command[1..].iter().map(|word| (*word).to_owned());
        let arguments = ["acp".to_owned(), "--".to_owned(), program].into_iter().chain(words).collect();
        AgentServer { name: format!("{} with rewind", agent.name), arguments, needs: agent.needs, variables: &[] }
    };
    let mut servers = vec![own];
    for agent in &AGENTS {
        let program = find(agent.command[0]).filter(|_| agent.beside.is_none_or(|beside| find(beside).is_some()));
        servers.extend(program.map(|program| wrapped(agent, program)));
    }
    if servers.len() == 1 {
        servers.push(wrapped(&AGENTS[0], AGENTS[0].command[0].to_owned()));
    }
    servers
}

impl Editor {
    /// What to do, and the text to copy; `retake` is how the editor is to start Retake.
    pub fn instructions(self, retake: &str, servers: &[AgentServer]) -> Instructions {
        let (what_to_do, text) = match self {
            Self::Zed => (ZED, in_json("\"type\": \"custom\", ", retake, servers)),
            Self::JetBrains => (JETBRAINS, in_json("", retake, servers)),
            Self::Neovim => (NEOVIM, neovim(retake, servers)),
            Self::Emacs => (EMACS, emacs(retake, servers)),
        };
        let needs: String =
            servers.iter().map(|server| format!("\n- {} needs {}", server.name, server.needs)).collect();
        Instructions { what_to_do: format!("{what_to_do}{needs}"), text }
    }
}

const ZED: &str =
    "Put this into Zed's settings (`zed: open settings file`), then choose the agent in the agent panel's menu:";
const JETBRAINS: &str = "Put this into `~/.jetbrains/acp.json` (AI Chat, menu of agents, Add Custom Agent opens it), then choose the agent there:";
const NEOVIM: &str =
    "With CodeCompanion, put this into your configuration, then `:CodeCompanionChat adapter=retake`, or another name:";
const EMACS: &str = "With agent-shell, put this into your init file, then `M-x` one of the commands:";
/// OpenCode's adapter is the plainest there is: it signs nobody in and sets no variables.
const NEOVIM_BEGINNING: &str = r#"local function agent(name, title, command, env)
  return function()
    return require("codecompanion.adapters").extend("opencode", {
      name = name, formatted_name = title, commands = { default = command }, env = env, defaults = { timeout = 60000 },
    })
  end
end
require("codecompanion").setup({
  adapters = {
    acp = {
"#;

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn in_json(kind: &str, retake: &str, servers: &[AgentServer]) -> String {
    let line = |server: &AgentServer| {
        let (name, command, arguments) = (quoted(&server.name), quoted(retake), json!(server.arguments));
        let arguments = arguments.to_string().replace("\",\"", "\", \"");
        let variables: Vec<String> =
            server.variables.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value))).collect();
        let env = match variables.is_empty() {
            true => String::new(),
            false => format!(", \"env\": {{ {} }}", variables.join(", ")),
        };
        format!("    {name}: {{ {kind}\"command\": {command}, \"args\": {arguments}{env} }}")
    };
    let lines: Vec<String> = servers.iter().map(line).collect();
    format!("{{\n  \"agent_servers\": {{\n{}\n  }}\n}}\n", lines.join(",\n"))
}

fn neovim(retake: &str, servers: &[AgentServer]) -> String {
    let mut text = String::from(NEOVIM_BEGINNING);
    for server in servers {
        let key = server.name.to_lowercase().replace(' ', "_");
        let words = [retake].into_iter().chain(server.arguments.iter().map(String::as_str)).map(quoted);
        let words: Vec<String> = words.collect();
        let variables: Vec<String> =
            server.variables.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
        let env = match variables.is_empty() {
            true => String::new(),
            false => format!(", {{ {} }}", variables.join(", ")),
        };
        let (name, words) = (quoted(&server.name), words.join(", "));
        writeln!(text, "      {key} = agent({}, {name}, {{ {words} }}{env}),", quoted(&key))
            .expect("a string takes everything");
    }
    text.push_str("    },\n  },\n})\n");
    text
}

fn emacs(retake: &str, servers: &[AgentServer]) -> String {
    let mut text = String::from("(require 'agent-shell)\n");
    for server in servers {
        let (name, key) = (&server.name, server.name.to_lowercase().replace(' ', "-"));
        let words: Vec<String> = server.arguments.iter().map(|word| quoted(word)).collect();
        let variables = server.variables.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
        let variables: Vec<String> = variables.collect();
        let env = match variables.is_empty() {
            true => String::new(),
            false => format!("\n                             :environment-variables '({})", variables.join(" ")),
        };
        writeln!(
            text,
            "(defun my-agent-shell-{key} ()\n  (interactive)\n  (agent-shell-start\n   :config (agent-shell-make-agent-config\n            \
             :identifier '{key} :mode-line-name {name:?} :buffer-name {name:?} :shell-prompt \"> \" :shell-prompt-regexp \"> \"\n            \
             :client-maker (lambda (buffer)\n                            (agent-shell--make-acp-client\n                             :command {} \
             :command-params '({}){env} :context-buffer buffer)))))",
            quoted(retake),
            words.join(" ")
        )
        .expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(installed: &'static str) -> impl Fn(&str) -> Option<String> {
        move |program| (program == installed).then(|| format!("/bin/{program}"))
    }

    #[test]
    fn what_is_installed_is_wrapped_and_json_is_json() {
        let servers = servers(only("opencode"));
        for editor in [Editor::Zed, Editor::JetBrains] {
            let text = editor.instructions("/usr/bin/retake", &servers).text;
            let value: Value = serde_json::from_str(&text).expect("it can be copied as it is");
            let wrapped = &value["agent_servers"]["OpenCode with rewind"];
            assert_eq!(wrapped["args"], json!(["acp", "--", "/bin/opencode", "acp"]));
            assert_eq!(value["agent_servers"]["Retake"]["args"], json!(["acp"]));
            assert_eq!(value["agent_servers"]["Retake"]["env"]["ANTHROPIC_API_KEY"], "YOUR-KEY");
            assert!(value["agent_servers"].get("Claude with rewind").is_none(), "{value}");
        }
    }

    #[test]
    fn what_each_agent_needs_is_said_beside_it() {
        for editor in [Editor::Zed, Editor::JetBrains, Editor::Neovim, Editor::Emacs] {
            let told = editor.instructions("retake", &servers(only("npx")));
            for line in ["\n- Retake needs a model and its key", "\n- Codex with rewind needs Node.js 22"] {
                assert!(told.what_to_do.contains(line), "{}", told.what_to_do);
            }
            assert!(!told.what_to_do.contains("\n\n"), "it is one paragraph");
        }
    }

    #[test]
    fn without_any_agent_one_shows_how_it_is_done() {
        for editor in [Editor::Neovim, Editor::Emacs] {
            let text = editor.instructions("retake", &servers(|_| None)).text;
            assert!(text.contains("claude-agent-acp"), "{text}");
        }
    }
}
