//! How parts and calls are put into words, the same for both wire formats.
//!
//! Everything here depends on the one part or call alone, so that a message never changes because of what comes after it.

use std::borrow::Cow;

use retake_engine::session::entry::Part;
use serde_json::Value;
use serde_json::value::RawValue;

/// Stands for an answer of which nothing can be sent.
pub(super) const NOTHING_SAID: &str = "(nothing said)";
/// Stands for a prompt without any text.
pub(super) const NOTHING_ASKED: &str = "(empty)";
/// Stands for a result without any text.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// The images that all servers take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// OpenAI refuses longer names of tools.
const MAX_NAME: usize = 64;

/// A part as it goes to a model.
pub(super) enum Told<'a> {
    Text(String),
    Image { media_type: &'a str, data: &'a str },
}

/// The parts in words; those without any are left out, since servers refuse empty texts.
pub(super) fn tell(parts: &[Part]) -> Vec<Told<'_>> {
    parts.iter().filter_map(tell_one).collect()
}

fn tell_one(part: &Part) -> Option<Told<'_>> {
    match part {
        Part::Text { text } | Part::Paste { text } => has_words(text).then(|| Told::Text(text.clone())),
        Part::File { path, text } => {
            let path = path.replace('&', "&amp;").replace('"', "&quot;");
            Some(Told::Text(format!("<file path=\"{path}\">\n{text}\n</file>")))
        }
        Part::Image { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) && !data.is_empty() => {
            Some(Told::Image { media_type, data })
        }
        // A server would refuse it, and with it every later request.
        Part::Image { media_type, .. } => {
            Some(Told::Text(format!("(an image of type {media_type} that cannot be shown)")))
        }
    }
}

/// Whether there is anything but white space.
pub(super) fn has_words(text: &str) -> bool {
    !text.trim().is_empty()
}

/// A call's arguments as a JSON object: byte for byte as the model wrote them, or one that says what it wrote if that is none.
pub(super) fn arguments(written: &str) -> Box<RawValue> {
    if !has_words(written) {
        return raw("{}".to_owned());
    }
    let trimmed = written.trim();
    // Read in full: half of a surrogate pair, say, is only found so.
    let is_object = serde_json::from_str::<Value>(trimmed).is_ok_and(|value| value.is_object());
    if is_object { raw(trimmed.to_owned()) } else { raw(serde_json::json!({ "invalid_json": written }).to_string()) }
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
        assert_eq!(arguments("{ \"b\" : 1.50,\n\"a\":2}").get(), "{ \"b\" : 1.50,\n\"a\":2}");
        assert_eq!(arguments("").get(), "{}");
        assert_eq!(arguments("{\"a\": ").get(), r#"{"invalid_json":"{\"a\": "}"#);
        assert_eq!(arguments(r#"{"a":"\ud83d"}"#).get(), r#"{"invalid_json":"{\"a\":\"\\ud83d\"}"}"#);
        assert_eq!(arguments("[1]").get(), r#"{"invalid_json":"[1]"}"#);
    }

    #[test]
    fn names_and_images_that_servers_refuse_are_told_differently() {
        assert_eq!(tool_name("read_file"), "read_file");
        assert_eq!(tool_name("functions.bash<|x|>"), "functions_bash__x__");
        assert_eq!(tool_name(""), "unnamed");
        let parts = [Part::Image { media_type: "image/svg+xml".into(), data: "AAAA".into() }];
        assert!(matches!(&tell(&parts)[..], [Told::Text(text)] if text.contains("image/svg+xml")));
    }

    #[test]
    fn a_path_cannot_break_out_of_its_frame() {
        let parts = [Part::File { path: "a\"b&c".into(), text: "x".into() }];
        let told = tell(&parts);
        assert!(matches!(&told[..], [Told::Text(text)] if text == "<file path=\"a&quot;b&amp;c\">\nx\n</file>"));
    }
}
