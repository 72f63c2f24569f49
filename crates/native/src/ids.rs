//! The ids that agents give to what they do. They are opaque, and belong to one agent.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }
    };
}

id! {
    /// A session of an agent.
    SessionId
}
id! {
    /// A prompt, by the id that the agent tells its hooks.
    PromptId
}
id! {
    /// A place in a transcript before which it can be cut: the line or message of a prompt.
    PlaceId
}
id! {
    /// A tool call.
    CallId
}
id! {
    /// A sub-agent within a session.
    SubagentId
}
