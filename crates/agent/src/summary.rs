//! Summaries: what the model is asked for, when one is due, and asking for it.

use std::time::Duration;

use retake_engine::id::EntryId;
use retake_engine::session::context::{self, Message};
use retake_engine::session::entry::{Block, Body, Entry, Part, StopReason, Usage};
use retake_engine::session::{Conversation, EntryRange, first_line, last_words};
use tokio::sync::mpsc;

use crate::limits;
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest, ToolSpec};

const ASK: &str = "Write a summary that will take the place of that part of the conversation. It is for yourself: you will go on working with \
it and without the messages that it stands for, so whatever is not in it is lost to you. Answer with the summary alone, in plain text, and \
call no tools.

Keep, as far as they came up, under headings of their own:
- What the user wants: every request that still matters, in the user's own words where the wording matters, and what they ruled out.
- What was decided, and why.
- Files: each path that was read or changed and matters, with what is in it or what was done to it, and names of functions, types and lines.
- Commands that were run and what came of them; how to build and test.
- What went wrong, and how it was mended or why not.
- What is done, what is not, and the very next step.

Leave out greetings, dead ends that taught nothing, and contents of files that can be read again. Be exact and brief.";

/// What a summary is asked for with.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    whole: ModelRequest,
    /// With long results cut, should the whole be too long.
    shortened: ModelRequest,
}

/// The requests for a summary of the entries from `range.0` to `range.1`.
pub(crate) fn requests(
    model: &Model,
    tools: &[ToolSpec],
    entries: &[Entry],
    range: (EntryId, EntryId),
    instructions: Option<&str>,
) -> Requests {
    let position = |id| entries.iter().position(|entry| entry.id == id);
    let (from, to) = position(range.0).zip(position(range.1)).unwrap_or((0, entries.len().saturating_sub(1)));
    let asked = wording(entries, from, to, instructions);
    let request = |entries: &[Entry]| {
        let mut context = context::build_part(entries, to + 1);
        context.messages.push(Message::User { parts: vec![Part::text(asked.as_str())].into() });
        model.request(&context, tools)
    };
    let short: Vec<Entry> = entries.iter().map(shortened).collect();
    Requests { whole: request(entries), shortened: request(&short) }
}

/// What the model is told to summarise.
fn wording(entries: &[Entry], from: usize, to: usize, instructions: Option<&str>) -> String {
    let is_said = |entry: &Entry| matches!(entry.body, Body::Prompt { .. } | Body::Reply { .. });
    let prompts = entries[from..=to].iter().filter(|entry| matches!(entry.body, Body::Prompt { .. })).count();
    let which = match (&entries[from].body, prompts, entries[..from].iter().any(is_said)) {
        (_, _, false) => "This conversation, up to here, is to be summarised.".to_owned(),
        (_, 0, true) => last_part("everything after the user's last message, that is, your own work on it until now"),
        (Body::Prompt { parts }, ..) => last_part(&format!(
            "everything from the user's message on that begins with \"{}\", the last {} of the user's",
            beginning(&first_line(parts)),
            counted(prompts)
        )),
        (..) => last_part(&format!(
            "everything after your answer that begins with \"{}\", with the last {} of the user's",
            beginning(last_words(&entries[..from]).trim()),
            counted(prompts)
        )),
    };
    let wish = instructions.map(str::trim).filter(|text| !text.is_empty());
    let wish = wish.map_or_else(String::new, |wish| format!("\n\nThe user wishes for this summary: {wish}"));
    format!("<retake-note>\n{which} {ASK}{wish}\n</retake-note>")
}

fn last_part(what: &str) -> String {
    format!(
        "The last part of this conversation is to be summarised: {what}. What is before it stays as it is and does not belong into the \
         summary."
    )
}

fn counted(prompts: usize) -> String {
    if prompts == 1 { "message".to_owned() } else { format!("{prompts} messages") }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(limits::QUOTED)]
}

/// An entry with long results cut.
fn shortened(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Body::ToolResult { parts, .. } = &mut entry.body {
        for part in parts {
            match part {
                Part::Text { text } | Part::Paste { text } | Part::File { text, .. }
                    if text.len() > limits::SHORT_RESULT =>
                {
                    text.truncate(text.floor_char_boundary(limits::SHORT_RESULT));
                    text.push_str("\n[the rest was left out]");
                }
                Part::Image { .. } => *part = Part::text("(an image)"),
                Part::Text { .. } | Part::Paste { .. } | Part::File { .. } => {}
            }
        }
    }
    entry
}

