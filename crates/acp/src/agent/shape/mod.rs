//! How things look on the wire, in both versions. Pure.

pub(super) mod call;
pub(super) mod content;
pub(super) mod update;
