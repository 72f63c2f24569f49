//! Cut copies, read again.

use std::fs;
use std::path::{Path, PathBuf};

use retake_native::{Agent, Cut, CutError, PlaceId, Transcript};
use tempfile::TempDir;

use super::read_fixture;
use super::transcripts::TRANSCRIPTS;

const NEW: &str = "00000000-1111-4222-8333-444444444444";

/// A home with one transcript, and with the files beside it that the agent has.
fn laid_out(agent: Agent, name: &str, path: &str) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, read_fixture(name)).unwrap();
    let session = path.split('/').find(|part| part.starts_with("session_") || part.starts_with("6f900e1b"));
    match agent {
        Agent::Copilot => {
            let text = format!("id: {}\ncwd: /home/user/project\nname: id: x\n", session.unwrap());
            fs::write(file.with_file_name("workspace.yaml"), text).unwrap();
        }
        Agent::Kimi => {
            let session = session.unwrap();
            let folder = file.ancestors().nth(3).unwrap();
            let homedir = folder.join("agents/main");
            let state = format!(
                "{{\"id\":\"{session}\",\"version\":2,\"cwd\":\"/home/user/project\",\"agents\":{{\"main\":{{\"homedir\":{homedir:?}}}}}, \"custom\":{{}}}}"
            );
            fs::write(folder.join("state.json"), state).unwrap();
            let list = format!(
                "{{\"sessionId\":\"{session}\",\"sessionDir\":{folder:?},\"workDir\":\"/home/user/project\"}}\n"
            );
            fs::write(home.path().join("session_index.jsonl"), list).unwrap();
        }
        _ => {}
    }
    (home, file)
}

fn texts(transcript: &Transcript) -> Vec<&str> {
    transcript.turns().iter().map(|turn| turn.text.as_str()).collect()
}

fn transcript_of(cut: &Cut) -> &Path {
    let is_transcript = |path: &Path| path.extension().is_some_and(|end| end == "jsonl");
    &cut.files.iter().find(|file| is_transcript(&file.path)).unwrap().path
}

