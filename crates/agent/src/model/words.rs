//! How parts and calls are put into words, the same for both wire formats.
//!
//! Everything here depends on the one part or call alone, so that a message never changes because of what comes after it.

use retake_engine::session::entry::Part;
use serde_json::value::RawValue;

/// Stands for an answer of which nothing can be sent.
pub(super) const NOTHING_SAID: &str = "(nothing said)";
/// Stands for a prompt without any text.
pub(super) const NOTHING_ASKED: &str = "(empty)";
/// Stands for a result without any text.
pub(super) const NO_OUTPUT: &str = "(no output)";

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
        Part::Image { media_type, data } => Some(Told::Image { media_type, data }),
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
    let is_object = trimmed.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok();
    if is_object { raw(trimmed.to_owned()) } else { raw(serde_json::json!({ "invalid_json": written }).to_string()) }
}

fn raw(json: String) -> Box<RawValue> {
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
        assert_eq!(arguments("[1]").get(), r#"{"invalid_json":"[1]"}"#);
    }

    #[test]
    fn a_path_cannot_break_out_of_its_frame() {
        let parts = [Part::File { path: "a\"b&c".into(), text: "x".into() }];
        let told = tell(&parts);
        assert!(matches!(&told[..], [Told::Text(text)] if text == "<file path=\"a&quot;b&amp;c\">\nx\n</file>"));
    }
}
