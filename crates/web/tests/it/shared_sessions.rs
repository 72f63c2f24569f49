//! R41, R80: browsers and terminals on one session stay in step.

use retake_agent::contract::{Action, Change, ChangeGoal, Command, EventKind, Reply, WhileRunning};
use retake_agent::controller::Which;
use retake_agent::live::{LiveSession, Notification};
use retake_agent::socket::Client;
use retake_agent::view::View;
use retake_engine::Workspace;
use retake_engine::id::SessionId;
use retake_engine::session::entry::Part;
use retake_web::SessionOpener;
use serde_json::json;

use crate::browser::Browser;
use crate::stage::{PATIENCE, Stage};
use crate::watcher::Watcher;

/// A client over the session's socket, as a terminal is.
pub struct Terminal {
    live: LiveSession,
    pub view: View,
}

impl Terminal {
    pub fn join(stage: &Stage, session: &str) -> Self {
        let id = resolve(stage, session);
        let (view, live) = stage.runtime.block_on(async {
            let client = Client::connect(&stage.sockets(), id).await.unwrap().expect("it is served");
            LiveSession::attach(client, id).await.unwrap()
        });
        Self { live, view: *view }
    }

    fn ask(&self, stage: &Stage, command: impl Into<Command>) -> Reply {
        stage.runtime.block_on(self.live.asker.ask(command)).unwrap().unwrap()
    }

    fn until_seq(&mut self, stage: &Stage, seq: u64) {
        while self.view.seq < seq {
            let told = stage.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.live.told.next()).await });
            match told.expect("it comes") {
                Notification::Event(event) => self.view.apply(&event),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn resolve(stage: &Stage, session: &str) -> SessionId {
    Workspace::open(stage.environment()).unwrap().sessions().resolve(session).unwrap().id
}

/// All have seen the same, and show the same.
fn in_step(stage: &Stage, browsers: &mut [Watcher], terminal: &mut Terminal) {
    let last = browsers.iter().map(|one| one.view.seq).max().unwrap().max(terminal.view.seq);
    terminal.until_seq(stage, last);
    for browser in browsers {
        browser.until_seq(last);
        assert_eq!(browser.view, terminal.view);
    }
}

/// Prompts, rewinds, undos and forks from here and from there.
fn play(stage: &Stage, browser: &Browser, session: &str) {
    let mut terminal = Terminal::join(stage, session);
    let mut browsers = [Watcher::of(browser, session), Watcher::of(browser, session)];
    stage.model.calls("write_file", json!({"path": "a.txt", "content": "one\n"}));
    stage.model.says("Done.");
    let first = browser.say(session, "from the browser");
    browsers[0].until_ended();
    in_step(stage, &mut browsers, &mut terminal);
    stage.model.says("Hello.");
    terminal.ask(stage, Action::prompt(vec![Part::text("from the terminal")]));
    browsers[1].until_ended();
    in_step(stage, &mut browsers, &mut terminal);
    assert_eq!(browsers[0].texts(), ["from the browser", "from the terminal"]);
    let rewind = json!({"type": "apply", "change": {"do": "rewind", "entry": first, "scope": "both"}});
    let answer = browser.command(session, "back", &rewind);
    // With the events up to the number of the answer, a client shows all that the answer is about.
    browsers[0].until_seq(answer["seq"].as_u64().expect("an answer is numbered"));
    assert_eq!((browsers[0].view.entries.len(), browsers[0].view.draft.len()), (0, 1), "{answer}");
    in_step(stage, &mut browsers, &mut terminal);
    assert_eq!((terminal.view.entries.len(), stage.read("a.txt")), (0, None));
    let undo = Change::new(ChangeGoal::Undo { operation: None });
    let command = Action::Apply { change: undo, head_seen: None, running: WhileRunning::Refuse, plan_seen: None };
    terminal.ask(stage, command);
    browsers[1].until(|kind| matches!(kind, EventKind::HeadMoved { .. }));
    in_step(stage, &mut browsers, &mut terminal);
    assert_eq!((browsers[0].texts().len(), stage.read("a.txt").as_deref()), (2, Some("one\n")));
    let Reply::Forked { session: fork, .. } = terminal.ask(stage, Action::Fork { entry: first.parse().unwrap() })
    else {
        panic!("not forked")
    };
    assert_eq!(Watcher::of(browser, &fork).texts(), [""; 0]);
    let stored =
        Workspace::open(stage.environment()).unwrap().sessions().conversation(resolve(stage, session)).unwrap();
    assert_eq!(stored.entries(), browsers[0].view.entries);
}

#[test]
fn two_tabs_and_a_terminal_are_in_step_on_a_session_that_the_server_has_open() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    play(&stage, &browser, &session);
}