/// Has the model write a summary; tries again where that may help.
pub(crate) async fn write(model: Model, requests: Requests) -> Result<(String, Usage), ModelError> {
    let mut request = &requests.whole;
    let (mut attempt, mut is_second) = (0, false);
    loop {
        // Nobody listens to it while it comes.
        let (deltas, _) = mpsc::channel(1);
        match model.ask(request, &deltas).await {
            Ok(answer) => {
                match text_of(&answer) {
                    Ok(text) => return Ok((text, answer.usage)),
                    // It may do better the next time.
                    Err(_) if !is_second => is_second = true,
                    Err(reason) => return Err(ModelError::NoSummary { reason }),
                }
            }
            Err(ModelError::ContextTooLong { .. }) if std::ptr::eq(request, &raw const requests.whole) => {
                request = &requests.shortened;
            }
            Err(error) if error.is_retryable() && attempt < limits::SUMMARY_RETRIES => {
                let pause = Duration::from_millis(limits::FIRST_PAUSE_MS << attempt);
                attempt += 1;
                let longest = Duration::from_millis(limits::LONGEST_PAUSE_MS);
                tokio::time::sleep(error.retry_after().unwrap_or(pause).min(longest)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The summary in an answer, or why it is none.
fn text_of(answer: &ModelAnswer) -> Result<String, &'static str> {
    let texts = answer.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Reasoning { .. } | Block::Call { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n").trim().to_owned();
    match answer.stop {
        _ if answer.blocks.iter().any(|block| matches!(block, Block::Call { .. })) => {
            Err("it called tools instead of writing one")
        }
        StopReason::Length => Err("it did not come to an end with it"),
        StopReason::Refused => Err("it refused to write one"),
        _ if text.is_empty() => Err("it said nothing"),
        StopReason::Done | StopReason::Calls | StopReason::Interrupted => Ok(text),
    }
}

/// Whether the next request would come too near to what the model can read. `request` makes it, if its length has to be known.
pub(crate) fn is_due(model: &Model, conversation: &Conversation, request: impl FnOnce() -> ModelRequest) -> bool {
    let Some(window) = model.settings().context_window() else { return false };
    let room = model.settings().max_output.unwrap_or(limits::ROOM_TO_ANSWER).min(window / 4);
    tokens(conversation.entries()).unwrap_or_else(|| in_tokens(request().body().len())) > window - room
}

/// How many tokens the model would read now, by what it said it read last time; `None` if it has not said.
fn tokens(entries: &[Entry]) -> Option<u64> {
    let is_news = |entry: &Entry| matches!(entry.body, Body::Reply { .. } | Body::Summary { .. } | Body::Cleared);
    let last = entries.iter().rposition(is_news)?;
    let Body::Reply { usage, .. } = &entries[last].body else { return None };
    let since: usize = entries[last + 1..].iter().map(size).sum();
    (usage.input > 0).then(|| usage.input + usage.output + in_tokens(since))
}

fn in_tokens(bytes: usize) -> u64 {
    // English and code come to about four bytes a token, and most other things to fewer.
    bytes as u64 / 3
}

/// About as many bytes as the model is told of an entry.
fn size(entry: &Entry) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } | Part::Paste { text } | Part::File { text, .. } => text.len(),
        // What an image costs does not depend on its bytes.
        Part::Image { .. } => 4_800,
    };
    let block = |block: &Block| match block {
        Block::Text { text } => text.len(),
        Block::Reasoning { opaque, .. } => opaque.len(),
        Block::Call { arguments, .. } => arguments.len(),
    };
    match &entry.body {
        Body::Prompt { parts } | Body::ToolResult { parts, .. } => parts.iter().map(part).sum(),
        Body::Reply { blocks, .. } => blocks.iter().map(block).sum(),
        Body::Note { text, .. } | Body::Instructions { text, .. } | Body::Summary { text, .. } => text.len(),
        Body::Cleared | Body::Approved { .. } | Body::Ended { .. } => 0,
    }
}

/// The part that makes most room if it is summarised in the turn that `prompt` began: what is before the prompt, or what came of it
/// until now. The prompt itself stays.
pub(crate) fn largest(conversation: &Conversation, prompt: EntryId) -> Option<(EntryId, EntryId)> {
    let entries = conversation.entries();
    let position = |id: EntryId| entries.iter().position(|entry| entry.id == id);
    let unseen = conversation.unseen();
    let bytes = |(from, to): &(EntryId, EntryId)| -> usize {
        let range = position(*from).zip(position(*to));
        let seen = |entry: &&Entry| !unseen.contains(&entry.id);
        range.map_or(0, |(from, to)| entries[from..=to].iter().filter(seen).map(size).sum())
    };
    let spans = [EntryRange::UpTo(prompt), EntryRange::After(prompt)];
    spans.into_iter().filter_map(|span| conversation.range(span)).max_by_key(bytes)
}
