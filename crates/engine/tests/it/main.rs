//! The engine from outside, on real directories.
//!
//! One binary, because linking the engine once is quicker than once for each subject. Some tests run this binary again, in a process
//! of their own, where they switch something on that would disturb the others.

// What a failing run has to tell, its seed and its counts, goes where the test runner shows it.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]
// Each example is a module here, and each has what they share.
#![allow(clippy::duplicate_mod)]

mod capture;
mod cases;
mod collecting;
mod compare;
mod concurrent;
mod examples;
mod footprint;
mod keep;
mod property;
mod rewind;
#[cfg(feature = "faults")]
mod rewind_crash;
#[cfg(feature = "faults")]
mod rewind_hostile;
#[cfg(feature = "faults")]
mod rewind_meanwhile;
mod rewind_property;
mod scanners;
#[cfg(feature = "faults")]
mod seeded;
mod session;
mod session_property;
mod watching;
