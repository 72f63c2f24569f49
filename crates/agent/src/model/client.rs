//! Asks a model over HTTP.
//!
//! One request, one answer: retrying is for whoever asked. There is no limit to how long an answer takes, only to how long nothing
//! comes. Dropping the future of [`Model::ask`] closes the connection at once, which makes servers stop. Redirects are not followed:
//! they would take the key elsewhere.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use retake_engine::session::context::Context;
use tokio::sync::mpsc;

use super::error::ModelError;
use super::error_response::{self, ErrorResponse};
use super::settings::{Api, ModelSettings};
use super::sse::Sse;
use super::{Delta, ModelAnswer, PartialAnswer, ToolSpec, anthropic, openai};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Long enough for a local model that reads a long prompt.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// After the reason to stop only the usage may follow, and not every server ends the stream.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// A server that goes on after the last event has nothing to say; waiting for more would only make a turn slower.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(20);
/// An error page that is longer is cut.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// An answer in one piece that is longer is refused.
const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest {
    body: String,
}

impl ModelRequest {
    /// The body, byte for byte.
    pub fn body(&self) -> &str {
        &self.body
    }
}

/// A model that can be asked. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Model {
    settings: ModelSettings,
    client: Client,
    headers: HeaderMap,
    idle_timeout: Duration,
}

impl Model {
    /// Makes a model of its settings; nothing is sent yet.
    pub fn new(settings: ModelSettings) -> Result<Self, ModelError> {
        if settings.key.is_none() && !settings.is_local() {
            return Err(ModelError::NoKey { model: settings.full_name(), variable: settings.api.key_variable() });
        }
        let headers = headers(&settings)?;
        let client = client(&settings).map_err(|error| error_response::unreachable(&settings, error))?;
        Ok(Self { settings, client, headers, idle_timeout: IDLE_TIMEOUT })
    }

    /// The same, but it gives up after `timeout` in which nothing came.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Its settings.
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// `anthropic/NAME` or `openai/NAME`: what a reply says of who gave it.
    pub fn full_name(&self) -> String {
        self.settings.full_name()
    }

    /// The request for `context`: the same context gives the same bytes.
    pub fn request(&self, context: &Context<'_>, tools: &[ToolSpec]) -> ModelRequest {
        let body = match self.settings.api {
            Api::Anthropic => anthropic::encode(&self.settings, context, tools),
            Api::OpenAi => openai::encode(&self.settings, context, tools),
        };
        ModelRequest { body }
    }

    /// Sends `request` and reads the answer, of which `deltas` hears as it comes.
    ///
    /// Waits while `deltas` is full, and goes on if nobody listens any more. Dropping the future stops the model; a [`PartialAnswer`] that was
    /// told all deltas then has what is worth keeping.
    pub async fn ask(&self, request: &ModelRequest, deltas: &mpsc::Sender<Delta>) -> Result<ModelAnswer, ModelError> {
        let post = self.client.post(self.settings.endpoint()).headers(self.headers.clone()).body(request.body.clone());
        let Ok(sent) = tokio::time::timeout(self.idle_timeout, post.send()).await else {
            return Err(self.cut(self.nothing_came(), PartialAnswer::default()));
        };
        let response = sent.map_err(|error| {
            if error.is_connect() || error.is_timeout() {
                error_response::unreachable(&self.settings, error)
            } else {
                self.cut(error_response::reason(error), PartialAnswer::default())
            }
        })?;
        if !response.status().is_success() {
            return Err(self.read_failure(response).await);
        }
        let mut answer = match self.read(response, deltas).await? {
            AnswerDecoder::Anthropic(decoder) => decoder.finish(),
            AnswerDecoder::OpenAi(decoder) => decoder.finish(),
        };
        if let (None, Some(prices)) = (answer.usage.cost, &self.settings.prices) {
            answer.usage.cost = Some(prices.cost(&answer.usage));
        }
        Ok(answer)
    }

