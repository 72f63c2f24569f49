//! `cargo fuzz run sse`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_agent::fuzz::sse);
