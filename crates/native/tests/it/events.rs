//! Events as real agents sent them.

use proptest::prelude::*;
use retake_native::{Agent, Event, Happening, Outcome, Reach, Start};
use serde_json::Value;

use super::read_fixture;

/// The events of a fixture, as words.
fn outline(agent: Agent, name: &str) -> Vec<String> {
    events(agent, name).iter().map(word).collect()
}

fn events(agent: Agent, name: &str) -> Vec<Event> {
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        Event::parse(agent, line["event"].as_str().unwrap(), line["input"].to_string().as_bytes()).unwrap()
    };
    read_fixture(name).lines().map(parse).collect()
}

fn word(event: &Event) -> String {
    match &event.happening {
        Happening::SessionStarted(Start::New) => "new".to_owned(),
        Happening::SessionStarted(Start::Resumed) => "resumed".to_owned(),
        Happening::SessionEnded { .. } => "end".to_owned(),
        Happening::Prompt(text) => text.clone(),
        Happening::Nudge => "nudge".to_owned(),
        Happening::ToolStarted(tool) => {
            let paths: Vec<String> = tool.paths.iter().map(|path| path.display().to_string()).collect();
            match tool.reach {
                Reach::Declared => format!("writes {}", paths.join(" ")),
                Reach::Anything => "anything".to_owned(),
                Reach::Nothing => "nothing".to_owned(),
            }
        }
        Happening::ToolEnded(_, Outcome::Done) => "done".to_owned(),
        Happening::TurnEnded { answer } => answer.clone().unwrap_or_else(|| "stop".to_owned()),
        other => format!("{other:?}"),
    }
}

const WRITES: &str = "writes /home/user/project/tool-1.txt";
const WRITES_2: &str = "writes /home/user/project/tool-2.txt";

#[test]
fn claude_says_everything() {
    let found = outline(Agent::Claude, "claude-2.1.327-events.jsonl");
    assert_eq!(
        found[..10],
        ["new", "do turn-1", WRITES, "done", "anything", "done", "Done 1.", "end", "resumed", "do turn-2"]
    );
    for event in events(Agent::Claude, "claude-2.1.327-events.jsonl") {
        let is_start = matches!(event.happening, Happening::SessionStarted(_));
        assert_eq!(event.prompt.is_none(), is_start, "{event:?}");
        assert!(event.transcript.is_some() && event.cwd.is_some() && event.subagent.is_none());
        if let Happening::ToolStarted(tool) | Happening::ToolEnded(tool, _) = event.happening {
            assert!(tool.call.is_some());
        }
    }
}

#[test]
fn codex_names_paths_within_its_patch() {
    let found = outline(Agent::Codex, "codex-0.169.0-events.jsonl");
    assert_eq!(found[..8], ["new", "do turn-1", "writes tool-1.txt", "done", "anything", "done", "Done 1.", "end"]);
    assert!(events(Agent::Codex, "codex-0.169.0-events.jsonl")[1].prompt.is_some());
}

#[test]
fn gemini_has_no_ids_and_says_everything_else() {
    let found = outline(Agent::Gemini, "gemini-0.61.0-events.jsonl");
    assert_eq!(found[..8], ["new", "do turn-1", WRITES, "done", "anything", "done", "Done 1.", "end"]);
    assert_eq!(found[8..11], ["resumed", "do turn-2", WRITES_2]);
}

#[test]
fn qwen_repeats_an_empty_prompt_after_each_round() {
    let found = outline(Agent::Qwen, "qwen-0.24.4-events.jsonl");
    assert_eq!(found[..9], ["new", "do turn-1", WRITES, "done", "nudge", "anything", "done", "nudge", "Done 1."]);
    let prompts = events(Agent::Qwen, "qwen-0.24.4-events.jsonl");
    assert_eq!(prompts[1].prompt, prompts[4].prompt);
}

#[test]
fn copilot_names_its_transcript_at_the_end_of_a_turn() {
    let found = outline(Agent::Copilot, "copilot-1.0.102-events.jsonl");
    assert_eq!(found[..8], ["new", "do turn-1", WRITES, "done", "anything", "done", "stop", "end"]);
    assert_eq!(found[8], "resumed");
    assert!(events(Agent::Copilot, "copilot-1.0.102-events.jsonl")[6].transcript.is_some());
}

#[test]
fn kimi_sends_a_prompt_in_parts() {
    let found = outline(Agent::Kimi, "kimi-2.1.0-events.jsonl");
    assert_eq!(found[..7], ["new", "do turn-1", WRITES, "done", "anything", "done", "stop"]);
    assert_eq!(found[7..9], ["resumed", "do turn-2"]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: retake_testkit::cases(256), ..ProptestConfig::default() })]

    #[test]
    fn no_input_makes_an_event_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), at in any::<prop::sample::Index>(), cut in any::<bool>()) {
        for agent in Agent::ALL {
            for point in retake_native::points(agent) {
                drop(Event::parse(agent, point.event, &bytes));
                // A real event with something else in its middle.
                let mut text = br#"{"session_id":"s","prompt":[{"text":"x"}],"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: a"}}"#.to_vec();
                let at = at.index(text.len());
                if cut { text.truncate(at) } else { text.splice(at..at, bytes.iter().copied()); }
                drop(Event::parse(agent, point.event, &text));
            }
        }
    }
}
