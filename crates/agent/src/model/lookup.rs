//! Looks up a model by its name, for a session that switches to another one.

use std::fmt;

use thiserror::Error;

use super::Model;

type Find = dyn Fn(&str) -> Result<Model, ModelRefused> + Send;

/// The models that a session can be told to ask. Whoever opens it knows settings and keys; the session knows neither.
pub struct Models(Box<Find>);

/// A model cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ModelRefused {
    /// Why not.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Models {
    /// Those that `find` finds by `provider/name`. It must not wait for anything.
    pub fn new(find: impl Fn(&str) -> Result<Model, ModelRefused> + Send + 'static) -> Self {
        Self(Box::new(find))
    }

    /// None but the one that the session begins with.
    pub fn none() -> Self {
        let refused = || ModelRefused { message: "no other model can be asked here".to_owned(), hint: None };
        Self::new(move |_| Err(refused()))
    }

    /// The model with this name.
    pub fn find(&self, name: &str) -> Result<Model, ModelRefused> {
        (self.0)(name)
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Models")
    }
}
