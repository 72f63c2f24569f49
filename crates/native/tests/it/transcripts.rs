//! Transcripts as real agents wrote them.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use retake_native::{Agent, PromptId, Transcript, TranscriptError};

use super::read_fixture;

/// The transcripts that agents wrote, with the places they had.
pub(super) const TRANSCRIPTS: [(Agent, &str, &str); 5] = [
    (Agent::Claude, "claude-2.1.327-transcript.jsonl", "p/34fd358c-66ac-4534-b910-ae91b510e879.jsonl"),
    (Agent::Qwen, "qwen-0.24.4-transcript.jsonl", "p/chats/2d42f3f2-240e-4d1e-9c13-cf4b74a0d369.jsonl"),
    (Agent::Gemini, "gemini-0.61.0-transcript.jsonl", "p/chats/session-2026-11-18T20-43-0f6cecd8.jsonl"),
    (
        Agent::Copilot,
        "copilot-1.0.102-transcript.jsonl",
        "session-state/6f900e1b-1181-477b-85e5-b317b86b49a7/events.jsonl",
    ),
    (
        Agent::Kimi,
        "kimi-2.1.0-transcript.jsonl",
        "sessions/wd/session_e52437be-5d71-4b2a-94a3-f4e681465ddf/agents/main/wire.jsonl",
    ),
];

fn parse(agent: Agent, path: &str, text: &str) -> Result<Transcript, TranscriptError> {
    Transcript::parse(agent, &PathBuf::from("/h").join(path), text.as_bytes())
}

fn spoken(turns: &[retake_native::Turn]) -> Vec<(&str, &str)> {
    turns.iter().map(|turn| (turn.text.as_str(), turn.answer.as_deref().unwrap_or("-"))).collect()
}

const TURNS: [(&str, &str); 3] = [("do turn-1", "Done 1."), ("do turn-2", "Done 2."), ("do turn-3", "Done 3.")];

#[test]
fn prompts_and_answers_are_those_of_the_conversation() {
    for (agent, name, path) in TRANSCRIPTS {
        let transcript = parse(agent, path, &read_fixture(name)).unwrap();
        assert_eq!(spoken(transcript.turns()), TURNS, "{agent}");
        assert!(transcript.dropped().is_empty());
        assert!(path.contains(&transcript.session().0[..8]), "{agent}");
    }
}

#[test]
fn a_prompt_is_found_by_the_id_that_the_hook_was_told() {
    let (agent, name, path) = TRANSCRIPTS[0];
    let transcript = parse(agent, path, &read_fixture(name)).unwrap();
    let told = read_fixture("claude-2.1.327-events.jsonl");
    let told = told.lines().find(|line| line.contains("do turn-2")).unwrap();
    let told: serde_json::Value = serde_json::from_str(told).unwrap();
    let prompt = PromptId(told["input"]["prompt_id"].as_str().unwrap().to_owned());
    assert_eq!(transcript.turn_of(&prompt).unwrap().text, "do turn-2");
}

#[test]
fn a_compaction_does_not_hide_the_turns_before_it() {
    let text = read_fixture("claude-2.1.327-transcript-compacted.jsonl");
    let transcript = parse(Agent::Claude, "p/s.jsonl", &text).unwrap();
    let texts: Vec<&str> = transcript.turns().iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(texts, ["do turn-1", "do turn-2", "/compact", "do turn-3"]);
}

#[test]
fn a_last_line_that_is_being_written_is_left_out() {
    for (agent, name, path) in TRANSCRIPTS {
        let text = read_fixture(name);
        let whole = parse(agent, path, &text).unwrap();
        let torn = parse(agent, path, &format!("{text}{{\"type\":\"us")).unwrap();
        assert_eq!(torn.turns(), whole.turns());
    }
}

