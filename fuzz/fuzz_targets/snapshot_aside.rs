//! `cargo fuzz run snapshot_aside`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::snapshot_aside);
