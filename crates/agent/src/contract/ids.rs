//! Ids of sessions, operations and checkpoints as clients see them.
//!
//! An id on the wire is the part of the engine's id that people see and type. The engine finds the rest: the part on the wire alone does
//! not make an engine id again, so these are types of their own. A client compares, shows and sends them back; it takes none apart.

use std::fmt;
use std::ops::Deref;

use retake_engine::id::{CheckpointId, OperationId, SessionId};
use serde::{Deserialize, Serialize};

/// Defines the form on the wire of an id of the engine.
macro_rules! reference {
    ($(#[$doc:meta])* $name:ident, $of:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The first digits, for listings.
            pub fn short(&self) -> &str {
                self.0.get(..<$of>::SHORT_DIGITS).unwrap_or(&self.0)
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$of> for $name {
            fn from(id: $of) -> Self {
                Self(id.to_string())
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

reference! {
    /// The id of a session.
    SessionRef, SessionId
}

reference! {
    /// The id of an operation.
    OperationRef, OperationId
}

reference! {
    /// The id of a checkpoint.
    CheckpointRef, CheckpointId
}
