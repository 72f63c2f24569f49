//! `cargo fuzz run ignore_file`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::ignore_file);
