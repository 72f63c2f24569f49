//! Advice on what goes wrong with sessions, models and turns.

use retake_agent::contract::Reason;
use retake_agent::controller;
use retake_agent::live::LiveError;
use retake_engine::session::SessionError;

use super::{
    Advice, FAILED, INTERRUPTED, REFUSED, USAGE, failed, for_checkpoint, for_open, for_rewind, for_store, refused,
};
use crate::agent::AgentError;
use crate::output::messages;

/// What to do about a failure of the agent.
pub fn hint(error: &AgentError) -> Option<String> {
    for_agent(error).hint
}

pub(super) fn for_agent(error: &AgentError) -> Advice {
    match error {
        AgentError::NoModel => Advice { code: USAGE, hint: Some(messages::NO_MODEL.to_owned()) },
        AgentError::Settings(retake_agent::model::SettingsError::NoKey { variable, .. }) => {
            failed(Some(&format!("export {variable}=YOUR-KEY, or name a local server with `--base-url`")))
        }
        AgentError::Settings(_) => Advice { code: USAGE, hint: Some(messages::NO_MODEL.to_owned()) },
        AgentError::Model(error) => failed(Some(&error.advice())),
        AgentError::Open(error) => match error {
            controller::OpenError::Workspace(error) => for_open(error),
            controller::OpenError::Session(error) => for_session(error),
            controller::OpenError::Recovery(error) => for_rewind(error),
            controller::OpenError::Store(error) => for_store(error),
            controller::OpenError::Checkpoint(error) => for_checkpoint(error),
            controller::OpenError::Thread(_) => failed(None),
        },
        AgentError::Refused { hint, refusal, .. } => {
            let code = match refusal.reason {
                Reason::Running | Reason::StaleHead | Reason::Conflicts | Reason::StalePlan | Reason::InUse => REFUSED,
                Reason::NotFound
                | Reason::NoFiles
                | Reason::Nothing
                | Reason::Invalid
                | Reason::Interrupted
                | Reason::Ended
                | Reason::Failed => FAILED,
            };
            Advice { code, hint: hint.clone() }
        }
        AgentError::ClosedElsewhere => failed(Some("everything is stored; `retake resume` opens it here")),
        AgentError::NotOpen => failed(Some("`retake resume` opens the newest one")),
        AgentError::Untrusted(_) => refused(
            "set `XDG_RUNTIME_DIR` to a directory that only you can enter, for this command and the one that has the session open",
        ),
        AgentError::NoSession => failed(Some("`retake run -p TEXT` begins one")),
        AgentError::Ended => failed(Some("everything up to then is stored; `retake resume` says where it stands")),
        AgentError::Live(error) => match error {
            LiveError::Ended | LiveError::Died => {
                failed(Some("what was done is stored; `retake resume` puts it in order and says where it stands"))
            }
            LiveError::Unreachable { .. } => refused("close that process, then run the command again"),
            LiveError::TurnedAway(refusal) => failed(refusal.hint.as_deref()),
        },
        AgentError::Returned => failed(Some("it is kept as the draft; `retake resume` shows it")),
        AgentError::TurnFailed { .. } => {
            failed(Some("the prompt can be said again; everything that was done is stored"))
        }
        AgentError::RoundLimit { .. } => failed(Some(
            "everything that was done is stored; `retake resume -p TEXT` goes on, `retake undo` takes it back",
        )),
        AgentError::TakenBack => Advice {
            code: INTERRUPTED,
            hint: Some("nothing happened; what you said is kept, and `retake resume` shows it".to_owned()),
        },
        AgentError::Withdrawn | AgentError::SummaryStopped => Advice { code: INTERRUPTED, hint: None },
        AgentError::Interrupted => Advice {
            code: INTERRUPTED,
            hint: Some(
                "everything that was done is stored; `retake resume` goes on, `retake undo` takes it back".to_owned(),
            ),
        },
        AgentError::Attachment { .. } | AgentError::NoPrompt => Advice { code: USAGE, hint: None },
    }
}

pub(super) fn for_session(error: &SessionError) -> Advice {
    match error {
        SessionError::Live { .. } => refused("do it there, or close it first"),
        SessionError::NotAConversation { .. } => failed(Some("`retake sessions` lists the conversations")),
        SessionError::Pending { .. } => refused("nothing was changed; `retake recover` finishes it or takes it back"),
        SessionError::StaleHead => refused("look at it again with `retake log`, then run the command again"),
        SessionError::Store(error) => for_store(error),
    }
}
