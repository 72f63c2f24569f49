//! The agents that are tried, and where each comes from.

/// An agent, and how it is had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agent {
    /// What it is called here, and in the table.
    pub(super) name: &'static str,
    pub(super) package: Package,
    /// Other packages of the same registry that it needs beside it, with their versions.
    pub(super) beside: &'static [&'static str],
    /// The program that speaks the protocol, and its arguments.
    pub(super) command: &'static [&'static str],
    /// The version of the protocol that it is spoken to in.
    pub(super) protocol: u8,
}

/// A package by its name, and the version if it has to be one; else it is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Package {
    Npm(&'static str, Option<&'static str>),
    PyPi(&'static str),
}

impl Agent {
    /// The newest of npm's, spoken to in version 1.
    const fn npm(name: &'static str, package: &'static str, command: &'static [&'static str]) -> Self {
        Self { name, package: Package::Npm(package, None), beside: &[], command, protocol: 1 }
    }

    /// The newest of PyPI's, spoken to in version 1.
    const fn pypi(name: &'static str, package: &'static str, command: &'static [&'static str]) -> Self {
        Self { name, package: Package::PyPi(package), beside: &[], command, protocol: 1 }
    }

    /// The same one by another name, spoken to in version 2.
    const fn in_version_2(self, name: &'static str) -> Self {
        Self { name, protocol: 2, ..self }
    }

    /// Another version of it by another name.
    const fn held_at(self, name: &'static str, version: &'static str) -> Self {
        match self.package {
            Package::Npm(package, _) => Self { name, package: Package::Npm(package, Some(version)), ..self },
            Package::PyPi(_) => self,
        }
    }

    /// With other packages beside it.
    const fn with(self, beside: &'static [&'static str]) -> Self {
        Self { beside, ..self }
    }

    /// What the folder is called that it is installed in: rows of the same package share it.
    pub(super) fn folder(&self) -> String {
        let (package, version) = match self.package {
            Package::Npm(package, version) => (package, version),
            // Without the parts of it that are named in brackets.
            Package::PyPi(package) => (package.split('[').next().unwrap_or(package), None),
        };
        let version = version.map(|version| format!("-{version}")).unwrap_or_default();
        format!("{}{version}", package.rsplit('/').next().unwrap_or(package))
    }
}

const OPENCODE: Agent = Agent::npm("opencode", "opencode-ai", &["opencode", "acp"]);
const CLAUDE: Agent = Agent::npm("claude", "@agentclientprotocol/claude-agent-acp", &["claude-agent-acp"]);
const CODEX: Agent = Agent::npm("codex", "@agentclientprotocol/codex-acp", &["codex-acp"]);
const QWEN: Agent = Agent::npm("qwen", "@qwen-code/qwen-code", &["qwen", "--acp"]);

/// All of them, in the order of the table.
pub(super) const AGENTS: [Agent; 14] = [
    OPENCODE,
    CLAUDE,
    CLAUDE.in_version_2("claude-v2"),
    CODEX,
    CODEX.in_version_2("codex-v2"),
    Agent::pypi("vibe", "mistral-vibe", &["vibe-acp"]),
    QWEN,
    // What npm installs where Node is older than 22. It cannot be cut, so it shows what becomes of agents that offer nothing.
    QWEN.held_at("qwen-0.15", "0.15.10"),
    Agent::npm("copilot", "@github/copilot", &["copilot", "--acp"]),
    Agent::npm("cline", "cline", &["cline", "--acp"]),
    // The newest whose program for Linux was published.
    Agent::npm("kilo", "@kilocode/cli", &["kilo", "acp"]).held_at("kilo", "7.7.7"),
    // What it drives; newer ones need packages that were not published.
    Agent::npm("pi", "pi-acp", &["pi-acp"]).with(&["@earendil-works/pi-coding-agent@0.87.1"]),
    Agent::pypi("fast-agent", "fast-agent-acp", &["fast-agent", "acp", "--model", "generic.scripted", "--shell"]),
    Agent::pypi("hermes", "hermes-agent[acp]", &["hermes-acp"]),
];

/// The one that CI tries. Its version is held fast: what others publish must not decide whether a change of ours is right.
/// `cargo xtask interop` tries the newest.
pub(super) const IN_CI: Agent = OPENCODE.held_at("opencode-ci", "1.18.33");
