//! `cargo fuzz run session_entry`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::session_entry);
