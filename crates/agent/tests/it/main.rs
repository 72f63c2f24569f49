//! The agent from outside, against real processes, files and HTTP.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod answers;
mod checkpoint_rewinds;
mod clients;
#[cfg(feature = "typescript")]
mod contract_ts;
mod derived;
mod diffs;
mod drafts;
mod explore;
mod forks;
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
mod prefix;
mod previews;
mod queued_prompts;
mod refusals;
mod scenarios;
mod scene;
mod session;
mod snapshots;
mod socket;
mod summaries;
mod task;
mod tools;
mod word_trace;
mod workspace_queries;
mod world;
