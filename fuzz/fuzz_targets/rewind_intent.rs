//! `cargo fuzz run rewind_intent`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::rewind_intent);
