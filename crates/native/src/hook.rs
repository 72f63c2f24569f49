//! The hooks that an agent gets: at which of its events it runs which command line.
//!
//! The line does nothing and succeeds when Retake is gone. It is also the mark by which entries of ours are known in a configuration.

use thiserror::Error;

use crate::agent::Agent;

const GUARD_START: &str = "command -v ";
const GUARD_END: &str = " >/dev/null 2>&1 || exit 0; exec ";

/// How hooks call Retake: a word that shells find on their search path, or an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(String);

/// The word cannot stand in a command line of every agent.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` cannot be called from a hook: it has to be a name, or an absolute path without control characters")]
pub struct BadProgram(pub String);

impl Default for Program {
    fn default() -> Self {
        Self("retake".to_owned())
    }
}

impl Program {
    /// Takes the name or absolute path of the program.
    ///
    /// # Errors
    /// It is relative, empty, or has control characters.
    pub fn new(program: &str) -> Result<Self, BadProgram> {
        let is_path = program.starts_with('/');
        let is_name = !program.is_empty() && !program.starts_with('-') && !program.contains('/');
        if program.chars().any(char::is_control) || !(is_path || is_name) {
            return Err(BadProgram(program.to_owned()));
        }
        Ok(Self(program.to_owned()))
    }

    /// The program's name or path, without quotes.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The program as a word for a shell.
    fn quoted(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+@".contains(c);
        if self.0.chars().all(is_plain) { self.0.clone() } else { format!("'{}'", self.0.replace('\'', r"'\''")) }
    }

    /// The command line of a hook.
    pub fn line(&self, agent: Agent, event: &str) -> String {
        let program = self.quoted();
        format!("{GUARD_START}{program}{GUARD_END}{program} hook {agent} {event}")
    }
}

/// Whether a command line is one that [`Program::line`] made for this agent, whatever the program and the event.
pub fn is_ours(agent: Agent, line: &str) -> bool {
    let rest = line.strip_prefix(GUARD_START).and_then(|rest| rest.split_once(GUARD_END));
    let Some((program, call)) = rest else { return false };
    let words = call.strip_prefix(program).and_then(|rest| rest.strip_prefix(" hook "));
    let event = words.and_then(|words| words.strip_prefix(agent.name())?.strip_prefix(' '));
    event.is_some_and(|event| !event.is_empty() && event.chars().all(|c| c.is_ascii_alphanumeric() || c == '.'))
}

/// An event at which an agent calls a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookPoint {
    /// The agent's name for the event.
    pub event: &'static str,
    /// How long the agent waits for the hook, in seconds, where it lets the hook say so.
    pub timeout_s: u32,
}

/// Ample for an answer, far above what a hook is allowed to take.
const ANSWER_S: u32 = 10;
/// A prompt may be a command of Retake's that rewinds many files.
const COMMAND_S: u32 = 60;

const fn answers(event: &'static str) -> HookPoint {
    HookPoint { event, timeout_s: ANSWER_S }
}

const fn commands(event: &'static str) -> HookPoint {
    HookPoint { event, timeout_s: COMMAND_S }
}

/// The events that Retake asks an agent to report.
pub fn points(agent: Agent) -> &'static [HookPoint] {
    const CLAUDE: &[HookPoint] = &[
        answers("SessionStart"),
        commands("UserPromptSubmit"),
        answers("PreToolUse"),
        answers("PostToolUse"),
        answers("PostToolUseFailure"),
        answers("SubagentStart"),
        answers("SubagentStop"),
        answers("Stop"),
        answers("SessionEnd"),
    ];
    const CODEX: &[HookPoint] = &[
        answers("SessionStart"),
        commands("UserPromptSubmit"),
        answers("PreToolUse"),
        answers("PostToolUse"),
        answers("Stop"),
        // It allows no more, and says so at each start.
        HookPoint { event: "SessionEnd", timeout_s: 3 },
    ];
    const GEMINI: &[HookPoint] = &[
        answers("SessionStart"),
        commands("BeforeAgent"),
        answers("BeforeTool"),
        answers("AfterTool"),
        answers("AfterAgent"),
        answers("SessionEnd"),
    ];
    const OPENCODE: &[HookPoint] = &[
        commands("chat.message"),
        answers("tool.execute.before"),
        answers("tool.execute.after"),
        answers("session.created"),
        answers("session.updated"),
        answers("session.idle"),
        answers("session.deleted"),
    ];
    const COPILOT: &[HookPoint] = &[
        answers("sessionStart"),
        commands("userPromptSubmitted"),
        answers("preToolUse"),
        answers("postToolUse"),
        answers("agentStop"),
        answers("sessionEnd"),
    ];
    match agent {
        Agent::Claude | Agent::Qwen | Agent::Kimi => CLAUDE,
        Agent::Codex => CODEX,
        Agent::Gemini => GEMINI,
        Agent::OpenCode => OPENCODE,
        Agent::Copilot => COPILOT,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn lines_are_known_again_and_similar_ones_are_not() {
        for program in ["retake", "/opt/my tools/re'take"] {
            let line = Program::new(program).unwrap().line(Agent::Claude, "PreToolUse");
            assert!(is_ours(Agent::Claude, &line), "{line}");
            assert!(!is_ours(Agent::Codex, &line));
            assert!(!is_ours(Agent::Claude, &format!("{line}; echo more")));
            assert!(!is_ours(Agent::Claude, &format!("echo; {line}")));
        }
        assert!(!is_ours(Agent::Claude, "retake hook claude Stop"));
        assert!(!is_ours(Agent::Claude, ""));
    }

    #[test]
    fn programs_that_no_shell_finds_are_refused() {
        for program in ["", "./retake", "bin/retake", "a\nb", "-x"] {
            assert!(Program::new(program).is_err(), "{program:?}");
        }
    }

    #[test]
    fn without_the_program_the_line_succeeds_and_prints_nothing() {
        for program in ["retake-that-is-nowhere", "/nowhere/it's here/retake"] {
            let line = Program::new(program).unwrap().line(Agent::Kimi, "Stop");
            let output = Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
            assert!(output.status.success());
            assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
        }
    }

    #[test]
    fn with_the_program_the_line_hands_over_the_agent_and_the_event() {
        let line = Program::new("/bin/echo").unwrap().line(Agent::Codex, "Stop");
        let output = Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hook codex Stop\n");
    }
}
