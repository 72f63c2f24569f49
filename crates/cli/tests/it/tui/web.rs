//! `/web`: the terminal's session in a browser.

use serde_json::json;

use super::{READY, Scene, User};
use crate::agent::serve::Browser;

/// The address that the screen shows.
fn address(screen: &str) -> String {
    let line = screen.lines().find_map(|line| line.trim().strip_prefix("http://")).expect("an address");
    format!("http://{}", line.trim())
}

#[test]
fn the_session_is_seen_and_used_in_a_browser_too() {
    let scene = Scene::new();
    scene.model().says("Hello from the model.");
    let terminal = scene.open();
    terminal.ask("first", "Hello from the model.");
    terminal.say("/web").wait_for("it works once:").wait_for("token=");
    let first = address(&terminal.screen());
    let browser = Browser::sign_in(&first);
    let listed = browser.get("/api/sessions");
    let session = listed["sessions"][0]["session"].as_str().expect("an id").to_owned();
    assert_eq!((&listed["sessions"][0]["title"], &listed["sessions"][0]["live"]), (&json!("first"), &json!(true)));
    scene.model().says("Hello, browser.");
    browser.command(&session, &json!({"type": "prompt", "parts": [{"type": "text", "text": "from the browser"}]}));
    terminal.wait_for("> from the browser").wait_for("Hello, browser.").wait_for(READY);
    browser.command(&session, &json!({"type": "apply", "change": {"do": "undo"}}));
    terminal.wait_until_gone("Hello, browser.");
    // Another address, and the same server.
    terminal.say("/web").wait_until("another address", |screen| screen.contains("token=") && address(screen) != first);
    let second = address(&terminal.screen());
    assert_eq!(first.split('?').next(), second.split('?').next());
    Browser::sign_in(&second);
    terminal.say("/quit").wait_for_end();
    assert_eq!(scene.json(["sessions"])["sessions"][0]["live"], false);
}
