//! Questions and their answers.

use retake_agent::contract::{Action, Command, PermissionAnswer};

use super::*;

fn answer(effects: &[Effect]) -> Option<(&CallId, &PermissionAnswer)> {
    match effects {
        [Effect::Ask(Asked::Quietly, Command::Action(Action::Answer { call, answer }))] => Some((call, answer)),
        _ => None,
    }
}

#[test]
fn each_key_gives_its_answer() {
    let cases =
        [(KeyCode::Char('y'), PermissionAnswer::Allow), (KeyCode::Char('n'), PermissionAnswer::Deny { why: None })];
    for (key, wanted) in cases {
        let mut scene = Scene::new();
        scene.ask("c1", npm_test());
        let effects = scene.key(key);
        assert_eq!(answer(&effects), Some((&CallId("c1".into()), &wanted)));
        assert_eq!(scene.key(key), [], "a second key answers nothing else");
    }
}

#[test]
fn enter_gives_the_marked_answer_and_always_takes_two_keys() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    assert!(scene.screen(80, 16).contains("› y Yes, this once"), "{}", scene.screen(80, 16));
    assert_eq!(answer(&scene.key(KeyCode::Enter)), Some((&CallId("c1".into()), &PermissionAnswer::Allow)));
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.key(KeyCode::Down);
    scene.key(KeyCode::Down);
    assert!(scene.screen(80, 16).contains("› n No"));
    assert_eq!(answer(&scene.key(KeyCode::Enter)), Some((&CallId("c1".into()), &PermissionAnswer::Deny { why: None })));
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    assert_eq!(scene.key(KeyCode::Char('a')), []);
    let always = PermissionAnswer::AllowAlways { rule: npm_test().expect("there is one") };
    assert_eq!(answer(&scene.key(KeyCode::Enter)), Some((&CallId("c1".into()), &always)));
}

#[test]
fn an_enter_that_was_typed_ahead_answers_nothing() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.now -= 1_000;
    for _ in 0..20 {
        assert_eq!(scene.key(KeyCode::Enter), [], "a key that is held down was not meant for the question");
        scene.now += 200;
    }
    scene.now += 1_000;
    scene.types("please ");
    scene.key(KeyCode::Enter);
    for key in ['y', 'e', 's'] {
        assert_eq!(scene.key(KeyCode::Char(key)), [], "the rest of what was typed or pasted line by line");
        assert_eq!(scene.key(KeyCode::Enter), []);
    }
    assert!(scene.screen(80, 16).contains("n No"), "it is asked all the same");
    scene.now += 1_000;
    assert!(answer(&scene.key(KeyCode::Enter)).is_some());
}

#[test]
fn words_that_are_typed_at_a_question_answer_nothing() {
    for words in ["stop", "cancel it", "Please do not"] {
        let mut scene = Scene::new();
        scene.ask("c1", npm_test());
        let effects = scene.enters(words);
        assert_eq!(
            effects,
            [Effect::Say { parts: vec![Part::text(words)], draft: Vec::new() }],
            "it is said, and held"
        );
        assert!(scene.screen(80, 16).contains("n No"), "and is asked all the same");
        scene.now += 1_000;
        let denied = scene.key(KeyCode::Char('n'));
        assert!(answer(&denied).is_some(), "once nobody types any more, keys answer again");
    }
}

#[test]
fn a_no_can_say_why() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.key(KeyCode::Char('w'));
    let effects = scene.enters("use yarn");
    let why = PermissionAnswer::Deny { why: Some("use yarn".into()) };
    assert_eq!(answer(&effects), Some((&CallId("c1".into()), &why)));
    assert!(scene.app.composer.is_blank());
}

#[test]
fn always_is_not_offered_where_there_is_no_rule() {
    let mut scene = Scene::new();
    scene.ask("c1", None);
    assert_eq!(scene.key(KeyCode::Char('a')), []);
    assert!(!scene.screen(80, 16).contains("always"));
}

#[test]
fn somebody_who_is_typing_answers_nothing_by_accident() {
    let mut scene = Scene::new();
    scene.types("wait, ");
    scene.ask("c1", npm_test());
    assert_eq!(scene.types("yes"), []);
    assert_eq!(scene.app.composer.parts(), [Part::text("wait, yes")]);
    assert!(scene.screen(80, 16).contains("goes back to the answers"));
    scene.key(KeyCode::Tab);
    let effects = scene.key(KeyCode::Char('n'));
    assert!(answer(&effects).is_some());
    assert_eq!(scene.app.composer.parts(), [Part::text("wait, yes")]);
}

#[test]
fn escape_stops_the_turn_that_asks() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    assert_eq!(scene.key(KeyCode::Esc), [Effect::Ask(Asked::Quietly, Action::Interrupt { turn: None }.into())]);
}

#[test]
fn what_another_client_answers_is_asked_no_more() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.tell(EventKind::PermissionSettled { call: CallId("c1".into()), allowed: true });
    assert!(!scene.screen(80, 16).contains("May it?"));
    assert_eq!(scene.types("y"), []);
    assert_eq!(scene.app.composer.parts(), [Part::text("y")], "it is typed");
}

#[test]
fn a_key_that_comes_at_once_was_not_meant_for_the_question() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.ask("c2", npm_test());
    assert!(answer(&scene.key(KeyCode::Char('y'))).is_some());
    assert_eq!(scene.key(KeyCode::Char('y')), [], "nobody has read the second one yet");
    scene.now += 1_000;
    assert_eq!(answer(&scene.key(KeyCode::Char('y'))).map(|(call, _)| call.0.clone()), Some("c2".into()));
}

#[test]
fn what_is_pasted_at_a_question_answers_nothing() {
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.key(KeyCode::Down);
    scene.input(Input::Paste("no, use the other file".into()));
    assert_eq!(
        scene.key(KeyCode::Enter),
        [Effect::Say { parts: vec![Part::text("no, use the other file")], draft: Vec::new() }]
    );
}

#[test]
fn escape_and_enter_at_once_are_escape() {
    let alt_enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
    let mut scene = Scene::new();
    scene.ask("c1", npm_test());
    scene.key(KeyCode::Down);
    assert_eq!(
        scene.input(Input::Key(alt_enter)),
        [Effect::Ask(Asked::Quietly, Action::Interrupt { turn: None }.into())]
    );
}
