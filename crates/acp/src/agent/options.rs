//! What can be configured of a session: the model, and what may run without being asked about.

use retake_agent::contract::Allow;
use serde_json::{Value, json};

use super::Version;

/// The option for the model.
pub(super) const MODEL: &str = "model";
/// The option for permissions.
pub(super) const PERMISSIONS: &str = "mode";

/// What may run without being asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Permissions {
    /// Reading; the rest is asked about.
    #[default]
    Ask,
    /// Reading; the rest is refused.
    Read,
    /// Reading and edit tools; the rest is asked about.
    Edit,
    /// Everything that no rule denies or wants to be asked about.
    All,
}

impl Permissions {
    const EVERY: [Self; 4] = [Self::Ask, Self::Read, Self::Edit, Self::All];

    /// By its name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|one| one.id() == name)
    }

    /// Its name.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Read => "read",
            Self::Edit => "edit",
            Self::All => "all",
        }
    }

    /// What a prompt asks for by it.
    pub(super) fn allow(self) -> Option<Allow> {
        match self {
            Self::Ask => None,
            Self::Read => Some(Allow::None),
            Self::Edit => Some(Allow::EditsElseAsk),
            Self::All => Some(Allow::AllElseAsk),
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Ask => ("Ask", "Reading runs; whatever may change something is asked about"),
            Self::Read => ("Read only", "Reading runs; nothing else does, and nobody is asked"),
            Self::Edit => ("Edit files", "Reading and edit tools run; commands are asked about"),
            Self::All => {
                ("Allow all", "Everything runs that no rule of the settings denies or wants to be asked about")
            }
        }
    }
}

/// The options as they stand; `models` are those that are known, the current one among them.
pub(super) fn options(version: Version, model: &str, models: &[String], permissions: Permissions) -> Value {
    let id = match version {
        Version::V1 => "id",
        Version::V2 => "configId",
    };
    let models: Vec<Value> = models.iter().map(|name| json!({ "value": name, "name": name })).collect();
    let every: Vec<Value> = Permissions::EVERY
        .into_iter()
        .map(|one| json!({ "value": one.id(), "name": one.words().0, "description": one.words().1 }))
        .collect();
    json!([
        {
            id: MODEL, "name": "Model", "category": "model", "type": "select",
            "description": "As `provider/name`; the next request asks it",
            "currentValue": model, "options": models,
        },
        {
            id: PERMISSIONS, "name": "Permissions", "category": "mode", "type": "select",
            "description": "What runs without being asked about",
            "currentValue": permissions.id(), "options": every,
        },
    ])
}

/// The same permissions as modes, which is what older clients of version 1 know.
pub(super) fn modes(permissions: Permissions) -> Value {
    let mode = |one: Permissions| json!({ "id": one.id(), "name": one.words().0, "description": one.words().1 });
    let every: Vec<Value> = Permissions::EVERY.into_iter().map(mode).collect();
    json!({ "currentModeId": permissions.id(), "availableModes": every })
}