    async fn read(&self, mut response: Response, deltas: &mpsc::Sender<Delta>) -> Result<AnswerDecoder, ModelError> {
        let mut reading = AnswerReader {
            read: AnswerDecoder::new(self.settings.api),
            heard: PartialAnswer::default(),
            deltas,
            has_begun: false,
        };
        let is_events = content_type(&response).starts_with("text/event-stream");
        // A server that does not stream gives the whole answer as one document.
        let mut document = content_type(&response).starts_with("application/json").then(Vec::new);
        let mut sse = Sse::default();
        let ended = loop {
            let patience = if reading.read.is_complete() { LAST_WORDS } else { self.idle_timeout };
            let chunk = match tokio::time::timeout(patience, response.chunk()).await {
                Err(_) => break Some(self.nothing_came()),
                Ok(Err(error)) => break Some(error_response::reason(error)),
                Ok(Ok(None)) => break None,
                Ok(Ok(Some(chunk))) => chunk,
            };
            let too_long = |error: super::sse::TooLong| self.malformed(&error.to_string());
            let events = match &mut document {
                Some(document) => {
                    document.extend_from_slice(&chunk);
                    if document.len() > MAX_DOCUMENT {
                        return Err(self.malformed(&format!("it is longer than {MAX_DOCUMENT} bytes")));
                    }
                    continue;
                }
                None => sse.push(&chunk).map_err(too_long)?,
            };
            for event in events {
                self.take(&mut reading, &event).await?;
            }
            if reading.read.is_over() {
                // What is left is the end of the body, and once that is read the connection can be used again.
                tokio::time::timeout(DRAIN_TIMEOUT, response.chunk()).await.ok();
                return Ok(reading.read);
            }
        };
        let rest = document.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).or_else(|| sse.finish());
        if let (None, Some(rest)) = (&ended, rest) {
            self.take(&mut reading, &rest).await?;
        }
        if reading.read.is_complete() {
            return Ok(reading.read);
        }
        if !is_events && !reading.has_begun {
            return Err(self.malformed("it has no events; there may be a web page at this address"));
        }
        Err(self.cut(ended.unwrap_or_else(|| "the server ended it early".to_owned()), reading.heard))
    }

    async fn take(&self, reading: &mut AnswerReader<'_>, event: &str) -> Result<(), ModelError> {
        reading.has_begun = true;
        let taken = match &mut reading.read {
            AnswerDecoder::Anthropic(decoder) => decoder.take(event),
            AnswerDecoder::OpenAi(decoder) => decoder.take(event),
        };
        let deltas = taken.map_err(|trouble| match trouble {
            Trouble::Failed => ErrorResponse { status: 200, retry_after: None, body: event }.read(&self.settings),
            Trouble::Malformed(reason) => self.malformed(&reason),
        })?;
        for delta in deltas {
            reading.heard.hear(&delta);
            // Nobody listens any more: the answer still counts.
            reading.deltas.send(delta).await.ok();
        }
        Ok(())
    }

    async fn read_failure(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let mut body = Vec::new();
        while let Ok(Ok(Some(chunk))) = tokio::time::timeout(self.idle_timeout, response.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BODY {
                break;
            }
        }
        ErrorResponse { status, retry_after, body: &String::from_utf8_lossy(&body) }.read(&self.settings)
    }

    fn nothing_came(&self) -> String {
        format!("nothing came for {} seconds", self.idle_timeout.as_secs_f32())
    }

    fn cut(&self, reason: String, heard: PartialAnswer) -> ModelError {
        ModelError::CutStream { reason, partial: heard.blocks() }
    }

    fn malformed(&self, reason: &str) -> ModelError {
        ModelError::Malformed { place: self.settings.place(), reason: self.settings.without_secrets(reason) }
    }
}

/// Why an event could not be taken.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The event says that the server failed.
    Failed,
    /// It is not what the wire format has; says what is wrong.
    Malformed(String),
}

struct AnswerReader<'a> {
    read: AnswerDecoder,
    heard: PartialAnswer,
    deltas: &'a mpsc::Sender<Delta>,
    /// There was an event.
    has_begun: bool,
}

enum AnswerDecoder {
    Anthropic(anthropic::Decoder),
    OpenAi(openai::Decoder),
}

impl AnswerDecoder {
    fn new(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic(anthropic::Decoder::default()),
            Api::OpenAi => Self::OpenAi(openai::Decoder::default()),
        }
    }

    /// Nothing more will come.
    fn is_over(&self) -> bool {
        match self {
            Self::Anthropic(decoder) => decoder.is_over(),
            Self::OpenAi(decoder) => decoder.is_over(),
        }
    }

    /// What came is a whole answer.
    fn is_complete(&self) -> bool {
        match self {
            Self::Anthropic(decoder) => decoder.is_complete(),
            Self::OpenAi(decoder) => decoder.is_complete(),
        }
    }
}

fn client(settings: &ModelSettings) -> reqwest::Result<Client> {
    // Fails if one is installed already, which is as good.
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    if settings.is_local() {
        builder = builder.no_proxy();
        if settings.base_url.scheme() == "http" {
            // Spares reading the system's certificates, which a machine with a local model need not even have.
            builder = builder.tls_certs_only([]);
        }
    }
    builder.build()
}

fn headers(settings: &ModelSettings) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if settings.api == Api::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = &settings.key {
        let (name, value) = match settings.api {
            Api::Anthropic => (HeaderName::from_static("x-api-key"), key.secret().to_owned()),
            Api::OpenAi => (reqwest::header::AUTHORIZATION, format!("Bearer {}", key.secret())),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| ModelError::Unauthorized {
            place: settings.place(),
            variable: settings.api.key_variable(),
            message: "it has characters that no key has".to_owned(),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn content_type(response: &Response) -> &str {
    response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// In seconds, or in the milliseconds that some servers give besides; a date is not read.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}
