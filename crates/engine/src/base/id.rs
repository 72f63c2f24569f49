//! Identities: of content, snapshots, checkpoints, sessions, operations and entries.
//!
//! Every id is its own type. Content ids are computed; a checkpoint's id is made from a time and random bytes that the
//! caller passes in, because the engine has neither clock nor randomness of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::settings::Timestamp;

/// The blake3 hash of an object's plain bytes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Default,
)]
#[repr(transparent)]
pub struct ObjectId([u8; 32]);

impl ObjectId {
    /// The id of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Takes a hash as it was computed or stored.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0[..6])
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A workspace's content at one moment: the id of the tree of its root. Equal content has an equal id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SnapshotId(pub ObjectId);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Defines an identity that is time-ordered inside, and shown and typed by its random part.
macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Hex digits that listings show.
            pub const SHORT_DIGITS: usize = 8;

            /// Makes an id; `random` must be fresh for each id.
            pub fn new(at: Timestamp, random: [u8; 10]) -> Self {
                let mut bytes = [0; 16];
                let millis = at.0.max(0).to_be_bytes();
                bytes[..6].copy_from_slice(&millis[2..]);
                bytes[6..].copy_from_slice(&random);
                Self(bytes)
            }

            /// The first digits of the part that people see.
            pub fn short(&self) -> String {
                self.to_string()[..Self::SHORT_DIGITS].to_owned()
            }

            pub(crate) fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0[6..])
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

identity! {
    /// A checkpoint's identity.
    CheckpointId
}

identity! {
    /// A session's identity.
    SessionId
}

identity! {
    /// An operation's identity.
    OperationId
}

/// An entry's identity: random, unique in its workspace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "string"))]
pub struct EntryId([u8; 10]);

impl EntryId {
    /// Makes an id; `random` must be fresh for each id.
    pub fn new(random: [u8; 10]) -> Self {
        Self(random)
    }

    /// The first digits, for listings.
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an entry's id.
#[derive(Debug, Error)]
#[error("`{0}` is not the id of an entry")]
pub struct InvalidEntryId(String);

impl FromStr for EntryId {
    type Err = InvalidEntryId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidEntryId(text.to_owned());
        let digits: [u8; 20] = text.as_bytes().try_into().map_err(|_| invalid())?;
        // Every conversation begins with reading thousands: without a branch, all digits are looked at together.
        if !digits.iter().fold(true, |all, digit| all & digit.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        // Letters, of either case, count from 1 and have a higher bit.
        let values = digits.map(|digit| (digit & 0xf) + 9 * (digit >> 6));
        Ok(Self(std::array::from_fn(|at| values[2 * at] << 4 | values[2 * at + 1])))
    }
}

impl Serialize for EntryId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The text is not 64 hex digits.
#[derive(Debug, Error)]
#[error("`{0}` is not an object id")]
pub struct InvalidObjectId(String);

impl FromStr for ObjectId {
    type Err = InvalidObjectId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidObjectId(text.to_owned());
        if text.len() != 64 || !text.is_ascii() {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = str::from_utf8(digits).map_err(|_| invalid())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
