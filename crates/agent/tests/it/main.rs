//! The agent from outside, against real processes, files and HTTP.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod answers;
mod around;
mod clients;
#[cfg(feature = "typescript")]
mod contract_ts;
mod derived;
mod diffs;
mod doors;
mod drafts;
mod explore;
mod forks;
mod held;
mod instructions;
mod interrupt;
mod jobs;
mod live;
mod mentions;
mod model;
mod model_cancel;
mod model_errors;
mod model_network;
mod model_prefix;
mod notes;
mod owners;
mod pairs;
mod permissions;
mod points;
mod prefix;
mod previews;
mod refusals;
mod scene;
mod session;
mod snapshots;
mod socket;
mod summaries;
mod task;
mod tools;
mod words;
mod world;