#[test]
fn a_cut_copy_has_the_turns_before_the_prompt_and_the_original_stays() {
    for (agent, name, path) in TRANSCRIPTS {
        let (_home, file) = laid_out(agent, name, path);
        let original = Transcript::read(agent, &file).unwrap();
        for (at, turn) in original.turns().iter().enumerate().skip(1) {
            let uuid = NEW.replacen("00000000", &format!("0000000{at}"), 1);
            let cut = Cut::new(&original, &turn.place, &uuid).unwrap();
            cut.write().unwrap();
            let copy = Transcript::read(agent, transcript_of(&cut)).unwrap();
            assert_eq!(texts(&copy), texts(&original)[..at], "{agent}");
            assert_eq!(cut.session.as_ref(), Some(copy.session()));
            assert!(copy.session().0.ends_with(&uuid));
            assert!(cut.command().to_string().contains(&uuid));
            assert_eq!(cut.prompt, turn.text);
            let copied = fs::read_to_string(transcript_of(&cut)).unwrap();
            assert!(agent == Agent::Gemini || !copied.contains(&turn.text), "{agent}: {copied}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), read_fixture(name));
    }
}

#[test]
fn a_cut_before_the_first_prompt_is_a_fresh_session() {
    for (agent, name, path) in TRANSCRIPTS {
        let (_home, file) = laid_out(agent, name, path);
        let original = Transcript::read(agent, &file).unwrap();
        let cut = Cut::new(&original, &original.turns()[0].place, NEW).unwrap();
        assert_eq!((cut.session.clone(), cut.files.len()), (None, 0));
        assert!(cut.command().to_string().starts_with(agent.name()));
    }
}

#[test]
fn a_cut_never_replaces_a_session() {
    for (agent, name, path) in TRANSCRIPTS {
        let (_home, file) = laid_out(agent, name, path);
        let original = Transcript::read(agent, &file).unwrap();
        let cut = |turn: usize| Cut::new(&original, &original.turns()[turn].place, NEW).unwrap();
        cut(1).write().unwrap();
        let before = fs::read(transcript_of(&cut(1))).unwrap();
        assert!(matches!(cut(2).write(), Err(CutError::Io { .. })));
        assert_eq!(fs::read(transcript_of(&cut(1))).unwrap(), before);
    }
}

#[test]
fn a_cut_at_a_compaction_leaves_no_bare_boundary() {
    let (home, file) = laid_out(Agent::Claude, "claude-2.1.327-transcript-compacted.jsonl", "p/s.jsonl");
    let original = Transcript::read(Agent::Claude, &file).unwrap();
    let at_compact = Cut::new(&original, &original.turns()[2].place, NEW).unwrap();
    assert!(!at_compact.files[0].content.contains("compact_boundary"));
    assert!(at_compact.files[0].content.contains("Done 2."));
    let after = Cut::new(&original, &original.turns()[3].place, NEW).unwrap();
    assert!(after.files[0].content.contains("compact_boundary"));
    assert!(after.files[0].content.contains("isCompactSummary"));
    assert!(home.path().exists());
}

#[test]
fn a_cut_leaves_out_what_the_agent_had_taken_back() {
    let (_home, file) = laid_out(Agent::Claude, TRANSCRIPTS[0].1, TRANSCRIPTS[0].2);
    // The third prompt goes on from before the second, and a fourth from the third's answer.
    let text = fs::read_to_string(&file).unwrap();
    let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let prompt = |text: &str, of: &str| {
        let is_it = |line: &&str| value(line)["message"]["content"] == *of;
        text.lines().find(is_it).unwrap().to_owned()
    };
    let (second, third) = (prompt(&text, "do turn-2"), prompt(&text, "do turn-3"));
    let parent = |line: &str| value(line)["parentUuid"].as_str().unwrap().to_owned();
    let mut moved = text.replace(&third, &third.replace(&parent(&third), &parent(&second)));
    let leaf = moved.lines().rev().find_map(|line| value(line)["uuid"].as_str().map(str::to_owned)).unwrap();
    let fourth = third.replace(&parent(&third), &leaf).replace("do turn-3", "do turn-4");
    let own = |key: &str| value(&third)[key].as_str().unwrap().to_owned();
    moved.push_str(&fourth.replace(&own("uuid"), "u4").replace(&own("promptId"), "p4"));
    moved.push('\n');
    fs::write(&file, moved).unwrap();
    let original = Transcript::read(Agent::Claude, &file).unwrap();
    assert_eq!(texts(&original), ["do turn-1", "do turn-3", "do turn-4"]);
    let cut = Cut::new(&original, &"u4".into(), NEW).unwrap();
    assert!(!cut.files[0].content.contains("Done 2."), "{}", cut.files[0].content);
    assert!(cut.files[0].content.contains("Done 3."));
}

#[test]
fn bad_ids_and_places_are_refused() {
    let (agent, name, path) = TRANSCRIPTS[0];
    let (_home, file) = laid_out(agent, name, path);
    let original = Transcript::read(agent, &file).unwrap();
    let place = &original.turns()[1].place;
    assert!(matches!(Cut::new(&original, place, "../x"), Err(CutError::BadId(_))));
    assert!(matches!(Cut::new(&original, &PlaceId("x".into()), NEW), Err(CutError::NoSuchPlace(_))));
}

#[test]
fn a_session_whose_other_files_are_not_as_known_is_refused() {
    for (index, beside, text) in [
        (3, "workspace.yaml", "id: other\n"),
        (
            4,
            "../../state.json",
            "{\"id\":\"session_e52437be-5d71-4b2a-94a3-f4e681465ddf\",\"version\":3,\"cwd\":\"/\"}",
        ),
        (4, "../../../../../session_index.jsonl", "{}\n"),
    ] {
        let (agent, name, path) = TRANSCRIPTS[index];
        let (_home, file) = laid_out(agent, name, path);
        let target = file.parent().unwrap().join(beside);
        fs::write(&target, text).unwrap();
        let original = Transcript::read(agent, &file).unwrap();
        let refused = Cut::new(&original, &original.turns()[1].place, NEW);
        assert!(matches!(refused, Err(CutError::Unknown { .. })), "{beside}: {refused:?}");
    }
}
