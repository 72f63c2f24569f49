//! The scenarios of the test kit, through the controller's channel and through its socket.

use std::path::PathBuf;

use retake_agent::contract::Command;
use retake_agent::live::{LiveSession, Notification};
use retake_agent::socket::{Client, Served};
use retake_agent::view::View;
use retake_testkit::ScriptedModel;
use retake_testkit::suite::{ByContract, Contract};
use serde_json::{Value, json};

use crate::scene::{PATIENCE, Scene};
use crate::socket::serve;

mod by_channel {
    use super::{By, Way};

    retake_testkit::scenarios!(open);

    fn open() -> super::ByContract<Way> {
        Way::by(By::Channel)
    }
}

mod by_socket {
    use super::{By, Way};

    retake_testkit::scenarios!(open);

    fn open() -> super::ByContract<Way> {
        Way::by(By::Socket)
    }
}

/// How the session is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// In this process.
    Channel,
    /// As from another one.
    Socket,
}

struct Way {
    by: By,
    live: Option<LiveSession>,
    served: Option<(PathBuf, Served)>,
    scene: Scene,
}

impl Way {
    fn by(by: By) -> ByContract<Self> {
        let mut way = Self { by, live: None, served: None, scene: Scene::new().interactive().start() };
        way.arrive();
        ByContract::new(way)
    }

    /// Comes to the session that is open.
    fn arrive(&mut self) {
        self.served = (self.by == By::Socket).then(|| serve(&self.scene));
        self.live = Some(self.newcomer().1);
    }

    fn leave(&mut self) {
        self.live = None;
        self.served = None;
    }

    fn newcomer(&self) -> (Box<View>, LiveSession) {
        self.scene.runtime().block_on(async {
            match &self.served {
                None => LiveSession::here(self.scene.handle()).await.unwrap(),
                Some((directory, _)) => {
                    let session = self.scene.session();
                    let client = Client::connect(directory, session).await.unwrap().expect("it is served");
                    LiveSession::attach(client, session).await.unwrap()
                }
            }
        })
    }
}

impl Contract for Way {
    fn model(&self) -> &ScriptedModel {
        &self.scene.model
    }

    fn root(&self) -> PathBuf {
        self.scene.root()
    }

    fn ask(&mut self, command: Value) -> Result<Value, Value> {
        let command: Command = serde_json::from_value(command).unwrap();
        let asker = &self.live.as_ref().unwrap().asker;
        let answer = self.scene.runtime().block_on(asker.ask(command)).unwrap();
        answer.map(|reply| json!(reply)).map_err(|refusal| json!(refusal))
    }

    fn event(&mut self) -> Value {
        let told = &mut self.live.as_mut().unwrap().told;
        match self.scene.runtime().block_on(async { tokio::time::timeout(PATIENCE, told.next()).await }) {
            Ok(Notification::Event(event)) => json!(event),
            other => panic!("no event: {other:?}"),
        }
    }

    fn view(&mut self) -> Value {
        json!(self.newcomer().0)
    }

    fn enter(&mut self, session: &str) {
        self.leave();
        let session = self.scene.workspace().sessions().resolve(session).unwrap().id;
        self.scene.enter(session);
        self.arrive();
    }

    fn reload(&mut self) {
        self.leave();
        self.scene.restart();
        self.arrive();
    }
}
