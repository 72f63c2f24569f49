//! A task from beginning to end: the model reads, searches, edits, sees a test fail, fixes it, sees it pass; then the user goes back to the
//! middle and takes it another way. What the model received is checked at every turn of the story.

use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::TodoState;
use serde_json::json;

use crate::scene::{Scene, Wire};

const CART: &str = "def total(prices):\n    result = 0\n    for price in prices:\n        result = result + price\n    return result\n";
const MAIN: &str = "from cart import total\n\nprint(total([1, 2, 3]))\n";
const TESTS: &str = "import unittest\nfrom cart import total\n\n\nclass Cart(unittest.TestCase):\n    def test_sum(self):\n        \
self.assertEqual(total([1, 2]), 3)\n";
const DISCOUNT_TEST: &str =
    "\n    def test_discount(self):\n        self.assertEqual(total([100, 100], discount=0.1), 180)\n";
/// `-B`, so that nothing but the task's own files appears.
const RUN: &str = "python3 -B -m unittest -q test_cart 2>&1 | grep -v '^Ran'; exit ${PIPESTATUS[0]}";

fn project(wire: Wire) -> Scene {
    Scene::with(wire)
        .file("AGENTS.md", "Run the tests.\n")
        .file("cart.py", CART)
        .file("main.py", MAIN)
        .file("test_cart.py", TESTS)
        .start()
}

fn todo(items: [(&str, &str); 3]) -> serde_json::Value {
    let items: Vec<_> = items.iter().map(|(text, state)| json!({"text": text, "state": state})).collect();
    json!({"items": items})
}

/// The first half: looks around and makes a plan.
fn looks_around(scene: &mut Scene) -> EntryId {
    let model = &scene.model;
    model.thinks("First I look.").says("Let me see.").calls("list_dir", json!({"path": "."}));
    model.calls("grep", json!({"pattern": "total\\("})).calls("read_file", json!({"path": "cart.py"}));
    model.calls("read_file", json!({"path": "test_cart.py"}));
    model.calls("bash", json!({"command": RUN}));
    model.calls("todo", todo([("test", "active"), ("code", "pending"), ("check", "pending")]));
    model.says("The tests pass today; a discount goes into `total`.");
    let prompt = scene.prompt("How would a discount fit into the cart?");
    let requests = scene.model.requests();
    assert_eq!(requests.len(), 6, "six rounds");
    let after_search = requests[2].transcript();
    assert!(
        after_search.contains("cart.py:1:def total(prices):") || after_search.contains("def total(prices):"),
        "{after_search}"
    );
    assert!(after_search.contains("main.py"), "the search found the use: {after_search}");
    assert!(has_passed(&requests[4].transcript()), "the tests passed: {}", requests[4].transcript());
    prompt
}

/// The second half: a failing test, the code, a slip, the fix.
fn builds_it(scene: &mut Scene) -> EntryId {
    let before = scene.model.requests().len();
    let model = &scene.model;
    model.calls("edit_file", json!({"path": "test_cart.py", "old": "total([1, 2]), 3)\n", "new": format!("total([1, 2]), 3)\n{DISCOUNT_TEST}")}));
    model.calls("bash", json!({"command": RUN}));
    model
        .thinks("As it should.")
        .says("It fails, as it should.")
        .calls(
            "edit_file",
            json!({"path": "cart.py", "old": "def total(prices):", "new": "def total(prices, discount=0):"}),
        )
        .calls(
            "edit_file",
            json!({"path": "cart.py", "old": "    return result\n", "new": "    return result * (1 + discount)\n"}),
        );
    model.calls("bash", json!({"command": RUN}));
    model
        .says("A sign is wrong.")
        .calls("edit_file", json!({"path": "cart.py", "old": "(1 + discount)", "new": "(1 - discount)"}));
    model.calls("bash", json!({"command": RUN}));
    model.calls("todo", todo([("test", "done"), ("code", "done"), ("check", "done")]));
    model.says("There is a discount now, and the tests pass.");
    let prompt = scene.prompt("Do it.");
    let requests = &scene.model.requests()[before..];
    assert_eq!(requests.len(), 8, "eight rounds");
    let (red, wrong, green) = (requests[2].transcript(), requests[4].transcript(), requests[6].transcript());
    assert!(red.contains("unexpected keyword argument 'discount'"), "{red}");
    assert!(wrong.contains("220") && wrong.contains("180"), "{wrong}");
    assert!(has_passed(&green), "{green}");
    prompt
}

/// Whether the last thing that the model was told is that the tests pass.
fn has_passed(transcript: &str) -> bool {
    let result = transcript.rsplit("\ntool: ").next().unwrap_or_default();
    result.contains("OK") && result.ends_with("[Exit code 0.]")
}

fn passes(scene: &Scene) -> bool {
    let output = std::process::Command::new("bash").args(["-c", RUN]).current_dir(scene.root()).output().unwrap();
    output.status.success()
}

