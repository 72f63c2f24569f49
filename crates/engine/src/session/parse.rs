//! Reading entries back from the database in one pass.
//!
//! An enum that is derived with its tag among its fields is copied whole before it is looked at, and so are the enums in it. What the
//! database holds begins with the tag, so that nothing has to be copied: a long conversation opens in half the time. What comes from
//! elsewhere, with its fields in any order, is read the derived way.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, IgnoredAny, MapAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::entry::{Block, Body, CallId, Details, EndReason, Outcome, Part, StopReason, SummaryBy, Todo, Usage};
use crate::base::id::EntryId;

/// The body in `text`, as the database holds it.
pub(crate) fn body(text: &str) -> serde_json::Result<Body> {
    let mut json = serde_json::Deserializer::from_str(text);
    let body = BodyFields::deserialize(Tagged(&mut json))?;
    json.end().map(|()| body)
}

#[derive(Deserialize)]
#[serde(remote = "Body", rename_all = "snake_case")]
enum BodyFields {
    Prompt {
        #[serde(deserialize_with = "parts")]
        parts: Vec<Part>,
    },
    Reply {
        #[serde(deserialize_with = "blocks")]
        blocks: Vec<Block>,
        model: String,
        usage: Usage,
        stop: StopReason,
    },
    ToolResult {
        call: CallId,
        title: String,
        outcome: Outcome,
        #[serde(deserialize_with = "parts")]
        parts: Vec<Part>,
        #[serde(default)]
        todos: Option<Vec<Todo>>,
        #[serde(default)]
        details: Option<Details>,
    },
    Note {
        about: Vec<String>,
        text: String,
    },
    Instructions {
        source: String,
        text: String,
    },
    Summary {
        from: EntryId,
        to: EntryId,
        text: String,
        #[serde(default)]
        by: SummaryBy,
        #[serde(default)]
        usage: Usage,
    },
    Cleared,
    Approved {
        tool: String,
        prefix: Option<String>,
    },
    Ended {
        reason: EndReason,
    },
}

#[derive(Deserialize)]
#[serde(remote = "Part", rename_all = "snake_case")]
enum PartFields {
    Text { text: String },
    Paste { text: String },
    File { path: String, text: String },
    Image { media_type: String, data: String },
}

#[derive(Deserialize)]
#[serde(remote = "Block", rename_all = "snake_case")]
enum BlockFields {
    Text { text: String },
    Reasoning { text: String, opaque: String },
    Call { id: CallId, name: String, arguments: String },
}

struct ReadPart(Part);

impl<'de> Deserialize<'de> for ReadPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PartFields::deserialize(Tagged(deserializer)).map(Self)
    }
}

struct ReadBlock(Block);

impl<'de> Deserialize<'de> for ReadBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BlockFields::deserialize(Tagged(deserializer)).map(Self)
    }
}

fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    Ok(Vec::<ReadPart>::deserialize(deserializer)?.into_iter().map(|part| part.0).collect())
}

fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    Ok(Vec::<ReadBlock>::deserialize(deserializer)?.into_iter().map(|block| block.0).collect())
}

/// Gives an object that begins with its `type` for the enum that it stands for.
struct Tagged<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tagged<D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(TaggedMap(visitor, PhantomData))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Type,
}

struct TaggedMap<'de, V>(V, PhantomData<&'de ()>);

impl<'de, V: Visitor<'de>> Visitor<'de> for TaggedMap<'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that begins with its type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        match map.next_key()? {
            Some(Key::Type) => self.0.visit_enum(Fields(map)),
            None => Err(A::Error::missing_field("type")),
        }
    }
}

/// What is left of an object after its tag's name.
struct Fields<A>(A);

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Fields<A> {
    type Error = A::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self), A::Error> {
        Ok((self.0.next_value_seed(seed)?, self))
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn unit_variant(mut self) -> Result<(), A::Error> {
        while self.0.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        seed.deserialize(MapAccessDeserializer::new(self.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("an object has no order"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::entry::TodoState;

    #[test]
    fn what_is_written_is_read_in_one_pass_and_in_the_derived_way() {
        let id = EntryId::new([7; 10]);
        let parts = vec![
            Part::text("a \"quoted\"\n\u{1F600} text"),
            Part::Paste { text: "p".to_owned() },
            Part::File { path: "f".to_owned(), text: String::new() },
            Part::Image { media_type: "image/png".to_owned(), data: "aGk=".to_owned() },
        ];
        let blocks = vec![
            Block::Text { text: "t".to_owned() },
            Block::Reasoning { text: "r".to_owned(), opaque: "{\"type\": 1}".to_owned() },
            Block::Call { id: CallId("c".to_owned()), name: "n".to_owned(), arguments: "{}".to_owned() },
        ];
        let usage = Usage { input: 1, cost: Some(0.5), ..Usage::default() };
        let todos = Some(vec![Todo { text: "t".to_owned(), state: TodoState::Active }]);
        let (call, text) = (CallId("c".to_owned()), "t".to_owned());
        let details =
            Some(Details::Rewound { report: text.clone(), rewound: true, checkpoint: id, restore_files: false });
        let bodies = [
            Body::Prompt { parts: parts.clone() },
            Body::Reply { blocks, model: "m".to_owned(), usage, stop: StopReason::Calls },
            Body::ToolResult {
                call: call.clone(),
                title: text.clone(),
                outcome: Outcome::Denied,
                parts,
                todos,
                details,
            },
            Body::ToolResult {
                call,
                title: text.clone(),
                outcome: Outcome::Done,
                parts: Vec::new(),
                todos: None,
                details: Some(Details::Edited { lines: vec![1, 20] }),
            },
            Body::Note { about: vec!["a".to_owned()], text: text.clone() },
            Body::Instructions { source: "s".to_owned(), text: text.clone() },
            Body::Summary {
                from: id,
                to: id,
                text: text.clone(),
                by: SummaryBy::Model { call: CallId("x".to_owned()), checkpoint: id },
                usage: Usage { input: 7, ..Usage::default() },
            },
            Body::Cleared,
            Body::Approved { tool: "t".to_owned(), prefix: None },
            Body::Ended { reason: EndReason::Failed { message: text } },
        ];
        for written in bodies {
            let text = serde_json::to_string(&written).expect("entries serialise");
            assert_eq!(body(&text).expect("it is what was written"), written);
            assert_eq!(serde_json::from_str::<Body>(&text).expect("it is what was written"), written);
        }
        for text in ["", "{}", "[]", "{\"type\":\"prompt\"}", "{\"type\":\"cleared\"} x", "{\"type\":\"unheard_of\"}"] {
            assert!(body(text).is_err(), "{text}");
        }
    }
}
