//! Commands in the chat, for clients that know nothing of the extension.

use serde_json::json;

use crate::client::{Client, update};

/// Runs a scene in both versions, for a client without the extension.
fn plain(scene: impl Fn(&mut Client)) {
    for version in [1, 2] {
        let mut client = Client::start(version, false);
        scene(&mut client);
        client.hang_up();
    }
}

fn writes(client: &mut Client, path: &str) {
    client.model.calls("write_file", json!({ "path": path, "content": "x\n" }));
    client.model.says(&format!("wrote {path}"));
    client.turn(&format!("write {path}"));
}

#[test]
fn a_list_with_numbers_and_a_rewind_by_number() {
    plain(|client| {
        assert!(client.command("/rewind").contains("Nothing was said yet"));
        writes(client, "a.txt");
        writes(client, "b.txt");
        assert!(client.command("/rewind 1").contains("moved on"), "the list that was shown was empty then");
        let list = client.command("/rewind");
        assert!(list.contains("**2.** write b.txt, files: 1 added"), "{list}");
        let done = client.command("/rewind 2");
        assert!(done.contains("Back to before prompt 2") && done.contains("delete `b.txt`"), "{done}");
        assert!(done.contains("> write b.txt") && done.contains("/undo"), "{done}");
        assert_eq!(client.read("b.txt"), None);
        assert!(client.command("/rewind 1").contains("moved on"), "the conversation is another one now");
        let undone = client.command("/undo");
        assert!(undone.contains("Undone"), "{undone}");
        assert!(client.read("b.txt").is_some());
        client.command("/redo");
        assert_eq!(client.read("b.txt"), None);
        assert_eq!(client.history().len(), 2, "commands are no part of the conversation");
        assert!(client.command("/redo").contains("Not done"));
    });
}

#[test]
fn what_did_not_go_back_is_named_in_the_chat() {
    plain(|client| {
        let resize = |client: &Client, len: u64| {
            let file =
                std::fs::File::options().write(true).create(true).truncate(false).open(client.root().join("big"));
            file.unwrap().set_len(len).unwrap();
        };
        resize(client, 100 << 20);
        writes(client, "a.txt");
        resize(client, 90 << 20);
        client.command("/rewind");
        let done = client.command("/rewind 1");
        assert!(done.contains("- did not go back: `big`: has changed; larger than"), "{done}");
    });
}

#[test]
fn prompts_that_left_earlier_and_whose_files_go_back_are_named_in_the_chat() {
    plain(|client| {
        writes(client, "a.txt");
        writes(client, "b.txt");
        client.command("/rewind");
        client.command("/rewind 2 conversation");
        assert!(client.read("b.txt").is_some());
        client.command("/rewind");
        let done = client.command("/rewind 1");
        assert!(
            done.contains("- files went back too of a prompt that left the conversation earlier: write b.txt"),
            "{done}"
        );
        assert_eq!(client.read("b.txt"), None);
    });
}

#[test]
fn an_id_works_without_a_list() {
    plain(|client| {
        writes(client, "a.txt");
        let id = client.history()[0].1.clone();
        let done = client.command(&format!("/rewind {} code", &id[..10]));
        assert!(done.contains("delete `a.txt`"), "{done}");
        assert_eq!(client.history().len(), 2, "the conversation stays");
        assert!(client.command("/rewind 77777777").contains("no prompt has the id"));
    });
}

#[test]
fn conflicts_are_confirmed_by_the_user() {
    plain(|client| {
        client.write("a.txt", "mine\n");
        client.model.calls("edit_file", json!({ "path": "a.txt", "old": "mine", "new": "its" }));
        client.model.says("edited");
        client.turn("edit");
        client.write("a.txt", "its, and mine again\n");
        client.command("/rewind");
        for (choice, expected) in [("cancel", "its, and mine again\n"), ("overwrite", "mine\n")] {
            let id = client.say("/rewind 1");
            let asked = client.until(|message| message["method"] == "session/request_permission").pop().unwrap();
            client.choose(&asked, choice);
            assert_eq!(client.end_of(id).0, "end_turn");
            assert_eq!(client.read("a.txt").unwrap(), expected, "{choice}");
        }
    });
}

#[test]
fn the_other_commands_answer_too() {
    plain(|client| {
        writes(client, "a.txt");
        let text = client.command("/checkpoints");
        assert!(text.contains("> write a.txt, files: 1 added\n"), "as `/rewind` counts: {text}");
        let text = client.command("/fork");
        assert!(text.contains("Forked"), "{text}");
        client.command("/rewind");
        client.command("/label 1 before the file");
        let text = client.command("/rewind");
        assert!(text.contains("[before the file]"), "{text}");
        client.model.says("All in short.");
        let text = client.command("/summarize");
        assert!(text.contains("All in short."), "{text}");
        let commands = client.log.iter().find(|message| update(message) == Some("available_commands_update")).unwrap();
        assert_eq!(commands["params"]["update"]["availableCommands"].as_array().unwrap().len(), 7);
    });
}

#[test]
fn a_command_during_a_turn_does_not_end_it() {
    plain(|client| {
        let gate = client.model.says_slowly(["Slowly", " does it"]);
        let running = client.say("take your time");
        client.until(|message| update(message) == Some("agent_message_chunk"));
        let id = client.say("/checkpoints");
        client.until(|message| {
            message.to_string().contains("command-") && update(message) == Some("agent_message_chunk")
        });
        if client.version == 1 {
            client.answer(id).unwrap();
        }
        gate.open();
        assert_eq!(client.end_of(running).0, "end_turn");
        assert_eq!(client.history().pop().unwrap().2, "Slowly does it");
    });
}

#[test]
fn what_is_no_command_of_ours_is_a_prompt() {
    plain(|client| {
        client.model.says("that is a path");
        client.turn("/usr/bin is what?");
        assert_eq!(client.history().len(), 2);
    });
}

/// A client after a turn that changed files which were there before, with the prompts listed.
fn changed(client: &mut Client, files: &[&str]) {
    for file in files {
        client.write(file, "mine\n");
        client.model.calls("edit_file", json!({ "path": file, "old": "mine", "new": "its" }));
    }
    client.model.says("changed");
    client.turn("change them");
    client.command("/rewind");
}

fn question(client: &mut Client) -> serde_json::Value {
    client.until(|message| message["method"] == "session/request_permission").pop().unwrap()
}

#[test]
fn only_what_was_asked_about_is_overwritten() {
    plain(|client| {
        changed(client, &["a.txt", "b.txt"]);
        client.write("a.txt", "mine again\n");
        let id = client.say("/rewind 1");
        let first = question(client);
        assert!(!first.to_string().contains("b.txt"), "{first}");
        client.write("b.txt", "saved while the question was open\n");
        client.choose(&first, "overwrite");
        let second = question(client);
        assert!(second.to_string().contains("b.txt"), "{second}");
        client.choose(&second, "keep");
        assert_eq!(client.end_of(id).0, "end_turn");
        assert_eq!(client.read("a.txt").unwrap(), "mine again\n");
        assert_eq!(client.read("b.txt").unwrap(), "saved while the question was open\n");
    });
}

#[test]
fn a_question_goes_with_the_prompt_that_it_came_of() {
    plain(|client| {
        changed(client, &["a.txt"]);
        client.write("a.txt", "mine again\n");
        let id = client.say("/rewind 1");
        question(client);
        let params = client.with(json!({}));
        client.notify("session/cancel", &params);
        assert_eq!(client.end_of(id).0, "cancelled");
        assert_eq!(client.read("a.txt").unwrap(), "mine again\n");
    });
}
