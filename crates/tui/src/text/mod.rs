//! Text as lines: cleaned, wrapped to a width, and drawn as markdown, code or a diff.
//!
//! Everything that is shown comes through here, because what models, files and commands say is not to be trusted: no control character
//! and no escape sequence reaches the terminal. Nothing here knows sessions or scrolling.

mod clean;
pub(crate) mod code;
pub(crate) mod diff;
mod format;
pub(crate) mod markdown;
pub(crate) mod wrap;

pub(crate) use clean::{clean, fit, width};
pub(crate) use format::{age, in_words, size};
