//! The text of parts and tool calls for a model, the same for both wire formats.
//!
//! Depends on the one part or call alone, so that a message never changes because of what follows it.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_engine::session::entry::Part;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::image::is_sound;

/// Stands for an answer of which nothing can be sent.
pub(super) const NOTHING_SAID: &str = "(nothing said)";
/// Stands for a prompt without any text.
pub(super) const NOTHING_ASKED: &str = "(empty)";
/// Stands for a result without any text.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// OpenAI refuses longer names of tools.
const MAX_NAME: usize = 64;

/// A part as it goes to a model.
pub(super) enum PartContent<'a> {
    Text(Cow<'a, str>),
    Image { media_type: &'a str, data: &'a str },
}

/// The parts in words; those without any are left out, since servers refuse empty texts.
pub(super) fn tell(parts: &[Part]) -> Vec<PartContent<'_>> {
    parts.iter().filter_map(tell_one).collect()
}

fn tell_one(part: &Part) -> Option<PartContent<'_>> {
    match part {
        Part::Text { text } | Part::Paste { text } => has_words(text).then(|| PartContent::Text(text.into())),
        Part::File { path, text } => {
            let path = path.replace('&', "&amp;").replace('"', "&quot;");
            Some(PartContent::Text(format!("<file path=\"{path}\">\n{text}\n</file>").into()))
        }
        Part::Image { media_type, data } if STANDARD.decode(data).is_ok_and(|bytes| is_sound(media_type, &bytes)) => {
            Some(PartContent::Image { media_type, data })
        }
        // A server would refuse it, and with it every later request.
        Part::Image { media_type, .. } => {
            Some(PartContent::Text(format!("(an image of type {media_type} that cannot be shown)").into()))
        }
    }
}

/// Whether there is anything but white space.
pub(super) fn has_words(text: &str) -> bool {
    !text.trim().is_empty()
}

/// A call's arguments as a JSON object: byte for byte as the model wrote them, or one that says what it wrote if that is none.
pub(super) fn arguments(written: &str) -> SentArguments<'_> {
    if !has_words(written) {
        return SentArguments::Told(raw("{}".to_owned()));
    }
    let trimmed = written.trim();
    let is_object = trimmed.starts_with('{') && serde_json::from_str::<Sound>(trimmed).is_ok();
    match serde_json::from_str(trimmed) {
        Ok(json) if is_object => SentArguments::Written(json),
        _ => SentArguments::Told(raw(serde_json::json!({ "invalid_json": written }).to_string())),
    }
}

/// Arguments that can be sent.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum SentArguments<'a> {
    Written(&'a RawValue),
    Told(Box<RawValue>),
}

impl<'a> SentArguments<'a> {
    /// The JSON as text.
    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Written(json) => json.get().into(),
            Self::Told(json) => String::from(Box::<str>::from(json)).into(),
        }
    }
}

/// JSON that was read in full, which finds half of a surrogate pair, say; nothing of it is kept.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

/// A tool's name as servers take it. Models call tools that do not exist, by names that no server would take back.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().take(MAX_NAME).map(|c| if is_plain(c) { c } else { '_' }).collect())
}

/// JSON that is known to be good.
pub(super) fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("it was parsed, or written by serde_json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_as_written_and_what_is_no_object_is_quoted() {
        let told = |written| arguments(written).into_text().into_owned();
        assert_eq!(told("{ \"b\" : 1.50,\n\"a\":2}"), "{ \"b\" : 1.50,\n\"a\":2}");
        assert_eq!(told(""), "{}");
        assert_eq!(told("{\"a\": "), r#"{"invalid_json":"{\"a\": "}"#);
        assert_eq!(told(r#"{"a":"\ud83d"}"#), r#"{"invalid_json":"{\"a\":\"\\ud83d\"}"}"#);
        assert_eq!(told("[1]"), r#"{"invalid_json":"[1]"}"#);
    }

    #[test]
    fn names_and_images_that_servers_refuse_are_told_differently() {
        assert_eq!(tool_name("read_file"), "read_file");
        assert_eq!(tool_name("functions.bash<|x|>"), "functions_bash__x__");
        assert_eq!(tool_name(""), "unnamed");
        let parts = [Part::Image { media_type: "image/svg+xml".into(), data: "AAAA".into() }];
        assert!(matches!(&tell(&parts)[..], [PartContent::Text(text)] if text.contains("image/svg+xml")));
    }

    #[test]
    fn a_path_cannot_break_out_of_its_frame() {
        let parts = [Part::File { path: "a\"b&c".into(), text: "x".into() }];
        let told = tell(&parts);
        assert!(matches!(&told[..], [PartContent::Text(text)] if text == "<file path=\"a&quot;b&amp;c\">\nx\n</file>"));
    }
}
