//! The agents that are tried, and where each comes from.

/// An agent, and how it is had.
#[derive(Debug)]
pub(super) struct Agent {
    /// What it is called here, and in the table.
    pub(super) name: &'static str,
    pub(super) package: Package,
    /// The program that speaks the protocol, and its arguments.
    pub(super) command: &'static [&'static str],
}

/// A package by its name, and the version if it has to be one; else it is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Package {
    Npm(&'static str, Option<&'static str>),
    PyPi(&'static str),
}

/// All of them, in the order of the table.
pub(super) const AGENTS: [Agent; 6] = [
    Agent { name: "opencode", package: Package::Npm("opencode-ai", None), command: &["opencode", "acp"] },
    Agent {
        name: "claude",
        package: Package::Npm("@agentclientprotocol/claude-agent-acp", None),
        command: &["claude-agent-acp"],
    },
    Agent { name: "codex", package: Package::Npm("@agentclientprotocol/codex-acp", None), command: &["codex-acp"] },
    Agent { name: "vibe", package: Package::PyPi("mistral-vibe"), command: &["vibe-acp"] },
    Agent { name: "qwen", package: Package::Npm("@qwen-code/qwen-code", None), command: &["qwen", "--acp"] },
    // What npm installs where Node is older than 22. It cannot be cut, so it shows what becomes of agents that offer nothing.
    Agent {
        name: "qwen-0.15",
        package: Package::Npm("@qwen-code/qwen-code", Some("0.15.10")),
        command: &["qwen", "--acp"],
    },
];

/// The one that CI tries. Its version is held fast: what others publish must not decide whether a change of ours is right.
/// `cargo xtask interop` tries the newest.
pub(super) const IN_CI: Agent =
    Agent { name: "opencode-ci", package: Package::Npm("opencode-ai", Some("1.18.33")), command: &["opencode", "acp"] };
