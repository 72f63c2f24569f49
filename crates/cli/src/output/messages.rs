//! Texts that several commands print.

pub use retake_agent::escape::count;

/// What to do about temporary files that had to stay.
pub const LEFT_OVER: &str =
    "look at them: they may hold what somebody put there meanwhile; move or delete them, then run `retake recover`";

/// How to set a model.
pub const NO_MODEL: &str = "export ANTHROPIC_API_KEY=YOUR-KEY and add `--model anthropic/NAME`, or export OPENAI_API_KEY and add \
    `--model openai/NAME`\n  for a local server: `--model openai/NAME --base-url http://127.0.0.1:PORT/v1`; a running Ollama is found by itself; `retake demo` needs none";
