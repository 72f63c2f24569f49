//! The scenarios of the test kit, over HTTP and server-sent events.

use std::path::PathBuf;

use retake_testkit::ScriptedModel;
use retake_testkit::suite::{ByContract, Contract};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::shared_sessions::Terminal;
use crate::stage::Stage;
use crate::watcher::Watcher;

retake_testkit::scenarios!(open);

fn open() -> ByContract<Tab> {
    let stage = Stage::asking();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let watcher = Watcher::of(&browser, &session);
    ByContract::new(Tab { watcher, session, asked: 0, browser, stage })
}

struct Tab {
    watcher: Watcher,
    session: String,
    asked: u64,
    browser: Browser,
    stage: Stage,
}

impl Tab {
    /// Another tab that has seen everything: it may be given an older view and what came since.
    fn newcomer(&self) -> Watcher {
        let mut watcher = Watcher::of(&self.browser, &self.session);
        watcher.until_seq(Terminal::join(&self.stage, &self.session).view.seq);
        watcher
    }
}

impl Contract for Tab {
    fn model(&self) -> &ScriptedModel {
        &self.stage.model
    }

    fn root(&self) -> PathBuf {
        self.stage.root()
    }

    fn ask(&mut self, command: Value) -> Result<Value, Value> {
        self.asked += 1;
        let answer = self.browser.command(&self.session, &format!("request-{}", self.asked), &command);
        match answer.get("refused") {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(answer["ok"].clone()),
        }
    }

    fn event(&mut self) -> Value {
        json!(self.watcher.until(|_| true))
    }

    fn view(&mut self) -> Value {
        json!(self.newcomer().view)
    }

    fn enter(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        self.watcher = self.newcomer();
    }

    fn reload(&mut self) {
        self.stage.stop();
        self.stage.start();
        let session = self.session.clone();
        self.enter(&session);
    }
}
