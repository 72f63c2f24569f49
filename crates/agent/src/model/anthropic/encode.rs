//! Writes a request.

use std::borrow::Cow;

use retake_engine::session::context::{CallResult, Context, Message};
use retake_engine::session::entry::{Block, Outcome, Part};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::ToolSpec;
use crate::model::call_ids::WireIds;
use crate::model::part_text::{self, PartContent, SentArguments, has_words};
use crate::model::settings::{Api, ModelSettings, Reasoning};

/// The API wants a number; every current model can write this much.
const MAX_OUTPUT: u64 = 32_000;
/// The API takes four marks: one for the system, one for the tools, and the rest for messages.
const MARKED_MESSAGES: usize = 2;

/// The body of the request for `context`.
pub(crate) fn encode(settings: &ModelSettings, context: &Context<'_>, tools: &[ToolSpec]) -> String {
    let mut messages = messages(settings, context);
    mark(&mut messages);
    let max_tokens = settings.max_output.unwrap_or(MAX_OUTPUT);
    let reasoning = settings.reasoning.filter(|reasoning| may_think(*reasoning, &messages));
    let (thinking, output_config) = thinking(reasoning, max_tokens);
    let body = Body {
        model: &settings.name,
        max_tokens,
        stream: true,
        thinking,
        output_config,
        tools: tools_marked(tools),
        system: has_words(&context.system).then(|| [Content::marked_text(&context.system)]),
        messages,
    };
    serde_json::to_string(&body).expect("strings, numbers and raw JSON can always be written")
}

/// Messages come last: what is appended to them leaves the bytes before alone.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Content<'a>; 1]>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled {
        budget_tokens: u64,
    },
    /// Newer models would leave out the text of what they think.
    Adaptive {
        display: &'static str,
    },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheMark {
    Ephemeral,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

/// One block; the order of fields is part of what stays the same.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Raw(&'a RawValue),
    Text {
        r#type: &'static str,
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    Image {
        r#type: &'static str,
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    ToolUse {
        r#type: &'static str,
        id: String,
        name: Cow<'a, str>,
        input: SentArguments<'a>,
    },
    ToolResult {
        r#type: &'static str,
        tool_use_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        content: Vec<Self>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> Content<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { r#type: "text", text: text.into(), cache_control: None }
    }

    fn marked_text(text: &'a str) -> Self {
        let mut content = Self::text(text);
        content.mark();
        content
    }

    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(CacheMark::Ephemeral),
            Self::Raw(_) | Self::ToolUse { .. } => {}
        }
    }
}

fn thinking(reasoning: Option<Reasoning>, max_tokens: u64) -> (Option<Thinking>, Option<OutputConfig>) {
    match reasoning {
        None => (None, None),
        Some(Reasoning::Effort(effort)) => {
            (Some(Thinking::Adaptive { display: "summarized" }), Some(OutputConfig { effort: effort.as_str() }))
        }
        // The budget is a part of the whole, and the API wants it to be a real part.
        Some(Reasoning::Budget(tokens)) => {
            let budget_tokens = tokens.clamp(1024, max_tokens.saturating_sub(1).max(1024));
            (Some(Thinking::Enabled { budget_tokens }), None)
        }
    }
}

fn tools_marked<'a>(tools: &'a [ToolSpec]) -> Vec<Tool<'a>> {
    let wire = |tool: &'a ToolSpec| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.schema,
        cache_control: None,
    };
    let mut wired: Vec<_> = tools.iter().map(wire).collect();
    if let Some(last) = wired.last_mut() {
        last.cache_control = Some(CacheMark::Ephemeral);
    }
    wired
}

