//! Writes a request.

use std::borrow::Cow;

use retake_engine::session::context::{CallResult, Context, Message};
use retake_engine::session::entry::{Block, Part};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::thoughts::GivenBack;
use crate::model::ToolSpec;
use crate::model::call_ids::WireIds;
use crate::model::part_text::{self, PartContent, has_words};
use crate::model::settings::{ModelSettings, Reasoning};

/// Stands in a result for the images that follow it.
const SEE_IMAGES: &str = "(see the image below)";
/// Introduces images, which no server takes in a result.
const IMAGES_OF_RESULTS: &str = "Images of the results above:";

/// The body of the request for `context`.
pub(crate) fn encode(settings: &ModelSettings, context: &Context<'_>, tools: &[ToolSpec]) -> String {
    // OpenAI's own models refuse the old name, and other servers do not know the new one.
    let is_openai = settings.is_at("api.openai.com");
    let (reasoning_effort, reasoning) = reasoning(settings);
    let body = Body {
        model: &settings.name,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: settings.max_output.filter(|_| !is_openai),
        max_completion_tokens: settings.max_output.filter(|_| is_openai),
        reasoning_effort,
        reasoning,
        tools: tools.iter().map(Tool::new).collect(),
        messages: messages(context, settings),
    };
    serde_json::to_string(&body).expect("strings, numbers and raw JSON can always be written")
}

/// Messages come last: what is appended to them leaves the bytes before alone.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningBudget>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ReasoningBudget {
    max_tokens: u64,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let function = Function { name: &tool.name, description: &tool.description, parameters: &tool.schema };
        Self { r#type: "function", function }
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// Some servers want the field even if there is nothing in it.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: String,
        content: Cow<'a, str>,
    },
}

/// Plain text wherever possible: every server takes that.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: String,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

fn reasoning(settings: &ModelSettings) -> (Option<&'static str>, Option<ReasoningBudget>) {
    match settings.reasoning {
        Some(Reasoning::Effort(effort)) => (Some(effort.as_str()), None),
        Some(Reasoning::Budget(max_tokens)) if settings.is_at("openrouter.ai") => {
            (None, Some(ReasoningBudget { max_tokens }))
        }
        Some(Reasoning::Budget(_)) | None => (None, None),
    }
}

fn messages<'a>(context: &'a Context<'_>, settings: &ModelSettings) -> Vec<WireMessage<'a>> {
    let full_name = settings.full_name();
    let mut ids = WireIds::default();
    let mut messages = Vec::with_capacity(context.messages.len() + 1);
    if has_words(&context.system) {
        messages.push(WireMessage::System { content: &context.system });
    }
    for message in &context.messages {
        match message {
            Message::User { parts } => messages.push(WireMessage::User { content: content(parts) }),
            Message::Assistant { blocks, model } => {
                ids.enter(blocks);
                let mut thoughts = if *model == full_name { thoughts(blocks) } else { GivenBack::default() };
                if settings.is_at("deepseek.com") {
                    // It wants the field in every answer, in those of other models and in cut ones too: empty says that nothing came.
                    thoughts.reasoning_content.get_or_insert_with(|| part_text::raw("\"\"".to_owned()));
                }
                messages.push(answer(blocks, thoughts, &ids));
            }
            Message::Results { results } => add_results(&mut messages, results, &ids),
        }
    }
    messages
}

fn content(parts: &[Part]) -> Content<'_> {
    let told = part_text::tell(parts);
    if told.is_empty() {
        return Content::Text(part_text::NOTHING_ASKED.into());
    }
    if told.iter().all(|part| matches!(part, PartContent::Text(_))) {
        return Content::Text(joined(texts_and_images(told).0));
    }
    Content::Parts(told.into_iter().map(WirePart::new).collect())
}

impl<'a> WirePart<'a> {
    fn new(told: PartContent<'a>) -> Self {
        match told {
            PartContent::Text(text) => Self::Text { text },
            PartContent::Image { media_type, data } => {
                Self::ImageUrl { image_url: ImageUrl { url: format!("data:{media_type};base64,{data}") } }
            }
        }
    }
}

fn texts_and_images(told: Vec<PartContent<'_>>) -> (Vec<Cow<'_, str>>, Vec<WirePart<'_>>) {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in told {
        match part {
            PartContent::Text(text) => texts.push(text),
            PartContent::Image { .. } => images.push(WirePart::new(part)),
        }
    }
    (texts, images)
}

fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    if texts.len() > 1 { texts.join("\n\n").into() } else { texts.pop().unwrap_or_default() }
}

/// What goes back of the thoughts; a thought that was cut has nothing to give.
fn thoughts(blocks: &[Block]) -> GivenBack {
    let opaque = blocks.iter().find_map(|block| match block {
        Block::Reasoning { opaque, .. } if !opaque.is_empty() => Some(opaque),
        _ => None,
    });
    opaque.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

fn answer<'a>(blocks: &'a [Block], mut thoughts: GivenBack, ids: &WireIds<'_>) -> WireMessage<'a> {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } if has_words(text) => texts.push(Cow::Borrowed(text.as_str())),
            Block::Text { .. } | Block::Reasoning { .. } => {}
            Block::Call { id, name, arguments } => {
                let arguments = part_text::arguments(arguments).into_text();
                let function = CalledFunction { name: part_text::tool_name(name), arguments };
                let extra_content = thoughts.extra_content.remove(&id.0);
                tool_calls.push(ToolCall { id: ids.of(id), r#type: "function", function, extra_content });
            }
        }
    }
    let content = match (texts.is_empty(), tool_calls.is_empty()) {
        (true, true) => Some(part_text::NOTHING_SAID.into()),
        (true, false) => None,
        (false, _) => Some(joined(texts)),
    };
    let GivenBack { reasoning_content, reasoning, reasoning_details, .. } = thoughts;
    WireMessage::Assistant { content, reasoning_content, reasoning, reasoning_details, tool_calls }
}

/// Results follow their calls at once; their images come after all of them, in a message of their own.
fn add_results<'a>(messages: &mut Vec<WireMessage<'a>>, results: &'a [CallResult<'_>], ids: &WireIds<'_>) {
    let mut images = Vec::new();
    for result in results {
        let (texts, of_result) = texts_and_images(part_text::tell(&result.parts));
        let content = match (texts.is_empty(), of_result.is_empty()) {
            (true, false) => SEE_IMAGES.into(),
            (true, true) => part_text::NO_OUTPUT.into(),
            (false, _) => joined(texts),
        };
        images.extend(of_result);
        messages.push(WireMessage::Tool { tool_call_id: ids.of(&result.call), content });
    }
    if !images.is_empty() {
        images.insert(0, WirePart::Text { text: IMAGES_OF_RESULTS.into() });
        messages.push(WireMessage::User { content: Content::Parts(images) });
    }
}