#[test]
fn a_turn_that_the_agent_took_back_is_dropped() {
    // Claude goes on from the answer to the first prompt; the second prompt stays in the file.
    let (agent, name, path) = TRANSCRIPTS[0];
    let text = read_fixture(name);
    let line_of =
        |prompt: &str| text.lines().find(|line| line.contains("\"type\":\"user\"") && line.contains(prompt)).unwrap();
    let parent = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["parentUuid"].as_str().unwrap().to_owned()
    };
    let (second, third) = (line_of("do turn-2"), line_of("do turn-3"));
    let moved = text.replace(third, &third.replace(&parent(third), &parent(second)));
    let transcript = parse(agent, path, &moved).unwrap();
    assert_eq!(spoken(transcript.turns()), [TURNS[0], TURNS[2]]);
    assert_eq!(spoken(transcript.dropped()), [TURNS[1]]);

    let (agent, name, path) = TRANSCRIPTS[2];
    let text = read_fixture(name);
    let transcript = parse(agent, path, &text).unwrap();
    let text = format!("{text}{{\"$rewindTo\":\"{}\"}}\n", transcript.turns()[1].place);
    let transcript = parse(agent, path, &text).unwrap();
    assert_eq!(spoken(transcript.turns()), [TURNS[0]]);
    assert_eq!(spoken(transcript.dropped()), [TURNS[1], TURNS[2]]);
}

#[test]
fn unknown_shapes_are_refused_with_their_line() {
    let cases = [
        (Agent::Claude, "{\"type\":\"user\",\"message\":{\"content\":\"x\"},\"sessionId\":\"s\"}\n", "line 1"),
        (Agent::Claude, "{\"sessionId\":\"s\"}\n", "it has no type"),
        (Agent::Claude, "", "there is no line yet"),
        (
            Agent::Qwen,
            "{\"uuid\":\"u\",\"parentUuid\":null,\"type\":\"user\",\"sessionId\":\"s\",\"message\":\"x\"}\n",
            "no parts",
        ),
        (Agent::Gemini, "{\"id\":\"1\",\"type\":\"user\",\"content\":\"x\"}\n", "no header"),
        (Agent::Gemini, "{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n{\"$rewindTo\":\"x\"}\n", "line 2"),
        (
            Agent::Copilot,
            "{\"type\":\"session.start\",\"id\":\"1\",\"data\":{\"version\":2,\"sessionId\":\"s\"}}\n",
            "format 1",
        ),
        (Agent::Kimi, "{\"type\":\"metadata\",\"protocol_version\":\"1.6\"}\n", "protocol 1.5"),
        (Agent::Kimi, "{\"type\":\"metadata\",\"protocol_version\":\"1.5\"}\n{\"type\":\"context.undo\"}\n", "line 2"),
    ];
    for (agent, text, problem) in cases {
        let said = parse(agent, "sessions/w/s/agents/main/wire.jsonl", text).unwrap_err().to_string();
        assert!(said.contains(problem), "{said}");
    }
    assert!(matches!(parse(Agent::Codex, "x", "{}\n"), Err(TranscriptError::Unsupported(Agent::Codex))));
    assert!(matches!(Transcript::read(Agent::Claude, Path::new("/nowhere/x")), Err(TranscriptError::Io { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: retake_testkit::cases(64), ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_a_transcript_makes_it_panic(
        which in 0..TRANSCRIPTS.len(),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        word in "[a-z\"{}\\[\\]:,0-9\n]{0,9}",
    ) {
        let (agent, name, path) = TRANSCRIPTS[which];
        let mut lines: Vec<String> = read_fixture(name).lines().map(str::to_owned).collect();
        let (from, to) = (from.index(lines.len()), to.index(lines.len()));
        lines.swap(from, to);
        let at = lines[from].char_indices().nth(to * 7 % 97).map_or(0, |(at, _)| at);
        lines[from].insert_str(at, &word);
        drop(parse(agent, path, &(lines.join("\n") + "\n")));
    }
}