/// With a budget, the API wants the last answer, if it has calls, to begin with a thought. One that another provider gave has none,
/// and then the model has to go on without.
fn may_think(reasoning: Reasoning, messages: &[WireMessage<'_>]) -> bool {
    let is_call = |content: &Content<'_>| matches!(content, Content::ToolUse { .. });
    let last = messages.iter().rev().find(|message| message.role == "assistant");
    match (reasoning, last) {
        (Reasoning::Budget(_), Some(last)) if last.content.iter().any(is_call) => {
            matches!(last.content.first(), Some(Content::Raw(_)))
        }
        _ => true,
    }
}

fn messages<'a>(settings: &ModelSettings, context: &'a Context<'_>) -> Vec<WireMessage<'a>> {
    let thoughts = Thoughts::of(settings);
    let mut ids = WireIds::default();
    let mut messages = Vec::with_capacity(context.messages.len());
    for message in &context.messages {
        messages.push(match message {
            Message::User { parts } => WireMessage { role: "user", content: told(parts, part_text::NOTHING_ASKED) },
            Message::Assistant { blocks, model } => {
                ids.enter(blocks);
                WireMessage { role: "assistant", content: answer(blocks, model, thoughts, &ids) }
            }
            Message::Results { results } => {
                let content = results.iter().map(|result| tool_result(result, &ids)).collect();
                WireMessage { role: "user", content }
            }
        });
    }
    messages
}

/// Marks the ends of the last messages of the user's side.
fn mark(messages: &mut [WireMessage<'_>]) {
    let users = messages.iter_mut().rev().filter(|message| message.role == "user");
    for content in users.take(MARKED_MESSAGES).filter_map(|message| message.content.last_mut()) {
        content.mark();
    }
}

fn told<'a>(parts: &'a [Part], if_nothing: &'static str) -> Vec<Content<'a>> {
    let content = |told: PartContent<'a>| match told {
        PartContent::Text(text) => Content::text(text),
        PartContent::Image { media_type, data } => Content::Image {
            r#type: "image",
            source: ImageSource { r#type: "base64", media_type, data },
            cache_control: None,
        },
    };
    let mut contents: Vec<_> = part_text::tell(parts).into_iter().map(content).collect();
    if contents.is_empty() {
        contents.push(Content::text(if_nothing));
    }
    contents
}

/// Which thoughts a server takes back.
#[derive(Clone, Copy)]
enum Thoughts {
    /// Anthropic's own takes what it signed.
    Signed,
    /// Others that speak its format may not sign anything, and still want it back.
    All,
}

impl Thoughts {
    fn of(settings: &ModelSettings) -> Self {
        if settings.is_at("anthropic.com") { Self::Signed } else { Self::All }
    }

    /// The thought as it came, if the server takes it.
    fn give_back(self, opaque: &str) -> Option<&RawValue> {
        // Within a string the quotes would be escaped.
        let is_unsigned = opaque.contains(r#""signature":"""#);
        match self {
            Self::Signed if is_unsigned => None,
            Self::Signed | Self::All => serde_json::from_str(opaque).ok(),
        }
    }
}

fn answer<'a>(blocks: &'a [Block], model: &str, thoughts: Thoughts, ids: &WireIds<'_>) -> Vec<Content<'a>> {
    let is_ours = model.split_once('/').is_some_and(|(provider, _)| provider == Api::Anthropic.prefix());
    let mut contents = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text { text } if has_words(text) => contents.push(Content::text(text)),
            Block::Text { .. } => {}
            // A thought that was cut has nothing to give back, and other providers' thoughts mean nothing here.
            Block::Reasoning { opaque, .. } if is_ours => {
                contents.extend(thoughts.give_back(opaque).map(Content::Raw));
            }
            Block::Reasoning { .. } => {}
            Block::Call { id, name, arguments } => contents.push(Content::ToolUse {
                r#type: "tool_use",
                id: ids.of(id),
                name: part_text::tool_name(name),
                input: part_text::arguments(arguments),
            }),
        }
    }
    // The API refuses an answer without content, and one that ends in a thought.
    if matches!(contents.last(), None | Some(Content::Raw(_))) {
        contents.push(Content::text(part_text::NOTHING_SAID));
    }
    contents
}

fn tool_result<'a>(result: &'a CallResult<'_>, ids: &WireIds<'_>) -> Content<'a> {
    Content::ToolResult {
        r#type: "tool_result",
        tool_use_id: ids.of(&result.call),
        is_error: (result.outcome != Outcome::Done).then_some(true),
        content: told(&result.parts, part_text::NO_OUTPUT),
        cache_control: None,
    }
}
