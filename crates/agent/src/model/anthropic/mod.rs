//! Anthropic Messages: how a context is written, and how an answer is read.
//!
//! Thoughts are kept as the JSON that came and go back byte for byte, to Anthropic only: their signatures cover them. Cache marks are
//! the last thing that is put in, so that without them a request begins with the bytes of the one before.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