#[test]
fn a_task_is_done_in_many_rounds_then_rewound_to_the_middle_and_done_another_way() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = project(wire);
        let start = scene.files();
        let first = looks_around(&mut scene);
        assert_eq!(scene.files(), start, "looking changes nothing");
        let asked = scene.model.requests().len();
        let second = builds_it(&mut scene);
        scene.check();
        let (built, whole) = (scene.files(), scene.stored());
        assert!(built.contains("(1 - discount)") && passes(&scene));
        assert!(scene.view().todos().iter().all(|todo| todo.state == TodoState::Done));
        let turns: Vec<u64> = scene.targets().iter().map(|target| target.files.modified).collect();
        assert_eq!(turns, [2, 0], "newest first");

        // Back to the middle: the files of then, the plan of then, and the prompt to be said again.
        scene.rewind(second, Scope::Both);
        assert_eq!((scene.files(), scene.draft().as_str()), (start.clone(), "Do it."));
        assert_eq!(scene.view().todos()[0].state, TodoState::Active, "ticks go back");
        let usage = scene.view().usage();
        assert_eq!((usage.input, usage.output), (600, 120), "six answers are left");
        scene.check();

        // Another way: what was there before is received again byte for byte, and nothing of what was taken back.
        let first_again = &scene.model.requests()[asked];
        let kept = first_again.messages();
        scene.model.calls(
            "write_file",
            json!({"path": "discount.py", "content": "def discounted(total, rate):\n    return total * (1 - rate)\n"}),
        );
        let check =
            "python3 -B -c 'from discount import discounted; assert discounted(200, 0.1) == 180; print(\"right\")'";
        scene.model.calls("bash", json!({"command": check}));
        scene.model.says("It has a module of its own.");
        scene.prompt("Do it in a module of its own.");
        let request = &scene.model.requests()[asked + 8];
        let received = request.messages();
        assert_eq!(received[..kept.len() - 1], kept[..kept.len() - 1], "{wire:?}");
        assert_eq!(received.len(), kept.len());
        assert!(request.transcript().ends_with("user: Do it in a module of its own."), "{}", request.transcript());
        let last = scene.last_request().transcript();
        assert!(last.contains("tool: right\n") && !last.contains("A sign is wrong"), "{last}");
        assert_eq!(scene.read("cart.py").as_deref(), Some(CART));
        scene.check();
        let (another, retold) = (scene.files(), scene.stored());

        // And both ways can be had: undo the other way, undo the rewind; redo brings it back.
        scene.undo();
        assert_eq!(scene.files(), start);
        scene.undo();
        assert_eq!((scene.files(), scene.stored()), (built.clone(), whole.clone()), "the first way is back");
        assert!(passes(&scene));
        scene.check();
        scene.restart();
        scene.redo();
        scene.redo();
        assert_eq!((scene.files(), scene.stored()), (another, retold));
        scene.check();
        scene.undo();
        scene.undo();

        // The first way goes on as if nothing had been.
        scene.model.says("You are welcome.");
        scene.prompt("Thank you.");
        let last = scene.last_request();
        assert_eq!(last.messages()[..kept.len()], kept[..], "{wire:?}");
        let words = last.transcript();
        assert!(words.contains("A sign is wrong") && !words.contains("discount.py"), "{words}");
        assert!(words.ends_with("user: Thank you."), "{words}");

        // To the very beginning.
        scene.rewind(first, Scope::Both);
        assert_eq!((scene.files(), scene.view().todos().len()), (start, 0));
        assert_eq!(scene.stored().title(), "");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn within_a_turn_one_can_go_back_to_after_any_round() {
    let mut scene = project(Wire::Anthropic);
    looks_around(&mut scene);
    builds_it(&mut scene);
    let (files, stored) = (scene.files(), scene.stored());
    // After the failing test: the new test is there, the code is not.
    let failing = stored.entries().iter().find(|entry| {
        matches!(&entry.body, retake_engine::session::entry::Body::ToolResult { parts, .. }
            if parts.iter().any(|part| matches!(part, retake_engine::session::entry::Part::Text { text } if text.contains("unexpected keyword"))))
    });
    let document = scene.rewind(failing.unwrap().id, Scope::Both);
    assert_eq!(scene.read("cart.py").as_deref(), Some(CART), "{document:#?}");
    assert!(scene.read("test_cart.py").unwrap().contains("test_discount"));
    assert_eq!(scene.draft(), "", "nothing is to be said again");
    scene.check();
    scene.model.says("Then I will wait.");
    scene.prompt("Stop here; I will write it.");
    let transcript = scene.last_request().transcript();
    assert!(transcript.contains("unexpected keyword argument"), "{transcript}");
    assert!(!transcript.contains("It fails, as it should"), "{transcript}");
    scene.undo();
    scene.undo();
    assert_eq!((scene.files(), scene.stored()), (files, stored));
    scene.check();
}

#[test]
fn a_session_whose_only_turn_was_undone_is_not_forgotten() {
    let mut scene = Scene::new().start();
    scene.model.calls("write_file", json!({"path": "a.txt", "content": "a\n"}));
    scene.model.says("Done.");
    scene.prompt("write it");
    let stored = scene.stored();
    scene.undo();
    scene.request(retake_agent::contract::Action::Draft { parts: Vec::new() }).unwrap();
    scene.restart();
    scene.redo();
    assert_eq!((scene.files().as_str(), scene.stored()), ("a.txt: a\n", stored));
    scene.check();
}

#[test]
fn what_is_cleared_before_the_first_snapshot_is_complete_can_be_undone() {
    let scene = Scene::new();
    (0..3_000).for_each(|file| scene.write(&format!("d{}/{file}", file % 50), "x"));
    let mut scene = scene.start();
    scene.request(retake_agent::contract::Action::Clear).unwrap();
    assert_eq!(scene.view().entries.len(), 1);
    scene.undo();
    assert_eq!(scene.view().entries.len(), 0);
    scene.check();
}

#[test]
fn the_end_of_a_turn_is_appended_like_all_else() {
    let mut scene = Scene::new().start();
    scene.model.says("Hello.");
    scene.prompt("hello");
    let moved =
        |kind: &retake_agent::contract::EventKind| matches!(kind, retake_agent::contract::EventKind::HeadMoved { .. });
    assert!(!scene.told().iter().any(moved), "nothing left the conversation");
    scene.check();
}
