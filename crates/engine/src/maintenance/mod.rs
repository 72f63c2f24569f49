//! Maintenance of the store: cleaning up, removing a secret for good, finding out whether all is well.

use crate::workspace::Workspace;

mod doctor;
mod gc;
mod purge;
mod strip_paths;
mod usage;

pub use crate::store::Damage;
pub use doctor::{Footprint, SelfTestError, UnderWay};
pub use gc::{Collectable, Collected};
pub use purge::{PurgeError, Purged};
pub use usage::{Integrity, Usage};

#[cfg(test)]
mod tests;

/// Maintenance of a store. From [`Workspace::maintenance`] and [`Workspace::maintenance_mut`].
#[derive(Debug)]
pub struct Maintenance<W>(pub(crate) W);

impl Workspace {
    /// Whether all is well with its store.
    pub fn maintenance(&self) -> Maintenance<&Self> {
        Maintenance(self)
    }

    /// Cleaning up, and removing a secret for good.
    pub fn maintenance_mut(&mut self) -> Maintenance<&mut Self> {
        Maintenance(self)
    }
}
