//! What has to be so, written down as it is found to be.

use std::fmt::Debug;

/// The claims that held so far, in their order.
#[derive(Default)]
pub struct Claims {
    held: Vec<String>,
}

impl Claims {
    /// Ends the program with `evidence` unless the claim holds.
    pub fn hold(&mut self, claim: &str, holds: bool, evidence: &dyn Debug) {
        assert!(holds, "not so: {claim}\n{evidence:#?}");
        self.held.push(claim.to_owned());
    }

    pub fn held(&self) -> &[String] {
        &self.held
    }
}
