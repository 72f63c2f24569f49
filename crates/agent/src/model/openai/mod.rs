//! OpenAI-compatible chat completions: how a context is written, and how an answer is read.
//!
//! There is no one such format: servers differ in how they stream calls, where they put what the model thought, and what they want
//! back of it. What came is given back in the field it came in, to the same model only, and nothing is ever made up.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod thoughts;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
