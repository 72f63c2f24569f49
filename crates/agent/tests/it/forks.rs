//! R45: a session is forked while it is open, and both go on.

use retake_agent::contract::{Action, Reason, Reply};
use retake_agent::controller::Which;
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use serde_json::json;

use crate::scene::Scene;

#[test]
fn a_fork_begins_where_it_was_made_and_the_session_stays_as_it_is() {
    let mut scene = Scene::new().file("a.txt", "zero\n").start();
    scene.model.calls("bash", json!({"command": "echo one > a.txt"}));
    scene.model.says("said one");
    scene.prompt("prompt one");
    scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
    scene.model.says("said two");
    let second = scene.prompt("prompt two");
    let (view, context) = (scene.view(), scene.context());
    let reply = scene.request(Action::Fork { entry: second }).expect("it is forked");
    let Reply::Forked { session, draft, differing, .. } = reply else { panic!("not forked: {reply:?}") };
    assert_eq!((json!(draft)[0]["text"].as_str(), differing.len()), (Some("prompt two"), 1));
    assert_eq!(scene.context(), context, "the session stays as it is");
    assert_eq!(scene.view().entries, view.entries);
    scene.check();
    let fork: SessionId = scene.workspace().sessions().resolve(&session).expect("it is there").id;
    let (model, opened) = scene.open_beside(Which::Existing(fork));
    model.says("said otherwise");
    scene.say_beside(&opened.handle, "prompt otherwise");
    let asked = model.last_request();
    assert!(asked.text.contains("said one") && !asked.text.contains("said two"), "{}", asked.text);
    assert!(asked.text.contains("forked from here") && asked.text.contains("- a.txt"), "{}", asked.text);
    scene.runtime().block_on(opened.handle.request(Action::Close)).expect("it closes");
    opened.served.join().expect("it ends in good order");
    scene.model.says("said three");
    scene.prompt("prompt three");
    assert!(scene.last_request().text.contains("said two") && !scene.last_request().text.contains("otherwise"));
    let unknown = scene.request(Action::Fork { entry: EntryId::new([9; 10]) }).unwrap_err();
    assert_eq!(unknown.reason, Reason::NotFound);
    scene.check();
}
