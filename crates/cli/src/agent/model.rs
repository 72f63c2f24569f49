//! Which model is asked: `--model`, else `RETAKE_MODEL`, else the settings, else a local Ollama if one is running.

use std::time::Duration;

use retake_agent::model::{Model, ModelRefused, ModelSettings, Models};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::AgentError;
use crate::failure;
use crate::workspace::context::{AgentSettings, variable};

/// Where Ollama listens.
const OLLAMA: &str = "127.0.0.1:11434";
/// How long it may take to answer: it is on this machine.
const OLLAMA_LIMIT: Duration = Duration::from_millis(500);
/// Longest list of models that is read.
const MAX_LIST: u64 = 4 << 20;

/// Options for the model.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Model: `anthropic/NAME`, or `openai/NAME` for OpenAI and every server with its API [env: RETAKE_MODEL]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where the model's server is [env: RETAKE_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
}

/// Whether the model is going to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelUse {
    /// Yes: it needs its key.
    Ask,
    /// No: only what it would be sent is wanted.
    Encode,
}

/// The model that is meant; `fallback` is one that is known otherwise.
pub fn find(
    runtime: &Handle,
    args: &ModelArgs,
    settings: &AgentSettings,
    need: ModelUse,
    fallback: Option<&str>,
) -> Result<Model, AgentError> {
    let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
    let name = args.model.clone().or_else(|| text("RETAKE_MODEL")).or_else(|| settings.model.clone());
    let base_url = args.base_url.clone().or_else(|| text("RETAKE_BASE_URL")).or_else(|| settings.base_url.clone());
    let (name, base_url) = match (name, base_url, fallback) {
        (Some(name), base_url, _) => (name, base_url),
        (None, base_url, Some(fallback)) => (fallback.to_owned(), base_url),
        (None, None, None) => match runtime.block_on(ollama()) {
            Some(model) => (format!("openai/{model}"), Some(format!("http://{OLLAMA}/v1"))),
            None => return Err(AgentError::NoModel),
        },
        (None, Some(_), None) => return Err(AgentError::NoModel),
    };
    let key = |variable: &str| match need {
        ModelUse::Ask => text(variable),
        ModelUse::Encode => Some(text(variable).unwrap_or_else(|| "none".to_owned())),
    };
    let mut model = ModelSettings::parse(&name, base_url.as_deref(), key)?;
    model.max_output = settings.max_output;
    model.context = settings.context;
    model.prices = settings.prices;
    model.reasoning = settings.reasoning;
    Ok(Model::new(model)?)
}

/// The other models that a session which begins with `model` can be told to ask.
///
/// Where the server is was said of this provider and holds for no other; what a model costs and how much it can read was said of this
/// model.
pub fn others(model: &Model, settings: &AgentSettings) -> Models {
    let (configured, max_output, reasoning) = (model.settings().clone(), settings.max_output, settings.reasoning);
    let find = move |name: &str| -> Result<Model, AgentError> {
        if name.trim() == configured.full_name() {
            return Ok(Model::new(configured.clone())?);
        }
        let is_same_provider = name.trim().split_once('/').is_some_and(|(prefix, _)| prefix == configured.api.prefix());
        let base_url = is_same_provider.then(|| configured.base_url.to_string());
        let key = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let mut model = ModelSettings::parse(name, base_url.as_deref(), key)?;
        model.max_output = max_output;
        model.reasoning = reasoning;
        Ok(Model::new(model)?)
    };
    Models::new(move |name| {
        find(name).map_err(|error| ModelRefused { message: error.to_string(), hint: failure::hint(&error) })
    })
}

/// The newest model of a local Ollama; `None` if there is none.
async fn ollama() -> Option<String> {
    #[derive(Deserialize)]
    struct Tags {
        models: Vec<Tag>,
    }
    #[derive(Deserialize)]
    struct Tag {
        name: String,
    }
    let asked = async {
        let mut stream = TcpStream::connect(OLLAMA).await.ok()?;
        stream.write_all(b"GET /api/tags HTTP/1.0\r\nHost: localhost\r\n\r\n").await.ok()?;
        let mut answer = Vec::new();
        stream.take(MAX_LIST).read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8(answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let tags: Tags = head.contains(" 200 ").then(|| serde_json::from_str(body).ok())??;
        // It lists the one that was changed last first.
        tags.models.into_iter().next().map(|tag| tag.name)
    };
    tokio::time::timeout(OLLAMA_LIMIT, asked).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_server_is_holds_for_its_provider_only_and_a_missing_key_is_said_as_at_the_start() {
        let here = ModelSettings::parse("openai/small", Some("http://localhost:9/v1"), |_| None).expect("settings");
        let here = ModelSettings { context: Some(8_000), ..here };
        let settings = AgentSettings { max_output: Some(77), ..AgentSettings::default() };
        let others = others(&Model::new(here.clone()).expect("a model"), &settings);
        let large = others.find("openai/large").expect("the same server has it");
        assert_eq!((&large.settings().base_url, large.settings().max_output), (&here.base_url, Some(77)));
        assert_eq!(large.settings().context, None, "what one model can read says nothing of another");
        assert_eq!(*others.find("openai/small").expect("it was there before").settings(), here);
        match others.find("anthropic/other") {
            Ok(found) => assert_eq!(found.settings().base_url.as_str(), "https://api.anthropic.com/"),
            Err(refused) => {
                assert_eq!(refused.message, "no key for `anthropic/other`: set ANTHROPIC_API_KEY");
                assert!(refused.hint.is_some_and(|hint| hint.contains("export ANTHROPIC_API_KEY")));
            }
        }
        assert!(others.find("small").expect_err("no provider").message.contains("`small` is no model"));
    }
}
