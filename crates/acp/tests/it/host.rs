//! Sessions for the tests: opened in this process, in one workspace.

use std::path::{Path, PathBuf};

use retake_acp::agent::{Close, Host, HostError, ListedSession, OpenSession, WantedSession, Wish};
use retake_agent::contract::Action;
use retake_agent::controller::{self, Opened, SessionSetup, Unprotected, Which};
use retake_agent::listing;
use retake_agent::live::LiveSession;
use retake_agent::model::{Model, ModelRefused, ModelSettings, Models};
use retake_agent::permission::{Mode, Policy};
use retake_agent::tool::{Jobs, Shell, Toolbox};
use retake_engine::operation::MadeBy;
use retake_engine::{Breadth, Environment, Settings, Workspace};

/// Opens sessions of the workspace `w` in a directory.
#[derive(Clone)]
pub struct TestHost {
    pub dir: PathBuf,
    pub model: String,
}

pub fn environment(dir: &Path) -> Environment {
    Environment {
        root: dir.join("w"),
        data_dir: dir.join("data"),
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    }
}

fn model_at(name: &str, url: &str) -> Model {
    let mut settings = ModelSettings::parse(name, Some(url), |_| None).expect("settings");
    settings.context = Some(200_000);
    Model::new(settings).expect("a model")
}

impl TestHost {
    fn open_blocking(&self, which: Which) -> Result<Opened, HostError> {
        let (jobs, ended) = Jobs::new();
        let environment = environment(&self.dir);
        let url = self.model.clone();
        let setup = SessionSetup {
            which,
            model: model_at("anthropic/scripted", &self.model),
            models: Models::new(move |name| match name {
                "anthropic/other" => Ok(model_at(name, &url)),
                _ => Err(ModelRefused { message: format!("there is no model `{name}`"), hint: None }),
            }),
            policy: Policy { mode: Mode::Interactive, ..Policy::default() },
            unprotected: Unprotected::Ask,
            made_by: MadeBy::Client,
            tools: (Toolbox::new(&environment.root, Shell::default(), jobs), ended),
            environment,
        };
        controller::open(setup).map_err(|error| HostError::Failed { message: error.to_string() })
    }
}

impl Host for TestHost {
    async fn open(&self, wish: Wish) -> Result<OpenSession, HostError> {
        assert_eq!(wish.cwd, self.dir.join("w"), "the workspace that the client named");
        let which = match wish.which {
            WantedSession::New => Which::New,
            WantedSession::Existing(session) => {
                let workspace = Workspace::open_or_create(environment(&self.dir)).unwrap();
                let found = workspace.sessions().resolve(&session);
                Which::Existing(found.map_err(|_| HostError::Unknown { session })?.id)
            }
        };
        let host = self.clone();
        let opened = tokio::task::spawn_blocking(move || host.open_blocking(which)).await.unwrap()?;
        let (view, live) = LiveSession::here(opened.handle.clone()).await.unwrap();
        let close: Close = Box::new(move |_| {
            Box::pin(async move {
                opened.handle.request(Action::Close).await.ok();
                drop(opened.handle);
                tokio::task::spawn_blocking(|| opened.served.join().unwrap()).await.unwrap();
            })
        });
        Ok(OpenSession { view, live, close })
    }

    async fn list(&self, _: Option<PathBuf>) -> Result<Vec<ListedSession>, HostError> {
        let Ok(workspace) = Workspace::open(environment(&self.dir)) else { return Ok(Vec::new()) };
        let facts = listing::sessions(&workspace).unwrap().into_iter();
        let cwd = self.dir.join("w");
        Ok(facts
            .map(|one| ListedSession { session: one.session.into(), cwd: cwd.clone(), title: one.title, at: one.at })
            .collect())
    }

    async fn delete(&self, session: String) -> Result<(), HostError> {
        let mut workspace = Workspace::open(environment(&self.dir)).unwrap();
        let found = workspace.sessions().resolve(&session).map_err(|_| HostError::Unknown { session })?;
        let writer = workspace.sessions().open(found.id, retake_agent::ids::now(), &mut retake_agent::ids::random);
        workspace.sessions_mut().delete(writer.unwrap()).unwrap();
        Ok(())
    }

    fn warn(&self, _: &str) {}
}
