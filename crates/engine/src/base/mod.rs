//! What every layer needs: identities, paths inside a workspace, settings and times, progress, limits, and safe opening of files.
//!
//! The lowest layer: it uses no other. It knows nothing of stores, scans or sessions.

pub(crate) mod fault;
pub mod id;
pub mod limits;
pub(crate) mod path;
pub mod plain_file;
pub mod progress;
pub(crate) mod settings;
