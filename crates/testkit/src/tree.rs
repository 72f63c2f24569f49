//! Random directories and random things done to them.
//!
//! A [`Case`] is plain data, so a failing one shrinks. Steps name existing paths by number, because which paths exist is known only when a
//! step is carried out; [`Sandbox`] does that on a real directory, keeps a readable log of what really happened, and passes over what is
//! impossible at that moment. [`Counts`] tells which kinds of thing a whole run produced, so that a generator that no longer makes one of
//! them is noticed.

mod apply;
mod change;
mod editor_save;
mod kinds;
mod pools;
mod rules;
mod sandbox;
mod step;
mod story;

pub use editor_save::{Save, Spot};
pub use kinds::{Counts, Happened};
pub use pools::{Content, MAX_FILE, When};
pub use sandbox::{Sandbox, shown};
pub use step::{Case, Form, LinkTarget, Pick, Place, RuleChange, RuleName, Special, Step, Write, case};
pub use story::{Aim, Choice, Deed, Round, Story, Tool, Who, story};