#[test]
fn and_on_one_that_another_process_has_open_which_the_server_opens_when_it_has_ended() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let opened = stage.sessions().open(Which::New).unwrap();
    let session = opened.handle.session().to_string();
    play(&stage, &browser, &session);
    let mut watcher = Watcher::of(&browser, &session);
    let refused = browser.delete(&format!("/api/sessions/{session}"));
    assert_eq!(refused.error(), "409 the session is open in another process");
    (opened.finish)();
    let last = loop {
        let frame = watcher.frame().expect("there is a last word");
        if frame.event == "ended" {
            break frame;
        }
        watcher.take(&frame);
    };
    assert_eq!(last.json(), json!({"reason": "ended", "message": "the session has ended"}));
    assert_eq!(watcher.frame(), None);
    let again = Watcher::of(&browser, &session);
    assert_eq!(again.view.entries, watcher.view.entries);
    stage.model.says("Hello.");
    browser.say(&session, "here");
}

#[test]
fn what_a_request_leads_to_carries_its_id_and_no_two_wait_under_one() {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let elsewhere = stage.sessions().open(Which::New).unwrap();
    for session in [browser.begin(), elsewhere.handle.session().to_string()] {
        let mut watcher = Watcher::of(&browser, &session);
        let draft = json!({"type": "draft", "parts": [{"type": "text", "text": "x"}]});
        browser.command(&session, "1", &draft);
        let request = loop {
            let frame = watcher.frame().unwrap();
            if matches!(watcher.take(&frame), Some(EventKind::DraftChanged { .. })) {
                break frame.json()["request"].clone();
            }
        };
        assert_eq!(request, "1");
        let gate = stage.model.says("Hello.").pauses();
        browser.say(&session, "hi");
        let held =
            browser.command(&session, "later", &json!({"type": "prompt", "parts": [{"type": "text", "text": "more"}]}));
        assert_eq!(held["ok"], json!({"type": "held", "count": 1, "request": "later"}));
        browser.done(&session, &json!({"type": "withdraw", "request": "later"}));
        gate.open();
        watcher.until_ended();
        let summary = stage.model.says("In short.").pauses();
        let path = format!("/api/sessions/{session}/commands");
        let body = json!({"id": "long", "command": {"type": "summarise", "extent": {"part": "all"}}}).to_string();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| browser.post(&path, &body));
            summary.wait_until_reached();
            assert_eq!(browser.post(&path, &body).error(), "409 a request with this id waits for its answer already");
            summary.open();
            assert_eq!(waiting.join().unwrap().json()["ok"]["type"], "summarised");
        });
        for id in ["", "#1", &"x".repeat(200)] {
            let body = json!({"id": id, "command": {"type": "ping"}}).to_string();
            assert_eq!(browser.post(&path, &body).status, 400, "{id}");
        }
        for command in [json!({"type": "attach"}), json!({"type": "close"}), json!({"type": "dance"}), json!(7)] {
            let body = json!({"id": "1", "command": command}).to_string();
            assert_eq!(browser.post(&path, &body).status, 400, "{command}");
        }
        browser.works(&session);
    }
    (elsewhere.finish)();
}
