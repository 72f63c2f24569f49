//! Answers: what a hook prints so that the agent stops a prompt, or tells the model something with it.
//!
//! A hook that has nothing to say prints nothing. It always exits with 0, whatever it says.

use serde_json::json;

use crate::agent::Agent;

/// The answer of a hook to a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The agent goes on.
    Nothing,
    /// The prompt does not go to the model; the person sees the text.
    Block(String),
    /// The model gets the text with the prompt.
    Context(String),
}

impl Answer {
    /// What to print on standard output for a prompt of this agent.
    pub fn print(&self, agent: Agent) -> String {
        let said = match (self, agent) {
            (Self::Nothing, _) => return String::new(),
            // Whatever it prints goes to the model, so there is no JSON to put around it.
            (Self::Context(text), Agent::Kimi) => return text.clone(),
            (Self::Block(text), Agent::Kimi) => {
                json!({ "hookSpecificOutput": { "permissionDecision": "deny", "permissionDecisionReason": text } })
            }
            (Self::Block(text), Agent::Gemini) => json!({ "decision": "deny", "reason": text }),
            (Self::Block(text), _) => json!({ "decision": "block", "reason": text }),
            (Self::Context(text), Agent::Copilot) => json!({ "additionalContext": text }),
            (Self::Context(text), Agent::OpenCode) => json!({ "context": text }),
            (Self::Context(text), _) => {
                let event = if agent == Agent::Gemini { "BeforeAgent" } else { "UserPromptSubmit" };
                json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
            }
        };
        said.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_gets_its_own_shape() {
        let block = |agent| Answer::Block("Went back.".to_owned()).print(agent);
        let context = |agent| Answer::Context("a \"b\"".to_owned()).print(agent);
        assert_eq!(block(Agent::Claude), r#"{"decision":"block","reason":"Went back."}"#);
        assert_eq!(block(Agent::Gemini), r#"{"decision":"deny","reason":"Went back."}"#);
        assert!(block(Agent::Kimi).contains(r#""permissionDecision":"deny""#));
        assert_eq!(context(Agent::Kimi), "a \"b\"");
        assert_eq!(context(Agent::Copilot), r#"{"additionalContext":"a \"b\""}"#);
        assert!(context(Agent::Codex).contains(r#""hookEventName":"UserPromptSubmit""#));
        assert!(context(Agent::Gemini).contains(r#""hookEventName":"BeforeAgent""#));
        assert_eq!(Answer::Nothing.print(Agent::Claude), "");
    }
}
