//! What an MCP server answered, as the model is told of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_engine::session::entry::{Outcome, Part};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::image::{self, is_sound};
use crate::tool::Output;

const MAX_TEXT: usize = 100_000;
const MAX_IMAGES: usize = 8;
/// In base64.
const MAX_IMAGE: usize = 5_000_000;

/// Puts an answer into the parts that a result has, bounded.
pub(crate) fn told(answer: CallToolResult) -> Output {
    let outcome = if answer.is_error == Some(true) { Outcome::Failed } else { Outcome::Done };
    let mut left = MAX_TEXT;
    let mut images = 0;
    let mut parts: Vec<Part> = Vec::new();
    for block in answer.content {
        let part = match part(block) {
            Part::Image { .. } if images == MAX_IMAGES => Part::text("[More images are left out.]"),
            image @ Part::Image { .. } => {
                images += 1;
                image
            }
            Part::Text { text } => Part::text(cut(text, &mut left)),
            other @ (Part::Paste { .. } | Part::File { .. }) => other,
        };
        parts.push(part);
    }
    if parts.is_empty() {
        let text = answer.structured_content.map_or_else(|| "[No output.]".to_owned(), |value| value.to_string());
        parts.push(Part::text(cut(text, &mut left)));
    }
    Output { outcome, parts, todos: None, details: None, job: None }
}

fn part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) if !image::TYPES.contains(&image.mime_type.as_str()) => {
            Part::text(format!("[An image of type {} is left out.]", image.mime_type))
        }
        ContentBlock::Image(image) if image.data.len() > MAX_IMAGE => {
            Part::text("[An image is too large and left out.]")
        }
        ContentBlock::Image(image)
            if !STANDARD.decode(&image.data).is_ok_and(|bytes| is_sound(&image.mime_type, &bytes)) =>
        {
            Part::text("[An image cannot be read and is left out.]")
        }
        ContentBlock::Image(image) => Part::Image { media_type: image.mime_type, data: image.data },
        ContentBlock::Audio(audio) => Part::text(format!("[Audio of type {} is left out.]", audio.mime_type)),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => Part::text(format!("{uri}:\n{text}")),
            ResourceContents::BlobResourceContents { uri, .. } => {
                Part::text(format!("[The binary resource {uri} is left out.]"))
            }
            _ => Part::text("[A resource of an unknown kind is left out.]"),
        },
        ContentBlock::ResourceLink(link) => Part::text(format!("[Resource: {}]", link.uri)),
        _ => Part::text("[Content of an unknown kind is left out.]"),
    }
}

/// What of a text still fits.
fn cut(text: String, left: &mut usize) -> String {
    let end = text.floor_char_boundary((*left).min(text.len()));
    *left -= end;
    if end == text.len() { text } else { format!("{}\n[… {} bytes left out …]", &text[..end], text.len() - end) }
}
