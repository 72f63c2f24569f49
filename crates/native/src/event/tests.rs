//! Events as agents send them; those of real agents are in the tests of the whole crate.

use serde_json::json;

use super::*;

fn happening(agent: Agent, event: &str, mut input: Value) -> Happening {
    input["session_id"] = "s".into();
    Event::parse(agent, event, input.to_string().as_bytes()).unwrap().happening
}

#[test]
fn prompts_that_no_person_typed_are_nudges() {
    for text in [
        "",
        "  \n",
        "<task-notification>\n<task-id>1</task-id>\n</task-notification>",
        "<system-reminder>\nBe brief.\n</system-reminder>",
    ] {
        let found = happening(Agent::Claude, "UserPromptSubmit", json!({ "prompt": text }));
        assert_eq!(found, Happening::Nudge, "{text:?}");
    }
    for text in [
        "<b>",
        "what is a <task-notification>?",
        "<system-reminder>a</system-reminder> b <system-reminder>c</system-reminder>",
    ] {
        let found = happening(Agent::Qwen, "UserPromptSubmit", json!({ "prompt": text }));
        assert_eq!(found, Happening::Prompt(text.to_owned()));
    }
}

#[test]
fn a_command_is_known_in_a_prompt() {
    let found = happening(Agent::Gemini, "BeforeAgent", json!({ "prompt": "/retake-undo " }));
    assert_eq!(found, Happening::Command(Command::Undo));
    let parts = json!([{ "type": "text", "text": "retake log" }]);
    assert_eq!(
        happening(Agent::Kimi, "UserPromptSubmit", json!({ "prompt": parts })),
        Happening::Command(Command::Log)
    );
}

#[test]
fn a_picture_alone_is_a_prompt() {
    let parts = json!([{ "type": "image_url", "url": "data:" }]);
    assert_eq!(
        happening(Agent::Kimi, "UserPromptSubmit", json!({ "prompt": parts })),
        Happening::Prompt(String::new())
    );
}

fn tool(name: &str, arguments: &Value) -> Tool {
    match happening(Agent::Codex, "PreToolUse", json!({ "tool_name": name, "tool_input": arguments })) {
        Happening::ToolStarted(tool) => tool,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_paths_of_a_patch_are_those_of_its_files() {
    let patch = "*** Begin Patch\n*** Update File: a b.txt\n*** Move to: c.txt\n@@\n-x\n+*** Add File: no\n*** Add File: d/e\n+y\n*** Delete File: f\n*** End Patch";
    let found = tool("apply_patch", &json!({ "command": patch }));
    assert_eq!(found.paths, ["a b.txt", "c.txt", "d/e", "f"].map(PathBuf::from));
    assert_eq!(found.reach, Reach::Declared);
    let shell = tool("Bash", &json!({ "command": format!("apply_patch <<'EOF'\n{patch}\nEOF") }));
    assert_eq!((shell.paths.len(), shell.reach), (4, Reach::Anything));
    let within = tool("apply_patch", &json!(patch));
    assert_eq!(within.paths.len(), 4, "a patch may be all of the input");
}

#[test]
fn what_is_not_known_to_be_harmless_may_change_anything() {
    assert_eq!(tool("Read", &json!({ "file_path": "/a" })).reach, Reach::Nothing);
    assert!(tool("Read", &json!({ "file_path": "/a" })).paths.is_empty());
    assert_eq!(tool("mcp__server__write", &json!({ "path": "/a" })).reach, Reach::Anything);
    assert_eq!(tool("Task", &json!({})).reach, Reach::Anything);
    assert_eq!(tool("Write", &json!({})).reach, Reach::Anything, "a writer that names no file");
    assert_eq!(tool("NotebookEdit", &json!({ "notebook_path": "/n" })).paths, [PathBuf::from("/n")]);
}

#[test]
fn the_end_of_a_tool_says_how_it_ended() {
    let ended = |event, input| match happening(Agent::Claude, event, input) {
        Happening::ToolEnded(_, outcome) => outcome,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended("PostToolUse", json!({ "tool_response": { "stdout": "" } })), Outcome::Done);
    assert_eq!(ended("PostToolUse", json!({ "tool_response": { "backgroundTaskId": "b1" } })), Outcome::Background);
    assert_eq!(ended("PostToolUseFailure", json!({ "error": "exit 1" })), Outcome::Failed);
    assert_eq!(ended("postToolUse", json!({ "toolResult": { "resultType": "failure" } })), Outcome::Failed);
}

#[test]
fn events_of_a_sub_agent_name_it() {
    let input = json!({ "session_id": "s", "agent_id": "a1", "tool_name": "Bash", "cwd": "/w" });
    let event = Event::parse(Agent::Claude, "PreToolUse", input.to_string().as_bytes()).unwrap();
    assert_eq!((event.subagent, event.cwd), (Some("a1".into()), Some(PathBuf::from("/w"))));
}

#[test]
fn a_rewind_of_the_agents_own_is_noticed() {
    let input = json!({ "revert": { "messageID": "msg_2" } });
    assert_eq!(happening(Agent::OpenCode, "session.updated", input), Happening::Cut { before: "msg_2".into() });
}

#[test]
fn events_that_say_nothing_are_errors_and_unknown_ones_are_not() {
    for input in ["", "[]", "nonsense", "{\"a\":"] {
        assert!(matches!(Event::parse(Agent::Claude, "Stop", input.as_bytes()), Err(EventError::NotJson { .. })));
    }
    assert!(matches!(Event::parse(Agent::Claude, "Stop", b"{}"), Err(EventError::NoSession { .. })));
    assert_eq!(happening(Agent::Claude, "Tomorrow", json!({})), Happening::Other("Tomorrow".to_owned()));
}
