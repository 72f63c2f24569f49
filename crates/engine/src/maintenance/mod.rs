//! Maintenance of the store: cleaning up, removing a secret for good, finding out whether all is well.

mod doctor;
mod gc;
mod purge;
mod strip_paths;
mod usage;

pub use doctor::{Footprint, SelfTestError, UnderWay};
pub use gc::{Collectable, Collected};
pub use purge::{PurgeError, Purged};
pub use usage::{Integrity, Usage};

#[cfg(test)]
mod tests;
