//! `retake context`: exactly what the model would be sent next.

use retake_agent::contract::{Query, Reply};
use retake_engine::Workspace;
use retake_engine::session::entry::Body;

use crate::agent::model::{self, ModelArgs, ModelUse};
use crate::agent::{self, AgentError, session};
use crate::failure::Result;
use crate::output::ui::Ui;
use crate::workspace::context::CommandContext;

/// Print exactly what the model would be sent next
///
/// The body of the next request, as JSON in the model's own format, without what you are about to say. Characters that a terminal would
/// obey are escaped as JSON allows, so it means the same.
#[derive(clap::Args, Debug)]
pub struct ContextArgs {
    /// Session: a unique beginning of its id [default: the newest]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &ContextArgs) -> Result<()> {
    let workspace = Workspace::open(here.environment.clone())?;
    let session = session::find(&workspace, args.session.as_deref())?;
    if let Some(reply) = agent::ask_live(here, session.id, Query::Context)? {
        let Reply::Context { body } = reply.map_err(AgentError::from)? else { return Err(AgentError::Ended.into()) };
        return Ok(ui.raw_json(&body)?);
    }
    let conversation = workspace.sessions().conversation(session.id)?;
    let last = conversation.entries().iter().rev().find_map(|entry| match &entry.body {
        Body::Reply { model, .. } => Some(model.as_str()),
        _ => None,
    });
    let runtime = agent::runtime()?;
    let model = model::find(runtime.handle(), &args.model, &here.agent, ModelUse::Encode, last)?;
    let _inside = runtime.enter();
    let (toolbox, _ended) = runtime.block_on(agent::tools(ui, here))?;
    let request = model.request(&conversation.context(), &toolbox.specs());
    ui.raw_json(request.body())?;
    runtime.block_on(toolbox.shutdown());
    Ok(())
}
