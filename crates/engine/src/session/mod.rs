//! Sessions: conversations that can be rewound.

pub mod context;
pub mod entry;
