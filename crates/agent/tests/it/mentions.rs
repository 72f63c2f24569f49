//! Files that a prompt mentions are shown to the model beside it.

use retake_agent::contract::{Action, Mentions, Reply};
use retake_agent::mention::attach;
use retake_engine::session::entry::Part;

use crate::scene::{Scene, Wire};

/// What begins and ends like a picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01 IDAT IEND";

/// What is attached to a text.
fn attached(scene: &Scene, text: &str) -> Vec<String> {
    let parts = attach(&scene.root(), vec![Part::text(text)]);
    assert_eq!(parts[0], Part::text(text), "what was typed stays as it was");
    let name = |part: &Part| match part {
        Part::File { path, text } => format!("{path}: {text}"),
        Part::Image { media_type, .. } => media_type.clone(),
        other => panic!("no file: {other:?}"),
    };
    parts[1..].iter().map(name).collect()
}

#[test]
fn what_is_mentioned_is_attached_once_and_in_order() {
    let scene = Scene::new().file("src/a.rs", "a").file("b.txt", "b").file("with space.txt", "s").file("odd.", "o");
    std::fs::write(scene.root().join("c.png"), PICTURE).unwrap();
    assert_eq!(attached(&scene, "Compare @b.txt with @src/a.rs."), ["b.txt: b", "src/a.rs: a"]);
    assert_eq!(attached(&scene, "(@./src/../src/a.rs, @src/a.rs)"), ["src/a.rs: a"]);
    assert_eq!(attached(&scene, "see @\"with space.txt\"!"), ["with space.txt: s"]);
    assert_eq!(attached(&scene, "@odd. and @c.png @c.png"), ["odd.: o", "image/png"]);
    let whole = scene.root().join("b.txt").display().to_string();
    assert_eq!(attached(&scene, &format!("@{whole}")), ["b.txt: b"]);
}

#[test]
fn what_is_no_file_of_the_workspace_is_left_alone() {
    let scene = Scene::new().file("example.org", "x").file("dir/a.txt", "a").file("large.txt", &"x".repeat(6 << 20));
    std::fs::write(scene.root().join("binary"), [0xff, 0xfe, 0]).unwrap();
    std::fs::write(scene.dir.path().join("secret.txt"), "secret").unwrap();
    for (name, to) in [("out.txt", "../secret.txt"), ("up", ".."), ("loop", "loop"), ("in.txt", "dir/a.txt")] {
        std::os::unix::fs::symlink(to, scene.root().join(name)).unwrap();
    }
    for text in [
        "write to me@example.org",
        "@Override, @dir, @missing.txt and @",
        "@../secret.txt @out.txt @up/secret.txt @loop @~/.ssh/id_rsa @/etc/passwd",
        "@binary @large.txt",
    ] {
        assert_eq!(attached(&scene, text), [""; 0], "{text}");
    }
    assert_eq!(attached(&scene, "@in.txt"), ["dir/a.txt: a"], "a link that stays inside");
}

#[test]
fn what_is_there_already_is_not_attached_again() {
    let scene = Scene::new().file("a.txt", "now").file("b.txt", "b");
    let old = Part::File { path: "a.txt".to_owned(), text: "as it was pasted".to_owned() };
    let paste = Part::Paste { text: "@b.txt".to_owned() };
    let parts = vec![Part::text("look at @a.txt"), old, paste];
    assert_eq!(attach(&scene.root(), parts.clone()), parts, "what was pasted mentions nothing");
}

#[test]
fn the_model_is_shown_what_was_mentioned() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).file("a.txt", "alpha\n").start();
        scene.model.says("Seen.");
        let parts = vec![Part::text("look at @a.txt")];
        let mentions = Mentions::Attach;
        let prompt = Action::Prompt { parts, allow: None, unprotected: false, draft: None, mentions };
        let said = scene.request(prompt).expect("it can be said");
        let Reply::Said { prompt } = said else { panic!("not said: {said:?}") };
        scene.until_ended(prompt);
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains("look at @a.txt") && transcript.contains("alpha"), "{transcript}");
        assert_eq!(scene.targets()[0].text, "look at @a.txt");
        scene.check();
    }
}
