//! The demo's model: a server on this machine that speaks Anthropic's Messages over real HTTP and answers by the story.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::story::{self, CallOutcome, CallResult, Round, StoryAnswer};

/// Largest request that is read; the demo's are far smaller.
const MAX_BODY: usize = 16 << 20;
const MAX_HEAD: usize = 64 << 10;

/// Starts the server; it ends with the runtime. Returns its URL. Answers come at `pace` a word.
pub async fn start(pace: Duration) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that goes away in the middle is none of the demo's business.
            tokio::spawn(async move { serve(stream, pace).await.ok() });
        }
    });
    Ok(url)
}

/// Answers one request and hangs up.
async fn serve(mut stream: TcpStream, pace: Duration) -> io::Result<()> {
    let Some(request) = read(&mut stream).await? else {
        return stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    };
    let (prompt, rounds) = last_prompt(&request);
    let answered = rounds.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let tokens = request.to_string().len() / 4;
    for (pause, event) in events(&story::answer(&prompt, &rounds), answered, tokens) {
        if pause {
            tokio::time::sleep(pace).await;
        }
        let kind = event["type"].as_str().unwrap_or_default();
        stream.write_all(format!("event: {kind}\ndata: {event}\n\n").as_bytes()).await?;
    }
    stream.shutdown().await
}

/// The body of a request; `None` if it is none that the demo understands.
async fn read(stream: &mut TcpStream) -> io::Result<Option<Value>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > MAX_HEAD || stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let Some(length) = length.filter(|length| *length <= MAX_BODY) else { return Ok(None) };
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(serde_json::from_slice(&bytes[end..end + length]).ok())
}

/// The last prompt, and the results of the calls that each answer to it made.
fn last_prompt(request: &Value) -> (String, Vec<Round>) {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut rounds = Vec::new();
    let mut results = Round::new();
    for message in messages.iter().rev() {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        if message["role"] == "assistant" {
            rounds.push(std::mem::take(&mut results));
            continue;
        }
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        if !text.is_empty() && !text.starts_with("<retake-note>") {
            rounds.reverse();
            return (text, rounds);
        }
        let found = blocks.iter().filter(|block| block["type"] == "tool_result").map(call_result);
        results.splice(0..0, found);
    }
    (String::new(), Vec::new())
}

fn call_result(block: &Value) -> CallResult {
    let text = match &block["content"] {
        Value::String(text) => text.clone(),
        content => content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    };
    let outcome = match block["is_error"].as_bool() {
        Some(true) if text.starts_with("The user did not allow") => CallOutcome::Denied,
        Some(true) => CallOutcome::Failed,
        _ => CallOutcome::Done,
    };
    CallResult { outcome, text }
}

/// The events of an answer, and whether there is a pause before each.
fn events(answer: &StoryAnswer, answered: usize, tokens: usize) -> Vec<(bool, Value)> {
    let usage = json!({"input_tokens": tokens, "output_tokens": 1});
    let mut events = vec![(
        true,
        json!({"type": "message_start", "message": {"id": "msg_demo", "type": "message", "role": "assistant", "model": "demo", "content": [], "usage": usage}}),
    )];
    let mut index = 0;
    let mut block = |events: &mut Vec<(bool, Value)>, start: Value, deltas: Vec<Value>| {
        events.push((false, json!({"type": "content_block_start", "index": index, "content_block": start})));
        for delta in deltas {
            events.push((true, json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push((false, json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    let words = answer.text.split_inclusive(' ').map(|word| json!({"type": "text_delta", "text": word}));
    block(&mut events, json!({"type": "text", "text": ""}), words.collect());
    for (number, (tool, arguments)) in answer.calls.iter().enumerate() {
        let start = json!({"type": "tool_use", "id": format!("toolu_{answered}_{number}"), "name": tool, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
        block(&mut events, start, vec![delta]);
    }
    let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    let written = answer.text.len() / 4 + 1;
    events.push((
        false,
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": written}}),
    ));
    events.push((false, json!({"type": "message_stop"})));
    events
}
